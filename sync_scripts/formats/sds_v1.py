"""School Data Sync (SDS) v1 CSV: the files of an export, and their conversion to OneRoster.

Files and headers are those that Microsoft documents for version 1, with its two files of guardians. Students and
teachers have one row per school, and the ids are unique only within one file. So the conversion makes ids as that of
Clever does, and the feed itself is the district. It describes the rows as files of version 2.1, which it then converts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from roster_service.db import tables
from roster_service.db.tables import CText
from sync_scripts.formats import sds_rows as rows
from sync_scripts.formats.cells import GRADES, ID, NAME, SECRET, TEXT, TEXTS, UNREAD
from sync_scripts.formats.clever import EITHER_DAY, GENDER
from sync_scripts.formats.clever_people import SEXES
from sync_scripts.formats.conversion import (
    choose_least,
    describe_made,
    find_school_year,
    label_cells,
    lacks,
    lacks_part_of_term,
    make_course_id,
    make_district,
    make_id,
    retain_made,
    retain_sessions,
    select_ambiguous_courses,
    to_literal,
    unite,
)
from sync_scripts.formats.model import (
    Cell,
    CellReference,
    ConvertedFile,
    CsvFile,
    FileSubject,
    Format,
    Remark,
    RetainedRows,
    Staged,
    StagedFile,
    declare_source,
    list_cells,
    loosen,
    remark_rows,
)
from sync_scripts.formats.oneroster import ONEROSTER_1_2
from sync_scripts.formats.sds import SDS
from sync_scripts.formats.several_rows import PeopleFile
from sync_scripts.formats.tolerated import COURSE_NAMES, MADE_NAME, NO_CLASS_TERM, NO_TERM, OWN_COURSE

SCHOOL, SECTION, STUDENT, TEACHER = "sds1_School", "sds1_Section", "sds1_Student", "sds1_Teacher"
SEATS, ROSTER, USER, RELATIONS = (
    "sds1_StudentEnrollment",
    "sds1_TeacherRoster",
    "sds1_User",
    "sds1_GuardianRelationship",
)
KEY = "SIS ID"
TERM = ("Term Name", "Term StartDate", "Term EndDate")
_STORED = {
    "given_name": "First Name",
    "family_name": "Last Name",
    "middle_name": "Middle Name",
    "username": "Username",
    "email": "Secondary Email",
}
PEOPLE = (
    PeopleFile(
        STUDENT,
        "student",
        "School SIS ID",
        {**_STORED, "identifier": "Student Number"},
        birthday="Birthdate",
        others=("Gender",),
    ),
    PeopleFile(TEACHER, "teacher", "School SIS ID", {**_STORED, "identifier": "Teacher Number"}),
)


def _declare(
    name: str, subject: FileSubject, *cells: Cell, key: str = KEY, unique: bool = True, required: bool = True
) -> CsvFile:
    written = name.removeprefix("sds1_")
    return declare_source(name, subject, *cells, key=key, unique=unique, required=required, written_as=written)


def _refer_to(name: str) -> CellReference:
    return CellReference(name, written_as=name.removeprefix("sds1_"))


def _make_people_file(name: str, kind: str, *cells: Cell) -> CsvFile:
    return _declare(
        name,
        describe_made(tables.users, kind),
        Cell(KEY, ID, required=True),
        Cell("School SIS ID", ID, required=True, refers=_refer_to(SCHOOL)),
        *list_cells(NAME, "Username", "Last Name", "Secondary Email"),
        *list_cells(TEXT, "First Name", "Middle Name"),
        Cell("Password", SECRET),
        *list_cells(UNREAD, "State ID", "Status"),
        *cells,
        unique=False,
    )


def _make_seats_file(name: str, person: str) -> CsvFile:
    return _declare(
        name,
        FileSubject(tables.enrollments, makes_ids=True),
        Cell("Section SIS ID", ID, required=True, refers=_refer_to(SECTION)),
        Cell(KEY, ID, required=True, refers=_refer_to(person)),
        key="Section SIS ID",
        unique=False,
    )


def _list_places(kind: str) -> tuple[Cell, ...]:
    names = ("Address", "City", "State", "Zip", "Latitude", "Longitude", "Country")
    return list_cells(UNREAD, *(f"{kind} {name}" for name in names))


FILES = (
    _declare(
        SCHOOL,
        describe_made(tables.orgs, "school"),
        Cell(KEY, ID, required=True),
        Cell("Name", TEXT, required=True),
        Cell("School Number", NAME),
        *list_cells(UNREAD, "School NCES_ID", "State ID", "Grade Low", "Grade High", "Principal SIS ID"),
        *list_cells(UNREAD, "Principal Name", "Principal Secondary Email", "Address", "City", "State", "Country"),
        *list_cells(UNREAD, "Zip", "Phone", "Zone"),
    ),
    _declare(
        SECTION,
        describe_made(tables.classes, "section"),
        Cell(KEY, ID, required=True),
        Cell("School SIS ID", ID, required=True, refers=_refer_to(SCHOOL)),
        Cell("Section Name", TEXT, required=True),
        *list_cells(ID, "Term SIS ID", "Course SIS ID"),
        *list_cells(EITHER_DAY, "Term StartDate", "Term EndDate"),
        *list_cells(TEXT, "Section Number", "Term Name", "Course Name", "Course Number"),
        *list_cells(TEXTS, "Course Subject", "Periods"),
        *list_cells(UNREAD, "Course Description", "Status"),
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
        describe_made(tables.users, "contact"),
        Cell("Email", NAME, required=True),
        Cell("First Name", TEXT, required=True),
        Cell("Last Name", NAME, required=True),
        Cell("Phone", TEXT),
        Cell(KEY, UNREAD),
        key="Email",
        required=False,
    ),
    _declare(
        RELATIONS,
        FileSubject(tables.users),
        Cell(KEY, ID, required=True, refers=_refer_to(STUDENT)),
        Cell("Email", NAME, required=True, refers=_refer_to(USER)),
        Cell("Role", TEXT),
        unique=False,
        required=False,
    ),
)

# --- the rows, as those of version 2.1 ----------------------------------------------------------------------------


def _list_orgs(staged: Staged, feed: str) -> sa.Select[Any]:
    schools, district = staged[SCHOOL], make_district(feed)
    top = sa.select(*label_cells(district), sa.null().label("parentSourcedId"))
    number = sa.func.coalesce(schools["School Number"], schools[KEY], type_=CText)
    below = sa.select(
        make_id(feed, "school", schools[KEY]), schools["Name"], to_literal("school"), number, district["sourcedId"]
    )
    return unite((top, below))


def _make_term_id(sections: StagedFile, feed: str) -> sa.ColumnElement[str]:
    """The id of a section's term, which is complete: from the id of the term, else from its content."""
    begin, end = sections["Term StartDate"], sections["Term EndDate"]
    digest = sa.func.md5(sections["Term Name"].concat("/").concat(begin).concat("/").concat(end), type_=CText)
    is_complete = sections["Term Name"].is_not(None) & begin.is_not(None) & end.is_not(None)
    key = sa.func.coalesce(sa.func.md5(sections["Term SIS ID"]), digest, type_=CText)
    return sa.case((is_complete, make_id(feed, "term", key)))


