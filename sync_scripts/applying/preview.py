"""The preview of a run: what would vanish and change, by school, grade, role and class, and samples of every kind of
change.

Beside the numbers it has ids, and the names of schools and classes. Only the samples have names of people and values;
`roster person erase` and the retention delete a stored preview, and no loader that writes a log prints its samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from roster_service.db.tables import CText, classes, demographics, enrollments, orgs, user_roles, users
from roster_service.feeds.change_history import ChangedRecord
from roster_service.feeds.rejected_rows import NamedRecord
from roster_service.feeds.run_history import TYPES
from roster_service.roster.record_names import read_names
from roster_service.roster.references import list_references_to
from sync_scripts.applying.change_log import select_changes
from sync_scripts.applying.changes import ADDED, CHANGE, CHANGED, Difference
from sync_scripts.applying.desired_state import DesiredState
from sync_scripts.reading.rejections import Findings, cut_value
from sync_scripts.staging.retained import ACTIVE

# How many classes are listed, and how many samples of each kind of change and type.
LISTED, SAMPLES = 20, 5
RunPreview = dict[str, list[dict[str, Any]]]
# By type, the number of the records that would vanish and change, and of all active ones.
Counted = dict[str, dict[str, int]]
# The references of records to their schools.
TO_SCHOOLS = [reference for reference in list_references_to(orgs) if not reference.column.nullable]


@dataclass(frozen=True)
class _Touched:
    """The ids of the records of a type that would vanish, and of those that would change."""

    vanishing: sa.Select[Any]
    changing: sa.Select[Any]

    @staticmethod
    def by(difference: Difference) -> _Touched:
        """Returns them for a difference."""
        changed = sa.select(difference.rows.c.sourced_id).where(difference.rows.c[CHANGE] == CHANGED)
        return _Touched(sa.select(difference.gone.c.sourced_id), changed)


def make_preview(
    connection: sa.Connection, differences: list[Difference], desired: DesiredState, feed_id: int
) -> RunPreview:
    """The preview of a run whose differences are not written. `schools`, `grades`, `roles` and `classes`: where records
    would vanish or change, the most first; `samples`: some records of each kind of change, with their names, and the
    fields that differ."""
    touched = {
        difference.table: _Touched.by(difference)
        for difference in differences
        if difference.counts.tombstoned or difference.counts.changed
    }
    gone = {difference.table: difference.gone for difference in differences if difference.counts.tombstoned}
    return {
        "schools": _list_schools(connection, touched),
        "grades": _list_grades(connection, touched.get(users), feed_id),
        "roles": _list_roles(connection, touched.get(users), feed_id),
        "classes": _list_classes(connection, gone),
        "samples": _list_samples(connection, differences, desired),
    }


def name_added_records(connection: sa.Connection, findings: Findings, differences: list[Difference]) -> Findings:
    """The findings, in which the records that only this run would add have their names: the roster cannot tell them."""
    added = {difference.table: difference.rows for difference in differences if difference.counts.added}
    named = [record for rejection in findings.first for record in rejection.records if record.label is None]
    labels = {
        (type_, key): cut_value(label)
        for table, rows in added.items()
        if table not in (enrollments, demographics)
        for type_ in (TYPES[table.name],)
        for key, label in read_names(
            connection, table, (record.sourcedId for record in named if record.type == type_), {table: rows}
        ).items()
    }

    def label(record: NamedRecord) -> NamedRecord:
        return replace(record, label=record.label or labels.get((record.type, record.sourcedId)))

    first = tuple(replace(rejection, records=tuple(map(label, rejection.records))) for rejection in findings.first)
    return replace(findings, first=first)


def _list_samples(
    connection: sa.Connection, differences: list[Difference], desired: DesiredState
) -> list[dict[str, Any]]:
    """Some changes of each type and kind, with the name of the record, and the values of the fields before and
    after."""
    samples = list(read_changes(connection, differences, desired, SAMPLES))
    added = {difference.table: difference.rows for difference in differences if difference.counts.added}
    names = {
        difference.table: read_names(
            connection,
            difference.table,
            (one.sourcedId for one in samples if one.type == TYPES[difference.table.name]),
            added,
        )
        for difference in differences
    }
    labels = {(TYPES[table.name], key): name for table, found in names.items() for key, name in found.items()}
    return [
        {
            "type": sample.type,
            "change": sample.change,
            "sourcedId": sample.sourcedId,
            "name": labels.get((sample.type, sample.sourcedId)),
            "fields": sample.fields,
        }
        for sample in samples
    ]


def read_changes(
    connection: sa.Connection, differences: list[Difference], desired: DesiredState, count: int | None = None
) -> Iterator[ChangedRecord]:
    """The changes that are not written yet, by type, change and sourcedId. `count`: the most of each type and
    change."""
    for difference in differences:
        if not difference.counts.any:
            continue
        rows = _select_all(difference, desired).subquery()
        place = sa.func.row_number().over(partition_by=rows.c.change, order_by=rows.c.sourced_id).label("place")
        placed = sa.select(rows.c.sourced_id, rows.c.change, rows.c.fields, place).subquery()
        chosen = sa.select(placed).order_by(placed.c.change, placed.c.sourced_id)
        if count is not None:
            chosen = chosen.where(placed.c.place <= count)
        for row in connection.execute(chosen):
            yield ChangedRecord.of_row(TYPES[difference.table.name], row)


def _select_all(difference: Difference, desired: DesiredState) -> Any:
    """(sourced_id, change, fields) of the records that a difference adds, changes, revives or marks as deleted."""
    changes = select_changes(difference, desired).subquery()
    added = sa.select(
        difference.rows.c.sourced_id, sa.literal(ADDED, CText).label("change"), ChangedRecord.no_fields()
    ).where(difference.rows.c[CHANGE] == ADDED)
    return sa.union_all(added, sa.select(changes.c.sourced_id, changes.c.change, changes.c.fields))


def _list_schools(connection: sa.Connection, touched: Mapping[sa.Table, _Touched]) -> list[dict[str, Any]]:
    """For each school: its id and name, and by type the records that would vanish and change, and the active ones."""
    found: dict[str, Counted] = {}
    for reference in TO_SCHOOLS:
        table, school = reference.record, reference.column
        if table in touched:
            place: sa.FromClause = table
            if school.table is not table:
                place = school.table.join(table, table.c.sourced_id == reference.own)
            active = sa.select(school).select_from(place).where(table.c.status == ACTIVE)
            for school_id, counts in _count_by(connection, active, reference.own, touched[table]):
                found.setdefault(school_id, {})[TYPES[table.name]] = counts
    names = dict(
        connection.execute(sa.select(orgs.c.sourced_id, orgs.c.name).where(orgs.c.sourced_id.in_(found))).all()
    )
    listed = [{"sourcedId": key, "name": names.get(key), "counts": counts} for key, counts in found.items()]
    return sorted(listed, key=_rank)


def _list_grades(connection: sa.Connection, touched: _Touched | None, feed_id: int) -> list[dict[str, Any]]:
    """For each grade of the feed: its users, as above."""
    if touched is None:
        return []
    grade = sa.func.unnest(users.c.grades).column_valued("grade")
    active = sa.select(grade).select_from(users).where(users.c.status == ACTIVE, users.c.feed_id == feed_id)
    counted = _count_by(connection, active, users.c.sourced_id, touched)
    return sorted(({"grade": key, "counts": {TYPES[users.name]: counts}} for key, counts in counted), key=_rank)


def _list_roles(connection: sa.Connection, touched: _Touched | None, feed_id: int) -> list[dict[str, Any]]:
    """For each role of the feed: the users who have it at some school, as above."""
    if touched is None:
        return []
    both = user_roles.join(users, users.c.sourced_id == user_roles.c.user_id)
    active = sa.select(user_roles.c.role).select_from(both).where(users.c.status == ACTIVE, users.c.feed_id == feed_id)
    counted = _count_by(connection, active, users.c.sourced_id, touched)
    return sorted(({"role": key, "counts": {TYPES[users.name]: counts}} for key, counts in counted), key=_rank)


def _count_by(
    connection: sa.Connection, active: sa.Select[Any], identifier: sa.Column[Any], touched: _Touched
) -> Iterator[tuple[str, dict[str, int]]]:
    """(key, counts) of the keys that have records that would vanish or change. `active`: the key of each active
    record; `identifier`: the id of the record."""
    [key] = active.selected_columns
    vanishing, changing = identifier.in_(touched.vanishing), identifier.in_(touched.changing)
    number = sa.func.count(sa.distinct(identifier))
    counted = active.add_columns(number.filter(vanishing), number.filter(changing), number).group_by(key)
    rows = connection.execute(counted.having(sa.func.count().filter(sa.or_(vanishing, changing)) > 0))
    for found, vanished, changed, every in rows:
        yield found, {"vanishing": vanished, "changing": changed, "active": every}


def _rank(listed: Mapping[str, Any]) -> tuple[int, int]:
    """Puts the most vanishing records first, then the most changing ones."""
    counts = listed["counts"].values()
    return -max(count["vanishing"] for count in counts), -max(count["changing"] for count in counts)


def _list_classes(connection: sa.Connection, gone: Mapping[sa.Table, sa.Table]) -> list[dict[str, Any]]:
    """The classes that would lose most enrollments: id, title, school, and their enrollments as above."""
    if enrollments not in gone:
        return []
    vanishing = enrollments.c.sourced_id.in_(sa.select(gone[enrollments].c.sourced_id))
    count = sa.func.count().filter(vanishing).label("vanishing")
    by_class: sa.Select[Any] = (
        sa.select(enrollments.c.class_id, count, sa.func.count().label("active"))
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
    rows = (
        sa.select(top, classes.c.title, orgs.c.name).select_from(named).order_by(top.c.vanishing.desc(), top.c.class_id)
    )
    return [
        {
            "sourcedId": row.class_id,
            "title": row.title,
            "school": row.name,
            "counts": {"enrollments": {"vanishing": row.vanishing, "active": row.active}},
        }
        for row in connection.execute(rows)
    ]
