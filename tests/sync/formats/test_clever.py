"""Clever CSV: what its files say in OneRoster, and where they are refused or rejected."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.db import tables
from roster_service.errors import CommandError
from sync_scripts.engine.load import Options, load
from sync_scripts.formats.tolerated import (
    COURSE_NAMES,
    DAY_FIRST,
    EXTRA_COLUMN,
    HEADER_CASE,
    NO_TARGET,
    NO_TEACHER,
    OTHER_FILE,
    Deviation,
)
from sync_scripts.reading.registry import CLEVER
from tests.postgres.loaded import load_first
from tests.sync.conftest import snapshot, state
from tests.sync.export_changes import (
    Bend,
    both,
    cell,
    column,
    header,
    rows_of,
    shuffled,
    with_file,
    without_column,
    without_file,
    without_rows,
)

FEED = "shelby"


@pytest.fixture
def clever(copy_export: Callable[[str], Path]) -> Path:
    """A copy of the small Clever export."""
    return copy_export("shelbyville-clever")


def read(engine: sa.Engine, table: Any, *, active: bool = False) -> dict[Any, dict[str, Any]]:
    """The rows of a table, with what is filled in them, by ids without the feed's name. `active`: no others."""
    own = {"sourced_id", "feed_id", "status", "date_last_modified"}
    return {
        str(key).removeprefix(f"{FEED}:"): {name: it for name, it in row.items() if it is not None and name not in own}
        for key, row in snapshot(engine, table).items()
        if not active or row["status"] == "active"
    }


def test_loads_and_loads_again(engine: sa.Engine, clever: Path) -> None:
    report = load_first(engine, FEED, clever, family=CLEVER)
    assert (report.outcome, report.format) == ("done", "clever")
    before = state(engine)
    for path in clever.glob("*.csv"):
        shuffled(path.stem)(clever)
    assert load(engine, FEED, clever, family=CLEVER).outcome == "unchanged"
    assert state(engine) == before


def test_orgs(engine: sa.Engine, clever: Path) -> None:
    load_first(engine, FEED, clever, family=CLEVER)
    orgs = read(engine, tables.orgs)
    district = f"{FEED}:district"
    assert orgs["district"] == {"name": FEED, "type": "district", "identifier": FEED, "district_id": district}
    assert orgs["school:10"] == {
        "name": "Shelbyville Elementary",
        "type": "school",
        "identifier": "0010",
        "metadata": {"colour": "green"},
        "parent_id": district,
        "district_id": district,
    }


def test_sections(engine: sa.Engine, clever: Path) -> None:
    load_first(engine, FEED, clever, family=CLEVER)
    sessions = {row["title"]: (key, row) for key, row in read(engine, tables.academic_sessions).items()}
    assert {
        title: (str(row["start_date"]), row["school_year"], row["type"]) for title, (_, row) in sessions.items()
    } == {"Fall 2026": ("2026-08-17", "2027", "term"), "Spring 2027": ("2027-01-19", "2027", "term")}
    courses = read(engine, tables.courses).values()
    assert {row["title"]: (row.get("course_code"), row["org_id"].split(":")[-1]) for row in courses} == {
        "Algebra": ("MA-9", "20"),
        "Drawing": (None, "20"),
        "Room 2": (None, "10"),
    }
    classes = read(engine, tables.classes)
    course = next(f"{FEED}:{key}" for key, row in read(engine, tables.courses).items() if row["title"] == "Algebra")
    fall = [f"{FEED}:{sessions['Fall 2026'][0]}"]
    assert classes["section:100"] == {
        "title": "Algebra, Section 1",
        "class_code": "1",
        "class_type": "scheduled",
        "grades": ["09"],
        "course_id": course,
        "school_id": f"{FEED}:school:20",
        "term_ids": fall,
        "subjects": ["math"],
        "periods": ["1"],
    }
    assert (classes["section:101"]["title"], classes["section:200"]["class_type"]) == ("Algebra", "homeroom")
    assert classes["section:101"]["term_ids"] == fall
    assert "term_ids" not in classes["section:200"]


