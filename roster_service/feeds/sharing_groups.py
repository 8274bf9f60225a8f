"""The groups of grants with rules: which records the rules of a grant open.

- a class: its school is granted, and it matches the rule of classes;
- a student: of a granted school, who matches the rule of students and, where there is a rule of classes, has an active
  enrollment in a shared class. A guardian's and a member of staff's role opens as the grant says; a role at another
  school than a granted one never;
- an enrollment: its school is granted, its class is shared, and its user is, other than as a guardian;
- a course: a shared class of it is active.

A run that moves a record into a group, or out of it, stamps the record for the vendor of the group alone: with `since`,
or with a departure. A changed rule does neither, since it moves the floor of its vendor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
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
    user_roles,
    users,
    vendor_grants,
    vendors,
    visible_labels,
)
from roster_service.roster.references import PERSONS
from roster_service.roster.vocabulary import GUARDIAN_ROLES

Rows = sa.Select[Any] | sa.CompoundSelect[Any]


@dataclass(frozen=True)
class Extent:
    """What a grant opens: a district, or a school of it, with its rules. `staff`: None for a grant without rules."""

    district_id: str
    school_id: str | None
    students: str | None
    classes: str | None
    staff: str | None
    guardians: bool


# Changes of grants with rules, and publications, take it before the row of a vendor: without it, a rule that is made
# beside a run would not count for what the run writes.
_LOCK = sa.text("SELECT pg_advisory_xact_lock(hashtext('roster groups'))")
_NAMES = ("type", "sourced_id", "org_id", "role")
WANTED = sa.table("wanted_members", *(sa.column(name, CText) for name in _NAMES))
_MOVED = sa.table("moved_members", *(sa.column(name, CText) for name in _NAMES))


def lock_groups(connection: sa.Connection) -> None:
    """Waits for the end of all other transactions that make groups."""
    connection.execute(_LOCK)


def refresh_groups_of(connection: sa.Connection, feed_ids: Collection[int], stamp: datetime) -> None:
    """Makes the groups of these feeds anew, as the transaction sees the roster, with the stamps and the departures of
    what has moved. Call it before the vendors of the feeds are updated."""
    lock_groups(connection)
    other = sa.exists().where(orgs.c.sourced_id == vendor_grants.c.district_id, orgs.c.feed_id.not_in(feed_ids))
    for grant_id in connection.scalars(
        sa.select(vendor_grants.c.id).where(vendor_grants.c.staff.is_not(None), ~other).order_by(vendor_grants.c.id)
    ).all():
        make_group(connection, grant_id, stamp)


def make_group(connection: sa.Connection, grant_id: int, stamp: datetime | None) -> None:
    """Makes the group of a grant with rules. `stamp`: of the change of the roster; None for a new grant, whose records
    get no stamp. The transaction has the lock of `lock_groups`."""
    columns = [vendor_grants.c[field.name] for field in fields(Extent)]
    extent = Extent(*connection.execute(sa.select(*columns).where(vendor_grants.c.id == grant_id)).one())
    find_wanted(connection, extent)
    _add_wanted(connection, _select_enrollments(extent))
    make_temporary(connection, _MOVED)
    own = group_members.c.group_id == grant_id
    in_both = [WANTED.c[name] == group_members.c[name] for name in _NAMES]
    left = sa.select(*(group_members.c[name] for name in _NAMES)).where(own, ~sa.exists().where(*in_both))
    connection.execute(_MOVED.insert().from_select(_NAMES, left))
    if stamp is not None:
        for table in (classes, courses, users, demographics, enrollments):
            _write_departures(connection, table, grant_id, stamp)
    gone = sa.exists().where(*(_MOVED.c[name] == group_members.c[name] for name in _NAMES))
    connection.execute(sa.delete(group_members).where(own, gone))
    came = sa.select(*(WANTED.c[name] for name in _NAMES)).where(~sa.exists().where(own, *in_both))
    connection.execute(_MOVED.insert().from_select(_NAMES, came))
    since = sa.literal(stamp, Stamp) if stamp is not None else sa.cast(sa.literal_column("'epoch'"), Stamp)
    rows = sa.select(sa.literal(grant_id), *(WANTED.c[name] for name in _NAMES), since).where(
        ~sa.exists().where(own, *in_both)
    )
    connection.execute(group_members.insert().from_select(["group_id", *_NAMES, "since"], rows))
    if stamp is not None:
        _stamp_parts(connection, grant_id, stamp)


def make_temporary(connection: sa.Connection, made: sa.TableClause) -> None:
    """Makes an empty table of texts, until the end of the transaction."""
    columns = ", ".join(f"{column.name} text COLLATE \"C\" NOT NULL DEFAULT ''" for column in made.c)
    connection.exec_driver_sql(f"DROP TABLE IF EXISTS pg_temp.{made.name}")
    connection.exec_driver_sql(f"CREATE TEMPORARY TABLE {made.name} ({columns}) ON COMMIT DROP")


def find_wanted(connection: sa.Connection, extent: Extent) -> None:
    """Makes the table `WANTED` of the classes, the courses and the users that an extent with rules opens."""
    make_temporary(connection, WANTED)
    for rows in _list_wanted(extent):
        _add_wanted(connection, rows)


def _add_wanted(connection: sa.Connection, rows: Rows) -> None:
    chosen = rows.subquery()
    connection.execute(WANTED.insert().from_select([column.name for column in chosen.c], sa.select(*chosen.c)))
    connection.exec_driver_sql(f"ANALYZE pg_temp.{WANTED.name}")


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


def _members(table: sa.Table, found: sa.TableClause = WANTED, *roles: str) -> sa.Select[str]:
    """Selects the ids of a table among the rows of a temporary one; with `roles`, those with one of these roles."""
    rows = found.alias()
    conditions = [rows.c.role.in_(roles)] if roles else []
    return sa.select(rows.c.sourced_id).where(rows.c.type == table.name, *conditions)


def list_granted(extent: Extent) -> sa.Select[str]:
    """Selects the ids of the orgs that an extent lies in."""
    own = orgs.c.sourced_id == extent.school_id if extent.school_id else orgs.c.district_id == extent.district_id
    return sa.select(orgs.c.sourced_id).where(own)


def _kind(table: sa.Table) -> sa.ColumnElement[str]:
    return sa.literal(table.name, CText).label("type")


def _list_wanted(grant: Extent) -> Iterator[Rows]:
    """Yields the SELECTs of the members; each may read what those before it have found."""
    # The schemas take half a second to import, which a sync without such grants spares.
    from roster_service.schemas.sharing_rules import Staff, select_classes, select_students

    granted = list_granted(grant)
    shared = sa.select(_kind(classes), classes.c.sourced_id).where(classes.c.school_id.in_(granted))
    yield shared.where(select_classes(grant.classes))
    offered = sa.select(classes.c.course_id).where(
        classes.c.sourced_id.in_(_members(classes)), classes.c.status == "active"
    )
    yield sa.select(_kind(courses), courses.c.sourced_id).where(courses.c.sourced_id.in_(offered))
    # As one of several roles of a kind at an org, a role is there once.
    held = sa.select(_kind(users), user_roles.c.user_id.label("sourced_id"), user_roles.c.org_id, user_roles.c.role)
    held = held.where(user_roles.c.org_id.in_(granted)).distinct()
    enrolled = sa.select(enrollments.c.user_id).where(
        enrollments.c.class_id.in_(_members(classes)),
        enrollments.c.status == "active",
        enrollments.c.school_id.in_(granted),
    )
    students = held.where(
        user_roles.c.role == "student",
        user_roles.c.user_id.in_(sa.select(users.c.sourced_id).where(select_students(grant.students))),
    )
    if grant.classes is not None:
        students = students.where(user_roles.c.user_id.in_(enrolled.where(enrollments.c.role == "student")))
    yield students
    staff = held.where(user_roles.c.role.not_in(("student", *GUARDIAN_ROLES)))
    if grant.staff == Staff.ALL:
        yield staff
    elif grant.staff == Staff.CLASSES:
        # At the school of the class alone.
        teaching, taught = enrollments.alias(), classes.alias()
        yield staff.where(
            sa.exists().where(
                teaching.c.user_id == user_roles.c.user_id,
                teaching.c.role == "teacher",
                teaching.c.status == "active",
                teaching.c.school_id.in_(granted),
                taught.c.sourced_id == teaching.c.class_id,
                taught.c.school_id == user_roles.c.org_id,
                taught.c.sourced_id.in_(_members(classes)),
            )
        )
    if grant.guardians:
        named, naming = user_agents.alias(), user_agents.alias()
        # Of active ones: the purge of a student, which has no stamp, ends no membership.
        present = sa.select(users.c.sourced_id).where(
            users.c.sourced_id.in_(_members(users, WANTED, "student")), users.c.status == "active"
        )
        of_students = sa.union(
            sa.select(named.c.agent_id).where(named.c.user_id.in_(present)),
            sa.select(naming.c.user_id).where(naming.c.agent_id.in_(present)),
        )
        yield held.where(user_roles.c.role.in_(GUARDIAN_ROLES), user_roles.c.user_id.in_(of_students))


def _select_enrollments(extent: Extent) -> Rows:
    """Selects the enrollments of the classes and the users that `WANTED` has."""
    person = WANTED.alias()
    belonging = sa.select(person.c.sourced_id).where(person.c.type == users.name, person.c.role.not_in(GUARDIAN_ROLES))
    return sa.select(_kind(enrollments), enrollments.c.sourced_id).where(
        enrollments.c.school_id.in_(list_granted(extent)),
        enrollments.c.class_id.in_(_members(classes)),
        enrollments.c.user_id.in_(belonging),
    )


def _write_departures(connection: sa.Connection, table: sa.Table, grant_id: int, stamp: datetime) -> None:
    """Writes the departures of the records that leave the group. One that is deleted for good leaves none."""
    kind = users if table is demographics else table
    values: dict[str, Any] = {
        "type": sa.literal(table.name, CText),
        "sourced_id": table.c.sourced_id,
        "label_id": sa.literal(0),
        "feed_id": table.c.feed_id,
        "person_id": PERSONS[table] if table in PERSONS else sa.cast(sa.null(), CText),
        "departed_at": sa.literal(stamp, Stamp),
        "group_id": sa.literal(grant_id),
        "org_id": _MOVED.c.org_id,
        "role": _MOVED.c.role,
    }
    rows = sa.select(*values.values()).where(_MOVED.c.type == kind.name, _MOVED.c.sourced_id == table.c.sourced_id)
    row = upsert(departures).from_select(list(values), rows)
    changed = {"departed_at": row.excluded.departed_at}
    connection.execute(row.on_conflict_do_update(index_elements=list(departures.primary_key), set_=changed))


def _stamp_parts(connection: sa.Connection, grant_id: int, stamp: datetime) -> None:
    """Stamps the users of the group who show something else now, because of what came into it or left it: an own role
    or enrollment, a teacher of a class, an agent."""
    mate = enrollments.alias()
    moved = enrollments.c.sourced_id.in_(_members(enrollments, _MOVED))
    taught = sa.select(enrollments.c.class_id).where(moved, enrollments.c.role == "teacher")
    touched = sa.union(
        _members(users, _MOVED),
        sa.select(enrollments.c.user_id).where(moved),
        sa.select(mate.c.user_id).where(mate.c.class_id.in_(taught)),
        sa.select(user_agents.c.user_id).where(user_agents.c.agent_id.in_(_members(users, _MOVED))),
    )
    # A user of another group of the vendor may name the agent, too.
    owner = sa.select(vendor_grants.c.vendor_id).where(vendor_grants.c.id == grant_id).scalar_subquery()
    own = group_members.c.group_id.in_(sa.select(vendor_grants.c.id).where(vendor_grants.c.vendor_id == owner))
    changed = sa.and_(own, group_members.c.type == users.name, group_members.c.sourced_id.in_(touched))
    connection.execute(sa.update(group_members).where(changed).values(since=sa.literal(stamp, Stamp)))
    # Whom the vendor sees without rules has no stamp that is for the vendor alone; so the vendor reads everything anew.
    naming = user_agents.join(users, users.c.sourced_id == user_agents.c.user_id).join(
        visible_labels, visible_labels.c.label_id == users.c.label_id
    )
    seen = sa.select(visible_labels.c.vendor_id).select_from(naming)
    named = seen.where(visible_labels.c.vendor_id == owner, user_agents.c.agent_id.in_(_members(users, _MOVED)))
    connection.execute(sa.update(vendors).where(vendors.c.id.in_(named)).values(floor=sa.func.next_stamp()))
