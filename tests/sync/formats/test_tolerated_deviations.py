"""What is taken although it is not quite as it should be, and what is said about it."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.db import tables
from roster_service.db.engine import make_engine
from roster_service.db.tables import CText
from roster_service.roster import vocabulary
from sync_scripts.engine.load import Options, load
from sync_scripts.engine.report import Report
from sync_scripts.engine.run_record import KNOWN
from sync_scripts.formats import cells
from sync_scripts.formats.cells import CellKind, make_word_kind
from sync_scripts.formats.oneroster import SEX_SPELLINGS, VERSIONS
from sync_scripts.formats.tolerated import (
    BACKSLASHES,
    BLANK_LINE,
    BLANK_MODE,
    BYTE_ORDER_MARK,
    CELL_SPACES,
    COLUMN_ORDER,
    DAY_FIRST,
    DEVIATIONS,
    DUPLICATE_ROW,
    EMPTY_ITEM,
    EXTRA_CELLS,
    EXTRA_COLUMN,
    FILE_NAME_CASE,
    FLAG_SPELLING,
    FOLDER,
    GONE_STATUS,
    GRADE_SPELLING,
    HEADER_CASE,
    HEADER_SPACES,
    HEADER_SPELLING,
    HEADER_SPELLINGS,
    KEPT_COURSE,
    LIKE_FILE,
    LIST_SPACES,
    MAC_LINES,
    MANIFEST_VERSION,
    MAPPED_WORD,
    MIDNIGHT,
    MISSING_COLUMN,
    MISSING_FILE,
    MISSING_PROPERTY,
    MODE_CASE,
    NO_COURSES,
    NO_MANIFEST,
    NO_PARENT,
    NO_TARGET,
    OTHER_FILE,
    OTHER_PROPERTY,
    OTHER_SCHOOL,
    PLAIN_DAY,
    PROPERTY_CASE,
    QUOTED_NEWLINE,
    SAME_DAY_FIRST,
    SCHOOL_YEAR,
    STATUS_IN_BULK,
    UNDECLARED_FILE,
    UNKNOWN_GRADE,
    US_DAY,
    UTF_16,
    WINDOWS_1252,
    WORD_CASE,
    WORD_SPELLING,
    Deviation,
    Tolerated,
    list_lines,
)
from sync_scripts.reading.registry import CLEVER, ONEROSTER, SDS, Family
from sync_scripts.reading.rejections import RefusedExportError, Rejection
from tests.postgres.loaded import load_first
from tests.sync.conftest import EXPORTS, SPRINGFIELD, empty_roster, read_rejects, snapshot
from tests.sync.export_changes import (
    Bend,
    Rows,
    both,
    cell,
    cell_of,
    column,
    declared,
    header,
    quoted,
    raw,
    renamed,
    replaced,
    rows_of,
    with_file,
    without_column,
    without_file,
    without_rows,
)


def _lower(file: str, name: str, *values: str) -> Bend:
    """Puts the words of a column into another case."""

    def change(rows: Rows) -> None:
        place = rows[0].index(name)
        for row in rows[1:]:
            if row[place] in values:
                row[place] = row[place].capitalize()

    return rows_of(file, change)


def _with_slashes(column: str, written: str) -> Bend:
    def change(rows: Rows) -> None:
        place = rows[0].index(column)
        for row in rows[1:]:
            if row[place]:
                year, month, day = map(int, row[place].split("-"))
                row[place] = written.format(year=year, month=month, day=day)

    return rows_of("enrollments", change)


def _in_capitals(rows: Rows) -> None:
    """The headers, but those of metadata, in upper case."""
    rows[0][:] = [it if it.startswith("metadata.") else it.upper() for it in rows[0]]


def _in_folder(folder: str, name: str) -> Bend:
    """Adds a file in a folder of its own."""

    def bend(export: Path) -> None:
        (export / folder).mkdir()
        (export / folder / name).touch()

    return bend


def _move_into(name: str) -> Bend:
    """Moves all files into a folder of the export."""

    def bend(export: Path) -> None:
        files = list(export.iterdir())
        (export / name).mkdir()
        for file in files:
            file.rename(export / name / file.name)

    return bend


Case = tuple[Bend, tuple[str, ...]]
# One row per quirk of the table: what makes an export have it, and what is said about it. The deviations of one export
# do not meet in a cell, and its cells are bent before its headers, and those before its bytes and names.
QUIRKY: dict[str, dict[Deviation, Case]] = {
    "cells": {
        FLAG_SPELLING: (
            rows_of(
                "users", lambda rows: [row.__setitem__(3, {"true": "TRUE", "false": "0"}[row[3]]) for row in rows[1:]]
            ),
            ("users.csv, column enabledUser: in 15 rows (first: line 2), a flag that is spelt otherwise",),
        ),
        WORD_CASE: (
            both(_lower("orgs", "type", "school"), _lower("users", "role", "student")),
            (
                "orgs.csv, column type: in 2 rows (first: line 3), a word in another",
                "users.csv, column role: in 6 rows (first: line 2), a word in another",
            ),
        ),
        US_DAY: (
            _with_slashes("beginDate", "{month}/{day:02}/{year}"),
            ("enrollments.csv, column beginDate: in 5 rows (first: line 2), a day written M/D/YYYY, the month first",),
        ),
        DAY_FIRST: (
            _with_slashes("endDate", "{day}/{month:02}/{year}"),
            ("enrollments.csv, column endDate: in 5 rows (first: line 2), a day written D/M/YYYY, the day first",),
        ),
        MIDNIGHT: (
            cell("academicSessions", 2, "startDate", "2026-08-17T00:00:00.000Z"),
            ("academicSessions.csv, column startDate: in 1 row (line 2), a day written as its midnight",),
        ),
        EMPTY_ITEM: (
            both(
                cell_of("users", "spr-student-3", "orgSourcedIds", " ,spr-high,"),
                cell_of("courses", "spr-course-stats", "subjectCodes", "02201,,02999,"),
                cell_of("users", "spr-student-3", "userIds", " ,{LDAP:wang.xiaoming}, ,"),
            ),
            (
                "users.csv, column orgSourcedIds: in 1 row (line 4), an empty item in a list",
                "courses.csv, column subjectCodes: in 1 row (line 3), an empty item in a list",
                "users.csv, column userIds: in 1 row (line 4), an empty item in a list",
            ),
        ),
        LIST_SPACES: (
            rows_of("classes", lambda rows: [row.__setitem__(10, row[10].replace(",", " , ")) for row in rows[1:]]),
            ("classes.csv, column termSourcedIds: in 1 row (line 2), spaces around the commas of a list",),
        ),
        STATUS_IN_BULK: (
            both(column("users", "status", "active"), column("users", "dateLastModified", "2026-11-01")),
            ("users.csv, column status: in 15 rows (first: line 2), a status in a bulk file, which needs none",),
        ),
        WORD_SPELLING: (
            both(replaced("demographics.csv", ",female,", ",F,"), replaced("demographics.csv", ",male,", ",m,")),
            ("demographics.csv, column sex: in 2 rows (first: line 2), a word in another spelling",),
        ),
        GRADE_SPELLING: (
            both(
                cell_of("users", "spr-student-1", "grades", "3"), cell_of("courses", "spr-course-math3", "grades", " 3")
            ),
            (
                "users.csv, column grades: in 1 row (line 2), a grade in another",
                "courses.csv, column grades: in 1 row (line 2), a grade in",
            ),
        ),
        PLAIN_DAY: (
            both(
                cell("academicSessions", 3, "startDate", "20260817"),
                cell("academicSessions", 3, "endDate", "2027/01/16"),
            ),
            (
                "academicSessions.csv, column startDate: in 1 row (line 3), a day written YYYYMMDD",
                "academicSessions.csv, column endDate: in 1 row (line 3), a day written YYYYMMDD",
            ),
        ),
        SCHOOL_YEAR: (
            both(
                cell("academicSessions", 2, "schoolYear", "2026-2027"),
                cell("academicSessions", 3, "schoolYear", "2026/27"),
            ),
            ("academicSessions.csv, column schoolYear: in 2 rows (first: line 2), a school year written as two years",),
        ),
        NO_TARGET: (
            both(
                cell_of(
                    "users", "spr-student-1", "agentSourcedIds", "spr-student-1,spr-guardian-1,nobody,spr-parent-1"
                ),
                cell_of("orgs", "spr-district", "parentSourcedId", "spr-district"),
                cell_of("users", "spr-student-2", "orgSourcedIds", "nowhere,spr-elementary"),
            ),
            (
                "users.csv, column orgSourcedIds: in 1 row (line 3), a dispensable reference that leads nowhere",
                "users.csv, column agentSourcedIds: in 1 row (line 2), a dispensable reference that leads nowhere",
                "orgs.csv, column parentSourcedId: in 1 row (line 2), a dispensable reference that leads nowhere",
            ),
        ),
    },
    "headers": {
        CELL_SPACES: (
            both(
                cell("orgs", 3, "type", " school "),
                cell_of("demographics", "spr-student-1", "sourcedId", " spr-student-1"),
                cell("users", 2, "enabledUser", "true "),
            ),
            (
                "orgs.csv, column type: in 1 row (line 3), spaces around",
                "demographics.csv, column sourcedId: in 1 row (line 2), spaces around",
                "users.csv, column enabledUser: in 1 row (line 2), spaces around",
            ),
        ),
        DUPLICATE_ROW: (
            rows_of("users", lambda rows: rows.extend([rows[3], rows[5], rows[3]])),
            ("users.csv: in 3 rows (first: line 17), a row that repeats another one exactly",),
        ),
        HEADER_CASE: (
            header("demographics", "birthDate", "birthdate"),
            ("demographics.csv: a header in another letter case (birthdate, read as birthDate)",),
        ),
        HEADER_SPACES: (
            header("demographics", "cityOfBirth", " cityOfBirth "),
            ("demographics.csv: spaces around a header ( cityOfBirth , read as cityOfBirth)",),
        ),
        HEADER_SPELLING: (
            both(
                header("orgs", "dateLastModified", "dataLastModified"),
                header("demographics", "sourcedId", "userSourcedId"),
                header("users", "grades", "grade"),
            ),
            (
                "orgs.csv: a header with a known misspelling (dataLastModified, read as dateLastModified)",
                "demographics.csv: a header with a known misspelling (userSourcedId, read as sourcedId)",
                "users.csv: a header with a known misspelling (grade, read as grades)",
            ),
        ),
        EXTRA_COLUMN: (
            rows_of("users", lambda rows: [row.insert(3, "homeroom" if row is rows[0] else "7B") for row in rows]),
            ("users.csv: a column that the file should not have (homeroom)",),
        ),
        COLUMN_ORDER: (
            rows_of("orgs", lambda rows: [row.insert(0, row.pop(4)) for row in rows]),
            ("orgs.csv: columns in another order",),
        ),
        MISSING_COLUMN: (
            without_column("classes", "dateLastModified"),
            ("classes.csv, column dateLastModified: a column is missing that may be empty",),
        ),
    },
    "bytes": {
        EXTRA_CELLS: (
            rows_of("academicSessions", lambda rows: [row.extend(["", ""]) for row in rows[1:]]),
            ("academicSessions.csv: in 7 rows, empty cells beyond the last column",),
        ),
        BYTE_ORDER_MARK: (
            both(
                raw("enrollments.csv", lambda data: b"\xef\xbb\xbf" + data),
                raw("manifest.csv", lambda data: b"\xef\xbb\xbf" + data),
            ),
            (
                "enrollments.csv: a byte order mark before the header",
                "manifest.csv: a byte order mark before the header",
            ),
        ),
        UTF_16: (
            raw("classes.csv", lambda data: data.decode().encode("utf-16")),
            ("classes.csv: the encoding UTF-16",),
        ),
        WINDOWS_1252: (
            raw("demographics.csv", lambda data: data.decode().encode("cp1252")),
            ("demographics.csv: in 1 row, text in the encoding Windows-1252",),
        ),
        MAC_LINES: (
            both(quoted("courses"), raw("courses.csv", lambda data: data.replace(b"\n", b"\r"))),
            ("courses.csv: line ends of old Macs",),
        ),
        BLANK_LINE: (
            raw("users.csv", lambda data: data.replace(b"\n", b"\n\n", 3)),
            ("users.csv: in 3 rows, an empty line between rows",),
        ),
        QUOTED_NEWLINE: (
            replaced("orgs.csv", "Springfield Elementary School", '"Springfield Elementary\r\nSchool"'),
            ("orgs.csv: in 1 row, a line break inside a cell",),
        ),
    },
    "manifest and names": {
        MANIFEST_VERSION: (
            cell_of("manifest", "manifest.version", "value", "1"),
            ("manifest.csv: the manifest version 1 for 1.0",),
        ),
        BLANK_MODE: (declared("results", ""), ("manifest.csv: a blank mode in the manifest",)),
        MODE_CASE: (declared("users", "Bulk"), ("manifest.csv: a mode in another letter case",)),
        OTHER_PROPERTY: (
            rows_of("manifest", lambda rows: rows.append(["source.vendor", "x"])),
            ("manifest.csv: a manifest property that is none (line 19)",),
        ),
        UNDECLARED_FILE: (
            declared("demographics", "absent"),
            ("demographics.csv: a file that the manifest does not declare (read in bulk)",),
        ),
        MISSING_FILE: (
            declared("categories", "bulk"),
            ("categories.csv: a file that the manifest declares is missing",),
        ),
        PROPERTY_CASE: (
            both(
                replaced("manifest.csv", "oneroster.version", "OneRoster.Version"),
                replaced("manifest.csv", "file.academicSessions", "file.academicsessions"),
                replaced("manifest.csv", "file.lineItems", "File.lineItems"),
            ),
            (
                "manifest.csv: a manifest property in another letter case "
                "(OneRoster.Version, read as oneroster.version)",
                "manifest.csv: a manifest property in another letter case "
                "(file.academicsessions, read as file.academicSessions)",
                "manifest.csv: a manifest property in another letter case (File.lineItems, read as file.lineItems)",
            ),
        ),
        OTHER_FILE: (
            both(with_file("README.txt", b"Call us."), with_file("staff.csv", b"id"), _in_folder("reports", "a.csv")),
            (
                "README.txt: a file or folder of another kind",
                "reports/: a file or folder of another kind",
                "staff.csv: a file or folder of another kind",
            ),
        ),
        LIKE_FILE: (
            renamed("courses.csv", "courses.csv", "courses (1).csv", "Courses 2026-11-28.csv", "manifest.xlsx"),
            (
                "Courses 2026-11-28.csv: a file whose name is only like one that is read "
                "(courses.csv with a date in its name)",
                "courses (1).csv: a file whose name is only like one that is read "
                "(courses.csv with the mark of a copy)",
                "manifest.xlsx: a file whose name is only like one that is read (manifest.csv as an Excel workbook)",
            ),
        ),
        FILE_NAME_CASE: (
            both(renamed("academicSessions.csv", "AcademicSessions.CSV"), renamed("manifest.csv", "Manifest.csv")),
            (
                "Manifest.csv: a file name in another letter case (read as manifest.csv)",
                "AcademicSessions.CSV: a file name in another letter case (read as academicSessions.csv)",
            ),
        ),
    },
    "a folder, and no version": {
        MISSING_PROPERTY: (
            without_rows("manifest", "oneroster.version"),
            ("manifest.csv: a required manifest property is missing (oneroster.version)",),
        ),
        FOLDER: (_move_into("export"), ("export/: the files in a folder",)),
    },
    "no manifest": {
        NO_MANIFEST: (without_file("manifest.csv"), ("manifest.csv: no manifest (oneroster 1.1)",)),
    },
}
FILES = ("academicSessions", "classes", "courses", "demographics", "enrollments", "orgs", "users")


def test_a_mistake_in_every_file_is_one_line(engine: sa.Engine, springfield: Path) -> None:
    load_first(engine, "springfield", springfield)
    for file in FILES:
        both(column(file, "status", "active"), rows_of(file, _in_capitals))(springfield)
    report = load(engine, "springfield", springfield)
    headers, status = report.notices
    assert report.outcome == "unchanged"
    assert headers.startswith(
        "orgs.csv (SOURCEDID, read as sourcedId and 6 more), academicSessions.csv (SOURCEDID, read as sourcedId and"
    )
    assert status.endswith(
        "demographics.csv (6 rows), users.csv (15 rows): a status in a bulk file, which needs none; leave the status "
        "empty in bulk files"
    )


def test_what_one_file_has_in_many_columns_is_counted_by_cells() -> None:
    """One row may have it in all of them."""
    notices = [Tolerated("users.csv", US_DAY, f"column {it}", 2, line=3) for it in range(4)]
    assert list(list_lines(notices)) == [f"users.csv (8 cells): {US_DAY.taken}; {US_DAY.remedy}"]


TOLERATED: dict[str, tuple[dict[str, Bend], tuple[str, ...]]] = {
    "files": (
        {
            "CRLF, as RFC 4180 has it": raw("users.csv", lambda data: data.replace(b"\n", b"\r\n")),
            "no end of the last line": raw("orgs.csv", lambda data: data.removesuffix(b"\n")),
            "empty last lines": raw("enrollments.csv", lambda data: data + b"\n\n"),
            "every cell quoted": quoted("courses"),
        },
        (),
    ),
    "a manifest and names": (
        {
            "no row for an absent file": without_rows("manifest", "file.resources"),
            "no source": without_rows("manifest", "source.systemName", "source.systemCode"),
            "litter of an operating system": with_file(".DS_Store"),
            "gradebook files": both(declared("lineItems", "bulk"), with_file("lineItems.csv", b"whatever\xff")),
            "gradebook delta": both(declared("results", "delta"), with_file("results.csv")),
        },
        ("lineItems.csv holds no roster and is skipped", "results.csv holds no roster and is skipped"),
    ),
}


@pytest.mark.parametrize(("bends", "notices"), TOLERATED.values(), ids=TOLERATED)
def test_tolerated(engine: sa.Engine, springfield: Path, bends: dict[str, Bend], notices: tuple[str, ...]) -> None:
    load_first(engine, "springfield", springfield)
    both(*bends.values())(springfield)
    report = load(engine, "springfield", springfield)
    # A change of the manifest alone leaves every file as it was.
    assert (report.outcome, tuple(it for it in report.notices if it != KNOWN)) == ("unchanged", notices)


def test_every_tolerated_deviation_has_a_case() -> None:
    """Others have theirs below, or in a file of their own."""
    others = {
        BACKSLASHES,
        GONE_STATUS,
        KEPT_COURSE,
        UNKNOWN_GRADE,
        NO_COURSES,
        NO_PARENT,
        OTHER_SCHOOL,
        MAPPED_WORD,
        SAME_DAY_FIRST,
    }
    quirky = [deviation for deviations in QUIRKY.values() for deviation in deviations]
    assert {*quirky, *others, *(it for it in DEVIATIONS if it.allowed)} == set(DEVIATIONS)
    assert len(set(quirky)) == len(quirky)


Said = tuple[Report, tuple[Rejection, ...]]


@pytest.fixture(scope="module")
def load_quirky(
    make_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Said]]:
    """The report of an export with some deviations, which was loaded before without them, and for what a strict run
    refuses it. A strict run also refuses an export that was loaded before."""
    engine = make_engine(make_database())

    @functools.cache
    def load_once(deviations: str) -> Said:
        folder = Path(shutil.copytree(EXPORTS / SPRINGFIELD, tmp_path_factory.mktemp("quirky") / SPRINGFIELD))
        empty_roster(engine)
        load_first(engine, "springfield", folder)
        for bend, _ in QUIRKY[deviations].values():
            bend(folder)
        report = load(engine, "springfield", folder)
        with pytest.raises(RefusedExportError) as caught:
            load(engine, "springfield", folder, options=Options(strict=True))
        return report, caught.value.findings.first

    yield load_once
    engine.dispose()


@pytest.mark.parametrize(
    ("deviations", "deviation"),
    [pytest.param(name, it, id=it.taken) for name, deviations in QUIRKY.items() for it in deviations],
)
def test_a_tolerated_deviation_is_read_and_reported_and_a_strict_run_refuses_it(
    load_quirky: Callable[[str], Said], deviations: str, deviation: Deviation
) -> None:
    report, refused = load_quirky(deviations)
    _, notices = QUIRKY[deviations][deviation]
    assert report.outcome == "unchanged"
    reported = [it for it in report.notices if deviation.taken in it]
    assert len(reported) == len(notices)
    for wanted in notices:
        assert any(it.startswith(wanted) for it in reported), reported
    reasons = [it.reason for it in refused if deviation.taken in it.reason]
    assert len(reasons) == len(notices)
    assert all(deviation.remedy in it for it in reasons)


@pytest.mark.parametrize("deviations", QUIRKY)
def test_nothing_is_reported_of_what_is_no_deviation(load_quirky: Callable[[str], Said], deviations: str) -> None:
    report, refused = load_quirky(deviations)
    # A quirk outside of the files themselves leaves every file as it was.
    reported = [it for it in report.notices if it != KNOWN]
    assert len(reported) == len(refused) == sum(len(notices) for _, notices in QUIRKY[deviations].values())


def test_a_strict_feed_takes_a_good_export_alone(engine: sa.Engine, springfield: Path) -> None:
    assert load(engine, "springfield", springfield, options=Options(strict=True)).outcome == "done"
    with engine.begin() as connection:
        connection.execute(sa.update(tables.feeds).values(strict=True))
    assert load(engine, "springfield", springfield).outcome == "unchanged"
    cell("users", 2, "enabledUser", "Y")(springfield)
    with pytest.raises(RefusedExportError):
        load(engine, "springfield", springfield)


def test_a_dropped_reference_is_taken_up_once_its_target_is_there(engine: sa.Engine, springfield: Path) -> None:
    """The row of the student did not change, and is looked at again."""
    guardian = without_rows("users", "spr-parent-1")
    good = (springfield / "users.csv").read_bytes()
    guardian(springfield)
    load(engine, "springfield", springfield)
    agents = sa.select(tables.user_agents.c.agent_id).where(tables.user_agents.c.user_id == "spr-student-1")
    with engine.connect() as connection:
        assert set(connection.scalars(agents)) == {"spr-guardian-1"}
    (springfield / "users.csv").write_bytes(good)
    report = load(engine, "springfield", springfield)
    assert (report.counts["users"].added, report.counts["users"].changed) == (1, 1)
    with engine.connect() as connection:
        assert set(connection.scalars(agents)) == {"spr-guardian-1", "spr-parent-1"}


def test_a_row_of_another_length_is_rejected_alone(engine: sa.Engine, springfield: Path) -> None:
    load_first(engine, "springfield", springfield)
    other = {
        # Too short, too long, and shifted by a comma with an empty last cell.
        "spr-proctor@1": "spr-proctor@1,,",
        "spr-admin-school": "spr-admin-school" + "," * 22 + "x",
        "spr-aide-1": "spr-aide-1,,,true,spr-elementary,aide,aide.one,,Nguyễn, Thị,Minh,,,minh@example.org,,,,,,,",
    }

    def put(data: bytes) -> bytes:
        return b"\n".join(other.get(it.split(",")[0], it).encode() for it in data.decode().split("\n"))

    raw("users.csv", put)(springfield)
    report = load(engine, "springfield", springfield)
    assert (report.outcome, report.rejected) == ("unchanged", 3)
    lines = (springfield / "users.csv").read_text().split("\n")
    for rejection in report.findings.first:
        assert rejection.file == "users.csv"
        assert rejection.reason.startswith("the row has ")
        assert lines[(rejection.line or 0) - 1] == other.pop(str(rejection.sourced_id))


def test_lines_are_counted_as_in_the_file_behind_empty_and_broken_ones(engine: sa.Engine, springfield: Path) -> None:
    both(
        cell("orgs", 5, "type", "x"),
        raw("orgs.csv", lambda data: data.replace(b"\n", b"\n\n", 1)),
        replaced("orgs.csv", "Springfield Elementary School", '"Springfield\nElementary School"'),
    )(springfield)
    assert "orgs.csv, line 7, column type: must be one of" in read_rejects(engine, springfield)


CELLS: tuple[tuple[Deviation, CellKind], ...] = (
    (WORD_SPELLING, make_word_kind(vocabulary.SEXES, spellings=SEX_SPELLINGS)),
    (GRADE_SPELLING, cells.GRADES),
    (PLAIN_DAY, cells.DAY),
    (SCHOOL_YEAR, cells.YEAR),
    (CELL_SPACES, make_word_kind(vocabulary.ORG_TYPES)),
    (CELL_SPACES, cells.ID),
    (FLAG_SPELLING, cells.FLAG),
    (WORD_CASE, make_word_kind(vocabulary.CLASS_TYPES)),
    (US_DAY, cells.DAY),
    (DAY_FIRST, cells.DAY),
    (MIDNIGHT, cells.DAY),
    (LIST_SPACES, cells.TEXTS),
    (EMPTY_ITEM, cells.TEXTS),
    (EMPTY_ITEM, cells.IDS),
)


@pytest.mark.parametrize(("deviation", "kind"), CELLS, ids=[deviation.taken for deviation, _ in CELLS])
def test_examples_are_true(shared_engine: sa.Engine, deviation: Deviation, kind: CellKind) -> None:
    """A cell like the example is read as what the example says; one that is as it should be has no quirk."""
    tolerance = next(it for it in kind.tolerates if it.deviation is deviation)
    found, wanted = (sa.literal(text, CText) for text in deviation.example)
    with shared_engine.connect() as connection:
        assert connection.execute(sa.select(tolerance.holds(found), tolerance.holds(wanted))).one() == (True, False)
        read = found if tolerance.read is None else tolerance.read(found)
        assert connection.scalar(sa.select(kind.convert(read) == kind.convert(wanted)))


EMPTY_PAIRS = {
    " ": None,
    ",": None,
    "{a:b}, ": "{a:b}",
    " ,{a:b}": "{a:b}",
    "{a:b},,{c:d,,e}": "{a:b},{c:d,,e}",
    "{a:b} , , {c:d}": "{a:b},{c:d}",
    "{a:b}, {c:d}": "{a:b}, {c:d}",
}


def test_a_list_of_pairs_is_read_without_empty_ones(shared_engine: sa.Engine) -> None:
    """An identifier may have commas."""
    tolerance = next(it for it in cells.PAIRS.tolerates if it.deviation is EMPTY_ITEM)
    assert tolerance.read is not None
    with shared_engine.connect() as connection:
        for text, read in EMPTY_PAIRS.items():
            cell_ = sa.literal(text, CText)
            found = sa.select(sa.case((tolerance.holds(cell_), tolerance.read(cell_)), else_=cell_))
            assert connection.scalar(found) == read


def test_misspelt_headers_mean_headers_that_exist() -> None:
    headers = {header for form in VERSIONS.values() for file in form.files for header in file.headers}
    assert set(HEADER_SPELLINGS.values()) <= headers
    assert all(spelling == spelling.lower() for spelling in HEADER_SPELLINGS)


def test_days_that_stay_bad(engine: sa.Engine, springfield: Path) -> None:
    days = ("13/13/2023", "2/30/2023", "1/05/23", "1-05-2023", "1/5", "2023/13/05", "20230230")
    for line, day in enumerate(days, 2):
        cell("enrollments", line, "beginDate", day)(springfield)
    assert read_rejects(engine, springfield).splitlines() == [
        f"enrollments.csv, line {line}, column beginDate: must be a day of the calendar, YYYY-MM-DD (found '{day}')"
        for line, day in enumerate(days, 2)
    ]


# The birth dates of four students -> those that are read (None: rejected), and what is said.
COLUMNS: dict[str, tuple[tuple[str, ...], tuple[str | None, ...], str]] = {
    "any order": (
        ("03/04/2010", "5/06/2011", "2012-01-02", "5/05/2011"),
        ("2010-03-04", "2011-05-06", "2012-01-02", "2011-05-05"),
        "in 3 rows (first: line 2), a day written M/D/YYYY, the month first",
    ),
    "one day that has the month first": (
        ("03/04/2010", "5/16/2011", "2012-01-02", "5/05/2011"),
        ("2010-03-04", "2011-05-16", "2012-01-02", "2011-05-05"),
        "in 3 rows (first: line 2), a day written M/D/YYYY, the month first",
    ),
    "one day that has the day first": (
        ("03/04/2010", "16/5/2011", "2012-01-02", "5/05/2011"),
        ("2010-04-03", "2011-05-16", "2012-01-02", "2011-05-05"),
        "in 3 rows (first: line 2), a day written D/M/YYYY, the day first",
    ),
    "both": (
        ("03/04/2010", "16/5/2011", "2012-01-02", "5/16/2011"),
        (None, None, "2012-01-02", None),
        "has days with the month first and days with the day first",
    ),
}


@pytest.mark.parametrize(("written", "days", "words"), COLUMNS.values(), ids=COLUMNS)
def test_the_days_of_a_column_have_one_order(
    engine: sa.Engine, springfield: Path, written: tuple[str, ...], days: tuple[str | None, ...], words: str
) -> None:
    students = [f"spr-student-{number}" for number in range(1, 5)]
    for student, day in zip(students, written, strict=True):
        cell_of("demographics", student, "birthDate", day)(springfield)
    report = load(engine, "springfield", springfield, options=Options(allow_mass_delete=True))
    stored = snapshot(engine, tables.demographics)
    assert [str(stored[it]["birth_date"]) if it in stored else None for it in students] == list(days)
    assert {it.sourced_id for it in report.findings.first} == {
        student for student, day in zip(students, days, strict=True) if day is None
    }
    [said] = [it for it in report.notices if "birthDate" in it]
    assert words in said


def test_a_new_row_has_the_order_of_the_rows_that_did_not_change(engine: sa.Engine, springfield: Path) -> None:
    cell_of("demographics", "spr-student-1", "birthDate", "16/5/2011")(springfield)
    load(engine, "springfield", springfield)
    cell_of("demographics", "spr-student-2", "birthDate", "3/4/2011")(springfield)
    assert load(engine, "springfield", springfield).counts["demographics"].changed == 1
    assert str(snapshot(engine, tables.demographics)["spr-student-2"]["birth_date"]) == "2011-04-03"


# The statuses of the first enrollments, whether the file is a delta -> the number of rows with each deviation.
STATUSES: dict[str, tuple[tuple[str, ...], bool, dict[Deviation, int]]] = {
    "a status that changes nothing": (("active", "active"), False, {STATUS_IN_BULK: 2}),
    "a status that deletes": (("inactive", " ToBeDeleted"), False, {GONE_STATUS: 2}),
    "both": (("active", "inactive", "tobedeleted"), False, {STATUS_IN_BULK: 1, GONE_STATUS: 2}),
    "what a delta is for": (("active", "tobedeleted"), True, {}),
    "the word of OneRoster 1.0 in a delta": (("active", "Inactive"), True, {GONE_STATUS: 1}),
}


@pytest.mark.parametrize(("statuses", "is_delta", "counts"), STATUSES.values(), ids=STATUSES)
def test_a_status_that_deletes_is_said_apart(
    engine: sa.Engine, springfield: Path, statuses: tuple[str, ...], is_delta: bool, counts: dict[Deviation, int]
) -> None:
    load_first(engine, "springfield", springfield)
    both(*(cell("enrollments", line, "status", it) for line, it in enumerate(statuses, 2)))(springfield)
    if is_delta:
        declared("enrollments", "delta")(springfield)
    report = load(engine, "springfield", springfield, options=Options(dry_run=True, allow_mass_delete=True))
    for deviation in (STATUS_IN_BULK, GONE_STATUS):
        said = [it for it in report.notices if deviation.taken in it]
        rows = counts.get(deviation)
        usual = deviation is STATUS_IN_BULK
        first = next((it for it, word in enumerate(statuses, 2) if (word == "active") == usual), None)
        assert said == [str(Tolerated("enrollments.csv", deviation, "status", rows, line=first))] * (rows is not None)
    gone = sum(it.strip().lower() != "active" for it in statuses)
    assert report.counts["enrollments"].tombstoned == gone
    if counts:
        with pytest.raises(RefusedExportError):
            load(engine, "springfield", springfield, options=Options(dry_run=True, strict=True))


PERSON = {"students": "Student_id", "Student": "SIS ID", "roles": "userSourcedId"}
# The cells of a column of grades -> those that are stored, and the numbers of rows of which a report says so.
GRADES = ("3", "KG", "k", "Pre-K", "9th", "-1", "１０", "11,9", "TransitionalKindergarten", "Other")
STORED = ["03", "KG", "KG", "PK", "9th", "-1", "１０", "11,09", "TK", "Other"]
# The export of each format, its file and column of grades, and the rows with a spelling that it reports.
GRADED: dict[str, tuple[Family, str, str, str, int]] = {
    "oneroster": (ONEROSTER, "springfield-1.1", "users", "grades", 5),
    "clever": (CLEVER, "shelbyville-clever", "students", "Grade", 0),
    "sds v1": (SDS, "northhaven-sds-v1", "Student", "Grade", 5),
    "sds v2": (SDS, "northhaven-sds-v2", "users", "grade", 5),
    "sds v2.1": (SDS, "northhaven-sds", "roles", "grade", 5),
}


@pytest.mark.parametrize(("family", "name", "file", "column", "spelt"), GRADED.values(), ids=GRADED)
def test_grades_are_codes_of_ceds_in_every_format(
    engine: sa.Engine, copy_export: Callable[[str], Path], family: Family, name: str, file: str, column: str, spelt: int
) -> None:
    export = copy_export(name)

    def add_students(rows: Rows) -> None:
        key, keys = rows[0].index(PERSON.get(file, "sourcedId")), [f"new-{number}" for number in range(len(GRADES))]
        for identifier, grade in zip(keys, GRADES, strict=True):
            row = list(rows[1])
            row[key], row[rows[0].index(column)] = identifier, grade
            rows.append(row)

    rows_of(file, add_students)(export)
    if file == "roles":
        rows_of("users", lambda rows: rows.extend([f"new-{it}", *rows[1][1:]] for it in range(len(GRADES))))(export)
    report = load(engine, "feed", export, family=family)
    students = {key: row["grades"] for key, row in snapshot(engine, tables.users).items() if "new-" in key}
    assert [",".join(students[it]) for it in sorted(students)] == STORED
    said = {it.split(", column")[1] for it in report.notices if "grade" in it and ", column" in it}
    counts = {deviation: count for deviation, count in ((GRADE_SPELLING, spelt), (UNKNOWN_GRADE, 3)) if count}
    for deviation, count in counts.items():
        assert any(f"in {count} rows (first: line " in it and deviation.taken in it for it in said)
    assert len(said) == len(counts)


def test_lines_are_still_those_of_the_file(engine: sa.Engine, springfield: Path) -> None:
    """A file that was put right is refused at the places of the file that was sent."""
    both(cell("users", 3, "enabledUser", "TRUE"), cell("users", 9, "email", "x" * 256))(springfield)
    assert "users.csv, line 9, column email: must have" in read_rejects(engine, springfield)


NO_PLACE = "its metadata columns have no place in the roster and are not kept"


def test_said_aloud(engine: sa.Engine, shelbyville: Path) -> None:
    """What an export leaves out or says in vain is told, not refused."""
    notices = load_first(engine, "shelbyville", shelbyville).notices
    assert notices == ("the feed shelbyville is new", f"classes.csv: {NO_PLACE}")
    both(
        declared("demographics", "absent"),
        without_file("demographics.csv"),
        column("roles", "metadata.x", "y"),
        without_rows("roles", "shv-role-12"),
    )(shelbyville)
    report = load(engine, "shelbyville", shelbyville)
    assert report.notices == (
        "demographics.csv is absent; 4 records of earlier exports stay as they are",
        f"classes.csv: {NO_PLACE}",
        f"roles.csv: {NO_PLACE}",
        "users.csv: 1 users have no role anywhere, so no vendor sees them",
    )
    assert {row["status"] for row in snapshot(engine, tables.demographics).values()} == {"active"}


def test_ids_keep_every_character(engine: sa.Engine, springfield: Path) -> None:
    rows_of("courses", lambda rows: rows[4].__setitem__(0, "{Ünï/@-._ '%"))(springfield)
    cell("classes", 3, "courseSourcedId", "{Ünï/@-._ '%")(springfield)
    load(engine, "springfield", springfield)
    assert "{Ünï/@-._ '%" in snapshot(engine, tables.courses)
