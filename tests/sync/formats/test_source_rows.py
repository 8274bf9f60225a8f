"""Clever and School Data Sync exports with bad rows: only rows that pass their checks are made into records."""

from __future__ import annotations

import functools
import json
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from roster_service.db import tables
from sync_scripts import load_clever, load_sds
from sync_scripts.engine.exit_codes import ExitCode
from sync_scripts.engine.load import Options, load
from sync_scripts.engine.report import Report
from sync_scripts.formats import cells
from sync_scripts.formats.clever import CLEVER as CLEVER_CSV
from sync_scripts.formats.model import Cell, CsvFile
from sync_scripts.formats.sds import SDS as SDS_CSV
from sync_scripts.formats.tolerated import NO_TARGET
from sync_scripts.reading.registry import CLEVER, SDS, Family
from sync_scripts.reading.rejections import RefusedExportError
from tests.postgres.loaded import load_first
from tests.sync.conftest import EXPORTS, describe, empty_roster, lend_engine, snapshot, state
from tests.sync.export_changes import (
    Bend,
    both,
    cell,
    header,
    read_csv,
    rows_of,
    with_row,
    without_column,
    without_file,
)


@dataclass(frozen=True)
class Source:
    """A format: its family, its script, its small export, and the feed that takes it."""

    family: Family
    main: Any
    export: str
    feed: str


SOURCES = {
    "clever": Source(CLEVER, load_clever.main, "shelbyville-clever", "shelby"),
    "sds": Source(SDS, load_sds.main, "northhaven-sds", "northhaven"),
    "sds v1": Source(SDS, load_sds.main, "northhaven-sds-v1", "northhaven"),
    "sds v2": Source(SDS, load_sds.main, "northhaven-sds-v2", "northhaven"),
}
NOT_SAID = ("feed_id", "status", "date_last_modified", "ordinal", "row_id")


def read_records(engine: sa.Engine, feed: str) -> dict[str, Any]:
    """What the roster says, by table and id without the feed's name; users with their roles and
    agents."""
    found: dict[str, Any] = {}
    parts: dict[tuple[str, str], set[Any]] = defaultdict(set)
    for owner, part in (("users", tables.user_roles), ("users", tables.user_agents)):
        for (identifier, *_), row in snapshot(engine, part).items():
            said = tuple((name, str(value)) for name, value in row.items() if name not in NOT_SAID)
            parts[owner, identifier].add(said)
    for table in tables.ROSTER_TABLES:
        for identifier, row in snapshot(engine, table).items():
            said = {name: value for name, value in row.items() if name not in NOT_SAID}
            key = f"{table.name} {identifier.removeprefix(f'{feed}:')}"
            found[key] = (said, parts[table.name, identifier])
    return found


@pytest.fixture(scope="module")
def good(reused_engine: sa.Engine) -> Callable[[Source], dict[str, Any]]:
    """What the roster says after the small export of a format, as it is."""
    known: dict[str, dict[str, Any]] = {}

    def read(source: Source) -> dict[str, Any]:
        if source.feed not in known:
            empty_roster(reused_engine)
            load_first(reused_engine, source.feed, EXPORTS / source.export, source.family)
            known[source.feed] = read_records(reused_engine, source.feed)
            empty_roster(reused_engine)
        return known[source.feed]

    return read


@dataclass(frozen=True)
class Case:
    """A bad row: how it comes about, the places of the refusals in their order, and of a first load, the records that
    are not made of such an export, those that are made otherwise, and those that are made instead."""

    bend: Bend
    places: list[str]
    lost: set[str]
    other: set[str]
    new: frozenset[str]


def of(
    bend: Bend, *places: str, lost: set[str] | None = None, other: set[str] | None = None, new: Iterable[str] = ()
) -> Case:
    return Case(bend, list(places), lost or set(), other or set(), frozenset(new))


