"""What a report says of cells that the conversion of an export makes up or leaves out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from sync_scripts.engine.load import Options, load
from sync_scripts.formats.tolerated import (
    COMMA_ID,
    MADE_IDS,
    MADE_NAME,
    MADE_RECORDS,
    NO_CLASS_TERM,
    NO_CONTACT,
    NO_DISTRICT,
    NO_PLACE,
    NO_TERM,
    OWN_COURSE,
    UNKNOWN_RACE,
    UNREAD_FILE,
    Deviation,
)
from sync_scripts.reading.registry import CLEVER, SDS, Family
from tests.postgres.loaded import load_first
from tests.sync.export_changes import Bend, both, cell, column, without_file

CLEVER_EXPORT, V1, V2, V2_1 = "shelbyville-clever", "northhaven-sds-v1", "northhaven-sds-v2", "northhaven-sds"
# The family, the export, what is made of it, the deviation, and the places that the report names.
CASES: dict[str, tuple[Family, str, Bend, Deviation, list[str]]] = {
    "clever: contacts": (
        CLEVER,
        CLEVER_EXPORT,
        cell("students", 2, "Contact_name", ""),
        NO_CONTACT,
        [
            "students.csv, column Contact_sis_id: in 1 row (line 5)",
            "students.csv, column Contact_name: in 1 row (line 2)",
        ],
    ),
    "clever: a contact of one word": (
        CLEVER,
        CLEVER_EXPORT,
        column("students", "Contact_relationship", "Mother"),
        MADE_NAME,
        ["students.csv, column Contact_name: in 1 row (line 3)"],
    ),
    "clever: a term": (
        CLEVER,
        CLEVER_EXPORT,
        both(cell("sections", 2, "Term_start", ""), cell("sections", 3, "Term_name", "")),
        NO_TERM,
        ["sections.csv, column Term_name: in 2 rows (first: line 2)"],
    ),
    "clever: no term": (
        CLEVER,
        CLEVER_EXPORT,
        both(*(cell("sections", 2, it, "") for it in ("Term_name", "Term_start", "Term_end"))),
        NO_CLASS_TERM,
        ["sections.csv, column Term_name: in 2 rows (first: line 2)"],
    ),
    "clever: no course": (
        CLEVER,
        CLEVER_EXPORT,
        both(cell("sections", 2, "Course_name", ""), cell("sections", 2, "Course_number", " ")),
        OWN_COURSE,
        ["sections.csv, column Course_number: in 2 rows (first: line 2)"],
    ),
    "clever: a race": (
        CLEVER,
        CLEVER_EXPORT,
        both(cell("students", 2, "Race", "Martian"), cell("students", 3, "Race", "")),
        UNKNOWN_RACE,
        ["students.csv, column Race: in 1 row (line 2)"],
    ),
    "clever: columns": (
        CLEVER,
        CLEVER_EXPORT,
        both(column("students", "Home_language", "de"), column("schools", "School_zip", "")),
        NO_PLACE,
        [
            "schools.csv (State_id, Low_grade, High_grade), students.csv (Home_language), teachers.csv (Title), "
            "staff.csv (Title), admins.csv (Admin_title)"
        ],
    ),
    "clever: an id with a comma": (
        CLEVER,
        CLEVER_EXPORT,
        column("students", "Contact_sis_id", "7,8"),
        COMMA_ID,
        ["students.csv, column Contact_sis_id: in 4 rows (first: line 2)"],
    ),
    "sds v1: a cell with two addresses": (
        SDS,
        V1,
        both(*(column(it, "Email", "fatou@example.org,ann@example.org") for it in ("User", "GuardianRelationship"))),
        COMMA_ID,
        ["GuardianRelationship.csv, column Email: in 1 row (line 2)"],
    ),
    "sds v2.1: an id with a comma": (
        SDS,
        V2_1,
        both(cell("users", 6, "sourcedId", "u5,u2"), cell("relationships", 2, "relationshipUserSourcedId", "u5,u2")),
        COMMA_ID,
        ["relationships.csv, column relationshipUserSourcedId: in 1 row (line 2)"],
    ),
    "sds v1: names": (
        SDS,
        V1,
        cell("Teacher", 2, "Last Name", ""),
        MADE_NAME,
        [
            "Student.csv, column First Name: in 1 row (line 4)",
            "Student.csv, column Last Name: in 1 row (line 4)",
            "Teacher.csv, column Last Name: in 1 row (line 2)",
        ],
    ),
    "sds v1: a term": (
        SDS,
        V1,
        cell("Section", 2, "Term EndDate", ""),
        NO_TERM,
        ["Section.csv, column Term Name: in 1 row (line 2)"],
    ),
    "sds v1: no term": (
        SDS,
        V1,
        both(*(cell("Section", 2, it, "") for it in ("Term Name", "Term StartDate", "Term EndDate"))),
        NO_CLASS_TERM,
        ["Section.csv, column Term Name: in 2 rows (first: line 2)"],
    ),
    "sds v1: no course": (
        SDS,
        V1,
        both(*(cell("Section", 2, it, "") for it in ("Course SIS ID", "Course Number", "Course Name"))),
        OWN_COURSE,
        ["Section.csv, column Course SIS ID: in 2 rows (first: line 2)"],
    ),
    **{
        f"{name}: {deviation.taken}": (
            SDS,
            name,
            both(column("classes", "sessionSourcedIds", ""), column("classes", "courseSourcedId", "")),
            deviation,
            [f"classes.csv, column {header}: in {rows}"],
        )
        for name, rows in ((V2, "1 row (line 2)"), (V2_1, "2 rows (first: line 2)"))
        for deviation, header in ((NO_CLASS_TERM, "sessionSourcedIds"), (OWN_COURSE, "courseSourcedId"))
    },
    **{
        f"{name}: records of sections": (
            family,
            name,
            lambda _: None,
            MADE_RECORDS,
            places,
        )
        for family, name, places in (
            (CLEVER, CLEVER_EXPORT, ["sections.csv", "sections.csv"]),
            (SDS, V1, ["Section.csv", "Section.csv"]),
            (SDS, V2, []),
            (SDS, V2_1, []),
        )
    },
    **{
        f"{name}: ids": (family, name, lambda _: None, MADE_IDS, [places])
        for family, name, places in (
            (
                CLEVER,
                CLEVER_EXPORT,
                "schools.csv, students.csv, teachers.csv, sections.csv, enrollments.csv, staff.csv, admins.csv",
            ),
            (
                SDS,
                V1,
                "School.csv, Section.csv, Student.csv, Teacher.csv, StudentEnrollment.csv, TeacherRoster.csv, User.csv",
            ),
            (SDS, V2, "enrollments.csv"),
            (SDS, V2_1, "enrollments.csv"),
        )
    },
    **{
        f"{name}: names": (
            SDS,
            name,
            cell("users", 2, "familyName", ""),
            MADE_NAME,
            [
                "users.csv, column givenName: in 1 row (line 3)",
                "users.csv, column familyName: in 2 rows (first: line 2)",
            ],
        )
        for name in (V2, V2_1)
    },
}


@pytest.mark.parametrize(
    ("family", "name", "file"),
    [(CLEVER, CLEVER_EXPORT, "schools.csv"), (SDS, V1, "School.csv")],
    ids=["clever", "sds v1"],
)
def test_the_district_that_a_feed_is_itself_is_said(
    engine: sa.Engine, copy_export: Callable[[str], Path], family: Family, name: str, file: str
) -> None:
    report = load(engine, "feed", copy_export(name), family=family, options=Options(dry_run=True))
    [said] = [it for it in report.notices if NO_DISTRICT.taken in it]
    assert said.startswith(f"{file}: {NO_DISTRICT.taken} (the feed itself is the district feed)")


@pytest.mark.parametrize(("family", "name", "bend", "deviation", "places"), CASES.values(), ids=CASES)
def test_what_is_made_up_or_left_out_is_said(
    engine: sa.Engine,
    copy_export: Callable[[str], Path],
    family: Family,
    name: str,
    bend: Bend,
    deviation: Deviation,
    places: list[str],
) -> None:
    export = copy_export(name)
    bend(export)
    report = load(engine, "feed", export, family=family, options=Options(dry_run=True))
    said = [it.split(deviation.taken)[0].rstrip(", :") for it in report.notices if deviation.taken in it]
    assert sorted(said) == sorted(places)


# The files that the next export lacks, with what a report says of the records that they had.
# fmt: off
ABSENT: dict[str, tuple[str, tuple[str, ...], list[str]]] = {
    "sds v2.1": (
        V2_1,
        ("classes", "enrollments", "demographics", "relationships", "courses"),
        [f"{name}.csv is absent; {count}" for name, count in
         (("classes", 2), ("enrollments", 4), ("courses", 2), ("demographics", 2))],
    ),
    "sds v2.1, beside classes": (V2_1, ("courses", "relationships"), ["courses.csv is absent; 1"]),
    "sds v1": (V1, ("User", "GuardianRelationship"), []),
}
# fmt: on


@pytest.mark.parametrize(("name", "files", "said"), ABSENT.values(), ids=ABSENT)
def test_records_that_stay_without_their_file_are_said(
    engine: sa.Engine, copy_export: Callable[[str], Path], name: str, files: tuple[str, ...], said: list[str]
) -> None:
    """As of OneRoster. Other records are made of the rows of several files."""
    export = copy_export(name)
    load_first(engine, "feed", export, SDS)
    both(*(without_file(f"{file}.csv") for file in files))(export)
    report = load(engine, "feed", export, family=SDS)
    stays = " records of earlier exports stay as they are"
    assert sorted(it for it in report.notices if "is absent" in it) == sorted(it + stays for it in said)


def test_a_file_that_is_read_with_another_one_alone_is_said(
    engine: sa.Engine, copy_export: Callable[[str], Path]
) -> None:
    """Not one whose rows are all rejected, as those of enrollments without classes."""
    export = copy_export(V2_1)
    without_file("classes.csv")(export)
    report = load(engine, "feed", export, family=SDS, options=Options(dry_run=True))
    said = [it for it in report.notices if UNREAD_FILE.taken in it]
    assert said == [f"courses.csv: in 1 row, {UNREAD_FILE.taken} (without classes.csv); {UNREAD_FILE.remedy}"]


METADATA: dict[str, tuple[Family, str, str, tuple[str, ...], list[str]]] = {
    "clever": (CLEVER, CLEVER_EXPORT, "ext.own", ("schools", "students", "staff", "sections", "enrollments"),
               ["enrollments.csv", "sections.csv"]),
    "sds": (SDS, V2_1, "metadata.own", ("orgs", "users", "classes"), ["classes.csv", "orgs.csv", "users.csv"]),
}  # fmt: skip


@pytest.mark.parametrize(("family", "name", "header", "files", "dropped"), METADATA.values(), ids=METADATA)
def test_only_metadata_that_is_dropped_is_said_to_be(
    engine: sa.Engine,
    copy_export: Callable[[str], Path],
    family: Family,
    name: str,
    header: str,
    files: tuple[str, ...],
    dropped: list[str],
) -> None:
    export = copy_export(name)
    both(*(column(file, header, "x") for file in files))(export)
    report = load(engine, "feed", export, family=family, options=Options(dry_run=True))
    said = [it.partition(":")[0] for it in report.notices if "metadata columns have no place" in it]
    assert sorted(said) == dropped


def test_what_is_made_is_counted_and_named_and_no_strict_run_refuses_it(
    engine: sa.Engine, copy_export: Callable[[str], Path]
) -> None:
    report = load(engine, "feed", copy_export(CLEVER_EXPORT), family=CLEVER, options=Options(strict=True))
    for deviation, words in (
        (MADE_RECORDS, f"({report.counts['courses'].added} courses)"),
        (MADE_RECORDS, f"({report.counts['academicSessions'].added} academicSessions)"),
        (MADE_IDS, "(those of the roster begin with feed:)"),
    ):
        assert any(f"{deviation.taken} {words}" in it for it in report.notices), words
