"""The checks of data quality: each finds the records of a feed which a school should look at.

A check finds records that the sync takes, because OneRoster allows them, and that vendors still cannot use. One SELECT
finds all its records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from roster_service.db import tables
from roster_service.db.folding import fold_column
from roster_service.db.tables import CText
from roster_service.feeds.run_history import TYPES
from roster_service.roster.references import REFERENCES, Reference, list_references_to
from roster_service.roster.visibility import has_label, has_row

_users, _classes, _enrollments = tables.users.c, tables.classes.c, tables.enrollments.c
ACTIVE = "active"
# Given the id of a feed, the SELECT of (kind, id, feed_id, school_id, detail) of the records that a check finds.
Find = Callable[[int], sa.Select[Any]]


@dataclass(frozen=True)
class QualityCheck:
    """A check. `title`: the findings; `advice`: why they matter, and what to do about them; `kinds`: the types of the
    records that it looks at; `is_pairs`: whether it finds records that have the same value, which belong together."""

    name: str
    title: str
    advice: str
    find: Find
    kinds: tuple[str, ...]
    is_pairs: bool = False


def _select(
    table: sa.Table, school: sa.ColumnElement[Any], detail: sa.ColumnElement[Any], feed_id: int
) -> sa.Select[Any]:
    """Selects the live records of a feed."""
    columns = (
        sa.literal(TYPES[table.name], CText).label("kind"),
        table.c.sourced_id.label("id"),
        table.c.feed_id.label("feed_id"),
        school.label("school_id"),
        detail.label("detail"),
    )
    return sa.select(*columns).where(table.c.feed_id == feed_id, table.c.status == ACTIVE)


def _find_without_role(feed_id: int) -> sa.Select[Any]:
    # The label of a user names the orgs of all roles.
    label = tables.visibility_labels.c
    is_of_nobody = (sa.func.cardinality(label.any_orgs) == 0) & (sa.func.cardinality(label.guardian_orgs) == 0)
    found = _select(tables.users, _users.primary_org_id, sa.null(), feed_id)
    return found.where(has_label(tables.users, is_of_nobody))


def _find_classes_without(role: str) -> Find:
    def find(feed_id: int) -> sa.Select[Any]:
        enrolled = tables.enrollments.alias()
        member = has_row(
            enrolled,
            enrolled.c.class_id == _classes.sourced_id,
            enrolled.c.role == role,
            enrolled.c.status == ACTIVE,
        )
        return _select(tables.classes, _classes.school_id, _classes.class_code, feed_id).where(~member)

    return find


def _find_students_without_class(feed_id: int) -> sa.Select[Any]:
    role, enrolled = tables.user_roles.alias(), tables.enrollments.alias()
    is_student = has_label(tables.users, sa.func.cardinality(tables.visibility_labels.c.student_orgs) > 0)
    school = sa.select(sa.func.min(role.c.org_id)).where(role.c.user_id == _users.sourced_id, role.c.role == "student")
    is_enrolled = has_row(enrolled, enrolled.c.user_id == _users.sourced_id, enrolled.c.status == ACTIVE)
    found = _select(tables.users, school.correlate(tables.users).scalar_subquery(), sa.null(), feed_id)
    return found.where(is_student, ~is_enrolled)


def _find_duplicates(value: sa.ColumnElement[Any]) -> Find:
    def find(feed_id: int) -> sa.Select[Any]:
        same = sa.func.count().over(partition_by=value)
        found = (
            _select(tables.users, _users.primary_org_id, value, feed_id)
            .where(value != "")
            .add_columns(same.label("same"))
        )
        counted = found.subquery("counted")
        return sa.select(*list(counted.c)[:-1]).where(counted.c.same > 1)

    return find


def _find_outside_session(feed_id: int) -> sa.Select[Any]:
    """Enrollments of which no day is between the first day of their class's terms and the last one. (Many systems give
    each enrollment the dates of the whole year, also in a class of half a year: that is no finding.)"""
    link, session = tables.class_terms.alias(), tables.academic_sessions.alias()
    spans = (
        sa.select(
            link.c.class_id,
            sa.func.min(session.c.start_date).label("first"),
            sa.func.max(session.c.end_date).label("last"),
        )
        .join(session, session.c.sourced_id == link.c.session_id)
        .where(session.c.status == ACTIVE)
        .group_by(link.c.class_id)
        .subquery("spans")
    )
    dates = sa.func.concat_ws(
        " – ",
        sa.func.to_char(_enrollments.begin_date, "YYYY-MM-DD"),
        sa.func.to_char(_enrollments.end_date, "YYYY-MM-DD"),
        type_=CText,
    )
    found = _select(tables.enrollments, _enrollments.school_id, dates, feed_id)
    outside = sa.or_(_enrollments.begin_date >= spans.c.last, _enrollments.end_date <= spans.c.first)
    return found.join(spans, spans.c.class_id == _enrollments.class_id).where(outside)


# The school to which the records or parts of a table belong.
_SCHOOLS: Mapping[sa.Table, sa.Column[str]] = {
    reference.column.table: reference.column
    for reference in list_references_to(tables.orgs)
    if reference.record is not tables.orgs
}


def _find_orphans(feed_id: int) -> sa.Select[Any]:
    """Live records that refer to a record which is not live."""

    def is_live(column: sa.ColumnElement[Any], target: sa.Table) -> sa.ColumnElement[bool]:
        other = target.alias()
        return has_row(other, other.c.sourced_id == column, other.c.status == ACTIVE)

    def find(reference: Reference) -> sa.Select[Any]:
        column, record = reference.column, reference.record
        school = _SCHOOLS.get(column.table, _SCHOOLS.get(record))
        found = _select(record, sa.null() if school is None else school, column, feed_id)
        if column.table is not record:
            found = found.join(column.table, reference.own == record.c.sourced_id)
        return found.where(column.is_not(None), ~is_live(column, reference.target))

    found = [find(reference) for reference in REFERENCES.values() if not reference.computed]
    return sa.select(sa.union_all(*found).subquery("orphans"))


CHECKS: Sequence[QualityCheck] = (
    QualityCheck(
        "people-without-role",
        "People without a role",
        "No vendor sees them. The export has no role of them at any org: give them one in the SIS, or take them out.",
        _find_without_role,
        ("users",),
    ),
    QualityCheck(
        "students-without-class",
        "Students without a class",
        "They can log in nowhere that goes by classes. Enroll them in the SIS, or look whether their enrollments were "
        "rejected in the last run.",
        _find_students_without_class,
        ("users",),
    ),
    QualityCheck(
        "classes-without-teacher",
        "Classes without a teacher",
        "Nobody can teach in them: assign a teacher in the SIS.",
        _find_classes_without("teacher"),
        ("classes",),
    ),
    QualityCheck(
        "classes-without-students",
        "Classes without a student",
        "They are empty for every vendor. Often they are left over from another year: take them out in the SIS.",
        _find_classes_without("student"),
        ("classes",),
    ),
    QualityCheck(
        "same-email",
        "People with the same e-mail",
        "Vendors that log people in by e-mail mix them up. Within one feed, capitals make no difference.",
        _find_duplicates(fold_column(_users.email)),
        ("users",),
        is_pairs=True,
    ),
    QualityCheck(
        "same-identifier",
        "People with the same identifier",
        "Vendors that match people by their number mix them up. Often one person is in the SIS twice.",
        _find_duplicates(_users.identifier),
        ("users",),
        is_pairs=True,
    ),
    QualityCheck(
        "enrollments-outside-session",
        "Enrollments outside their session",
        "They begin after the last term of their class, or end before the first one: correct the dates in the SIS.",
        _find_outside_session,
        ("enrollments",),
    ),
    QualityCheck(
        "orphans",
        "References to records that are not there",
        "A record names another one that the roster does not have, or that is deleted. The sync rejects such rows, so "
        "these are from a feed whose next run has not come, or parts of a record that it could not correct.",
        _find_orphans,
        tuple(TYPES.values()),
    ),
)
CHECKS_BY_NAME = {check.name: check for check in CHECKS}