# Of these records, the section 100 is part; the course is named by the section 101 too.
SECTION_100 = {
    "classes section:100",
    *(f"enrollments {it}" for it in ("enrollment:100:1", "enrollment:100:4", "teaching:100:1", "teaching:100:2")),
}
SEATS_100 = tuple(f"enrollments.csv, line {line}, column Section_id" for line in (2, 3, 4))
SEATS_C1 = tuple(f"enrollments.csv, line {line}, column classSourcedId" for line in (2, 3))
CLASS_C1 = {"classes c1", "enrollments enrollment:c1:u1:student", "enrollments enrollment:c1:u3:teacher"}
STUDENT_2 = {"users student:2", "demographics student:2", "enrollments enrollment:200:2"}
# By the export that has them, whose name begins with its format: the cases of one export touch no record together.
CASES: dict[str, dict[str, Case]] = {
    "clever: persons and seats": {
        "a flag": of(
            cell("students", 4, "Hispanic_Latino", "Q"),
            "students.csv, line 4, column Hispanic_Latino",
            "enrollments.csv, line 6, column Student_id",
            lost=STUDENT_2,
            # Their contact.
            other={"users contact:C1"},
        ),
        "a date of one of two rows of a student": of(
            cell("students", 5, "DOB", "13/13/2011"),
            "students.csv, line 5, column DOB",
            other={"users student:3"},
        ),
        "a name": of(
            cell("students", 7, "First_name", ""),
            "students.csv, line 7, column First_name",
            *(f"enrollments.csv, line {line}, column Student_id" for line in (3, 4, 5)),
            lost={"users student:4", "enrollments enrollment:100:4", "enrollments enrollment:102:4"},
        ),
        "staff": of(cell("staff", 2, "Last_name", " "), "staff.csv, line 2, column Last_name", lost={"users staff:1"}),
        "a contact": of(
            cell("students", 3, "Contact_email", "x" * 256),
            "students.csv, line 3, column Contact_email",
            lost={"users contact:C2"},
            other={"users student:1"},
        ),
        "a seat": of(
            cell("enrollments", 7, "School_id", "3" * 300),
            "enrollments.csv, line 7, column School_id",
            lost={"enrollments enrollment:200:3"},
        ),
    },
    "clever: other cells of students": {
        "a word": of(
            cell("students", 4, "Gender", "Q"),
            "students.csv, line 4, column Gender",
            "enrollments.csv, line 6, column Student_id",
            lost=STUDENT_2,
            other={"users contact:C1"},
        ),
        "an e-mail": of(
            cell("students", 7, "Student_email", "x" * 300),
            "students.csv, line 7, column Student_email",
            *(f"enrollments.csv, line {line}, column Student_id" for line in (3, 4, 5)),
            lost={"users student:4", "enrollments enrollment:100:4", "enrollments enrollment:102:4"},
        ),
        "the school of one of two rows of a student": of(
            cell("students", 6, "School_id", "30"),
            "students.csv, line 6, column School_id",
            other={"users student:3"},
        ),
    },
    "clever: sections": {
        "a name": of(
            cell("sections", 2, "Name", "x" * 5000),
            "sections.csv, line 2, column Name",
            *SEATS_100,
            lost=SECTION_100,
        ),
        "the only section of a term and a course": of(
            cell("sections", 4, "Term_end", "soon"),
            "sections.csv, line 4, column Term_end",
            "enrollments.csv, line 5, column Section_id",
            lost={
                "classes section:102",
                "enrollments enrollment:102:4",
                "enrollments teaching:102:2",
                "courses course:20:65736ad41c467b8d5eb91059d00d1095",
                "academic_sessions term:381fde03b8c8b6c90580ed6eea3f4219",
            },
        ),
    },
    "sds: roles and a class": {
        "a flag": of(cell("roles", 5, "isPrimary", "Q"), "roles.csv, line 5, column isPrimary", other={"users u3"}),
        "a day": of(
            # The role of the guardian is at the org of the student's.
            cell("roles", 2, "roleStartDate", "soon"),
            "roles.csv, line 2, column roleStartDate",
            other={"users u1", "users u5"},
        ),
        "a role": of(cell("roles", 3, "role", ""), "roles.csv, line 3, column role", other={"users u2"}),
        "a word": of(
            cell("demographics", 2, "sex", "w"), "demographics.csv, line 2, column sex", lost={"demographics u1"}
        ),
        "a class that is not at a school": of(
            cell("classes", 2, "orgSourcedId", "nh"),
            "classes.csv, line 2, column orgSourcedId",
            *SEATS_C1,
            lost=CLASS_C1,
        ),
    },
    "sds: a user, a class and a relationship": {
        "a title": of(cell("classes", 2, "title", ""), "classes.csv, line 2, column title", *SEATS_C1, lost=CLASS_C1),
        "a user": of(
            cell("users", 3, "username", ""),
            "users.csv, line 3, column username",
            "roles.csv, line 3, column userSourcedId",
            "enrollments.csv, line 4, column userSourcedId",
            "enrollments.csv, line 5, column userSourcedId",
            "demographics.csv, line 3, column userSourcedId",
            lost={"users u2", "demographics u2", "enrollments enrollment:c2:u2:student"},
        ),
        "a relationship": of(
            cell("relationships", 2, "relationshipRole", ""),
            "relationships.csv, line 2, column relationshipRole",
            other={"users u1", "users u5"},
        ),
    },
    "sds: a course": {
        "a course": of(
            cell("courses", 2, "title", ""),
            "courses.csv, line 2, column title",
            lost={"courses alg"},
            # With a course of its own.
            other={"classes c1"},
            new={"courses class-course:c1"},
        ),
    },
    "sds: a session and an enrollment": {
        "a session": of(
            cell("academicSessions", 3, "startDate", "soon"),
            "academicSessions.csv, line 3, column startDate",
            lost={"academic_sessions fall"},
            # Without the session.
            other={"classes c1"},
        ),
        "the role of an enrollment": of(
            cell("enrollments", 2, "role", ""),
            "enrollments.csv, line 2, column role",
            lost={"enrollments enrollment:c1:u1:student"},
        ),
    },
}


