"""Made-up districts: the same bytes each time, sound in both versions, and near enough to real ones."""

from __future__ import annotations

import csv
import datetime
import io
import json
import os
import re
import subprocess
import sys
import tracemalloc
import zipfile
from collections import Counter
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from roster_service.db import tables
from sync_scripts.engine.load import load
from sync_scripts.formats.oneroster import VERSIONS
from tests.extent import every_other, examples
from tests.sync.export_changes import read_csv
from tools.districts.dice import Dice, make_guid
from tools.districts.model import SECTION_SIZE, District
from tools.districts.names import NAMINGS
from tools.generate_district import DEFAULT_GUARDIANS_PERCENT, find_school_year, generate, main

YEAR = 2027


def make(path: Path, **wishes: object) -> Path:
    params = {"students": 120, "seed": 1, "version": "1.1", "school_year": YEAR, "guardians_percent": 100.0} | wishes
    generate(path, **params)  # type: ignore[arg-type]
    return path


def read(folder: Path, file: str) -> list[dict[str, str]]:
    header, *rows = read_csv(folder / f"{file}.csv")
    return [dict(zip(header, row, strict=True)) for row in rows]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("students", every_other([1, 2, 7, 120, 1000]))
def test_loads_without_a_word(engine: sa.Engine, tmp_path: Path, version: str, students: int) -> None:
    path = make(tmp_path / "district.zip", students=students, version=version)
    report = load(engine, "district", path)
    assert report.notices == ("the feed district is new",)
    assert report.counts["demographics"].added == students
    # Nobody is enrolled where the export has not said that they belong.
    with engine.connect() as connection:
        roles = sa.select(sa.func.count()).where(tables.user_roles.c.origin == "enrollment")
        assert connection.scalar(roles) == 0
    assert load(engine, "district", path).outcome == "unchanged"


@pytest.mark.parametrize("version", VERSIONS)
def test_the_same_bytes(tmp_path: Path, version: str) -> None:
    """In another process too, where sets and dicts are hashed otherwise."""
    first = make(tmp_path / "a.zip", version=version).read_bytes()
    arguments = ["--students", "120", "--seed", "1", "--version", version, "--school-year", str(YEAR)]
    arguments += ["--guardians-percent", "100"]
    for hashing in examples(("1",), ("1",), ("1", "2")):
        out = tmp_path / f"{hashing}.zip"
        subprocess.run(
            [sys.executable, "-m", "tools.generate_district", "--out", str(out), *arguments],
            env={**os.environ, "PYTHONHASHSEED": hashing},
            capture_output=True,
            check=True,
        )
        assert out.read_bytes() == first
    assert make(tmp_path / "c.zip", version=version, seed=2).read_bytes() != first


def test_a_zip_holds_what_a_folder_holds(tmp_path: Path) -> None:
    folder = make(tmp_path / "folder")
    with zipfile.ZipFile(make(tmp_path / "a.zip")) as archive:
        assert set(archive.namelist()) == {path.name for path in folder.iterdir()}
        for name in archive.namelist():
            assert archive.read(name) == (folder / name).read_bytes()


def test_districts_share_no_id(engine: sa.Engine, tmp_path: Path) -> None:
    load(engine, "a", make(tmp_path / "a.zip", students=30, seed=1))
    load(engine, "b", make(tmp_path / "b.zip", students=30, seed=2))
    load(engine, "c", make(tmp_path / "c.zip", students=30, name="Another"))


def test_a_larger_district_has_the_same_first_students(tmp_path: Path) -> None:
    small = read(make(tmp_path / "small", students=60), "users")
    large = {row["sourcedId"]: row for row in read(make(tmp_path / "large", students=120), "users")}
    students = [row for row in small if row["role"] == "student"]
    assert len(students) == 60
    names = ("givenName", "familyName", "username")
    assert all([row[it] for it in names] == [large[row["sourcedId"]][it] for it in names] for row in students)


