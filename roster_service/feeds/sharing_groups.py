"""The groups of grants with rules: which records each grant opens, kept as rows of `group_members`.

A run that moves a record into a group, or out of it, stamps the record for the vendor of the group alone: with `since`,
or with a departure. A changed rule does neither, since it moves the floor of its vendor.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from roster_service.db.tables import (
    CText,
    Stamp,
    classes,
    courses,
    demographics,
    departures,
    enrollments,
    group_members,
    orgs,
    user_agents,
    users,
    vendor_grants,
    vendors,
    visible_labels,
)
from roster_service.feeds import sharing_members
from roster_service.feeds.sharing_members import WANTED, Extent
from roster_service.roster.references import PERSONS

# Changes of grants with rules, and publications, take it before the row of a vendor: without it, a rule that is made
# beside a run would not count for what the run writes.
_LOCK = sa.text("SELECT pg_advisory_xact_lock(hashtext('roster groups'))")
_NAMES = ("type", "sourced_id", "org_id", "role")
_CAME, _LEFT = "came", "left"
# What comes into groups and leaves them.
_MOVED = sharing_members.describe_table("moved_members", *_NAMES, "way", numbers=["grant_id"])


def lock_groups(connection: sa.Connection) -> None:
    """Waits for the end of all other transactions that make groups."""
    connection.execute(_LOCK)


def refresh_groups_of(connection: sa.Connection, feed_ids: Collection[int], stamp: datetime, *, noted: bool) -> None:
    """Makes the groups of these feeds right, as the transaction sees the roster, with the stamps and the departures of
    what has moved. `noted`: all that may have moved is among the candidates, and nothing else is looked at. Call it
    before the vendors of the feeds are updated. The transaction has the lock of `lock_groups`."""
    other = sa.exists().where(orgs.c.sourced_id == vendor_grants.c.district_id, orgs.c.feed_id.not_in(feed_ids))
    _make_groups(connection, sa.and_(vendor_grants.c.staff.is_not(None), ~other), stamp, noted=noted)


def make_group(connection: sa.Connection, grant_id: int) -> None:
    """Makes the group of a new grant with rules, whose records get no stamp. The transaction has the lock of
    `lock_groups`."""
    _make_groups(connection, vendor_grants.c.id == grant_id, None, noted=False)


def _make_groups(
    connection: sa.Connection, of_grants: sa.ColumnElement[bool], stamp: datetime | None, *, noted: bool
) -> None:
    columns = [vendor_grants.c[field.name] for field in fields(Extent)]
    grants = connection.execute(sa.select(vendor_grants.c.id, *columns).where(of_grants).order_by(vendor_grants.c.id))
    extents = {grant_id: Extent(*values) for grant_id, *values in grants}
    if not extents:
        return
    sharing_members.find_members(connection, extents, noted=noted)
    _find_moved(connection, extents, noted=noted)
    if stamp is not None:
        for table in (classes, courses, users, demographics, enrollments):
            _write_departures(connection, table, stamp)
    member = (group_members.c.group_id, *(group_members.c[name] for name in _NAMES))
    moved = (_MOVED.c.grant_id, *(_MOVED.c[name] for name in _NAMES))
    gone = sa.and_(_MOVED.c.way == _LEFT, *(a == b for a, b in zip(member, moved, strict=True)))
    connection.execute(sa.delete(group_members).where(gone))
    since = sa.literal(stamp, Stamp) if stamp is not None else sa.cast(sa.literal_column("'epoch'"), Stamp)
    came = sa.select(*moved, since).where(_MOVED.c.way == _CAME)
    connection.execute(group_members.insert().from_select(["group_id", *_NAMES, "since"], came))
    if stamp is not None:
        _stamp_parts(connection, stamp)


def _find_moved(connection: sa.Connection, grant_ids: Collection[int], *, noted: bool) -> None:
    """Makes the table of the members that groups have and should not have, and of those that they lack."""
    sharing_members.make_temporary(connection, _MOVED)
    known = sa.select(group_members).where(group_members.c.group_id.in_(grant_ids))
    wanted = sa.select(WANTED)
    if noted:
        known = known.where(sharing_members.is_candidate(group_members.c.type, group_members.c.sourced_id))
        wanted = wanted.where(sharing_members.is_candidate(WANTED.c.type, WANTED.c.sourced_id))
    old, new = known.subquery("old"), wanted.subquery("new")
    pairs = [(old.c.group_id, new.c.grant_id), *((old.c[name], new.c[name]) for name in _NAMES)]
    is_new = old.c.group_id.is_(None)
    way = sa.case((is_new, _CAME), else_=_LEFT)
    moved = (
        sa.select(*(sa.func.coalesce(*pair) for pair in pairs), way)
        .select_from(old.join(new, sa.and_(*(mine == theirs for mine, theirs in pairs)), full=True))
        .where(sa.or_(is_new, new.c.grant_id.is_(None)))
    )
    connection.execute(_MOVED.insert().from_select([column.name for column in _MOVED.c], moved))
    sharing_members.analyze(connection, _MOVED)


def count_members(connection: sa.Connection, grant_id: int) -> dict[str, int]:
    """Returns how many records of each type the group of a grant has; students apart from other users."""
    number = sa.func.count(sa.distinct(group_members.c.sourced_id)).label("number")
    kind = sa.case((group_members.c.role == "student", "students"), else_=group_members.c.type).label("kind")
    rows = sa.select(kind, number).where(group_members.c.group_id == grant_id)
    return {row.kind: row.number for row in connection.execute(rows.group_by(sa.text("kind")))}


@dataclass(frozen=True)
class EmptyRule:
    """A rule that opens nothing now, as where its subject is in no class any more. `kind`: of the records that the
    filter is about, `student` or `class`; `place`: the name of the school or district."""

    vendor_id: int
    vendor: str
    kind: str
    place: str
    filter: str


def list_empty_rules(connection: sa.Connection) -> list[EmptyRule]:
    """Lists the rules that open nothing now, by vendor and place."""
    place = orgs.alias()
    place_id = sa.func.coalesce(vendor_grants.c.school_id, vendor_grants.c.district_id)
    named = sa.func.coalesce(place.c.name, place_id).label("place")
    own = group_members.c.group_id == vendor_grants.c.id
    has_classes = sa.exists().where(own, group_members.c.type == classes.name)
    has_students = sa.exists().where(own, group_members.c.role == "student")
    # Without a shared class, no student is shared, whatever the rule of students.
    is_no_wonder = sa.and_(vendor_grants.c.classes.is_not(None), ~has_classes)
    members = {
        "class": (vendor_grants.c.classes, has_classes),
        "student": (vendor_grants.c.students, has_students | is_no_wonder),
    }
    empty = [
        sa.select(vendors.c.id, vendors.c.name, sa.literal(kind, CText).label("kind"), named, rule.label("filter"))
        .select_from(vendor_grants.join(vendors).outerjoin(place, place.c.sourced_id == place_id))
        .where(rule.is_not(None), ~is_opened)
        for kind, (rule, is_opened) in members.items()
    ]
    return [EmptyRule(*row) for row in connection.execute(sa.union_all(*empty).order_by("name", "place", "kind"))]


def _write_departures(connection: sa.Connection, table: sa.Table, stamp: datetime) -> None:
    """Writes the departures of the records that leave groups. One that is deleted for good leaves none."""
    kind = users if table is demographics else table
    values: dict[str, Any] = {
        "type": sa.literal(table.name, CText),
        "sourced_id": table.c.sourced_id,
        "label_id": sa.literal(0),
        "feed_id": table.c.feed_id,
        "person_id": PERSONS[table] if table in PERSONS else sa.cast(sa.null(), CText),
        "departed_at": find_departure(table, stamp),
        "group_id": _MOVED.c.grant_id,
        "org_id": _MOVED.c.org_id,
        "role": _MOVED.c.role,
    }
    has_left = sa.and_(_MOVED.c.type == kind.name, _MOVED.c.way == _LEFT)
    rows = sa.select(*values.values()).where(has_left, _MOVED.c.sourced_id == table.c.sourced_id)
    store_departures(connection, list(values), rows)


def find_departure(table: sa.Table, stamp: datetime) -> sa.ColumnElement[datetime]:
    """Returns the instant of the departure of a record that leaves at `stamp`: that of its tombstone, if it is deleted,
    so that nobody is told again, and the purge takes both."""
    return sa.case((table.c.status == "active", sa.literal(stamp, Stamp)), else_=table.c.date_last_modified)


def store_departures(connection: sa.Connection, names: list[str], rows: sa.Select[Any]) -> None:
    """Stores departures. `rows`: have the columns `names`; one that is there already gets the instant of now."""
    added = upsert(departures).from_select(names, rows)
    changed = {"departed_at": added.excluded.departed_at}
    connection.execute(added.on_conflict_do_update(index_elements=list(departures.primary_key), set_=changed))


def _stamp_parts(connection: sa.Connection, stamp: datetime) -> None:
    """Stamps the users of groups who show something else now, because of what came into them or left them: an own role
    or enrollment, a teacher of a class, an agent."""
    own, mate = enrollments.alias(), enrollments.alias()
    of_users = _MOVED.c.type == users.name
    of_enrollments = sa.and_(_MOVED.c.type == enrollments.name, own.c.sourced_id == _MOVED.c.sourced_id)
    touched = sa.union(
        sa.select(_MOVED.c.grant_id, _MOVED.c.sourced_id.label("user_id")).where(of_users),
        sa.select(_MOVED.c.grant_id, own.c.user_id).where(of_enrollments),
        sa.select(_MOVED.c.grant_id, mate.c.user_id).where(
            of_enrollments, own.c.role == "teacher", mate.c.class_id == own.c.class_id
        ),
        sa.select(_MOVED.c.grant_id, user_agents.c.user_id).where(
            of_users, user_agents.c.agent_id == _MOVED.c.sourced_id
        ),
    ).subquery("touched")
    # A user of another group of the vendor may name the agent, too.
    owner, group = vendor_grants.alias(), vendor_grants.alias()
    shown = sa.select(group.c.id, touched.c.user_id).distinct()
    shown = shown.where(owner.c.id == touched.c.grant_id, group.c.vendor_id == owner.c.vendor_id)
    found = shown.subquery("shown")
    changed = sa.and_(
        group_members.c.group_id == found.c.id,
        group_members.c.type == users.name,
        group_members.c.sourced_id == found.c.user_id,
    )
    connection.execute(sa.update(group_members).where(changed).values(since=sa.literal(stamp, Stamp)))
    # Whom the vendor sees without rules has no stamp that is for the vendor alone; so the vendor reads everything anew.
    labelled = sa.select(owner.c.vendor_id).where(
        owner.c.id == touched.c.grant_id,
        users.c.sourced_id == touched.c.user_id,
        visible_labels.c.label_id == users.c.label_id,
        visible_labels.c.vendor_id == owner.c.vendor_id,
    )
    connection.execute(sa.update(vendors).where(vendors.c.id.in_(labelled)).values(floor=sa.func.next_stamp()))