def find_source(name: str) -> Source:
    """The format with which a name begins."""
    return SOURCES[name.partition(":")[0]]


@dataclass(frozen=True)
class Rest:
    """What became of the first load of an export with bad rows: the exit code of the script and its report, the places
    of the refusals, and the records that were not made, those that were made otherwise, and those that are new."""

    code: int
    reported: dict[str, Any]
    places: list[str]
    lost: set[str]
    other: set[str]
    new: set[str]


@pytest.fixture(scope="module")
def load_rest(
    good: Callable[[Source], dict[str, Any]], reused_engine: sa.Engine, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Rest]:
    """Loads the export of some cases into an empty roster."""

    @functools.cache
    def load_once(name: str) -> Rest:
        source = find_source(name)
        whole = good(source)
        folder = Path(shutil.copytree(EXPORTS / source.export, tmp_path_factory.mktemp("bad") / source.export))
        both(*(case.bend for case in CASES[name].values()))(folder)
        empty_roster(reused_engine)
        with pytest.MonkeyPatch.context() as patch:
            lend_engine(patch, reused_engine)
            arguments = ["--feed", source.feed, "--json", "--allow-mass-delete", str(folder)]
            done = CliRunner().invoke(source.main, arguments)
        reported, records = json.loads(done.stdout), read_records(reused_engine, source.feed)
        return Rest(
            done.exit_code,
            reported,
            [f"{it['file']}, line {it['line']}, column {it['column']}" for it in reported["rejections"]],
            whole.keys() - records.keys(),
            {key for key, said in records.items() if key in whole and said != whole[key]},
            records.keys() - whole.keys(),
        )

    return load_once


