"""A person on one page: what people know the person by, what was shown of the person, and why something is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import sqlalchemy as sa

from roster_service.access_log.reports import AccessLogFilter, sum_disclosures
from roster_service.accounts.parts import PARTS
from roster_service.db import tables
from roster_service.db.tables import (
    classes,
    enrollments,
    orgs,
    sync_rejections,
    sync_runs,
    user_roles,
    users,
)
from roster_service.explore.known_people import EXCLUDED, KnownPerson, Whereabouts, is_rejected
from roster_service.explore.record_facts import select_guardians
from roster_service.explore.rejected_rows import explain_record
from roster_service.feeds.feed_conditions import list_conditions
from roster_service.feeds.feed_states import FeedState
from roster_service.feeds.feeds import list_feeds
from roster_service.roster.visibility import has_row
from roster_service.schemas.versions import DEMOGRAPHICS, USERS
from roster_service.settings import Settings

ACTIVE = "active"


@dataclass(frozen=True)
class Related:
    """Somebody or something that a person belongs to. `detail`: the role there, the teachers of a class, or how to
    reach a guardian; blank if the roster has none."""

    sourcedId: str  # noqa: N815  (the name in OneRoster)
    name: str
    detail: str


@dataclass(frozen=True)
class PersonCard:
    """What people know a person by: the values of the roster, None or empty where it has none."""

    grades: Sequence[str]
    username: str | None
    identifier: str | None
    email: str | None
    phone: str | None
    sms: str | None
    schools: Sequence[Related]
    classes: Sequence[Related]
    guardians: Sequence[Related]


@dataclass(frozen=True)
class ShownParts:
    """What a vendor was shown on some days, by the log; each day of a vendor stands in one of them. `parts`: the words
    for all that the answers of such a day had, none for records of people without a part; `days`: in UTC, ISO 8601, in
    their order."""

    vendor: str
    parts: Sequence[str]
    days: Sequence[str]


@dataclass(frozen=True)
class MissingCause:
    """A reason why a person or a part is missing. `run`: that it is about, `is_held`: whether it waits for a decision;
    `feed`: that it is about."""

    words: str
    run: int | None = None
    is_held: bool = False
    feed: str | None = None


def read_card(connection: sa.Connection, sourced_id: str) -> PersonCard:
    """Reads the card of a person of the roster."""
    row = connection.execute(sa.select(users).where(users.c.sourced_id == sourced_id)).one()

    def read(found: sa.Select[Any]) -> list[Related]:
        return [Related(key, name or key, detail or "") for key, name, detail in connection.execute(found)]

    org, guardian, teacher, teaching = (table.alias() for table in (orgs, users, users, enrollments))
    roles = sa.select(org.c.sourced_id, org.c.name, sa.func.string_agg(user_roles.c.role.distinct(), ", "))
    roles = roles.join_from(user_roles, org, org.c.sourced_id == user_roles.c.org_id)
    roles = roles.where(user_roles.c.user_id == sourced_id).group_by(org.c.sourced_id, org.c.name)
    named = sa.func.concat(teacher.c.given_name, " ", teacher.c.family_name, type_=sa.Text)
    teachers = sa.select(sa.func.string_agg(named.distinct(), ", ")).where(
        teaching.c.class_id == classes.c.sourced_id,
        teaching.c.role == "teacher",
        teaching.c.status == ACTIVE,
        teacher.c.sourced_id == teaching.c.user_id,
    )
    taken = sa.select(classes.c.sourced_id, classes.c.title, teachers.correlate(classes).scalar_subquery()).where(
        has_row(
            enrollments,
            enrollments.c.user_id == sourced_id,
            enrollments.c.class_id == classes.c.sourced_id,
            enrollments.c.status == ACTIVE,
        )
    )
    reached = sa.func.concat_ws(", ", guardian.c.email, guardian.c.phone, guardian.c.sms, type_=sa.Text)
    whole = sa.func.concat(guardian.c.given_name, " ", guardian.c.family_name, type_=sa.Text)
    agents = sa.select(guardian.c.sourced_id, whole, reached)
    agents = agents.where(guardian.c.sourced_id.in_(select_guardians(sourced_id)))
    return PersonCard(
        grades=row.grades or (),
        username=row.username,
        identifier=row.identifier,
        email=row.email,
        phone=row.phone,
        sms=row.sms,
        schools=read(roles.order_by(org.c.name)),
        classes=read(taken.order_by(classes.c.title, classes.c.sourced_id)),
        guardians=read(agents.order_by(guardian.c.family_name, guardian.c.given_name, guardian.c.sourced_id)),
    )


def read_days(connection: sa.Connection, wanted: AccessLogFilter) -> Mapping[tuple[str, str], frozenset[str]]:
    """Returns the parts of people that the wanted answers had, by vendor and day: none for records of people without a
    part. A vendor that was shown nothing of people, such as the schools alone, is left out."""
    days: dict[tuple[str, str], frozenset[str]] = {}
    for row in sum_disclosures(connection, wanted):
        if row.parts or row.has_people:
            days[row.vendor, row.day] = days.get((row.vendor, row.day), frozenset()).union(row.parts)
    return days


def list_shown(connection: sa.Connection, wanted: AccessLogFilter) -> list[ShownParts]:
    """Returns what `read_days` does, by vendor and parts: one sentence each."""
    days: dict[tuple[str, frozenset[str]], list[str]] = {}
    for (vendor, day), names in sorted(read_days(connection, wanted).items(), key=itemgetter(0)):
        days.setdefault((vendor, names), []).append(day)
    return [
        ShownParts(vendor, [part.words for part in PARTS.values() if part.name in names], found)
        for (vendor, names), found in days.items()
    ]


def list_causes(connection: sa.Connection, person: KnownPerson, settings: Settings) -> Iterator[MissingCause]:
    """Yields why a person, or a part of the person, may be missing: what keeps the person out, the feed, rejected rows,
    roles. The grants are the grid's."""
    if person.whereabouts in EXCLUDED:
        yield MissingCause(f"The person is {person.whereabouts}: no vendor gets anything of the person.")
    row = connection.execute(sa.select(users).where(users.c.sourced_id == person.sourcedId)).one_or_none()
    feeds = [feed for feed in list_feeds(connection, settings.time_zone) if feed.state != FeedState.REMOVED]
    if row is not None:
        own = connection.scalar(sa.select(tables.feeds.c.name).where(tables.feeds.c.id == row.feed_id))
        feeds = [feed for feed in feeds if feed.name == own]
        if row.status != ACTIVE:
            yield MissingCause(
                f"The export of {own} has the person no more; vendors get the record as deleted.", feed=own
            )
        elif not connection.scalar(sa.select(sa.exists().where(user_roles.c.user_id == person.sourcedId))):
            yield MissingCause("The person has no role at any org, so no vendor sees the record.")
    elif person.whereabouts is Whereabouts.DISCLOSED:
        yield MissingCause("The roster has no such person any more; the access log has the person.")
    # Nobody knows the feed of a person who is not in the roster: the rejected rows, and the held exports, may.
    rejecting = {feed.name for feed in feeds} if row else set(connection.scalars(_select_feeds(person.sourcedId)))
    for feed in feeds:
        if feed.name in rejecting:
            yield from _list_rejections(connection, person.sourcedId, feed.name)
        for condition in list_conditions(feed, settings):
            if condition.needs and (row is not None or feed.held_run is not None):
                held = condition.run == feed.held_run and condition.run is not None
                yield MissingCause(f"The feed {feed.name}: {condition.sentence}.", condition.run, held, feed.name)


def _select_feeds(sourced_id: str) -> sa.Select[str]:
    """Selects the names of the feeds with a rejected row that names a person."""
    runs = sync_rejections.join(sync_runs, sync_runs.c.id == sync_rejections.c.run_id)
    joined = runs.join(tables.feeds, tables.feeds.c.id == sync_runs.c.feed_id)
    return sa.select(tables.feeds.c.name).select_from(joined).where(is_rejected(sourced_id)).distinct()


def _list_rejections(connection: sa.Connection, sourced_id: str, feed: str) -> Iterator[MissingCause]:
    for type_ in (USERS.plural, DEMOGRAPHICS.plural):
        found = explain_record(connection, type_, sourced_id, feed)
        if found is not None:
            first = found.rows[0]
            place = f"{first.file}, line {first.line:,}" if first.line else first.file
            rows = "1 row that names" if found.count == 1 else f"{found.count:,} rows that name"
            words = f"Run {found.run} of {feed} rejected {rows} the person; {place}: {first.reason}."
            yield MissingCause(words, run=found.run)