def _list_sessions(staged: Staged, feed: str) -> sa.Select[Any]:
    sections = staged[SECTION]
    identifier, end = _make_term_id(sections, feed), sections["Term EndDate"]
    columns = {
        "sourcedId": identifier,
        "title": sections["Term Name"],
        "type": to_literal("term"),
        "schoolYear": find_school_year(end),
        "startDate": sections["Term StartDate"],
        "endDate": end,
    }
    return choose_least(columns)


def _make_course_id(sections: StagedFile, feed: str) -> sa.ColumnElement[str]:
    """The id of a section's course: from its own id, else from its school, number and name; NULL where it has none."""
    named = make_course_id(feed, *(sections[header] for header in ("School SIS ID", "Course Number", "Course Name")))
    return sa.func.coalesce(make_id(feed, "course", sections["Course SIS ID"]), named, type_=CText)


def _list_courses(staged: Staged, feed: str) -> sa.Select[Any]:
    sections = staged[SECTION]
    columns = {
        "sourcedId": _make_course_id(sections, feed),
        "orgSourcedId": make_district(feed)["sourcedId"],
        "title": sa.func.coalesce(sections["Course Name"], sections["Course Number"], sections["Section Name"]),
        "code": sections["Course Number"],
        "schoolYearSourcedId": sa.null(),
        "subject": sections["Course Subject"],
        "grade": sa.null(),
    }
    return choose_least(columns)