@pytest.mark.parametrize(
    ("export", "name"),
    [pytest.param(export, name, id=f"{export}: {name}") for export, cases in CASES.items() for name in cases],
)
def test_no_record_is_made_of_a_rejected_row(load_rest: Callable[[str], Rest], export: str, name: str) -> None:
    """The script names the column of the source file. Some small files have a single row: a file whose every row is
    rejected is held, unless the operator allows it."""
    case, rest = CASES[export][name], load_rest(export)
    assert [place for place in rest.places if place in case.places] == case.places
    assert case.lost <= rest.lost
    assert case.other <= rest.other


@pytest.mark.parametrize("export", CASES)
def test_no_other_row_is_rejected(load_rest: Callable[[str], Rest], export: str) -> None:
    """The script counts the rows, and ends with the code for such loads."""
    cases, rest = CASES[export].values(), load_rest(export)
    assert sorted(rest.places) == sorted(place for case in cases for place in case.places)
    assert (rest.code, rest.reported["rejected"]) == (ExitCode.PARTIAL, len(rest.places))
    assert rest.lost == {record for case in cases for record in case.lost}
    assert rest.other == {record for case in cases for record in case.other}
    assert rest.new == {record for case in cases for record in case.new}


@pytest.mark.parametrize("export", CASES)
def test_the_record_of_a_rejected_row_keeps_its_last_good_state(
    engine: sa.Engine, copy_export: Callable[[str], Path], export: str
) -> None:
    source, cases = find_source(export), CASES[export].values()
    folder = copy_export(source.export)
    load_first(engine, source.feed, folder, source.family)
    before = state(engine)
    both(*(case.bend for case in cases))(folder)
    for _ in range(2):
        allowed = Options(allow_mass_delete=True)
        report = load(engine, source.feed, folder, family=source.family, options=allowed)
        assert (report.outcome, report.rejected) == ("unchanged", len(cases))
        assert state(engine) == before


# Of the checks of kinds of cell, a text that they do not take; of others, any word or text that is too long.
BAD = {
    cells.DAY.check: "soon",
    cells.FLAG.check: "Q",
    cells.YEAR.check: "27",
}
FILES = [(name, file) for name, form in (("clever", CLEVER_CSV), ("sds", SDS_CSV)) for file in form.files]


def list_read(file: CsvFile) -> dict[str, Cell]:
    """The cells of a file that the sync reads, by their headers, but for those that cannot be bad."""
    return {cell.header: cell for cell in file.cells if cell.kind.check not in (None, cells.TEXTS.check)}


@pytest.fixture(scope="module")
def check_bad_cells(
    reused_engine: sa.Engine, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], tuple[Path, Report]]:
    """The small export of a format, with two rows more in each file, and its report: one row with nothing in it, and
    one with a bad text in each cell that is read."""

    @functools.cache
    def check_once(name: str) -> tuple[Path, Report]:
        source = SOURCES[name]
        folder = Path(shutil.copytree(EXPORTS / source.export, tmp_path_factory.mktemp("bad") / source.export))
        for of_source, file in FILES:
            if of_source == name:
                read = list_read(file)
                # No file has the text of another one: what refers to the id of a bad row is rejected with it.
                long = file.file_name.ljust(5000, "x")
                bad = {
                    header: BAD.get(it.kind.check, "Q" if it.kind.few_values else long) for header, it in read.items()
                }
                stem = file.file_name.removesuffix(".csv")
                both(*(add_column(stem, header) for header in read), with_row(stem), with_row(stem, **bad))(folder)
        empty_roster(reused_engine)
        options = Options(dry_run=True)
        return folder, load(reused_engine, source.feed, folder, family=source.family, options=options)

    return check_once


