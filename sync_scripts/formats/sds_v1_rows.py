"""The rows of School Data Sync v1, as those of files of version 2.1.

Students and teachers have one row per school, and the ids are unique only within one file. So the conversion makes ids
as that of Clever does, and the feed itself is the district.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from roster_service.db import tables
from roster_service.db.tables import CText
from sync_scripts.formats.clever_people import SEXES
from sync_scripts.formats.conversion import (
    choose_least,
    find_school_year,
    is_of_feed,
    label_cells,
    make_course_id,
    make_district,
    make_id,
    to_literal,
    unite,
)
from sync_scripts.formats.model import REJECTED, Staged, StagedFile
from sync_scripts.formats.sds import SDS
from sync_scripts.formats.several_rows import PeopleFile, read_demographics

SCHOOL, SECTION, STUDENT, TEACHER = "School", "Section", "Student", "Teacher"
SEATS, ROSTER, USER, RELATIONS = "StudentEnrollment", "TeacherRoster", "User", "GuardianRelationship"
KEY = "SIS ID"
TERM = ("Term Name", "Term StartDate", "Term EndDate")
_STORED = {
    "given_name": "First Name",
    "family_name": "Last Name",
    "middle_name": "Middle Name",
    "username": "Username",
    "email": "Secondary Email",
}


def _read_sex_and_birthday(students: StagedFile) -> dict[str, sa.ColumnElement[Any]]:
    """Two cells of demographics, by their headers in OneRoster."""
    sexes = [(students["Gender"] == word, to_literal(sex)) for word, sex in SEXES.items()]
    return {"sex": sa.case(*sexes), "birthDate": students["Birthdate"]}


PEOPLE = (
    PeopleFile(
        STUDENT,
        "student",
        "School SIS ID",
        {**_STORED, "identifier": "Student Number"},
        birthday="Birthdate",
        others=("Gender",),
        say=lambda students: read_demographics(_read_sex_and_birthday(students)),
    ),
    PeopleFile(TEACHER, "teacher", "School SIS ID", {**_STORED, "identifier": "Teacher Number"}),
)


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
    cells: dict[str, Any] = {header: sa.null() for header in SDS.find_file("demographics").headers}
    cells |= {"userSourcedId": make_id(feed, "student", students[KEY]), **_read_sex_and_birthday(students)}
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
    "orgs": (_list_orgs, (SCHOOL,)),
    "academicSessions": (_list_sessions, (SECTION,)),
    "courses": (_list_courses, (SECTION,)),
    "classes": (_list_classes, (SECTION,)),
    "users": (_list_users, (STUDENT, TEACHER, USER)),
    "roles": (_list_roles, (STUDENT, TEACHER)),
    "enrollments": (_list_enrollments, (SEATS, ROSTER)),
    "demographics": (_list_demographics, (STUDENT,)),
    "relationships": (_list_relationships, (RELATIONS,)),
}


def describe_as_v2_1(staged: Staged, feed: str) -> Staged:
    """The rows of the staged files, as staged files of version 2.1."""
    return {
        name: StagedFile(SDS.find_file(name), list_rows(staged, feed).subquery(), ())
        for name, (list_rows, files) in DESCRIBED.items()
        if any(file in staged for file in files)
    }


def describe_export(staged: Staged, feed: str) -> Staged:
    """The same of an export, with its rejected rows. Where it leaves the file of guardians out, those that are stored
    stay."""
    rejected = {name.removeprefix(REJECTED): file for name, file in staged.items() if name.startswith(REJECTED)}
    described = {
        **describe_as_v2_1(staged, feed),
        **{REJECTED + name: file for name, file in describe_as_v2_1(rejected, feed).items()},
    }
    if USER in staged:
        return described
    users, known = tables.users.alias(), described["users"]
    # By the headers of a user of version 2.1.
    stored = {"givenName": "given_name", "familyName": "family_name", "email": "email", "phone": "phone"}
    cells = {header: users.c[stored[header]] if header in stored else sa.null() for header in known.table.c.keys()}  # noqa: SIM118
    is_contact = sa.func.starts_with(users.c.sourced_id, make_id(feed, "contact").concat(":"))
    contacts = sa.select(*label_cells({**cells, "sourcedId": users.c.sourced_id})).where(
        is_contact, users.c.status == "active", is_of_feed(users, feed)
    )
    both = unite((sa.select(*known.table.c), contacts)).subquery()
    return {**described, "users": StagedFile(known.file, both, ())}