def test_every_section_has_the_course_that_it_names(engine: sa.Engine, clever: Path) -> None:
    """Also where a number means another course, in the same school or in another one."""
    cells = ("School_id", "Section_id", "Teacher_id", "Course_number", "Course_name")
    sections = (
        ("20", "100", "1", "1", "Algebra"),
        ("20", "101", "1", "1", "Algebra "),
        ("20", "102", "1", "1", "Art: Drawing"),
        ("10", "103", "1", "1", "Algebra"),
        ("20", "104", "1", "", "Art: Drawing"),
        ("20", "105", "1", "1", ""),
        ("20", "200", "1", "2", "Music"),
    )
    rows_of("sections", lambda rows: rows.clear())(clever)
    rows_of("sections", lambda rows: rows.extend(map(list, (cells, *sections))))(clever)
    report = load(engine, FEED, clever, family=CLEVER)
    courses, classes = read(engine, tables.courses), read(engine, tables.classes)
    named = {key: courses[row["course_id"].removeprefix(f"{FEED}:")] for key, row in classes.items()}
    for school, section, _, number, name in sections:
        course = named[f"section:{section}"]
        assert (course["title"], course.get("course_code") or "") == (name.strip() or number, number)
        assert course["org_id"] == f"{FEED}:school:{school}"
    assert len(courses) == 6
    assert [it for it in report.notices if COURSE_NAMES.taken in it] == [
        f"sections.csv, column Course_number: in 5 rows (first: line 2), {COURSE_NAMES.taken}; {COURSE_NAMES.remedy}"
    ]


def test_people(engine: sa.Engine, clever: Path) -> None:
    load_first(engine, FEED, clever, family=CLEVER)
    users = read(engine, tables.users)
    assert set(users) == {
        *(f"student:{number}" for number in range(1, 5)),
        "teacher:1", "teacher:2", "staff:1", "admin:1", "contact:C1", "contact:C2",
    }  # fmt: skip
    assert users["student:1"] == {
        "enabled_user": True,
        "username": "zobrien",
        "given_name": "Zoë",
        "middle_name": "Mae",
        "family_name": "O'Brien",
        "identifier": "S-0001",
        "email": "zoe@students.example.org",
        "grades": ["09"],
        "primary_org_id": f"{FEED}:school:20",
    }
    names = {key: (users[key]["given_name"], users[key]["family_name"]) for key in ("contact:C1", "contact:C2")}
    assert names == {"contact:C1": ("Nora Anne", "O'Brien"), "contact:C2": ("Cher", "Cher")}
    roles = {
        (key[0].removeprefix(f"{FEED}:"), row["org_id"].removeprefix(f"{FEED}:")): row["role"]
        for key, row in snapshot(engine, tables.user_roles).items()
    }
    assert roles == {
        ("student:1", "school:20"): "student",
        ("student:2", "school:10"): "student",
        ("student:3", "school:10"): "student",
        ("student:3", "school:20"): "student",
        ("student:4", "school:20"): "student",
        ("teacher:1", "school:10"): "teacher",
        ("teacher:1", "school:20"): "teacher",
        ("teacher:2", "school:20"): "teacher",
        ("staff:1", "school:20"): "aide",
        ("admin:1", "school:10"): "siteAdministrator",
        ("contact:C1", "school:10"): "parent",
        ("contact:C1", "school:20"): "parent",
        ("contact:C2", "school:20"): "relative",
    }
    agents = {(key[0], row["agent_id"]) for key, row in snapshot(engine, tables.user_agents).items()}
    pairs = {("student:1", "contact:C1"), ("student:1", "contact:C2"), ("student:2", "contact:C1")}
    named = {(f"{FEED}:{child}", f"{FEED}:{contact}") for child, contact in pairs}
    assert agents == named | {(contact, child) for child, contact in named}


def test_enrollments(engine: sa.Engine, clever: Path) -> None:
    load_first(engine, FEED, clever, family=CLEVER)
    enrollments = read(engine, tables.enrollments)
    assert {key: row.get("primary") for key, row in enrollments.items()} == {
        "enrollment:100:1": None,
        "enrollment:100:4": None,
        "enrollment:102:4": None,
        "enrollment:200:2": None,
        "enrollment:200:3": None,
        "teaching:100:1": True,
        "teaching:100:2": False,
        "teaching:101:2": True,
        "teaching:102:2": True,
        "teaching:200:1": True,
    }
    assert enrollments["teaching:200:1"]["user_id"] == f"{FEED}:teacher:1"