@pytest.mark.parametrize(("source", "file"), FILES, ids=[f"{name}: {file.file_name}" for name, file in FILES])
def test_every_bad_cell_of_every_file_is_named(
    check_bad_cells: Callable[[str], tuple[Path, Report]], source: str, file: CsvFile
) -> None:
    """An optional reference to what cannot be an id leads nowhere: a notice says so, and the row does not go for it."""
    folder, report = check_bad_cells(source)
    read = list_read(file)
    last = len(read_csv(folder / file.file_name))
    named = {(it.line, it.column) for it in report.findings.first if it.file == file.file_name}
    required = {cell.header for cell in file.cells if cell.required}
    # Each bad text is also the id of its row, which is no parent of itself.
    in_tree = {header for header, it in read.items() if it.refers is not None and it.refers.tree}
    dropped = {header for header, it in read.items() if it.is_dropped and not it.stands} | in_tree
    assert named == {(last - 1, header) for header in required} | {(last, header) for header in read.keys() - dropped}
    noticed = any(file.file_name in line and NO_TARGET.taken in line for line in report.notices)
    assert noticed == bool(dropped)
    assert report.rejected == 2 * sum(name == source for name, _ in FILES)


def add_column(file: str, header: str) -> Bend:
    """A column without anything in it, where the export has none of this header."""

    def change(rows: list[list[str]]) -> None:
        if header not in rows[0]:
            for number, row in enumerate(rows):
                row.append("" if number else header)

    return rows_of(file, change)


def test_the_first_rows_of_a_person_that_are_left_make_a_new_record(
    engine: sa.Engine, copy_export: Callable[[str], Path]
) -> None:
    """And none of it comes from the rejected row."""
    folder = copy_export("shelbyville-clever")
    both(cell("students", 5, "Hispanic_Latino", "Q"), cell("students", 6, "Hispanic_Latino", "Y"))(folder)
    assert load(engine, "shelby", folder, family=CLEVER).rejected == 1
    assert snapshot(engine, tables.demographics)["shelby:student:3"]["hispanic_or_latino_ethnicity"] is True


def test_a_mended_row_is_loaded(engine: sa.Engine, copy_export: Callable[[str], Path]) -> None:
    folder = copy_export("shelbyville-clever")
    students = (folder / "students.csv").read_bytes()
    cell("students", 4, "Hispanic_Latino", "Q")(folder)
    load(engine, "shelby", folder, family=CLEVER)
    (folder / "students.csv").write_bytes(students)
    report = load(engine, "shelby", folder, family=CLEVER)
    assert (report.counts["users"].added, report.counts["demographics"].added, report.rejected) == (1, 1, 0)
    assert snapshot(engine, tables.demographics)["shelby:student:2"]["hispanic_or_latino_ethnicity"] is True


@dataclass(frozen=True)
class Beside:
    """On a loaded roster, a rejected row whose record stands, and another row that names it: the record that this one
    makes, and a part of what it says."""

    bend: Bend
    table: sa.Table
    key: Any
    said: dict[str, Any]


BESIDE: dict[str, dict[str, Beside]] = {
    "clever": {
        "a student of a school": Beside(
            both(cell("schools", 3, "School_name", ""), cell("students", 7, "First_name", "Eva")),
            tables.users,
            "shelby:student:4",
            {"given_name": "Eva"},
        ),
        "a seat of a section": Beside(
            both(
                cell("sections", 3, "Name", "x" * 5000),
                with_row("enrollments", School_id="20", Section_id="101", Student_id="4"),
            ),
            tables.enrollments,
            "shelby:enrollment:101:4",
            {"school_id": "shelby:school:20"},
        ),
        "a section of a teacher": Beside(
            both(cell("teachers", 4, "Last_name", ""), cell("sections", 4, "Name", "Drawing, Section 3")),
            tables.classes,
            "shelby:section:102",
            {"title": "Drawing, Section 3"},
        ),
    },
    "sds": {
        "an enrollment in a class": Beside(
            both(
                cell("classes", 2, "title", ""),
                with_row("enrollments", classSourcedId="c1", userSourcedId="u2", role="student"),
            ),
            tables.enrollments,
            "northhaven:enrollment:c1:u2:student",
            {"school_id": "nh-2"},
        ),
        "a class at a school": Beside(
            both(cell("orgs", 4, "name", ""), with_row("classes", sourcedId="c3", orgSourcedId="nh-2", title="Room 3")),
            tables.classes,
            "c3",
            {"school_id": "nh-2"},
        ),
        "an administrator of a school": Beside(
            both(
                cell("orgs", 3, "name", ""),
                with_row("roles", userSourcedId="u3", orgSourcedId="nh-1", role="administrator"),
            ),
            tables.user_roles,
            ("u3", 3),
            {"org_id": "nh-1", "role": "siteAdministrator"},
        ),
    },
}


