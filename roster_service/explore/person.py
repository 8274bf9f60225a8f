"""A person on one page: which vendor sees which part, what was shown of the person, and why something is missing.

Who sees the record is told by `who_sees`, what a vendor gets of people by `accounts/parts.py`; a test compares the
grid with the answers of the interfaces. Nothing here has the contents of a record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import itemgetter
from typing import Any

import sqlalchemy as sa

from roster_service.accounts.kept_people import list_kept
from roster_service.accounts.parts import PARTS, Received, is_withheld, list_opened, list_received
from roster_service.accounts.vendors import Vendor, list_vendors
from roster_service.accounts.ways import VENDOR_INTERFACE
from roster_service.auth.access_log.reports import AccessLogFilter, sum_disclosures
from roster_service.db import tables
from roster_service.db.tables import (
    classes,
    demographics,
    enrollments,
    orgs,
    sync_rejections,
    sync_runs,
    user_roles,
    users,
)
from roster_service.explore.known_people import EXCLUDED, KnownPerson, Whereabouts, is_rejected
from roster_service.explore.rejected_rows import explain_record
from roster_service.explore.who_sees import Verdict, list_following, select_guardians
from roster_service.feeds.feed_conditions import list_conditions
from roster_service.feeds.feed_states import FeedState
from roster_service.feeds.feeds import list_feeds
from roster_service.roster.visibility import has_row
from roster_service.roster.withheld import WithheldField
from roster_service.schemas.versions import DEMOGRAPHICS, USERS
from roster_service.settings import Settings

# The columns of the grid, with the parts of each; those of demographics alone follow another record.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "Name": ("names",),
    "E-mail": ("email",),
    "Demographics": ("birthDate", "sex", "race", "birthPlace", "residence"),
    "Guardians": ("guardians",),
    "Classes": ("classes",),
}
# The columns that show other records, which the grants open or not.
FOLLOWING = ("Guardians", "Classes")
ACTIVE = "active"
# The parts that a vendor was shown on a day, and whether at most.
_DayParts = tuple[frozenset[str], bool]


class Seeing(StrEnum):
    """Whether a vendor sees a part of a person. The value is shown."""

    SEES = "sees"
    WITHHELD = "withheld"
    CLOSED = "not granted"
    EMPTY = "has none"


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
class GridCell:
    """A cell of the grid. `reason`: why, in words."""

    state: Seeing
    reason: str


@dataclass(frozen=True)
class GridRow:
    """A vendor in the grid. `only`: what the rules of its grants open where the person is, in words, blank for all;
    `is_kept`: whether the person is kept from it; `sees`: whether it sees any part; `cells`: in the order of
    `COLUMNS`."""

    vendor: str
    name: str
    id: int
    only: str
    is_kept: bool
    sees: bool
    cells: Sequence[GridCell]


@dataclass(frozen=True)
class ShownParts:
    """What a vendor was shown on some days, by the log; each day of a vendor stands in one of them. `parts`: the words
    for all that the answers of such a day had, none for records of people without a part; `at_most`: as in
    `AccessLogRow`; `days`: in UTC, ISO 8601, in their order."""

    vendor: str
    parts: Sequence[str]
    at_most: bool
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


def make_grid(connection: sa.Connection, sourced_id: str, verdicts: Sequence[Verdict]) -> list[GridRow]:
    """Returns what each vendor sees of a person of the roster, by e-mail. `verdicts`: of `list_verdicts`."""
    received, absent = list_received(connection), _find_absent(connection, sourced_id)
    following = list_following(connection, sourced_id)
    kept = {person.vendor_id for person in list_kept(connection, sourced_id=sourced_id)}
    rows = []
    for vendor in list_vendors(connection):
        own = [verdict for verdict in verdicts if verdict.vendor == vendor.email]
        cells = {column: _judge(vendor, column, own, received[vendor.email]) for column in COLUMNS}
        for column, cell in cells.items():
            if cell.state is Seeing.SEES and column in absent:
                cells[column] = GridCell(Seeing.EMPTY, absent[column])
            elif cell.state is Seeing.SEES and column in FOLLOWING and column not in following[vendor.email]:
                cells[column] = GridCell(Seeing.CLOSED, f"no grant of the vendor opens one of the {column.lower()}")
        only = next((verdict.only for verdict in own if verdict.kind == USERS.singular), "")
        sees = any(cell.state is Seeing.SEES for cell in cells.values())
        rows.append(GridRow(vendor.email, vendor.name, vendor.id, only, vendor.id in kept, sees, list(cells.values())))
    return rows


def _judge(vendor: Vendor, column: str, verdicts: Sequence[Verdict], received: Received) -> GridCell:
    """Whether a vendor sees a part of a person who has it. `verdicts`: of the vendor."""
    people = [verdict for verdict in verdicts if verdict.kind == USERS.singular]
    ways = {verdict.by for verdict in people if verdict.shown}
    # What the record of a student names has some parts alone.
    narrow = {verdict.by: verdict for verdict in people if verdict.parts is not None}
    if column == "Demographics":
        # The vendor interface has them inside of the student.
        ways &= {VENDOR_INTERFACE}
        ways |= {verdict.by for verdict in verdicts if verdict.shown and verdict.kind == DEMOGRAPHICS.singular}
    if not ways and not any(verdict.shown for verdict in people):
        # The vendor interface has students alone, so the reason of a client says more.
        hidden = [verdict for verdict in people if verdict.by != VENDOR_INTERFACE] or people
        return GridCell(Seeing.CLOSED, "; ".join(dict.fromkeys(verdict.reason for verdict in hidden)))
    if column == "Guardians" and WithheldField.AGENTS in vendor.withheld:
        return GridCell(Seeing.WITHHELD, "which guardians the person has is withheld from the vendor (`agents`)")
    seen = {
        part: [way for way in received.get(part, ()) if way in ways and (way not in narrow or narrow[way].shows(part))]
        for part in COLUMNS[column]
    }
    by = dict.fromkeys(way for found in seen.values() for way in found)
    if by:
        words = ", ".join(PARTS[part].words for part, found in seen.items() if found)
        return GridCell(Seeing.SEES, f"{words}: by {', '.join(by)}" if len(seen) > 1 else f"by {', '.join(by)}")
    if all(is_withheld(PARTS[part], vendor) for part in COLUMNS[column]):
        return GridCell(Seeing.WITHHELD, "on the list of fields that are withheld from the vendor")
    return GridCell(Seeing.CLOSED, "no secret, link, delivery or key of it has the scope or the flag for it")


def _find_absent(connection: sa.Connection, sourced_id: str) -> Mapping[str, str]:
    """The columns that the roster itself has nothing for, with the words for that."""
    has = {
        "E-mail": sa.exists().where(users.c.sourced_id == sourced_id, users.c.email != ""),
        "Demographics": sa.exists().where(demographics.c.sourced_id == sourced_id, demographics.c.status == ACTIVE),
        "Guardians": sa.exists(select_guardians(sourced_id)),
        "Classes": sa.exists().where(enrollments.c.user_id == sourced_id, enrollments.c.status == ACTIVE),
    }
    found = connection.execute(sa.select(*(condition.label(column) for column, condition in has.items()))).one()
    return {
        column: f"the roster has no {column.lower()} of this person"
        for column, known in found._asdict().items()
        if not known
    }


def list_shown(connection: sa.Connection, wanted: AccessLogFilter) -> list[ShownParts]:
    """Returns what the access log says of the wanted answers, by vendor and parts: one sentence each. A vendor that was
    shown nothing of people, such as the schools alone, is left out."""
    of_days: dict[tuple[str, str], _DayParts] = {}
    for row in sum_disclosures(connection, wanted):
        parts = list_opened(row.path or "", row.scope) if row.parts is None else row.parts
        if parts or (row.has_people and row.parts is not None):
            known, at_most = of_days.get((row.vendor, row.day), (frozenset(), False))
            of_days[row.vendor, row.day] = known.union(parts), at_most or row.parts is None
    days: dict[tuple[str, _DayParts], list[str]] = {}
    for (vendor, day), of_day in sorted(of_days.items(), key=itemgetter(0)):
        days.setdefault((vendor, of_day), []).append(day)
    return [
        ShownParts(vendor, [part.words for part in PARTS.values() if part.name in names], at_most, found)
        for (vendor, (names, at_most)), found in days.items()
    ]


def list_causes(connection: sa.Connection, person: KnownPerson, settings: Settings) -> Iterator[MissingCause]:
    """Yields why a person, or a part of the person, may be missing: what keeps the person out, the feed, rejected rows,
    roles. The grants are the grid's."""
    if person.whereabouts in EXCLUDED:
        yield MissingCause(f"The person is {person.whereabouts}: no vendor gets anything of the person.")
    row = connection.execute(sa.select(users).where(users.c.sourced_id == person.sourcedId)).one_or_none()
    feeds = [feed for feed in list_feeds(connection, settings.time_zone) if feed.state == FeedState.ADDED]
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
