"""Path filters: for each path, the SQL condition on the resource's table that selects its records.

The ids of the path are bound parameters. Membership ends with its enrollment: a student whose enrollment is
`tobedeleted` is in no class, although both records can still be read by themselves. A parent that does not exist, is of
another type, or is hidden from the caller has no members.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import sqlalchemy as sa

from roster_service.db import tables
from roster_service.roster.references import refers_to
from roster_service.roster.visibility import (
    ContentRights,
    Opened,
    has_row,
    per_row,
    record_is_open,
    role_is_visible,
    row_is_visible,
)
from roster_service.roster.vocabulary import TERM_TYPES
from roster_service.schemas.version_words import Wording

# Given the caller's content rights and the words of the version, the condition that selects the records of a path.
# Statements join it by AND with the conditions of visibility and with the caller's own filter.
PathFilter = Callable[[ContentRights, Wording], sa.ColumnElement[bool]]
# Given a record, or the departures, the condition that its label or group opens the record in a list.
OpenCondition = Callable[[sa.FromClause, ContentRights], sa.ColumnElement[bool]]


@dataclass(frozen=True)
class ListFilter:
    """The path filter of a list that shows departures: of the records that a former label opened in it, and that the
    present label does not. `condition`: selects the records; `opens`: whether a label or a group opens records in the
    list."""

    condition: PathFilter
    opens: OpenCondition

    def __call__(self, rights: ContentRights, wording: Wording) -> sa.ColumnElement[bool]:
        """Returns the condition that selects the records."""
        return self.condition(rights, wording)

    @property
    def without_condition(self) -> ListFilter:
        """The same list without its condition: the texts of ids that the condition has selected already."""
        return dataclasses.replace(self, condition=everything.condition)


_orgs = tables.orgs.c
_sessions = tables.academic_sessions.c
_courses = tables.courses.c
_classes = tables.classes.c
_users = tables.users.c
_enrollments = tables.enrollments.c


def bind_path_id(name: str) -> sa.BindParameter[str]:
    """Returns the bound parameter for the id that the path calls `{name}`."""
    return sa.bindparam(f"path_{name}", type_=sa.Text)


SCHOOL = bind_path_id("schoolId")
TERM = bind_path_id("termId")
COURSE = bind_path_id("courseId")
CLASS = bind_path_id("classId")


def no_condition(_rights: ContentRights, _wording: Wording) -> sa.ColumnElement[bool]:
    """All rows: for ids that a path has selected already."""
    return sa.true()


# All records of the resource.
everything = ListFilter(no_condition, record_is_open)


# --- by kind -----------------------------------------------------------------------------------------------------


def schools(_rights: ContentRights, _wording: Wording) -> sa.ColumnElement[bool]:
    """Orgs of type school."""
    return _orgs.type == "school"


def terms(_rights: ContentRights, wording: Wording) -> sa.ColumnElement[bool]:
    """Sessions that show the type term or semester."""
    return wording.session_type(_sessions.type).in_(TERM_TYPES)


def grading_periods(_rights: ContentRights, _wording: Wording) -> sa.ColumnElement[bool]:
    """Sessions of type gradingPeriod."""
    return _sessions.type == "gradingPeriod"


def users_with_role(role: str) -> ListFilter:
    """Users with this role, `student` or `teacher`, at an org that the caller may see, if the version shows it."""
    opened = Opened(role)

    def has_role(row: sa.FromClause, rights: ContentRights) -> sa.ColumnElement[bool]:
        return record_is_open(row, rights, opened)

    return ListFilter(
        lambda rights, wording: has_role(tables.users, rights) & wording.shows_role(role, rights), has_role
    )


# --- of a parent -------------------------------------------------------------------------------------------------


def _is_school(org_id: sa.ColumnElement[str], rights: ContentRights) -> sa.ColumnElement[bool]:
    """Whether the id is that of a school that the caller may see.

    Without this condition, a path below a hidden school would return the records that it shares with visible schools.
    """
    school = tables.orgs.alias()
    return per_row(
        has_row(
            school,
            school.c.sourced_id == org_id,
            school.c.type == "school",
            row_is_visible(tables.orgs, school, rights),
        )
    )


def _is_term(session_id: sa.ColumnElement[str], rights: ContentRights, wording: Wording) -> sa.ColumnElement[bool]:
    session = tables.academic_sessions.alias()
    return per_row(
        has_row(
            session,
            session.c.sourced_id == session_id,
            wording.session_type(session.c.type).in_(TERM_TYPES),
            row_is_visible(tables.academic_sessions, session, rights),
        )
    )


def terms_of_school(rights: ContentRights, wording: Wording) -> sa.ColumnElement[bool]:
    """The terms among the sessions of a school's active classes, and among their parents and children."""
    taught, used = tables.classes.alias(), tables.academic_sessions.alias()
    of_school = sa.select(sa.func.unnest(taught.c.term_ids)).where(_is_taught_at_school(taught, rights))
    parents = sa.select(used.c.parent_id).where(used.c.sourced_id.in_(of_school))
    return (
        _is_school(SCHOOL, rights)
        & terms(rights, wording)
        & sa.or_(
            _sessions.sourced_id.in_(of_school), _sessions.sourced_id.in_(parents), _sessions.parent_id.in_(of_school)
        )
    )