def test_what_is_in_it(tmp_path: Path) -> None:
    folder = make(tmp_path / "district", students=1500)
    users, orgs = read(folder, "users"), read(folder, "orgs")
    enrollments, classes = read(folder, "enrollments"), read(folder, "classes")
    by_id = {row["sourcedId"]: row for row in users}

    assert Counter(row["type"] for row in orgs) == {"district": 1, "school": 3, "department": 3}
    assert len({row["identifier"] for row in orgs} - {""}) == len(orgs)
    assert {row["name"].rsplit(" ", 2)[1] for row in orgs if row["type"] == "school"} == {
        "Elementary",
        "Middle",
        "High",
    }
    roles = Counter(row["role"] for row in users)
    assert set(roles) == {"student", "teacher", "administrator", "aide", "proctor", "guardian", "parent", "relative"}
    assert roles["student"] == 1500
    assert 12 <= roles["student"] / roles["teacher"] <= 25

    # Seven classes for each student; sections are full, but not too full; each class has one first teacher.
    taken = Counter(row["userSourcedId"] for row in enrollments if row["role"] == "student")
    assert set(taken.values()) == {7}
    sizes = Counter(row["classSourcedId"] for row in enrollments if row["role"] == "student")
    assert max(sizes.values()) <= SECTION_SIZE + 1
    assert min(sizes.values()) > 1
    assert set(sizes) == {row["sourcedId"] for row in classes}
    firsts = Counter(row["classSourcedId"] for row in enrollments if row["primary"] == "true")
    assert set(firsts.values()) == {1}
    assert set(firsts) == set(sizes)

    # Families: siblings share guardians, and agents go both ways.
    assert any("," in row["orgSourcedIds"] for row in users if row["role"] == "teacher")
    for row in users:
        for agent in filter(None, row["agentSourcedIds"].split(",")):
            assert row["sourcedId"] in by_id[agent]["agentSourcedIds"].split(",")
            assert by_id[agent]["familyName"] == row["familyName"]
    assert any(row["agentSourcedIds"].count(",") for row in users if row["role"] == "parent")

    # Reserved addresses and numbers only.
    assert all(row["email"].endswith(("@example.org", "@students.example.org")) for row in users if row["email"])
    assert all("-555-01" in row["phone"] for row in users if row["phone"])
    assert len({row["username"] for row in users}) == len(users)
    assert not any(row["password"] for row in users)

    text = (folder / "users.csv").read_text() + (folder / "classes.csv").read_text()
    assert all(piece in text for piece in ("O'Brien", "100%", "Pre_Algebra", "王", "Иванова", "محمد", "' AND '"))
    assert all(any(row[f"metadata.{key}"] for row in users) for key in ("busRoute", "lunch", "contactOrder"))