@pytest.mark.parametrize("name", BESIDE)
def test_a_row_that_names_the_record_of_a_rejected_row_is_loaded(
    engine: sa.Engine, copy_export: Callable[[str], Path], name: str
) -> None:
    source, cases = SOURCES[name], BESIDE[name]
    folder = copy_export(source.export)
    load_first(engine, source.feed, folder, source.family)
    both(*(case.bend for case in cases.values()))(folder)
    report = load(engine, source.feed, folder, family=source.family)
    assert (report.outcome, report.rejected) == ("done", len(cases))
    for what, case in cases.items():
        assert snapshot(engine, case.table)[case.key].items() >= case.said.items(), what


def test_an_id_of_another_feed_is_refused_where_the_export_has_it(
    engine: sa.Engine, copy_export: Callable[[str], Path]
) -> None:
    folder = copy_export("northhaven-sds")
    load_first(engine, "northhaven", folder, family=SDS)
    before = state(engine)
    # Without an org of its own, the export would be refused as a whole.
    with_row("orgs", sourcedId="own", name="Own", type="district")(folder)
    report = load(engine, "another", folder, family=SDS, options=Options(allow_mass_delete=True))
    taken = {it.file for it in report.findings.first if it.reason == "belongs to the feed northhaven"}
    assert taken == {
        f"{name}.csv" for name in ("orgs", "users", "classes", "academicSessions", "courses", "demographics")
    }
    assert all(it.line is not None for it in report.findings.first)
    after = state(engine)
    assert after[tables.orgs].pop("own")["name"] == "Own"
    assert after == before


def test_a_record_that_cannot_be_made_is_reported(engine: sa.Engine, copy_export: Callable[[str], Path]) -> None:
    """Of two ids that are good, one is made that is too long."""
    folder = copy_export("shelbyville-clever")
    long = "x" * 200
    both(cell("sections", 3, "Section_id", long), cell("enrollments", 5, "Section_id", long))(folder)
    cell("students", 7, "Student_id", long)(folder)
    cell("enrollments", 5, "Student_id", long)(folder)
    rows_of("enrollments", lambda rows: rows.__delitem__(slice(2, 4)))(folder)
    report = load(engine, "shelby", folder, family=CLEVER)
    [reported] = report.findings.first
    assert (reported.file, reported.line, reported.column) == ("enrollments.csv, sections.csv", None, None)
    assert reported.reason.startswith(
        "a record that is made of its rows is rejected: sourcedId must be an id of at most"
    )
    assert report.rejected == report.counts["enrollments"].rejected == 1


LONG_USER, LONG_ORG = "u" * 200, "o" * 100
ROLES: dict[str, tuple[Bend, str]] = {
    "clever": (
        both(
            with_row("schools", School_id=LONG_ORG, School_name="Long"),
            with_row("teachers", School_id=LONG_ORG, Teacher_id=LONG_USER, First_name="Ann", Last_name="Long"),
        ),
        "students.csv, teachers.csv",
    ),
    "sds": (
        both(
            with_row("orgs", sourcedId=LONG_ORG, name="Long", type="school"),
            with_row("users", sourcedId=LONG_USER, username="ann"),
            with_row("roles", userSourcedId=LONG_USER, orgSourcedId=LONG_ORG, role="student"),
        ),
        "users.csv, roles.csv, orgs.csv",
    ),
}


