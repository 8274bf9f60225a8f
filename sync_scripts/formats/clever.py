"""Clever CSV: the files of an export, and their conversion to OneRoster.

Columns may have any order, and most may be missing. Students and teachers have one row per school (students also one
per contact), so their ids repeat. The first row of a person gives the person's own data.

For each file of OneRoster, a function `retain_...` yields SELECTs of the ids of the stored records that rejected rows
may have described. It takes these rows by the name of their file, and the name of the feed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import sqlalchemy as sa

from roster_service.db import tables
from roster_service.roster.vocabulary import Vocabulary
from sync_scripts.formats import clever_people as people
from sync_scripts.formats import clever_rows as rows
from sync_scripts.formats.cells import DAY, GRADES, ID, NAME, SECRET, TEXT, TEXTS, UNREAD, make_word_kind
from sync_scripts.formats.clever_people import PEOPLE
from sync_scripts.formats.conversion import (
    convert_to,
    has_comma,
    identify_made,
    is_of_feed,
    lacks,
    lacks_part_of_term,
    make_id,
    retain_made,
    retain_sessions,
    select_ambiguous_courses,
)
from sync_scripts.formats.model import (
    Cell,
    CellReference,
    CsvFile,
    Format,
    Remark,
    Staged,
    declare_source,
    list_cells,
    remark_rows,
)
from sync_scripts.formats.oneroster_parts import PARTS_WITHOUT_PROFILES
from sync_scripts.formats.tolerated import (
    COMMA_ID,
    COURSE_NAMES,
    GRADE_SPELLING,
    MADE_NAME,
    NO_CLASS_TERM,
    NO_CONTACT,
    NO_TEACHER,
    NO_TERM,
    OWN_COURSE,
    UNKNOWN_RACE,
    US_DAY,
)

retain_classes, retain_students = retain_made("section", "sections"), retain_made("student", "students")


def retain_courses(rejected: Staged, feed: str) -> Iterator[sa.Select[Any]]:
    """The courses of the classes that the rejected sections rows describe."""
    stored = tables.classes
    for sections in retain_classes(rejected, feed):
        yield sa.select(stored.c.course_id.label("sourcedId")).where(stored.c.sourced_id.in_(sections))


def retain_enrollments(rejected: Staged, feed: str) -> Iterator[sa.Select[Any]]:
    """The enrollments of rejected enrollments rows, and the teachers of the classes of rejected sections rows."""
    if "enrollments" in rejected:
        seats = rejected["enrollments"]
        yield sa.select(make_id(feed, "enrollment", seats["Section_id"], seats["Student_id"]).label("sourcedId"))
    stored = tables.enrollments
    for sections in retain_classes(rejected, feed):
        yield sa.select(stored.c.sourced_id.label("sourcedId")).where(
            stored.c.class_id.in_(sections), stored.c.role == "teacher"
        )


def retain_users(rejected: Staged, feed: str) -> Iterator[sa.Select[Any]]:
    """The people of rejected rows, and the contacts of rejected students."""
    for each in PEOPLE:
        yield from retain_made(each.kind, each.name)(rejected, feed)
    agents = tables.user_agents
    for students in retain_students(rejected, feed):
        yield sa.select(agents.c.agent_id.label("sourcedId")).where(agents.c.user_id.in_(students))


def retain_roles(rejected: Staged, feed: str) -> Iterator[sa.Select[Any]]:
    """All roles of the people of `retain_users`."""
    stored = tables.user_roles
    people = list(retain_users(rejected, feed))
    if people:
        yield sa.select(stored.c.row_id.label("sourcedId"), stored.c.user_id.label("userSourcedId")).where(
            stored.c.user_id.in_(sa.union_all(*people))
        )


def leave_users(staged: Staged, feed: str) -> Iterator[sa.Select[Any]]:
    """The stored staff of an export without any file of them. One that has `staff` needs no `admins`: later versions of
    Clever have all of them in `staff`."""
    if not any(each.name in staged for each in people.STAFF):
        stored = tables.users
        kinds = [
            sa.func.starts_with(stored.c.sourced_id, make_id(feed, each.kind).concat(":")) for each in people.STAFF
        ]
        yield sa.select(stored.c.sourced_id.label("sourcedId")).where(is_of_feed(stored, feed), sa.or_(*kinds))


def leave_roles(staged: Staged, feed: str) -> Iterator[sa.Select[Any]]:
    """All roles of the staff of `leave_users`."""
    stored = tables.user_roles
    for staff in leave_users(staged, feed):
        roles = sa.select(stored.c.row_id.label("sourcedId"), stored.c.user_id.label("userSourcedId"))
        yield roles.where(stored.c.user_id.in_(staff))


# Clever writes days as M/D/YYYY and accepts YYYY-MM-DD: neither is a deviation here.
EITHER_DAY = replace(
    DAY,
    wants="must be a day of the calendar, M/D/YYYY or YYYY-MM-DD",
    tolerates=tuple(replace(tolerance, usual=tolerance.deviation is US_DAY) for tolerance in DAY.tolerates),
)
# Clever has words of its own for grades.
GRADE = replace(
    GRADES,
    tolerates=tuple(replace(tolerance, usual=tolerance.deviation is GRADE_SPELLING) for tolerance in GRADES.tolerates),
)
YES_NO = make_word_kind(Vocabulary(tuple(people.FLAGS)))
GENDER = make_word_kind(Vocabulary(tuple(people.SEXES)))

TO_SCHOOL = CellReference("schools")
TO_TEACHER = CellReference("teachers")
SCHOOL = Cell("School_id", ID, required=True, refers=TO_SCHOOL)


_declare = partial(declare_source, own_prefix="ext.")


def _make_staff_file(name: str, kind: str, email: str, title: str) -> CsvFile:
    """The file `staff.csv`, or `admins.csv`, which `staff.csv` has replaced."""
    return _declare(
        name,
        tables.users,
        SCHOOL,
        Cell("Staff_id", ID, required=True),
        Cell(email, NAME),
        Cell("First_name", TEXT, required=True),
        Cell("Last_name", NAME, required=True),
        Cell("Username", NAME),
        Cell("Password", SECRET),
        *list_cells(UNREAD, title, "Department", "Role"),
        key="Staff_id",
        unique=False,
        required=False,
        **identify_made(kind),
    )


FILES = (
    _declare(
        "schools",
        tables.orgs,
        Cell("School_id", ID, required=True),
        Cell("School_name", TEXT, required=True),
        Cell("School_number", NAME),
        *list_cells(UNREAD, "State_id", "Nces_id", "Low_grade", "High_grade", "Principal", "Principal_email"),
        *list_cells(UNREAD, "School_address", "School_city", "School_state", "School_zip", "School_phone"),
        key="School_id",
        **identify_made("school"),
    ),
    _declare(
        "students",
        tables.users,
        SCHOOL,
        Cell("Student_id", ID, required=True),
        Cell("Student_number", NAME),
        Cell("First_name", TEXT, required=True),
        Cell("Middle_name", TEXT),
        Cell("Last_name", NAME, required=True),
        Cell("Grade", GRADE),
        Cell("Gender", GENDER),
        Cell("DOB", EITHER_DAY),
        Cell("Race", TEXT),
        Cell("Hispanic_Latino", YES_NO),
        *list_cells(NAME, "Student_email", "Username"),
        Cell("Password", SECRET),
        Cell("Contact_sis_id", ID),
        Cell("Contact_name", NAME),
        *list_cells(TEXT, "Contact_relationship", "Contact_phone"),
        Cell("Contact_email", NAME),
        *list_cells(UNREAD, "State_id", "Contact_type", "Contact_phone_type", "Graduation_year", "Home_language"),
        *list_cells(UNREAD, "Ell_status", "Frl_status", "IEP_status", "Student_street", "Student_city"),
        *list_cells(UNREAD, "Student_state", "Student_zip", "Unweighted_gpa", "Weighted_gpa"),
        key="Student_id",
        unique=False,
        **identify_made("student"),
    ),
    _declare(
        "teachers",
        tables.users,
        SCHOOL,
        Cell("Teacher_id", ID, required=True),
        *list_cells(NAME, "Teacher_number", "Teacher_email"),
        Cell("First_name", TEXT, required=True),
        Cell("Middle_name", TEXT),
        Cell("Last_name", NAME, required=True),
        Cell("Username", NAME),
        Cell("Password", SECRET),
        *list_cells(UNREAD, "State_teacher_id", "Title"),
        key="Teacher_id",
        unique=False,
        **identify_made("teacher"),
    ),
    _declare(
        "sections",
        tables.classes,
        SCHOOL,
        Cell("Section_id", ID, required=True),
        *(Cell(header, ID, refers=TO_TEACHER) for header in rows.TEACHERS),
        *list_cells(TEXT, "Name", "Section_number"),
        Cell("Grade", GRADE),
        *list_cells(TEXT, "Course_name", "Course_number"),
        *list_cells(TEXTS, "Period", "Subject"),
        Cell("Term_name", TEXT),
        *list_cells(EITHER_DAY, "Term_start", "Term_end"),
        *list_cells(UNREAD, "Course_description"),
        key="Section_id",
        **identify_made("section"),
    ),
    _declare(
        "enrollments",
        tables.enrollments,
        # The school of the section counts.
        replace(SCHOOL, stands=True),
        Cell("Section_id", ID, required=True, refers=CellReference("sections")),
        Cell("Student_id", ID, required=True, refers=CellReference("students")),
        key="Section_id",
        unique=False,
        identify=None,
        makes_ids=True,
    ),
    _make_staff_file("staff", "staff", "Staff_email", "Title"),
    _make_staff_file("admins", "admin", "Admin_email", "Admin_title"),
)

CLEVER = Format(
    "clever",
    FILES,
    PARTS_WITHOUT_PROFILES,
    converted=(
        convert_to("orgs", rows.select_orgs, retain_made("school", "schools"), "schools"),
        convert_to("academicSessions", rows.select_sessions, retain_sessions("sections"), "sections"),
        convert_to("courses", rows.select_courses, retain_courses, "sections"),
        convert_to("classes", rows.select_classes, retain_classes, "sections"),
        replace(convert_to("users", people.select_users, retain_users, "students", "teachers"), left=leave_users),
        replace(convert_to("roles", people.select_roles, retain_roles, "students", "teachers"), left=leave_roles),
        convert_to("enrollments", rows.select_enrollments, retain_enrollments, "enrollments", "sections"),
        convert_to("demographics", people.select_demographics, retain_students, "students"),
    ),
    makes_district=True,
    # Files that later versions of Clever add.
    remarks=(
        Remark("sections", "Course_number", COURSE_NAMES, select_ambiguous_courses("Course_number", "Course_name")),
        remark_rows("sections", "Course_number", OWN_COURSE, lacks("Course_number", "Course_name")),
        remark_rows("sections", rows.TEACHERS[0], NO_TEACHER, lacks(*rows.TEACHERS)),
        remark_rows("sections", "Term_name", NO_TERM, lacks_part_of_term(*rows.TERM)),
        remark_rows("sections", "Term_name", NO_CLASS_TERM, lacks(*rows.TERM)),
        *(remark_rows("students", header, NO_CONTACT, people.lacks_of_contact(header)) for header in people.CONTACT),
        *(
            remark_rows("students", header, COMMA_ID, people.names_contact(has_comma(header)))
            for header in ("Student_id", "Contact_sis_id")
        ),
        remark_rows("students", "Contact_name", MADE_NAME, people.has_one_name),
        remark_rows("students", "Race", UNKNOWN_RACE, people.has_unknown_race),
        *(remark for each in PEOPLE for remark in each.list_remarks()),
    ),
    rules=tuple(rule for each in PEOPLE for rule in each.list_rules()),
    skipped=frozenset({"attendance", "contacts", "resources", "terms"}),
)
