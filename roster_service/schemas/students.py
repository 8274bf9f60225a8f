"""The student record of the vendor interface: the terms of OneRoster 1.2, nested in one student.

The service makes it like a record of the rostering interface. Each part that needs a permission flag is a field of its
own, which a request can include.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from marshmallow import Schema, fields

from roster_service.db import tables
from roster_service.db.tables import Stamp
from roster_service.roster import json_text
from roster_service.roster.person_parts import PersonPart
from roster_service.roster.references import list_items
from roster_service.roster.visibility import (
    ContentRights,
    has_row,
    per_row,
    read_joined,
    role_is_visible,
    row_is_visible,
)
from roster_service.roster.vocabulary import GUARDIAN_ROLES, STATUS, USER_ROLES
from roster_service.roster.withheld import WithheldField
from roster_service.schemas import kinds, v1p2
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.joined_rows import ITEMS, NAMED, JoinedList, JoinedRows
from roster_service.schemas.kinds import RosterField, StrictSchema
from roster_service.schemas.records import Record, make_base_fields

_users = tables.users.c


class NestedObject(fields.Nested, RosterField):
    """An object inside a record, made from the record's own row or from one row of another table.

    `row`: the other table, and the condition that selects its row; `key`: of a row that is joined with the record's
    own, NULL where there is none.
    """

    def __init__(
        self,
        schema: type[Schema],
        description: str,
        row: tuple[sa.FromClause, Callable[[ContentRights], sa.ColumnElement[bool]]] | None = None,
        key: sa.ColumnElement[Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(schema, metadata=kinds.describe(description), **options)
        self.members = kinds.list_roster_fields(schema)
        self.row = row
        self.key = key
        # The vendor interface has no filter.
        self.filter_types = {}

    def json(self, rights: ContentRights) -> sa.ColumnElement[str]:
        """Returns the expression of the object's JSON text, NULL where there is no such row."""
        made = kinds.make_members_json(self.members, rights)
        if self.row is None:
            return made if self.key is None else json_text.only_if(self.key.is_not(None), made)
        table, condition = self.row
        chosen = sa.select(made).select_from(table).where(condition(rights)).limit(1)
        return chosen.correlate_except(table).scalar_subquery()

    def source(self, path: str, rights: ContentRights) -> kinds.Source:
        """Raises LookupError."""
        raise LookupError("the vendor interface has no filter")


def bind_requested_lea() -> sa.BindParameter[str]:
    """Returns the bound parameter for the identifier of the requested district."""
    return sa.bindparam("requested_lea", type_=sa.Text)


# --- schools -----------------------------------------------------------------------------------------------------

student_school = tables.orgs.alias("student_school")


def _has_student_role_at(org_id: sa.ColumnElement[str], rights: ContentRights, *more: str) -> sa.ColumnElement[bool]:
    role = tables.user_roles.alias()
    conditions = [role.c.role_type == kind for kind in more]
    return has_row(
        role,
        role.c.user_id == _users.sourced_id,
        role.c.org_id == org_id,
        role.c.role == "student",
        role_is_visible(role, rights),
        *conditions,
    )


class StudentSchool(StrictSchema):
    """A school of the student."""

    sourcedId = kinds.Text(student_school.c.sourced_id, "The id of the school", required=True)
    identifier = kinds.Text(student_school.c.identifier, "The number of the school at the state or district")
    name = kinds.Text(student_school.c.name, "The name of the school", required=True)
    primary = kinds.Flag(
        lambda rights: sa.func.coalesce(
            _users.primary_org_id == student_school.c.sourced_id,
            _has_student_role_at(student_school.c.sourced_id, rights, "primary"),
        ),
        "Whether it is the main school of the student",
        required=True,
    )


def is_school_of_student(rights: ContentRights) -> sa.ColumnElement[bool]:
    """Returns the condition that a row of `student_school` is a school of the student."""
    return (student_school.c.type == "school") & _has_student_role_at(student_school.c.sourced_id, rights)


# --- demographics and contacts -----------------------------------------------------------------------------------


class StudentDemographics(v1p2.Demographics):
    """The demographics of the student."""

    class Meta(v1p2.Demographics.Meta):
        """Excludes the fields that the student record has itself."""

        exclude = ("sourcedId", "status", "dateLastModified", "metadata")


# The names under which a statement joins what the lists of a student are made of: the guardians, the enrollments, and
# the terms and teachers of each class.
SEEN_GUARDIANS, SEEN_ENROLLMENTS = "seen_guardians", "seen_enrollments"
_SEEN_TERMS, _SEEN_TEACHERS = "seen_terms", "seen_teachers"
# The column of these that has the latest stamp of what the list shows.
STAMP_COLUMN = "stamp"
guardian = tables.users.alias("guardian")
guardian_agent = tables.user_agents.alias("guardian_agent")
_guardian_role = tables.user_roles.alias("guardian_role")


