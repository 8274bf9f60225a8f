"""School Data Sync CSV v1 and v2: what their files say in OneRoster, and which rows are rejected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.db import tables
from sync_scripts.engine.load import Options, load
from sync_scripts.reading.registry import SDS
from tests.postgres.loaded import load_first
from tests.sync.conftest import snapshot, state
from tests.sync.export_changes import Bend, both, cell, shuffled, with_row, without_column, without_file

FEED = "northhaven"
V1, V2 = "northhaven-sds-v1", "northhaven-sds-v2"


def list_roles(engine: sa.Engine) -> dict[tuple[str, str], tuple[str, str]]:
    """(user, org): (role, type)."""
    rows = snapshot(engine, tables.user_roles).items()
    return {(key[0], row["org_id"]): (row["role"], row["role_type"]) for key, row in rows}


def list_enrollments(engine: sa.Engine) -> list[tuple[str, ...]]:
    """(class, user, role, school) of each."""
    rows = snapshot(engine, tables.enrollments).values()
    return sorted((row["class_id"], row["user_id"], row["role"], row["school_id"]) for row in rows)


def pick(engine: sa.Engine, table: Any, *columns: str) -> dict[str, tuple[Any, ...]]:
    """Some columns of each record."""
    return {key: tuple(row[column] for column in columns) for key, row in snapshot(engine, table).items()}


@pytest.mark.parametrize(("name", "version"), [(V1, "sds v1"), (V2, "sds v2")])
def test_loads_and_loads_again(engine: sa.Engine, copy_export: Callable[[str], Path], name: str, version: str) -> None:
    export = copy_export(name)
    report = load_first(engine, FEED, export, family=SDS)
    assert (report.outcome, report.format, report.findings.total) == ("done", version, 0)
    before = state(engine)
    for path in export.glob("*.csv"):
        shuffled(path.stem)(export)
    report = load(engine, FEED, export, family=SDS)
    assert (report.outcome, report.findings.total) == ("unchanged", 0)
    assert state(engine) == before


def test_guardians_whose_files_an_export_of_v1_leaves_out_stay(
    engine: sa.Engine, copy_export: Callable[[str], Path]
) -> None:
    export = copy_export(V1)
    load_first(engine, FEED, export, family=SDS)
    # All of its ids look like those of guardians of the first.
    load(engine, f"{FEED}:contact", export, family=SDS)
    before = state(engine)
    both(without_file("User.csv"), without_file("GuardianRelationship.csv"))(export)
    report = load(engine, FEED, export, family=SDS)
    assert (report.outcome, report.findings.total) == ("unchanged", 0)
    assert state(engine) == before


def test_a_guardian_with_two_addresses_in_a_cell_is_no_other_guardian(
    engine: sa.Engine, copy_export: Callable[[str], Path]
) -> None:
    export, one, two = copy_export(V1), "fatou@example.org", "fatou@example.org,ann@example.org"
    cell("GuardianRelationship", 2, "Email", two)(export)
    with_row("User", **{"Email": two, "First Name": "Ann", "Last Name": "Other"})(export)
    with_row("GuardianRelationship", **{"SIS ID": "2", "Email": one, "Role": "Parent"})(export)
    report = load(engine, FEED, export, family=SDS)
    guardian = f"{FEED}:contact:{one}"
    pupils = {key[0] for key, row in snapshot(engine, tables.user_agents).items() if row["agent_id"] == guardian}
    assert (report.rejected, pupils) == (0, {f"{FEED}:student:2"})


def test_users_of_v2_have_their_roles(engine: sa.Engine, copy_export: Callable[[str], Path]) -> None:
    load_first(engine, FEED, copy_export(V2), family=SDS)
    assert list_roles(engine) == {
        ("u1", "nh-1"): ("student", "primary"),
        ("u2", "nh-1"): ("student", "primary"),
        ("u3", "nh-1"): ("teacher", "primary"),
        ("u3", "nh-2"): ("teacher", "primary"),
        ("u4", "nh"): ("districtAdministrator", "primary"),
    }
    assert pick(engine, tables.users, "given_name", "family_name", "grades") == {
        "u1": ("Amina", "Diallo", ["06"]),
        "u2": ("li", "li", None),
        "u3": ("Tess", "O'Hara", None),
        "u4": ("Hugo", "Head", None),
    }
    assert list_enrollments(engine) == [("c1", "u1", "student", "nh-1"), ("c1", "u3", "teacher", "nh-1")]
    assert pick(engine, tables.courses, "title") == {f"{FEED}:class-course:c1": ("Algebra, first hour",)}


def test_a_feed_may_go_on_in_another_version(engine: sa.Engine, copy_export: Callable[[str], Path]) -> None:
    load_first(engine, FEED, copy_export(V2), family=SDS)
    report = load(engine, FEED, copy_export("northhaven-sds"), family=SDS, options=Options(allow_mass_delete=True))
    assert (report.format, report.counts["users"].added, report.counts["users"].tombstoned) == ("sds v2.1", 1, 0)


def test_schools_sections_and_courses_of_v1(engine: sa.Engine, copy_export: Callable[[str], Path]) -> None:
    load_first(engine, FEED, copy_export(V1), family=SDS)
    district = f"{FEED}:district"
    assert pick(engine, tables.orgs, "name", "type", "identifier", "parent_id") == {
        district: (FEED, "district", FEED, None),
        f"{FEED}:school:1": ("Northhaven Primary", "school", "P-1", district),
        f"{FEED}:school:2": ("Northhaven College", "school", "2", district),
    }
    course = f"{FEED}:course:alg"
    assert pick(engine, tables.courses, "title", "course_code", "subjects") == {
        course: ("Algebra", "MA-9", ["mathematics"]),
        f"{FEED}:class-course:{FEED}%3Asection%3A3": ("Room 2", None, None),
    }
    classes = pick(engine, tables.classes, "title", "class_code", "course_id", "school_id", "periods")
    assert classes[f"{FEED}:section:1"] == ("Algebra, first hour", "A-1", course, f"{FEED}:school:2", ["1", "3"])
    [(title, year, first, last)] = pick(
        engine, tables.academic_sessions, "title", "school_year", "start_date", "end_date"
    ).values()
    assert (title, year, str(first), str(last)) == ("Fall 2026", "2027", "2026-08-17", "2027-01-16")
    terms = pick(engine, tables.classes, "term_ids")
    assert {key for key, (ids,) in terms.items() if ids} == {f"{FEED}:section:1", f"{FEED}:section:2"}


def test_people_of_v1(engine: sa.Engine, copy_export: Callable[[str], Path]) -> None:
    load_first(engine, FEED, copy_export(V1), family=SDS)
    student, other, teacher = (f"{FEED}:{it}" for it in ("student:1", "student:2", "teacher:1"))
    guardian = f"{FEED}:contact:fatou@example.org"
    assert pick(engine, tables.users, "username", "given_name", "middle_name", "identifier", "email", "grades") == {
        student: ("amina", "Amina", "Awa", "S-1", "amina@example.org", ["09"]),
        other: ("li", "li", None, None, None, ["02"]),
        teacher: ("tess", "Tess", None, "T-1", "tess@example.org", None),
        guardian: (None, "Fatou", None, None, "fatou@example.org", None),
    }
    roles = {key: role for key, (role, _) in list_roles(engine).items()}
    schools = [f"{FEED}:school:{number}" for number in (1, 2)]
    assert roles == {
        **{(student, school): "student" for school in schools},
        **{(teacher, school): "teacher" for school in schools},
        **{(guardian, school): "parent" for school in schools},
        (other, schools[0]): "student",
    }
    agents = {(key[0], row["agent_id"]) for key, row in snapshot(engine, tables.user_agents).items()}
    assert agents == {(student, guardian), (guardian, student)}
    [(born, sex)] = pick(engine, tables.demographics, "birth_date", "sex").values()
    assert (str(born), sex) == ("2012-05-01", "female")
    sections = [f"{FEED}:section:{number}" for number in (1, 2, 3)]
    assert list_enrollments(engine) == [
        (sections[0], student, "student", schools[1]),
        (sections[0], teacher, "teacher", schools[1]),
        (sections[1], teacher, "teacher", schools[1]),
        (sections[2], other, "student", schools[0]),
        (sections[2], teacher, "teacher", schools[0]),
    ]


TAKEN: dict[str, Bend] = {
    "without guardians": both(without_file("User.csv"), without_file("GuardianRelationship.csv")),
    "with required columns alone": both(
        *(without_column("Section", it) for it in ("Section Number", "Term Name", "Course Name", "Periods")),
        *(without_column("Student", it) for it in ("Grade", "Gender", "Birthdate", "Student Number")),
    ),
}


@pytest.mark.parametrize("bend", TAKEN.values(), ids=TAKEN)
def test_v1_is_taken(engine: sa.Engine, copy_export: Callable[[str], Path], bend: Bend) -> None:
    export = copy_export(V1)
    bend(export)
    report = load(engine, FEED, export, family=SDS)
    assert (report.counts["enrollments"].added, report.findings.total) == (5, 0)