def test_demographics(engine: sa.Engine, clever: Path) -> None:
    load_first(engine, FEED, clever, family=CLEVER)
    found = read(engine, tables.demographics)
    assert set(found) == {"student:1", "student:2", "student:3"}
    assert {**found["student:1"], "birth_date": str(found["student:1"]["birth_date"])} == {
        "birth_date": "2011-03-07",
        "sex": "female",
        "white": True,
        "hispanic_or_latino_ethnicity": False,
    }
    assert found["student:2"]["demographic_race_two_or_more_races"]
    assert found["student:3"] == {"sex": "other"}


@pytest.mark.parametrize(
    ("day", "read_as", "said"), [("3/16/2011", "2011-03-16", 0), ("16/3/2011", "2011-03-16", 1)], ids=["M/D", "D/M"]
)
def test_an_order_of_days_that_is_not_that_of_clever_is_said(
    engine: sa.Engine, clever: Path, day: str, read_as: str, said: int
) -> None:
    rows_of("students", lambda rows: [row.__setitem__(8, day) for row in rows[1:4]])(clever)
    report = load(engine, FEED, clever, family=CLEVER)
    assert str(read(engine, tables.demographics)["student:1"]["birth_date"]) == read_as
    assert sum("DOB" in it and DAY_FIRST.taken in it for it in report.notices) == said
    assert sum("DOB" in it for it in report.notices) == said


def test_two_districts_with_the_same_numbers(engine: sa.Engine, clever: Path) -> None:
    load_first(engine, FEED, clever, family=CLEVER)
    before = read(engine, tables.users)
    load(engine, "another", clever, family=CLEVER)
    users = snapshot(engine, tables.users)
    assert len(users) == 2 * len(before)
    assert read(engine, tables.users).items() >= before.items()


def test_ids_with_colons_stay_apart(engine: sa.Engine, clever: Path) -> None:
    rows_of("sections", lambda rows: [rows[1].__setitem__(1, "a:b"), rows[2].__setitem__(1, "a")])(clever)
    rows_of("students", lambda rows: rows[3].__setitem__(1, "b:2"))(clever)
    rows_of("enrollments", lambda rows: rows.__setitem__(slice(1, None), [["20", "a:b", "4"], ["20", "a", "b:2"]]))(
        clever
    )
    load(engine, FEED, clever, family=CLEVER)
    assert {"enrollment:a%3Ab:4", "enrollment:a:b%3A2"} <= set(read(engine, tables.enrollments))


TAKEN: dict[str, Bend] = {
    "no staff": without_file("staff.csv"),
    "no column that nothing needs": without_column("students", "Middle_name"),
    "columns in another order": rows_of("students", lambda rows: [row.reverse() for row in rows]),
    "own columns": header("schools", "High_grade", "ext.high"),
    "files without a roster": with_file("attendance.csv", b"whatever"),
}


@pytest.mark.parametrize("bend", TAKEN.values(), ids=TAKEN)
def test_taken(engine: sa.Engine, clever: Path, bend: Bend) -> None:
    bend(clever)
    assert load(engine, FEED, clever, family=CLEVER).counts["orgs"].added == 3


# The teachers of section 100, the second column and more -> who teaches it, and whether as the primary teacher.
TEACHERS: dict[str, tuple[Bend, dict[str, bool], Deviation | None]] = {
    "vacant": (both(cell("sections", 2, "Teacher_id", ""), cell("sections", 2, "Teacher_2_id", "")), {}, NO_TEACHER),
    "first vacant": (cell("sections", 2, "Teacher_id", ""), {"2": True}, None),
    "first left": (cell("sections", 2, "Teacher_id", "9"), {"2": True}, NO_TARGET),
    "second left": (cell("sections", 2, "Teacher_2_id", "9"), {"1": True}, NO_TARGET),
    "both left": (
        both(cell("sections", 2, "Teacher_id", "9"), cell("sections", 2, "Teacher_2_id", "8")),
        {},
        NO_TEACHER,
    ),
    "row rejected": (cell("teachers", 4, "Last_name", ""), {"1": True, "2": False}, None),
}