def _is_guardian(rights: ContentRights) -> sa.ColumnElement[bool]:
    """Whether the role is a visible guardian role. Without the guardians scope no role is."""
    return (
        (_guardian_role.c.user_id == guardian.c.sourced_id)
        & _guardian_role.c.role.in_(GUARDIAN_ROLES)
        & role_is_visible(_guardian_role, rights)
    )


class Guardian(StrictSchema):
    """A guardian, parent or relative who is the student's agent in the export."""

    sourcedId = kinds.Text(guardian.c.sourced_id, "The id of the guardian", required=True)
    status = kinds.Token(guardian.c.status, STATUS, "Whether the guardian is in the export of the SIS", required=True)
    role = kinds.Token(
        lambda rights: (
            sa.select(_guardian_role.c.role)
            .where(_is_guardian(rights))
            .order_by(_guardian_role.c.ordinal)
            .limit(1)
            .correlate_except(_guardian_role)
            .scalar_subquery()
        ),
        USER_ROLES,
        "The role",
        required=True,
    )
    givenName = kinds.Text(guardian.c.given_name, "The given name", required=True)
    familyName = kinds.Text(guardian.c.family_name, "The family name", required=True)
    email = kinds.Text(guardian.c.email, "The e-mail address", withheld_as=WithheldField.EMAIL)
    sms = kinds.Text(guardian.c.sms, "The phone number for text messages", withheld_as=WithheldField.SMS)
    phone = kinds.Text(guardian.c.phone, "The phone number", withheld_as=WithheldField.PHONE)


def is_guardian_of_student(rights: ContentRights) -> sa.ColumnElement[bool]:
    """Returns the condition that rows of `guardian` and `guardian_agent` are a guardian of the student."""
    return (
        (guardian_agent.c.user_id == _users.sourced_id)
        & (guardian_agent.c.agent_id == guardian.c.sourced_id)
        & has_row(_guardian_role, _is_guardian(rights))
    )


class Contacts(StrictSchema):
    """The contact data of the student, and the student's guardians."""

    phone = kinds.Text(_users.phone, "The phone number of the student", withheld_as=WithheldField.PHONE)
    sms = kinds.Text(_users.sms, "The student's phone number for text messages", withheld_as=WithheldField.SMS)
    guardians = JoinedList(
        SEEN_GUARDIANS,
        Guardian,
        kinds.ChildRows(is_guardian_of_student, (guardian_agent.c.ordinal,)),
        "The guardians, parents and relatives",
        withheld_as=WithheldField.AGENTS,
    )


def _select_items(
    schema: type[Schema],
    name: str,
    rights: ContentRights,
    *stamps: sa.ColumnElement[Any],
    named: sa.ColumnElement[str] | None = None,
) -> sa.Select[*tuple[Any, ...]]:
    """Returns the SELECT of one row for the list `name`. `stamps`: of what an item shows; `named`: the ids of the
    people whom an item names, as `NAMED` has them; None for none."""
    listed = kinds.find_list(schema, name)
    stamp = sa.func.max(sa.func.greatest(*stamps), type_=Stamp).label(STAMP_COLUMN)
    people = [] if named is None else [sa.func.string_agg(named, json_text.constant(",")).label(NAMED)]
    return sa.select(listed.join_items(rights).label(ITEMS), stamp, *people).where(listed.rows.condition(rights))


def select_seen_guardians(rights: ContentRights) -> sa.Select[*tuple[Any, ...]]:
    """Returns the SELECT of one row for a row of users: `items`, the guardians of a student, `stamp`, the latest of
    theirs, and `named`, their ids."""
    if WithheldField.AGENTS in rights.withheld:
        return sa.select(*(sa.null().label(name) for name in (ITEMS, STAMP_COLUMN, NAMED)))
    both = guardian_agent.join(guardian, guardian_agent.c.agent_id == guardian.c.sourced_id)
    own_id = json_text.text_json(guardian.c.sourced_id)
    found = _select_items(Contacts, "guardians", rights, guardian.c.date_last_modified, named=own_id)
    return found.select_from(both).correlate(tables.users)


# --- enrollments -------------------------------------------------------------------------------------------------

student_enrollment = tables.enrollments.alias("student_enrollment")
_class = tables.classes.alias("student_class")
_course = tables.courses.alias("student_course")
_class_term = list_items(_class.c.term_ids)
_term = tables.academic_sessions.alias("student_term")
_teaching = tables.enrollments.alias("student_teaching")
_teacher = tables.users.alias("student_teacher")