# In a run that does not try all, as many as have each share within its bounds.
SHARED = examples(1000, 1000, 3000)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A district with every family."""
    return make(tmp_path_factory.mktemp("whole") / "district", students=SHARED)


@pytest.mark.parametrize(
    ("percent", "least", "most"),
    [
        pytest.param(0.0, 1.0, 1.1, id="none: students and staff"),
        pytest.param(DEFAULT_GUARDIANS_PERCENT, 1.08, 1.12, id="as sizes are usually given"),
        pytest.param(50.0, 1.45, 1.65, id="half of the families"),
        pytest.param(100.0, 1.9, 2.2, id="every family"),
    ],
)
def test_users_for_each_student(tmp_path: Path, whole: Path, percent: float, least: float, most: float) -> None:
    folder = make(tmp_path / "district", students=SHARED, guardians_percent=percent)
    users = read(folder, "users")
    assert least <= len(users) / SHARED <= most
    # Who is known with few guardians is the same with more.
    more = {row["sourcedId"] for row in read(whole, "users")}
    assert {row["sourcedId"] for row in users} <= more
    guardians = {row["sourcedId"] for row in users if row["role"] in ("guardian", "parent", "relative")}
    named = {agent for row in users if row["role"] == "student" for agent in row["agentSourcedIds"].split(",") if agent}
    assert named == guardians
    assert len(read(folder, "enrollments")) / SHARED == pytest.approx(7.3, abs=0.3)


def test_every_column_has_a_value_somewhere(tmp_path: Path) -> None:
    """But for those that a bulk export leaves to the reader, and passwords."""
    silent = {"status", "dateLastModified", "password", "preferredMiddleName"}
    for version, form in VERSIONS.items():
        folder = make(tmp_path / version, students=400, version=version)
        for file in form.files:
            rows = read(folder, file.name)
            empty = {header for header in rows[0] if not any(row[header] for row in rows)}
            assert empty <= silent | ({"endDate"} if file.name == "roles" else set()), file.name


def test_the_calendar_is_one_of_the_school_year(tmp_path: Path) -> None:
    sessions = read(make(tmp_path / "district", students=1), "academicSessions")
    assert (sessions[0]["startDate"], sessions[0]["endDate"], sessions[0]["schoolYear"]) == (
        "2026-08-17", "2027-06-12", "2027",
    )  # fmt: skip
    assert Counter(row["type"] for row in sessions) == {"schoolYear": 1, "semester": 2, "gradingPeriod": 4}


@pytest.mark.parametrize(
    ("today", "year"), [((2026, 6, 30), 2026), ((2026, 7, 1), 2027), ((2026, 12, 31), 2027), ((2027, 1, 1), 2027)]
)
def test_the_current_school_year(today: tuple[int, int, int], year: int) -> None:
    assert find_school_year(datetime.date(*today)) == year


@pytest.mark.parametrize("students", [1, 5, 6, 7, 123, 4321])
def test_everybody_is_counted_once(students: int) -> None:
    district = District("d", students, 1, YEAR, 100)
    families = list(district.list_families())
    assert [student for family in families for student in family] == list(range(students))
    seats = {district.find_seat(student) for student in range(students)}
    assert len(seats) == students
    teachers = list(district.list_teachers())
    assert len({(it.kind, it.key) for it in teachers}) == len(teachers)
    listed = {(it.kind, it.key): it for it in teachers}
    for school in range(district.schools):
        for section in district.list_sections(school):
            for subject in range(len(district.find_level(school).subjects)):
                teacher = district.find_teacher(section, subject)
                assert listed[teacher.kind, teacher.key] == teacher
                assert school in teacher.schools


def test_little_memory(tmp_path: Path) -> None:
    """Ten times the students, but not twice the memory."""

    def measure(students: int) -> int:
        tracemalloc.start()
        make(tmp_path / f"{students}.zip", students=students)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return peak

    assert measure(500) < 2 * measure(50)


def test_dice_repeat_themselves() -> None:
    first, second = Dice(1, "a"), Dice(1, "a")
    rolls = [first.roll(1000) for _ in range(40)]
    assert [second.roll(1000) for _ in range(40)] == rolls
    # More than one digest's worth, and no repetition in it.
    assert rolls[:16] != rolls[16:32]
    other = Dice(1, "b")
    assert [other.roll(1000) for _ in range(40)] != rolls


def test_ids_are_guids() -> None:
    assert re.fullmatch("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", make_guid(1, "a"))
    assert make_guid(1, "a") == make_guid(1, "a") != make_guid(1, "b")


def test_weights_are_percents() -> None:
    assert sum(naming.weight for naming in NAMINGS) == 100


def test_the_command(tmp_path: Path) -> None:
    out = tmp_path / "district.zip"
    arguments = ["--out", str(out), "--students", "30", "--seed", "4", "--version", "1.2", "--school-year", str(YEAR)]
    result = CliRunner().invoke(main, [*arguments, "--json"])
    assert json.loads(result.stdout)["rows"]["demographics"] == 30
    with zipfile.ZipFile(out) as archive:
        manifest = dict(csv.reader(io.StringIO(archive.read("manifest.csv").decode())))
    assert (manifest["oneroster.version"], manifest["file.roles"], manifest["file.results"]) == (
        "1.2",
        "bulk",
        "absent",
    )
    assert CliRunner().invoke(main, arguments).stdout.startswith(f"{out}: ")


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    result = CliRunner().invoke(main, ["--out", str(tmp_path), "--students", "3"])
    assert result.exit_code == 2
    assert "is there already, and is no empty folder" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