def _list_classes(staged: Staged, feed: str) -> sa.Select[Any]:
    sections = staged[SECTION]
    return sa.select(
        make_id(feed, "section", sections[KEY]).label("sourcedId"),
        make_id(feed, "school", sections["School SIS ID"]).label("orgSourcedId"),
        sections["Section Name"].label("title"),
        sections["Section Number"].label("code"),
        _make_term_id(sections, feed).label("sessionSourcedIds"),
        _make_course_id(sections, feed).label("courseSourcedId"),
        sections["Periods"].label("periods"),
    )


def _list_users(staged: Staged, feed: str) -> sa.Select[Any]:
    """Each student and teacher once, and the guardians."""
    selects = []
    for people in PEOPLE:
        if people.name in staged:
            file = staged[people.name]
            cells = {**people.list_cells(file, feed), "phone": sa.null(), "sms": sa.null()}
            selects.append(people.choose_rows(file, feed, cells))
    if USER in staged:
        guardians, empty = staged[USER], sa.literal(None, CText)
        names = (empty, guardians["First Name"], guardians["Last Name"], empty, empty)
        identifier = make_id(feed, "contact", guardians["Email"])
        selects.append(
            sa.select(identifier.label("sourcedId"), *names, guardians["Email"], guardians["Phone"], empty.label("sms"))
        )
    return unite(selects)


def _list_roles(staged: Staged, feed: str) -> sa.Select[Any]:
    empty = sa.literal(None, CText)
    return unite(
        sa.select(
            make_id(feed, people.kind, staged[people.name][KEY]).label("userSourcedId"),
            make_id(feed, "school", staged[people.name]["School SIS ID"]).label("orgSourcedId"),
            to_literal(people.kind).label("role"),
            (staged[people.name]["Grade"] if people.name == STUDENT else empty).label("grade"),
            *(empty.label(header) for header in ("sessionSourcedId", "isPrimary", "roleStartDate", "roleEndDate")),
        )
        for people in PEOPLE
        if people.name in staged
    )


def _list_enrollments(staged: Staged, feed: str) -> sa.Select[Any]:
    return unite(
        sa.select(
            make_id(feed, "section", staged[name]["Section SIS ID"]).label("classSourcedId"),
            make_id(feed, kind, staged[name][KEY]).label("userSourcedId"),
            to_literal(kind).label("role"),
        )
        for kind, name in (("student", SEATS), ("teacher", ROSTER))
        if name in staged
    )


def _list_demographics(staged: Staged, feed: str) -> sa.Select[Any]:
    """The demographics of students with a gender or a day of birth."""
    students = staged[STUDENT]
    sexes = [(students["Gender"] == word, to_literal(sex)) for word, sex in SEXES.items()]
    cells: dict[str, Any] = {header: sa.null() for header in SDS.find_file("sds_demographics").headers}
    cells |= {
        "userSourcedId": make_id(feed, "student", students[KEY]),
        "sex": sa.case(*sexes),
        "birthDate": students["Birthdate"],
    }
    filled = sa.or_(students["Gender"].is_not(None), students["Birthdate"].is_not(None))
    return PEOPLE[0].choose_rows(students, feed, cells, filled=filled)