class StudentClass(StrictSchema):
    """The class of an enrollment."""

    sourcedId = kinds.Text(_class.c.sourced_id, "The id of the class", required=True)
    status = kinds.Token(_class.c.status, STATUS, "Whether the class is in the export of the SIS", required=True)
    title = kinds.Text(_class.c.title, "The name of the class", required=True)
    classCode = kinds.Text(_class.c.class_code, "The code by which people know the class")
    grades = kinds.TextArray(_class.c.grades, "The grades of the class, as codes of CEDS")
    subjects = kinds.TextArray(_class.c.subjects, "The names of the subjects")


class StudentCourse(StrictSchema):
    """The course that the class teaches."""

    sourcedId = kinds.Text(_course.c.sourced_id, "The id of the course", required=True)
    title = kinds.Text(_course.c.title, "The name of the course", required=True)
    courseCode = kinds.Text(_course.c.course_code, "The code by which people know the course")


class StudentTerm(StrictSchema):
    """A term of the class."""

    sourcedId = kinds.Text(_term.c.sourced_id, "The id of the term", required=True)
    title = kinds.Text(_term.c.title, "The name of the term", required=True)
    startDate = kinds.Day(_term.c.start_date, "The first day", required=True)
    endDate = kinds.Day(_term.c.end_date, "The day after the last day", required=True)


class StudentTeacher(StrictSchema):
    """A teacher of the class."""

    sourcedId = kinds.Text(_teacher.c.sourced_id, "The id of the teacher", required=True)
    givenName = kinds.Text(_teacher.c.given_name, "The given name", required=True)
    familyName = kinds.Text(_teacher.c.family_name, "The family name", required=True)
    email = kinds.Text(_teacher.c.email, "The e-mail address", withheld_as=WithheldField.EMAIL)


def _is_seen_enrollment(enrollment: sa.FromClause, rights: ContentRights) -> sa.ColumnElement[bool]:
    """Returns the condition that an enrollment is visible, for the few of a student or of the teachers of a class: for
    a join, PostgreSQL would read all open labels for each of them."""
    return per_row(row_is_visible(tables.enrollments, enrollment, rights))


def _is_teacher_of_class(rights: ContentRights) -> sa.ColumnElement[bool]:
    return (
        (_teaching.c.class_id == student_enrollment.c.class_id)
        & (_teaching.c.role == "teacher")
        & (_teaching.c.status == "active")
        & (_teacher.c.sourced_id == _teaching.c.user_id)
        & _is_seen_enrollment(_teaching, rights)
    )


class StudentEnrollment(StrictSchema):
    """A class that the student attends, with its course, terms and teachers."""

    sourcedId = kinds.Text(student_enrollment.c.sourced_id, "The id of the enrollment", required=True)
    status = kinds.Token(
        student_enrollment.c.status, STATUS, "Whether the enrollment is in the export of the SIS", required=True
    )
    beginDate = kinds.Day(student_enrollment.c.begin_date, "The first day of the enrollment")
    endDate = kinds.Day(student_enrollment.c.end_date, "The day after the last day of the enrollment")
    school = kinds.Text(student_enrollment.c.school_id, "The id of the school of the class", required=True)
    class_ = NestedObject(StudentClass, "The class", key=_class.c.sourced_id, data_key="class")
    course = NestedObject(StudentCourse, "The course that the class teaches", key=_course.c.sourced_id)
    terms = JoinedList(
        _SEEN_TERMS,
        StudentTerm,
        kinds.ChildRows(
            lambda rights: (
                (_term.c.sourced_id == _class_term.c.item) & row_is_visible(tables.academic_sessions, _term, rights)
            ),
            (_class_term.c.ordinality,),
        ),
        "The sessions in which the class meets",
    )
    teachers = JoinedList(
        _SEEN_TEACHERS,
        StudentTeacher,
        kinds.ChildRows(_is_teacher_of_class, (_teacher.c.sourced_id,)),
        "The teachers of the class",
    )


def _is_enrollment_of_student(rights: ContentRights) -> sa.ColumnElement[bool]:
    """Returns the condition that a row of `student_enrollment` is an enrollment of the student."""
    return (
        (student_enrollment.c.user_id == _users.sourced_id)
        & (student_enrollment.c.role == "student")
        # A deleted one leaves the answer at once, and stamps the student: its purge would change the answer unsaid.
        & (student_enrollment.c.status == "active")
        & _is_seen_enrollment(student_enrollment, rights)
    )


