"""School Data Sync (SDS) v1 CSV: the files of an export.

Files and headers are those that Microsoft documents for version 1, with its two files of guardians. The conversion
describes the rows as files of version 2.1 (`sds_v1_rows.py`), which it then converts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import sqlalchemy as sa

from roster_service.db import tables
from sync_scripts.formats import sds_rows as rows
from sync_scripts.formats.cells import GRADES, ID, NAME, SECRET, TEXT, TEXTS, UNREAD
from sync_scripts.formats.clever import EITHER_DAY, GENDER
from sync_scripts.formats.conversion import (
    convert_to,
    has_comma,
    identify_made,
    lacks,
    lacks_part_of_term,
    retain_made,
    retain_sessions,
    select_ambiguous_courses,
)
from sync_scripts.formats.model import (
    Cell,
    CellReference,
    ConvertedFile,
    CsvFile,
    Format,
    Remark,
    RetainedRows,
    Staged,
    declare_source,
    list_cells,
    remark_rows,
)
from sync_scripts.formats.sds import SDS
from sync_scripts.formats.sds_v1_rows import (
    KEY,
    PEOPLE,
    RELATIONS,
    ROSTER,
    SCHOOL,
    SEATS,
    SECTION,
    STUDENT,
    TEACHER,
    TERM,
    USER,
    describe_as_v2_1,
    describe_export,
)
from sync_scripts.formats.tolerated import COMMA_ID, COURSE_NAMES, MADE_NAME, NO_CLASS_TERM, NO_TERM, OWN_COURSE

_declare = partial(declare_source, key=KEY)


def _make_people_file(name: str, kind: str, *cells: Cell) -> CsvFile:
    return _declare(
        name,
        tables.users,
        Cell(KEY, ID, required=True),
        Cell("School SIS ID", ID, required=True, refers=CellReference(SCHOOL)),
        *list_cells(NAME, "Username", "Last Name", "Secondary Email"),
        *list_cells(TEXT, "First Name", "Middle Name"),
        Cell("Password", SECRET),
        *list_cells(UNREAD, "State ID", "Status"),
        *cells,
        unique=False,
        **identify_made(kind),
    )


def _make_seats_file(name: str, person: str) -> CsvFile:
    return _declare(
        name,
        tables.enrollments,
        Cell("Section SIS ID", ID, required=True, refers=CellReference(SECTION)),
        Cell(KEY, ID, required=True, refers=CellReference(person)),
        key="Section SIS ID",
        unique=False,
        identify=None,
        makes_ids=True,
    )


def _list_places(kind: str) -> tuple[Cell, ...]:
    names = ("Address", "City", "State", "Zip", "Latitude", "Longitude", "Country")
    return list_cells(UNREAD, *(f"{kind} {name}" for name in names))


FILES = (
    _declare(
        SCHOOL,
        tables.orgs,
        Cell(KEY, ID, required=True),
        Cell("Name", TEXT, required=True),
        Cell("School Number", NAME),
        *list_cells(UNREAD, "School NCES_ID", "State ID", "Grade Low", "Grade High", "Principal SIS ID"),
        *list_cells(UNREAD, "Principal Name", "Principal Secondary Email", "Address", "City", "State", "Country"),
        *list_cells(UNREAD, "Zip", "Phone", "Zone"),
        **identify_made("school"),
    ),
    _declare(
        SECTION,
        tables.classes,
        Cell(KEY, ID, required=True),
        Cell("School SIS ID", ID, required=True, refers=CellReference(SCHOOL)),
        Cell("Section Name", TEXT, required=True),
        *list_cells(ID, "Term SIS ID", "Course SIS ID"),
        *list_cells(EITHER_DAY, "Term StartDate", "Term EndDate"),
        *list_cells(TEXT, "Section Number", "Term Name", "Course Name", "Course Number"),
        *list_cells(TEXTS, "Course Subject", "Periods"),
        *list_cells(UNREAD, "Course Description", "Status"),
        **identify_made("section"),
    ),
    _make_people_file(
        STUDENT,
        "student",
        Cell("Student Number", NAME),
        Cell("Grade", GRADES),
        Cell("Gender", GENDER),
        Cell("Birthdate", EITHER_DAY),
        *list_cells(UNREAD, "ELL Status", "FederalRace", "Graduation Year"),
        *_list_places("Mailing"),
        *_list_places("Residence"),
    ),
    _make_people_file(TEACHER, "teacher", Cell("Teacher Number", NAME), *list_cells(UNREAD, "Title", "Qualification")),
    _make_seats_file(SEATS, STUDENT),
    _make_seats_file(ROSTER, TEACHER),
    _declare(
        USER,
        tables.users,
        Cell("Email", NAME, required=True),
        Cell("First Name", TEXT, required=True),
        Cell("Last Name", NAME, required=True),
        Cell("Phone", TEXT),
        Cell(KEY, UNREAD),
        key="Email",
        required=False,
        **identify_made("contact"),
    ),
    _declare(
        RELATIONS,
        tables.users,
        Cell(KEY, ID, required=True, refers=CellReference(STUDENT)),
        Cell("Email", NAME, required=True, refers=CellReference(USER)),
        Cell("Role", TEXT),
        unique=False,
        required=False,
        identify=None,
    ),
)


def _retain_described(retain: RetainedRows) -> RetainedRows:
    return lambda rejected, feed: retain(describe_as_v2_1(rejected, feed), feed)


def _convert_to(
    name: str, select_rows: Callable[[Staged, str], sa.Select[Any]], retain: RetainedRows, *files: str
) -> ConvertedFile:
    return convert_to(name, lambda staged, feed: select_rows(describe_export(staged, feed), feed), retain, *files)


SDS_V1 = Format(
    "sds v1",
    FILES,
    SDS.parts,
    converted=(
        _convert_to("orgs", rows.select_orgs, retain_made("school", SCHOOL), SCHOOL),
        _convert_to("academicSessions", rows.select_sessions, retain_sessions(SECTION), SECTION),
        _convert_to("courses", rows.select_courses, _retain_described(rows.retain_courses), SECTION),
        _convert_to("classes", rows.select_classes, _retain_described(rows.retain_ids("classes")), SECTION),
        _convert_to("users", rows.select_users, _retain_described(rows.retain_users), STUDENT, TEACHER),
        _convert_to("roles", rows.select_roles, _retain_described(rows.retain_roles), STUDENT, TEACHER, SCHOOL),
        _convert_to("enrollments", rows.select_enrollments, _retain_described(rows.retain_enrollments), SEATS, SECTION),
        _convert_to("demographics", rows.select_demographics, retain_made("student", STUDENT), STUDENT),
    ),
    makes_district=True,
    remarks=(
        Remark(SECTION, "Course Number", COURSE_NAMES, select_ambiguous_courses("Course Number", "Course Name")),
        remark_rows(SECTION, "Course SIS ID", OWN_COURSE, lacks("Course SIS ID", "Course Number", "Course Name")),
        remark_rows(SECTION, "Term Name", NO_TERM, lacks_part_of_term(*TERM)),
        remark_rows(SECTION, "Term Name", NO_CLASS_TERM, lacks(*TERM)),
        *(remark_rows(RELATIONS, header, COMMA_ID, has_comma(header)) for header in (KEY, "Email")),
        *(
            remark_rows(people.name, header, MADE_NAME, lacks(header))
            for people in PEOPLE
            for header in ("First Name", "Last Name")
        ),
        *(remark for people in PEOPLE for remark in people.list_remarks()),
    ),
    rules=tuple(rule for people in PEOPLE for rule in people.list_rules()),
)