@pytest.mark.parametrize("name", ROLES)
def test_a_role_that_cannot_be_made_is_reported(
    engine: sa.Engine, copy_export: Callable[[str], Path], name: str
) -> None:
    """Its id has those of the user and the org, and it may name a profile, for which these formats have no file."""
    source, (bend, files) = SOURCES[name], ROLES[name]
    folder = copy_export(source.export)
    bend(folder)
    report = load(engine, source.feed, folder, family=source.family)
    [reported] = report.findings.first
    assert reported.file == files
    assert "sourcedId must be an id of at most" in reported.reason
    assert {(it.type, it.own) for it in reported.records} == {("users", False), ("orgs", False)}
    assert (report.rejected, report.counts["users"].rejected) == (1, 1)


def test_rows_of_a_file_whose_records_cannot_be_made_count(
    engine: sa.Engine, copy_export: Callable[[str], Path]
) -> None:
    """Enrollments without classes."""
    folder = copy_export("northhaven-sds")
    without_file("classes.csv")(folder)
    report = load(engine, "northhaven", folder, family=SDS, options=Options(allow_mass_delete=True))
    assert (report.rejected, report.counts["enrollments"].rejected) == (5, 5)


# --- the words of a refusal ------------------------------------------------------------------------------------------


def name_sources(table: dict[str, tuple[Bend, str]]) -> list[tuple[str, Bend, str]]:
    """The cases of a table with their formats, with which their names begin."""
    return [(name.partition(":")[0], *case) for name, case in table.items()]


WHOLE: dict[str, tuple[Bend, str]] = {
    "clever: missing file": (without_file("teachers.csv"), "teachers.csv is missing; every export of clever has it"),
    "clever: misspelt column": (
        header("teachers", "Last_name", "Lastname"),
        "is no column of this file; did you mean Last_name? (found 'Lastname')",
    ),
    "clever: missing column": (without_column("teachers", "Last_name"), "column Last_name: is missing in the header"),
    "clever: a school twice": (
        with_row("schools", School_id="20", School_name="Another"),
        "column School_id: stands in more than one row, also in line ",
    ),
    "sds: missing file": (without_file("roles.csv"), "roles.csv is missing; every export of sds v2.1 has it"),
    "sds: unknown column": (
        header("classes", "title", "titel"),
        "column 3: is no column of this file; did you mean title? (found 'titel')",
    ),
}


@pytest.mark.parametrize(("source", "bend", "words"), name_sources(WHOLE), ids=WHOLE)
def test_an_export_is_refused_as_a_whole(
    engine: sa.Engine, copy_export: Callable[[str], Path], source: str, bend: Bend, words: str
) -> None:
    folder = copy_export(SOURCES[source].export)
    bend(folder)
    with pytest.raises(RefusedExportError) as caught:
        load(engine, SOURCES[source].feed, folder, family=SOURCES[source].family)
    assert words in describe(caught.value.findings)


# By format, what is wrong with rows of one export, and what is said of each.
SAID: dict[str, dict[str, tuple[Bend, str]]] = {
    "clever": {
        "no such school": (
            cell("students", 7, "School_id", "30"),
            "students.csv, line 7, column School_id: names no row of schools.csv (found '30')",
        ),
        "no such student": (
            cell("enrollments", 2, "Student_id", "99"),
            "enrollments.csv, line 2, column Student_id: names no row of students.csv (found '99')",
        ),
        "day": (
            cell("students", 2, "DOB", "13/13/2011"),
            "students.csv, line 2, column DOB: must be a day of the calendar, M/D/YYYY or YYYY-MM-DD "
            "(found '13/13/2011')",
        ),
        "gender": (
            cell("students", 3, "Gender", "W"),
            "students.csv, line 3, column Gender: must be one of F, Female",
        ),
    },
    "sds": {
        "no such user": (
            cell("enrollments", 2, "userSourcedId", "u9"),
            "enrollments.csv, line 2, column userSourcedId: names no row of users.csv (found 'u9')",
        ),
        "no such class": (
            cell("enrollments", 3, "classSourcedId", "c9"),
            "enrollments.csv, line 3, column classSourcedId: names no row of classes.csv (found 'c9')",
        ),
        "sex": (
            cell("demographics", 2, "sex", "w"),
            "demographics.csv, line 2, column sex: must be one of female, male",
        ),
        "day": (cell("roles", 2, "roleStartDate", "soon"), "roles.csv, line 2, column roleStartDate: must be a day"),
    },
    "sds v2": {
        "no such org": (cell("users", 4, "orgSourcedIds", "nh-9"), "users.csv, line 4, column orgSourcedIds"),
        "no such user": (cell("enrollments", 2, "userSourcedId", "u9"), "enrollments.csv, line 2, column user"),
    },
    "sds v1": {
        "no such school": (cell("Student", 4, "School SIS ID", "9"), "Student.csv, line 4, column School SIS ID"),
        "no such section": (
            cell("TeacherRoster", 2, "Section SIS ID", "9"),
            "TeacherRoster.csv, line 2, column",
        ),
        "a day": (cell("Section", 4, "Term EndDate", "soon"), "Section.csv, line 4, column Term EndDate: must be"),
    },
}