def select_seen_enrollments(rights: ContentRights) -> sa.Select[*tuple[Any, ...]]:
    """Returns the SELECT of one row for a row of users: `items`, the enrollments of a student, `stamp`, the latest
    stamp of what they show: of an enrollment, its class, course, terms and teachers, and of the departure of a
    teacher, and `named`, the ids of the teachers."""
    of_teachers = (_teaching.c.date_last_modified, _teacher.c.date_last_modified)
    own_id = json_text.text_json(_teacher.c.sourced_id)
    teachers = _select_items(StudentEnrollment, "teachers", rights, *of_teachers, named=own_id)
    terms = _select_items(StudentEnrollment, "terms", rights, _term.c.date_last_modified)
    own = student_enrollment
    rows: sa.FromClause = own.outerjoin(_class, _class.c.sourced_id == own.c.class_id)
    rows = rows.outerjoin(_course, _course.c.sourced_id == _class.c.course_id)
    rows = rows.join(teachers.correlate(own).lateral(_SEEN_TEACHERS), sa.true())
    rows = rows.join(terms.correlate(_class).lateral(_SEEN_TERMS), sa.true())
    stamps = (
        *(table.c.date_last_modified for table in (own, _class, _course)),
        _class.c.teachers_changed,
        *(read_joined(name, STAMP_COLUMN, sa.DateTime) for name in (_SEEN_TEACHERS, _SEEN_TERMS)),
    )
    named = read_joined(_SEEN_TEACHERS, NAMED, sa.Text)
    return _select_items(Student, "enrollments", rights, *stamps, named=named).select_from(rows).correlate(tables.users)


# --- the student -------------------------------------------------------------------------------------------------


class Student(Record):
    """A student."""

    table = tables.users
    person = tables.users.c.sourced_id
    joined = tuple(
        JoinedRows(name, frozenset({flag}), select, names_people=True)
        for name, flag, select in (
            (SEEN_GUARDIANS, PermissionFlag.CONTACTS, select_seen_guardians),
            (SEEN_ENROLLMENTS, PermissionFlag.ENROLLMENTS, select_seen_enrollments),
        )
    )

    sourcedId, status, dateLastModified = make_base_fields(tables.users)
    identifier = kinds.Text(
        _users.identifier, "The number of the student at the school or district", withheld_as=WithheldField.IDENTIFIER
    )
    username = kinds.Text(_users.username, "The name with which the student logs in", part=PersonPart.NAMES)
    givenName = kinds.Text(_users.given_name, "The given name", required=True, part=PersonPart.NAMES)
    middleName = kinds.Text(
        _users.middle_name, "The middle names, separated by spaces", withheld_as=WithheldField.MIDDLE_NAME
    )
    familyName = kinds.Text(_users.family_name, "The family name", required=True, part=PersonPart.NAMES)
    preferredFirstName = kinds.Text(
        _users.preferred_first_name,
        "The first name that the student prefers",
        withheld_as=WithheldField.PREFERRED_NAMES,
    )
    preferredLastName = kinds.Text(
        _users.preferred_last_name, "The last name that the student prefers", withheld_as=WithheldField.PREFERRED_NAMES
    )
    email = kinds.Text(_users.email, "The e-mail address", withheld_as=WithheldField.EMAIL)
    grades = kinds.TextArray(_users.grades, "The grades of the student, as codes of CEDS", part=PersonPart.NAMES)
    districtlea = kinds.Text(
        sa.cast(bind_requested_lea(), sa.Text), "The identifier of the district, as in the request", required=True
    )
    schools = kinds.ObjectList(
        StudentSchool,
        kinds.ChildRows(is_school_of_student, (student_school.c.sourced_id,)),
        "The schools of the student",
    )
    demographics = NestedObject(
        StudentDemographics,
        "The demographics; only with `demographics` in `include`",
        (
            tables.demographics,
            lambda _rights: (
                (tables.demographics.c.sourced_id == _users.sourced_id) & (tables.demographics.c.status == "active")
            ),
        ),
    )
    contacts = NestedObject(Contacts, "Phone numbers and guardians; only with `contacts` in `include`")
    enrollments = JoinedList(
        SEEN_ENROLLMENTS,
        StudentEnrollment,
        kinds.ChildRows(_is_enrollment_of_student, (student_enrollment.c.sourced_id,)),
        "The classes that the student attends; only with `enrollments` in `include`",
        part=PersonPart.CLASSES,
    )


# The fields that need to be included, and those of every student.
INCLUDES = tuple(flag.value for flag in PermissionFlag)
PLAIN_FIELDS = tuple(name for name in kinds.list_roster_fields(Student) if name not in INCLUDES)