@pytest.mark.parametrize(("bend", "teachers", "deviation"), TEACHERS.values(), ids=TEACHERS)
def test_a_section_keeps_its_pupils_and_the_teachers_who_exist(
    engine: sa.Engine, clever: Path, bend: Bend, teachers: dict[str, bool], deviation: Deviation | None
) -> None:
    """Also in a run after one with all of them. A row that is rejected takes no class from its teacher."""
    load_first(engine, FEED, clever, family=CLEVER)
    bend(clever)
    report = load(engine, FEED, clever, family=CLEVER, options=Options(allow_mass_delete=True))
    found = read(engine, tables.enrollments, active=True)
    assert {it.split(":")[-1]: bool(found[it]["primary"]) for it in found if it.startswith("teaching:100:")} == teachers
    assert {it for it in found if it.startswith("enrollment:100:")} == {"enrollment:100:1", "enrollment:100:4"}
    said = [it for it in report.notices if it.startswith("sections.csv, column Teacher_")]
    assert bool(said) == (deviation is not None)
    assert deviation is None or any(deviation.taken in it for it in said)
    assert (report.rejected > 0) == (deviation is None and len(teachers) > 1)


def test_own_columns_become_metadata(engine: sa.Engine, clever: Path) -> None:
    load_first(engine, FEED, clever, family=CLEVER)
    with_columns = {"schools": tables.orgs, "students": tables.users, "teachers": tables.users}
    # No interface shows these.
    shown_nowhere = ("sections", "enrollments")
    for file in (*with_columns, *shown_nowhere):
        both(column(file, "ext.bus route", f"of {file}"), column(file, "ext.empty", ""))(clever)
    report = load(engine, FEED, clever, family=CLEVER)
    assert (report.outcome, report.findings.total, report.counts["orgs"].changed) == ("done", 0, 2)
    for file, table in with_columns.items():
        stored = [row["metadata"] for row in snapshot(engine, table).values()]
        assert {"bus route": f"of {file}"} in stored
        assert not any({"bus route": f"of {other}"} in stored for other in shown_nowhere)
    for file in (*with_columns, *shown_nowhere):
        both(without_column(file, "ext.bus route"), without_column(file, "ext.empty"))(clever)
    load(engine, FEED, clever, family=CLEVER)
    for table in with_columns.values():
        assert not any("bus route" in (row["metadata"] or {}) for row in snapshot(engine, table).values())


def test_tolerated_deviations_are_loaded_and_counted(engine: sa.Engine, clever: Path) -> None:
    load_first(engine, FEED, clever, family=CLEVER)
    header("students", "DOB", "Dob")(clever)
    report = load(engine, FEED, clever, family=CLEVER)
    assert report.outcome == "unchanged"
    assert any(HEADER_CASE.taken in reported for reported in report.notices)


@pytest.mark.parametrize(
    ("bend", "deviation"), [(with_file("notes.csv"), OTHER_FILE), (column("teachers", "Nickname", "Al"), EXTRA_COLUMN)]
)
def test_other_files_and_columns_are_left_out_and_reported(
    engine: sa.Engine, clever: Path, bend: Bend, deviation: Deviation
) -> None:
    load_first(engine, FEED, clever, family=CLEVER)
    bend(clever)
    report = load(engine, FEED, clever, family=CLEVER)
    assert report.outcome == "unchanged"
    assert any(deviation.taken in reported for reported in report.notices)


def test_somebody_leaves(engine: sa.Engine, clever: Path) -> None:
    load_first(engine, FEED, clever, family=CLEVER)
    without_rows("staff", "20")(clever)
    assert load(engine, FEED, clever, family=CLEVER).counts["users"].tombstoned == 1


def test_without_their_files_the_staff_of_earlier_exports_stay(engine: sa.Engine, clever: Path, tmp_path: Path) -> None:
    whole = Path(shutil.copytree(clever, tmp_path / "whole"))
    load_first(engine, FEED, clever, family=CLEVER)
    before = [snapshot(engine, table) for table in (tables.users, tables.user_roles)]
    both(without_file("staff.csv"), without_file("admins.csv"))(clever)
    report = load(engine, FEED, clever, family=CLEVER)
    assert "staff.csv and admins.csv are absent; 2 records of earlier exports stay as they are" in report.notices
    assert [snapshot(engine, table) for table in (tables.users, tables.user_roles)] == before
    assert load(engine, FEED, whole, family=CLEVER).outcome == "unchanged"
    # Later versions of Clever have all of them in one file.
    without_file("admins.csv")(whole)
    assert load(engine, FEED, whole, family=CLEVER).counts["users"].tombstoned == 1


def test_a_feed_keeps_its_family(engine: sa.Engine, clever: Path, springfield: Path) -> None:
    load_first(engine, FEED, clever, family=CLEVER)
    with pytest.raises(CommandError, match="the feed shelby takes clever, not oneroster"):
        load(engine, FEED, springfield)