@pytest.mark.parametrize("name", SAID)
def test_a_row_is_rejected_at_its_line_and_nobody_is_gone(
    engine: sa.Engine, copy_export: Callable[[str], Path], name: str
) -> None:
    """Once, as it stands in the export."""
    own = SOURCES[name]
    folder = copy_export(own.export)
    load_first(engine, own.feed, folder, own.family)
    before = {table: rows for table, rows in state(engine).items() if table is not tables.enrollments}
    both(*(bend for bend, _ in SAID[name].values()))(folder)
    report = load(engine, own.feed, folder, family=own.family, options=Options(allow_mass_delete=True))
    said = describe(report.findings).splitlines()
    for words in (words for _, words in SAID[name].values()):
        assert len([line for line in said if line.startswith(words)]) == 1, words
    assert {refusal.file for refusal in report.findings.first} <= {path.name for path in folder.iterdir()}
    assert {table: rows for table, rows in state(engine).items() if table is not tables.enrollments} == before


# A row of a stored record that is rejected -> the column of the refusal.
REJECTED_LATER = {
    "a day": (cell("Student", 4, "Birthdate", "2012-13-45"), ("Student.csv", 4, "Birthdate")),
    "no day": (cell("Student", 4, "Birthdate", "nowhere"), ("Student.csv", 4, "Birthdate")),
    "a school": (cell("School", 3, "Name", ""), ("School.csv", 3, "Name")),
}


@pytest.mark.parametrize(("bend", "place"), REJECTED_LATER.values(), ids=REJECTED_LATER)
def test_a_stored_record_of_v1_stays_beside_its_rejected_row(
    engine: sa.Engine, copy_export: Callable[[str], Path], bend: Bend, place: tuple[str, int, str]
) -> None:
    folder = copy_export("northhaven-sds-v1")
    load_first(engine, "northhaven", folder, family=SDS)
    before = state(engine)
    bend(folder)
    report = load(engine, "northhaven", folder, family=SDS, options=Options(allow_mass_delete=True))
    assert (report.outcome, state(engine) == before) == ("unchanged", True)
    assert place in {(it.file, it.line, it.column) for it in report.findings.first}


@pytest.mark.parametrize("turn", [1, -1])
def test_rows_that_differ_in_what_is_not_read_are_one(
    engine: sa.Engine, copy_export: Callable[[str], Path], turn: int
) -> None:
    """In any order."""
    folder = copy_export("shelbyville-clever")

    def repeat(rows: list[list[str]]) -> None:
        rows[0].append("Course_description")
        for row in rows[1:]:
            row.append("")
        rows[1:2] = [rows[1], [*rows[1][:-1], "Other"]][::turn]

    rows_of("sections", repeat)(folder)
    report = load(engine, "shelby", folder, family=CLEVER)
    assert (report.rejected, report.counts["enrollments"].added) == (0, 10)
