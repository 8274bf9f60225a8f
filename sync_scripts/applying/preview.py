"""The preview of a run: what would vanish, by school and by class, and samples of every kind of change.

It quotes no value of an export, only ids, and the names of schools and classes, so it may be printed and stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import Column, Connection, Select, Table, distinct, func, literal, select, union_all

from roster_service.db.change_history import Change
from roster_service.db.run_history import TYPES
from roster_service.db.tables import CText, classes, courses, enrollments, orgs, user_roles, users
from sync_scripts.applying.change_log import select_changes
from sync_scripts.applying.changes import ADDED, CHANGE, Difference
from sync_scripts.applying.desired_state import DesiredState
from sync_scripts.staging.retained import ACTIVE

# How many classes are listed, and how many samples of each kind of change and type.
LISTED, SAMPLES = 20, 5
Preview = dict[str, list[dict[str, Any]]]
# type: (its table, the column with a school, the column with the id of the record)
AT_SCHOOL: tuple[tuple[Table, Column[Any], Column[Any]], ...] = (
    (courses, courses.c.org_id, courses.c.sourced_id),
    (classes, classes.c.school_id, classes.c.sourced_id),
    (users, user_roles.c.org_id, user_roles.c.user_id),
    (enrollments, enrollments.c.school_id, enrollments.c.sourced_id),
)


def make_preview(connection: Connection, differences: list[Difference], desired: DesiredState) -> Preview:
    """The preview of a run whose differences are not written. `schools` and `classes`: where records would vanish, the
    most first; `samples`: some records of each kind of change, with the names of the fields that differ."""
    gone = {it.table: it.gone for it in differences if it.counts.tombstoned}
    return {
        "schools": _list_schools(connection, gone),
        "classes": _list_classes(connection, gone),
        "samples": [
            {"type": it.type, "change": it.change, "sourcedId": it.sourcedId, "fields": list(it.fields)}
            for it in read_changes(connection, differences, desired, SAMPLES)
        ],
    }


def read_changes(
    connection: Connection, differences: list[Difference], desired: DesiredState, count: int | None = None
) -> Iterator[Change]:
    """The changes that are not written yet, by type, change and sourcedId. `count`: the most of each type and
    change."""
    for difference in differences:
        if not difference.counts.any:
            continue
        rows = _select_all(difference, desired).subquery()
        place = func.row_number().over(partition_by=rows.c.change, order_by=rows.c.sourced_id).label("place")
        placed = select(rows.c.sourced_id, rows.c.change, rows.c.fields, place).subquery()
        chosen = select(placed).order_by(placed.c.change, placed.c.sourced_id)
        if count is not None:
            chosen = chosen.where(placed.c.place <= count)
        for row in connection.execute(chosen):
            yield Change.of_row(TYPES[difference.table.name], row)


def _select_all(difference: Difference, desired: DesiredState) -> Any:
    """(sourced_id, change, fields) of the records that a difference adds, changes, revives or marks as deleted."""
    changes = select_changes(difference, desired).subquery()
    added = select(difference.rows.c.sourced_id, literal(ADDED, CText).label("change"), Change.no_fields()).where(
        difference.rows.c[CHANGE] == ADDED
    )
    return union_all(added, select(changes.c.sourced_id, changes.c.change, changes.c.fields))


def _list_schools(connection: Connection, gone: Mapping[Table, Table]) -> list[dict[str, Any]]:
    """For each school: its id and name, and by type the records that would vanish and the active ones."""
    found: dict[str, dict[str, dict[str, int]]] = {}
    for table, school, identifier in AT_SCHOOL:
        if table in gone:
            vanishing = identifier.in_(select(gone[table].c.sourced_id))
            own = select(school, func.count(distinct(identifier)).filter(vanishing), func.count(distinct(identifier)))
            active = (
                own.join_from(identifier.table, table, table.c.sourced_id == identifier)
                if school.table is not table
                else own
            )
            counted = active.where(table.c.status == ACTIVE).group_by(school)
            for school_id, count, stored in connection.execute(counted.having(func.count().filter(vanishing) > 0)):
                found.setdefault(school_id, {})[TYPES[table.name]] = {"vanishing": count, "active": stored}
    names = dict(connection.execute(select(orgs.c.sourced_id, orgs.c.name).where(orgs.c.sourced_id.in_(found))).all())
    listed = [{"sourcedId": key, "name": names.get(key), "counts": counts} for key, counts in found.items()]
    return sorted(listed, key=lambda it: -max(count["vanishing"] for count in it["counts"].values()))


def _list_classes(connection: Connection, gone: Mapping[Table, Table]) -> list[dict[str, Any]]:
    """The classes that would lose most enrollments: id, title, school, and their enrollments as above."""
    if enrollments not in gone:
        return []
    vanishing = enrollments.c.sourced_id.in_(select(gone[enrollments].c.sourced_id))
    count = func.count().filter(vanishing).label("vanishing")
    by_class: Select[Any] = (
        select(enrollments.c.class_id, count, func.count().label("active"))
        .where(enrollments.c.status == ACTIVE)
        .group_by(enrollments.c.class_id)
        .having(count > 0)
        .order_by(count.desc(), enrollments.c.class_id)
        .limit(LISTED)
    )
    top = by_class.subquery()
    named = top.join(classes, classes.c.sourced_id == top.c.class_id).outerjoin(
        orgs, orgs.c.sourced_id == classes.c.school_id
    )
    rows = select(top, classes.c.title, orgs.c.name).select_from(named).order_by(top.c.vanishing.desc(), top.c.class_id)
    return [
        {
            "sourcedId": row.class_id,
            "title": row.title,
            "school": row.name,
            "counts": {"enrollments": {"vanishing": row.vanishing, "active": row.active}},
        }
        for row in connection.execute(rows)
    ]
