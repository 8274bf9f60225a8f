"""The stamp of a student record: the latest `dateLastModified` of everything that the answer shows.

A vendor asks for the students that changed since its last request. A student whose teacher or whose school changed has
another answer too, if the answer has the teacher or the school.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy as sa
from oneroster_filter import Operator
from oneroster_filter.sqlalchemy import FilterValue
from oneroster_filter.typing import Span, TypedClause

from roster_service.db import tables
from roster_service.db.tables import Stamp
from roster_service.roster.references import REFERENCES, refers_to
from roster_service.roster.visibility import ContentRights, Viewer, make_stamp, read_joined
from roster_service.roster.withheld import WithheldField
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.kinds import Instant
from roster_service.schemas.records import STAMP, Record
from roster_service.schemas.students import (
    SEEN_ENROLLMENTS,
    SEEN_GUARDIANS,
    STAMP_COLUMN,
    Student,
    is_school_of_student,
    select_seen_enrollments,
    select_seen_guardians,
    student_school,
)

Included = frozenset[PermissionFlag]

_users = tables.users.c


@functools.cache
def make_student_record(included: Included) -> type[Record]:
    """Returns the student record of an answer with `included`: its stamp counts the parts that the answer shows."""
    # The hash of an ordering has the name of its record.
    name = "_".join(("Student", *sorted(included)))
    return type(name, (Student,), {"dateLastModified": StudentStamp(included)})


class StudentStamp(Instant):
    """The stamp of a student. (GREATEST passes over NULL, the stamp of what is not there.)"""

    def __init__(self, included: Included) -> None:
        def make_student_stamp(rights: ContentRights) -> sa.ColumnElement[Any]:
            return sa.func.greatest(make_stamp(tables.users, tables.users, rights), *_list_stamps(included, rights))

        super().__init__(make_student_stamp, STAMP, required=True)
        self.included = included

    def preselect(self, clause: TypedClause, rights: ContentRights) -> sa.ColumnElement[bool] | None:
        if clause.operator is not Operator.GREATER or not isinstance(clause.value, Span):
            return None
        since = FilterValue(None, clause.value.first, type_=Stamp, unique=True)
        return _users.sourced_id.in_(_select_changed_students(self.included, since, rights))


def _list_stamps(included: Included, rights: ContentRights) -> Iterator[sa.ColumnElement[Any]]:
    yield _latest(student_school.c.date_last_modified, student_school, is_school_of_student(rights))
    if included:
        yield _users.parts_changed
    if PermissionFlag.DEMOGRAPHICS in included:
        own = tables.demographics.c.sourced_id == _users.sourced_id
        yield _latest(tables.demographics.c.date_last_modified, tables.demographics, own)
    if PermissionFlag.CONTACTS in included and WithheldField.AGENTS not in rights.withheld:
        yield _read_stamp(SEEN_GUARDIANS, select_seen_guardians, rights)
    if PermissionFlag.ENROLLMENTS in included:
        yield _read_stamp(SEEN_ENROLLMENTS, select_seen_enrollments, rights)


def _latest(
    stamp: sa.ColumnElement[Any], rows: sa.FromClause, condition: sa.ColumnElement[bool]
) -> sa.ColumnElement[Any]:
    return sa.select(sa.func.max(stamp)).select_from(rows).where(condition).correlate(tables.users).scalar_subquery()


def _read_stamp(
    name: str, select: Callable[[ContentRights], sa.Select[*tuple[Any, ...]]], rights: ContentRights
) -> sa.ColumnElement[Any]:
    """The stamp of what a statement joins under a name; of what `select` selects, where it does not."""
    if rights.joined:
        return read_joined(name, STAMP_COLUMN, sa.DateTime)
    seen = select(rights)
    return seen.with_only_columns(seen.selected_columns[STAMP_COLUMN]).scalar_subquery()


def _select_changed_students(included: Included, since: sa.ColumnElement[Any], rights: ContentRights) -> sa.Select[str]:
    """Selects the ids of the students whose stamp may be later than `since`, from the indexes of the stamps. It has
    further ids, of parts that the caller does not see."""
    changed = [*_list_changed(included, since)]
    if rights.viewer is Viewer.RULED_VENDOR:
        came = tables.group_members.alias()
        changed.append(sa.select(came.c.sourced_id).where(came.c.type == tables.users.name, came.c.since > since))
        kept = tables.kept_people.alias()
        lately = sa.func.greatest(kept.c.since, kept.c.until) > since
        changed += [sa.select(kept.c.user_id).where(lately), sa.select(sa.func.unnest(kept.c.named_by)).where(lately)]
    ids = sa.union(*changed).subquery("changed_students")
    return sa.select(ids.c[0])


def _list_changed(included: Included, since: sa.ColumnElement[Any]) -> Iterator[sa.Select[str]]:
    yield _select_changed(_users.date_last_modified, since)
    yield _select_naming(tables.user_roles.c.org_id, since)
    if included:
        yield _select_changed(_users.parts_changed, since)
    if PermissionFlag.DEMOGRAPHICS in included:
        yield _select_changed(tables.demographics.c.date_last_modified, since)
    if PermissionFlag.CONTACTS in included:
        yield _select_naming(tables.user_agents.c.agent_id, since)
    if PermissionFlag.ENROLLMENTS in included:
        yield from _list_changed_classmates(since)


def _list_changed_classmates(since: sa.ColumnElement[Any]) -> Iterator[sa.Select[str]]:
    enrollment = tables.enrollments.alias()
    yield sa.select(enrollment.c.user_id).where(enrollment.c.date_last_modified > since)
    teaching, teacher = tables.enrollments.alias(), tables.users.alias()
    by_teacher = teaching.join(teacher, teacher.c.sourced_id == teaching.c.user_id)
    taught = sa.select(teaching.c.class_id).where(teaching.c.role == "teacher")
    changed_classes = sa.union(
        _select_changed(tables.classes.c.date_last_modified, since),
        _select_changed(tables.classes.c.teachers_changed, since),
        _select_naming(tables.classes.c.course_id, since),
        _select_naming(tables.classes.c.term_ids, since),
        taught.where(teaching.c.date_last_modified > since),
        taught.select_from(by_teacher).where(teacher.c.date_last_modified > since),
    ).subquery("changed_classes")
    mate = tables.enrollments.alias()
    yield sa.select(mate.c.user_id).where(mate.c.class_id.in_(sa.select(changed_classes.c[0])))


def _select_changed(stamp: sa.Column[Any], since: sa.ColumnElement[Any]) -> sa.Select[str]:
    """Selects the ids of the records with a stamp later than an instant."""
    record = stamp.table.alias()
    return sa.select(record.c.sourced_id).where(record.c[stamp.name] > since)


def _select_naming(column: sa.Column[Any], since: sa.ColumnElement[Any]) -> sa.Select[str]:
    """Selects the ids of the records that refer by a column to a record that was changed since an instant."""
    reference = REFERENCES[column]
    naming, named = column.table.alias(), reference.target.alias()
    both = naming.join(named, refers_to(naming.c[column.name], named.c.sourced_id))
    return sa.select(naming.c[reference.own.name]).select_from(both).where(named.c.date_last_modified > since)