def grading_periods_of_term(rights: ContentRights, wording: Wording) -> sa.ColumnElement[bool]:
    """The grading periods in a term."""
    return _is_term(TERM, rights, wording) & grading_periods(rights, wording) & (_sessions.parent_id == TERM)


def courses_of_school(rights: ContentRights, wording: Wording) -> sa.ColumnElement[bool]:
    """The courses that a school offers itself, and those of its active classes."""
    taught, offered = tables.classes.alias(), tables.courses.alias()
    ids = sa.union(
        sa.select(offered.c.sourced_id).where(offered.c.org_id == SCHOOL),
        sa.select(taught.c.course_id).where(_is_taught_at_school(taught, rights)),
    )
    return _is_school(SCHOOL, rights) & _courses.sourced_id.in_(ids)


def _is_taught_at_school(taught: sa.FromClause, rights: ContentRights) -> sa.ColumnElement[bool]:
    """Whether `taught`, a row of classes, is an active class of the path's school, and visible to the caller."""
    return (
        (taught.c.school_id == SCHOOL)
        & (taught.c.status == "active")
        & per_row(row_is_visible(tables.classes, taught, rights))
    )


def classes_of_school(rights: ContentRights, _wording: Wording) -> sa.ColumnElement[bool]:
    """The classes of a school."""
    return _is_school(SCHOOL, rights) & (_classes.school_id == SCHOOL)


def classes_of_course(_rights: ContentRights, _wording: Wording) -> sa.ColumnElement[bool]:
    """The classes of a course."""
    return _classes.course_id == COURSE


def classes_of_term(rights: ContentRights, wording: Wording) -> sa.ColumnElement[bool]:
    """The classes of a term."""
    return _is_term(TERM, rights, wording) & refers_to(_classes.term_ids, TERM)


def classes_of_user(parameter: str, role: str | None) -> PathFilter:
    """The classes in which the user of the path is enrolled: with `role`, or with any role where `role` is None.

    `parameter`: the name that the path gives to the user's id.
    """

    def select_classes(rights: ContentRights, wording: Wording) -> sa.ColumnElement[bool]:
        enrolled = tables.enrollments.alias()
        of_user = sa.select(enrolled.c.class_id).where(
            enrolled.c.user_id == bind_path_id(parameter), _is_active_enrollment(enrolled, role, rights)
        )
        return _classes.sourced_id.in_(of_user)

    return select_classes


def _is_active_enrollment(enrolled: sa.FromClause, role: str | None, rights: ContentRights) -> sa.ColumnElement[bool]:
    """Whether an enrollment is active and visible, and has the role (any role, where `role` is None)."""
    condition = (enrolled.c.status == "active") & per_row(row_is_visible(tables.enrollments, enrolled, rights))
    return condition if role is None else condition & (enrolled.c.role == role)


def users_of_school(role: str) -> PathFilter:
    """The users with a role at a school, if the version shows it."""

    def select_users(rights: ContentRights, wording: Wording) -> sa.ColumnElement[bool]:
        held = tables.user_roles.alias()
        at_school = sa.select(held.c.user_id).where(
            held.c.org_id == SCHOOL, held.c.role == role, per_row(role_is_visible(held, rights))
        )
        return _is_school(SCHOOL, rights) & _users.sourced_id.in_(at_school) & wording.shows_role(role, rights)

    return select_users


def users_of_class(role: str) -> PathFilter:
    """The users with an active, visible enrollment in a class with this role."""

    def select_users(rights: ContentRights, wording: Wording) -> sa.ColumnElement[bool]:
        enrolled = tables.enrollments.alias()
        of_class = sa.select(enrolled.c.user_id).where(
            enrolled.c.class_id == CLASS, _is_active_enrollment(enrolled, role, rights)
        )
        return _users.sourced_id.in_(of_class)

    return select_users


def _class_is_of_school(rights: ContentRights) -> sa.ColumnElement[bool]:
    taught = tables.classes.alias()
    of_school = has_row(taught, taught.c.sourced_id == CLASS, taught.c.school_id == SCHOOL)
    return _is_school(SCHOOL, rights) & per_row(of_school)


def users_of_class_of_school(role: str) -> PathFilter:
    """As `users_of_class`; no users where the class belongs to another school than the path's."""
    of_class = users_of_class(role)
    return lambda rights, wording: _class_is_of_school(rights) & of_class(rights, wording)


def enrollments_of_school(rights: ContentRights, _wording: Wording) -> sa.ColumnElement[bool]:
    """The enrollments at a school."""
    return _is_school(SCHOOL, rights) & (_enrollments.school_id == SCHOOL)


def enrollments_of_class_of_school(rights: ContentRights, _wording: Wording) -> sa.ColumnElement[bool]:
    """The enrollments of a class; none where the class belongs to another school than the path's."""
    return _class_is_of_school(rights) & (_enrollments.class_id == CLASS)
