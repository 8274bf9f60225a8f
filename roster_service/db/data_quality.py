"""The quality of the roster: checks that find the records which a school should look at, and their counts.

A check finds records that the sync takes, because OneRoster allows them, and that vendors still cannot use. One SELECT
finds all its records. The nightly sync stores the counts of each feed once for each revision, so the counts of many
revisions show a trend, and nobody waits for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Engine,
    Select,
    Table,
    delete,
    func,
    insert,
    literal,
    null,
    or_,
    select,
    union_all,
    update,
)

from roster_service.db import tables
from roster_service.db.feed_states import FeedState
from roster_service.db.folding import fold_column
from roster_service.db.run_history import TYPES
from roster_service.db.statement_time import limit_statements
from roster_service.db.tables import CText, feeds, quality_counts
from roster_service.db.visibility import has_row
from roster_service.errors import CommandError

# The revisions of a feed whose counts are kept.
KEPT = 60
# In seconds: of one check of one feed, at night and while a person waits.
LONGEST_STORED, LONGEST_SHOWN = 120, 5
# Stands for the school of a record that has none.
NO_SCHOOL = ""

_users, _classes, _enrollments = tables.users.c, tables.classes.c, tables.enrollments.c
ACTIVE = "active"
# Given the id of a feed, the SELECT of (kind, id, feed_id, school_id, detail) of the records that a check finds.
Find = Callable[[int], Select[Any]]


@dataclass(frozen=True)
class Check:
    """A check. `title`: the findings; `advice`: why they matter, and what to do about them."""

    name: str
    title: str
    advice: str
    find: Find


def _select(table: Table, school: ColumnElement[Any], detail: ColumnElement[Any], feed_id: int) -> Select[Any]:
    """Selects the live records of a feed."""
    columns = (
        literal(TYPES[table.name], CText).label("kind"),
        table.c.sourced_id.label("id"),
        table.c.feed_id.label("feed_id"),
        school.label("school_id"),
        detail.label("detail"),
    )
    return select(*columns).where(table.c.feed_id == feed_id, table.c.status == ACTIVE)


def _find_without_role(feed_id: int) -> Select[Any]:
    role = tables.user_roles.alias()
    found = _select(tables.users, _users.primary_org_id, null(), feed_id)
    return found.where(~has_row(role, role.c.user_id == _users.sourced_id))


def _find_classes_without(role: str) -> Find:
    def find(feed_id: int) -> Select[Any]:
        enrolled = tables.enrollments.alias()
        member = has_row(
            enrolled,
            enrolled.c.class_id == _classes.sourced_id,
            enrolled.c.role == role,
            enrolled.c.status == ACTIVE,
        )
        return _select(tables.classes, _classes.school_id, _classes.class_code, feed_id).where(~member)

    return find


def _find_students_without_class(feed_id: int) -> Select[Any]:
    role, enrolled = tables.user_roles.alias(), tables.enrollments.alias()
    school = select(func.min(role.c.org_id)).where(role.c.user_id == _users.sourced_id, role.c.role == "student")
    is_enrolled = has_row(enrolled, enrolled.c.user_id == _users.sourced_id, enrolled.c.status == ACTIVE)
    is_student = has_row(role, role.c.user_id == _users.sourced_id, role.c.role == "student")
    found = _select(tables.users, school.correlate(tables.users).scalar_subquery(), null(), feed_id)
    return found.where(is_student, ~is_enrolled)


def _find_duplicates(value: ColumnElement[Any]) -> Find:
    def find(feed_id: int) -> Select[Any]:
        same = func.count().over(partition_by=value)
        found = (
            _select(tables.users, _users.primary_org_id, value, feed_id)
            .where(value != "")
            .add_columns(same.label("same"))
        )
        counted = found.subquery("counted")
        return select(*list(counted.c)[:-1]).where(counted.c.same > 1)

    return find


def _find_outside_session(feed_id: int) -> Select[Any]:
    """Enrollments of which no day is between the first day of their class's terms and the last one. (Many systems give
    each enrollment the dates of the whole year, also in a class of half a year: that is no finding.)"""
    link, session = tables.class_terms.alias(), tables.academic_sessions.alias()
    spans = (
        select(
            link.c.class_id,
            func.min(session.c.start_date).label("first"),
            func.max(session.c.end_date).label("last"),
        )
        .join(session, session.c.sourced_id == link.c.session_id)
        .where(session.c.status == ACTIVE)
        .group_by(link.c.class_id)
        .subquery("spans")
    )
    dates = func.concat_ws(
        " – ",
        func.to_char(_enrollments.begin_date, "YYYY-MM-DD"),
        func.to_char(_enrollments.end_date, "YYYY-MM-DD"),
        type_=CText,
    )
    found = _select(tables.enrollments, _enrollments.school_id, dates, feed_id)
    outside = or_(_enrollments.begin_date >= spans.c.last, _enrollments.end_date <= spans.c.first)
    return found.join(spans, spans.c.class_id == _enrollments.class_id).where(outside)


# Each reference: the table of the record, the school to which it belongs, the column with the other id, and the other
# table. References from the tables of parts follow below.
_REFERENCES: Sequence[tuple[Column[Any], ColumnElement[Any], Table]] = (
    (tables.orgs.c.parent_id, null(), tables.orgs),
    (tables.academic_sessions.c.parent_id, null(), tables.academic_sessions),
    (tables.courses.c.org_id, tables.courses.c.org_id, tables.orgs),
    (tables.courses.c.school_year_id, tables.courses.c.org_id, tables.academic_sessions),
    (_classes.course_id, _classes.school_id, tables.courses),
    (_classes.school_id, _classes.school_id, tables.orgs),
    (_users.primary_org_id, _users.primary_org_id, tables.orgs),
    (_enrollments.user_id, _enrollments.school_id, tables.users),
    (_enrollments.class_id, _enrollments.school_id, tables.classes),
    (_enrollments.school_id, _enrollments.school_id, tables.orgs),
    (tables.demographics.c.sourced_id, null(), tables.users),
)
# Of parts: the column with the id of the record, its table, its school, the column with the other id, the other table.
_PART_REFERENCES: Sequence[tuple[Column[Any], Table, ColumnElement[Any], Column[Any], Table]] = (
    (
        tables.class_terms.c.class_id,
        tables.classes,
        _classes.school_id,
        tables.class_terms.c.session_id,
        tables.academic_sessions,
    ),
    (
        tables.user_roles.c.user_id,
        tables.users,
        tables.user_roles.c.org_id,
        tables.user_roles.c.org_id,
        tables.orgs,
    ),
    (
        tables.user_agents.c.user_id,
        tables.users,
        _users.primary_org_id,
        tables.user_agents.c.agent_id,
        tables.users,
    ),
)


def _find_orphans(feed_id: int) -> Select[Any]:
    """Live records that refer to a record which is not live."""

    def is_live(column: ColumnElement[Any], target: Table) -> ColumnElement[bool]:
        other = target.alias()
        return has_row(other, other.c.sourced_id == column, other.c.status == ACTIVE)

    found = [
        _select(column.table, school, column, feed_id).where(column.is_not(None), ~is_live(column, target))
        for column, school, target in _REFERENCES
    ]
    found += [
        _select(table, school, column, feed_id)
        .join(own.table, own == table.c.sourced_id)
        .where(~is_live(column, target))
        for own, table, school, column, target in _PART_REFERENCES
    ]
    return select(union_all(*found).subquery("orphans"))


CHECKS: Sequence[Check] = (
    Check(
        "people-without-role",
        "People without a role",
        "No vendor sees them. The export has no role of them at any org: give them one in the SIS, or take them out.",
        _find_without_role,
    ),
    Check(
        "students-without-class",
        "Students without a class",
        "They can log in nowhere that goes by classes. Enroll them in the SIS, or look whether their enrollments were "
        "rejected in the last run.",
        _find_students_without_class,
    ),
    Check(
        "classes-without-teacher",
        "Classes without a teacher",
        "Nobody can teach in them: assign a teacher in the SIS.",
        _find_classes_without("teacher"),
    ),
    Check(
        "classes-without-students",
        "Classes without a student",
        "They are empty for every vendor. Often they are left over from another year: take them out in the SIS.",
        _find_classes_without("student"),
    ),
    Check(
        "same-email",
        "People with the same e-mail",
        "Vendors that log people in by e-mail mix them up. Within one feed, capitals make no difference.",
        _find_duplicates(fold_column(_users.email)),
    ),
    Check(
        "same-identifier",
        "People with the same identifier",
        "Vendors that match people by their number mix them up. Often one person is in the SIS twice.",
        _find_duplicates(_users.identifier),
    ),
    Check(
        "enrollments-outside-session",
        "Enrollments outside their session",
        "They begin after the last term of their class, or end before the first one: correct the dates in the SIS.",
        _find_outside_session,
    ),
    Check(
        "orphans",
        "References to records that are not there",
        "A record names another one that the roster does not have, or that is deleted. The sync rejects such rows, so "
        "these are from a feed whose next run has not come, or parts of a record that it could not correct.",
        _find_orphans,
    ),
)
CHECKS_BY_NAME = {check.name: check for check in CHECKS}


@dataclass(frozen=True)
class Finding:
    """A record that a check has found. `detail`: the value or the id that is wrong, None if there is none."""

    kind: str
    sourcedId: str  # noqa: N815  (the name in OneRoster)
    feed: str
    school: str | None
    schoolName: str | None  # noqa: N815
    detail: str | None


@dataclass(frozen=True)
class FeedQuality:
    """The counts of a feed. `revision`: that they are of; `counted`: when, None for right now; `totals`: by check, None
    where the count took too long; `schools`: by check, the number by school; `trend`: by check, the totals of the
    revisions before and of this one, the oldest first."""

    feed: str
    revision: int
    counted: str | None
    totals: Mapping[str, int | None]
    schools: Mapping[str, Mapping[str, int]]
    trend: Mapping[str, Sequence[int]]


def read_findings(
    connection: Connection, check: Check, feed: str | None, school: str | None, window: tuple[int, int]
) -> list[Finding]:
    """Reads the findings of a check, by feed and id. `window`: (rows to skip, rows to read). Raises CommandError if it
    takes too long, and for an unknown feed."""
    ids = {name: key for key, name in _list_feeds(connection) if feed in (None, name)}
    if feed is not None and not ids:
        raise CommandError(f"there is no feed {feed}")
    if not ids:
        return []
    found = union_all(*(check.find(key) for key in ids.values())).subquery("found")
    org = tables.orgs.alias()
    rows = (
        select(found, feeds.c.name.label("feed"), org.c.name.label("school_name"))
        .join(feeds, feeds.c.id == found.c.feed_id)
        .outerjoin(org, org.c.sourced_id == found.c.school_id)
        .order_by(feeds.c.name, found.c.id, found.c.detail)
        .offset(window[0])
        .limit(window[1])
    )
    if school is not None:
        rows = rows.where(func.coalesce(found.c.school_id, NO_SCHOOL) == school)
    with limit_statements(connection, LONGEST_SHOWN):
        return [
            Finding(row.kind, row.id, row.feed, row.school_id, row.school_name, row.detail)
            for row in connection.execute(rows)
        ]


def read_quality(connection: Connection) -> list[FeedQuality]:
    """Reads the counts of every feed, by name: those of its present revision, and the totals of those before. Counts
    that are not stored are made now."""
    return [_read_feed(connection, key, name) for key, name in _list_feeds(connection)]


def read_trend(connection: Connection, check: str, feed: str, since: date) -> list[tuple[date, int]]:
    """Lists (day, records that the check has found) of the stored counts of a feed, the oldest first: the last one of
    each day from `since` on, in UTC."""
    rows = (
        select(quality_counts.c.counted_at, quality_counts.c.totals[check].as_integer().label("number"))
        .join(feeds, feeds.c.id == quality_counts.c.feed_id)
        .where(feeds.c.name == feed, quality_counts.c.counted_at >= since)
        .order_by(quality_counts.c.revision)
    )
    found = {row.counted_at.astimezone(UTC).date(): row.number for row in connection.execute(rows)}
    return [(day, number) for day, number in found.items() if number is not None]


def store_counts(engine: Engine) -> int:
    """Stores the counts of each feed whose present revision has none, and returns the number of those feeds."""
    with engine.connect() as connection:
        wanted = _list_feeds(connection)
    stored = 0
    for feed_id, _ in wanted:
        with engine.begin() as connection:
            revision = _read_revision(connection, feed_id)
            own = quality_counts.c.feed_id == feed_id
            if connection.scalar(select(quality_counts.c.revision).where(own, quality_counts.c.revision == revision)):
                continue
            schools = dict(_count(connection, feed_id, LONGEST_STORED))
            connection.execute(update(quality_counts).where(own).values(schools=None))
            totals = {name: None if found is None else sum(found.values()) for name, found in schools.items()}
            row = {"feed_id": feed_id, "revision": revision, "totals": totals, "schools": schools}
            connection.execute(insert(quality_counts).values(row))
            kept = select(quality_counts.c.revision).where(own).order_by(quality_counts.c.revision.desc()).limit(KEPT)
            connection.execute(delete(quality_counts).where(own, quality_counts.c.revision.not_in(kept)))
            stored += 1
    return stored


def _list_feeds(connection: Connection) -> list[tuple[int, str]]:
    """Lists (id, name) of the feeds that have been loaded, by name."""
    loaded = (feeds.c.state == FeedState.ADDED) & (feeds.c.revision > 0)
    rows = select(feeds.c.id, feeds.c.name).where(loaded).order_by(feeds.c.name)
    return [(row.id, row.name) for row in connection.execute(rows)]


def _read_revision(connection: Connection, feed_id: int) -> int:
    return connection.scalar(select(feeds.c.revision).where(feeds.c.id == feed_id)) or 0


def _read_feed(connection: Connection, feed_id: int, name: str) -> FeedQuality:
    revision = _read_revision(connection, feed_id)
    stored = select(quality_counts).where(quality_counts.c.feed_id == feed_id).order_by(quality_counts.c.revision)
    rows = connection.execute(stored).all()
    now = next((row for row in rows if row.revision == revision), None)
    schools = dict(_count(connection, feed_id, LONGEST_SHOWN)) if now is None else now.schools
    totals = {check: None if found is None else sum(found.values()) for check, found in schools.items()}
    history = [*(row.totals for row in rows if row.revision < revision), totals]
    return FeedQuality(
        name,
        revision,
        None if now is None else now.counted_at.isoformat(timespec="seconds"),
        totals,
        {check: found or {} for check, found in schools.items()},
        {check.name: [it[check.name] for it in history if it.get(check.name) is not None] for check in CHECKS},
    )


def _count(connection: Connection, feed_id: int, seconds: float) -> Iterator[tuple[str, Mapping[str, int] | None]]:
    """Yields for each check its name and the number of its findings by school; None where it took too long."""
    for check in CHECKS:
        found = check.find(feed_id).subquery("found")
        school = func.coalesce(found.c.school_id, NO_SCHOOL)
        rows = select(school.label("school"), func.count().label("number")).group_by(school)
        counted: Mapping[str, int] | None
        try:
            with limit_statements(connection, seconds):
                counted = {row.school: row.number for row in connection.execute(rows)}
        except CommandError:
            counted = None
        yield check.name, counted