def _list_relationships(staged: Staged, feed: str) -> sa.Select[Any]:
    relations = staged[RELATIONS]
    return sa.select(
        make_id(feed, "student", relations[KEY]).label("userSourcedId"),
        make_id(feed, "contact", relations["Email"]).label("relationshipUserSourcedId"),
        relations["Role"].label("relationshipRole"),
    )


# File of version 2.1: (its rows, the files of which at least one must be there).
DESCRIBED: dict[str, tuple[Callable[[Staged, str], sa.Select[Any]], tuple[str, ...]]] = {
    "sds_orgs": (_list_orgs, (SCHOOL,)),
    "sds_academicSessions": (_list_sessions, (SECTION,)),
    "sds_courses": (_list_courses, (SECTION,)),
    "sds_classes": (_list_classes, (SECTION,)),
    "sds_users": (_list_users, (STUDENT, TEACHER, USER)),
    "sds_roles": (_list_roles, (STUDENT, TEACHER)),
    "sds_enrollments": (_list_enrollments, (SEATS, ROSTER)),
    "sds_demographics": (_list_demographics, (STUDENT,)),
    "sds_relationships": (_list_relationships, (RELATIONS,)),
}


def _describe_as_v2_1(staged: Staged, feed: str) -> Staged:
    """The rows of the staged files, as staged files of version 2.1."""
    return {
        name: StagedFile(SDS.find_file(name), list_rows(staged, feed).subquery(), ())
        for name, (list_rows, files) in DESCRIBED.items()
        if any(file in staged for file in files)
    }


def _describe_export(staged: Staged, feed: str) -> Staged:
    """The same of an export. Where it leaves the file of guardians out, those that are stored stay."""
    described = _describe_as_v2_1(staged, feed)
    if USER in staged:
        return described
    users, known = tables.users.alias(), described["sds_users"]
    # By the headers of a user of version 2.1.
    stored = {"givenName": "given_name", "familyName": "family_name", "email": "email", "phone": "phone"}
    cells = {header: users.c[stored[header]] if header in stored else sa.null() for header in known.table.c.keys()}  # noqa: SIM118
    is_contact = sa.func.starts_with(users.c.sourced_id, make_id(feed, "contact").concat(":"))
    contacts = sa.select(*label_cells({**cells, "sourcedId": users.c.sourced_id})).where(
        is_contact, users.c.status == "active"
    )
    both = unite((sa.select(*known.table.c), contacts)).subquery()
    return {**described, "sds_users": StagedFile(known.file, both, ())}


# --- the conversion -----------------------------------------------------------------------------------------------


def _retain_described(retain: RetainedRows) -> RetainedRows:
    return lambda rejected, feed: retain(_describe_as_v2_1(rejected, feed), feed)


def _convert_to(
    name: str, select_rows: Callable[[Staged, str], sa.Select[Any]], retain: RetainedRows, *files: str
) -> ConvertedFile:
    file = loosen(ONEROSTER_1_2.find_file(name), "termSourcedIds", "username")
    return ConvertedFile(file, files, lambda staged, feed: select_rows(_describe_export(staged, feed), feed), retain)


SDS_V1 = Format(
    "sds v1",
    FILES,
    SDS.parts,
    converted=(
        _convert_to("orgs", rows.select_orgs, _retain_described(rows.retain_ids("sds_orgs")), SCHOOL),
        _convert_to("academicSessions", rows.select_sessions, retain_sessions(SECTION), SECTION),
        _convert_to("courses", rows.select_courses, _retain_described(rows.retain_courses), SECTION),
        _convert_to("classes", rows.select_classes, _retain_described(rows.retain_ids("sds_classes")), SECTION),
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
        *(
            remark_rows(people.name, header, MADE_NAME, lacks(header))
            for people in PEOPLE
            for header in ("First Name", "Last Name")
        ),
        *(remark for people in PEOPLE for remark in people.list_remarks()),
    ),
    rules=tuple(rule for people in PEOPLE for rule in people.list_rules()),
)
