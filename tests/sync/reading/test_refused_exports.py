"""Exports that are refused: where, and in what words; and nothing has changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from sync_scripts.engine.load import Options, load
from sync_scripts.formats.oneroster import ONEROSTER_1_1
from sync_scripts.reading.rejections import Cause
from tests.extent import every_other
from tests.sync.conftest import SHELBYVILLE, SPRINGFIELD, read_refusal, read_rejects
from tests.sync.export_changes import (
    Bend,
    both,
    cell,
    cell_of,
    column,
    declared,
    header,
    raw,
    renamed,
    replaced,
    with_file,
    with_row,
    without_column,
    without_file,
    without_rows,
)

CopyExport = Callable[[str], Path]
FILE_ORDER = [file.file_name for file in ONEROSTER_1_1.files]

MANIFEST: dict[str, tuple[Bend, str]] = {
    "another version": (
        cell_of("manifest", "oneroster.version", "value", "1.0"),
        "manifest.csv, line 3, column value: oneroster.version must be 1.1 or 1.2 (found '1.0')",
    ),
    "another manifest version": (
        cell_of("manifest", "manifest.version", "value", "2.0"),
        "manifest.csv, line 2, column value: manifest.version must be 1.0 or 1 (found '2.0')",
    ),
    "header": (header("manifest", "value", "mode"), "manifest.csv, line 1: the header must be propertyName,value"),
    "semicolons": (
        replaced("manifest.csv", "propertyName,value", b"propertyName;value"),
        "manifest.csv, line 1: the columns are separated by semicolons; separate them by commas",
    ),
    "neither UTF-8 nor Windows-1252": (
        replaced("manifest.csv", "SIS", b"\x81"),
        "manifest.csv is neither UTF-8 nor Windows-1252",
    ),
    "broken CSV": (replaced("manifest.csv", "1.0", '"1.0'), "manifest.csv is no CSV"),
    "three cells": (replaced("manifest.csv", "bulk", "bulk,x"), "manifest.csv, line 4: the row has 3 cells, not 2"),
    "too long": (with_file("manifest.csv", b"x" * 70_000), "manifest.csv is longer than 65536 bytes"),
    "a property twice": (
        with_row("manifest", propertyName="file.users", value="bulk"),
        "manifest.csv, line 19, column propertyName: stands here a second time (found 'file.users')",
    ),
    "a property twice, in another letter case": (
        with_row("manifest", propertyName="File.Users", value="bulk"),
        "manifest.csv, line 19, column propertyName: stands here a second time (found 'file.users')",
    ),
    "unknown mode": (declared("users", "full"), "manifest.csv, line 16, column value: must be bulk, delta or absent"),
    "missing file": (without_file("orgs.csv"), "orgs.csv is missing; the manifest declares it bulk"),
    "required and absent": (
        both(declared("enrollments", "absent"), without_file("enrollments.csv")),
        "enrollments.csv is required, but the manifest declares it absent",
    ),
}

FILES: dict[str, tuple[Bend, str]] = {
    "header": (
        header("users", "role", "roll"),
        "users.csv, line 1, column 6: is no column of this file; did you mean role? (found 'roll')",
    ),
    "missing column": (
        without_column("users", "role"),
        "users.csv, line 1, column role: is missing in the header",
    ),
    "empty file": (with_file("users.csv"), "users.csv, line 1: is empty"),
    "no rows": (without_rows("enrollments"), "enrollments.csv: has no rows"),
    "the end inside a row": (
        raw("users.csv", lambda data: data[: data.rstrip().rindex(b"\n") + 8]),
        "users.csv, line 16: the file ends inside this row: it was cut off, or is still being written",
    ),
    "quoting": (replaced("users.csv", "Zoë", 'Zo"ë'), "users.csv, line 2, column givenName: broken quoting"),
    "neither UTF-8 nor Windows-1252": (
        replaced("users.csv", "Zoë", b"Zo\x81"),
        "users.csv, line 2, column givenName: is neither UTF-8 nor Windows-1252",
    ),
    "NUL": (replaced("users.csv", "Zoë", "Zo\0"), "users.csv, line 2, column givenName: holds a control character"),
    "control character in an id": (
        replaced("orgs.csv", "spr-high,", "spr\x07high,"),
        "orgs.csv, line 4, column sourcedId: holds a control character",
    ),
}

# A file that is missing names those that are like it -> what is said, and the remedy.
BESIDE: dict[str, tuple[Bend, str]] = {
    "a date": (
        renamed("users.csv", "users 2026-11-28.csv"),
        "users.csv is missing; the manifest declares it bulk; beside it lies users 2026-11-28.csv, with a date in its "
        "name (name the one to load users.csv)",
    ),
    "several": (
        renamed("users.csv", "users.xlsx", *(f"users_2026112{day}.csv" for day in range(4))),
        "beside it lies users.xlsx, as an Excel workbook (save it as users.csv, in UTF-8), users_20261120.csv, with a "
        "date in its name (name the one to load users.csv), users_20261121.csv, with a date in its name (name the one "
        "to load users.csv), and 2 more",
    ),
    "no manifest": (
        both(without_file("manifest.csv"), renamed("orgs.csv", "Orgs(2).csv")),
        "orgs.csv is missing; every export of oneroster 1.1 has it; beside it lies Orgs(2).csv, with the mark of a "
        "copy (name the one to load orgs.csv)",
    ),
    "a long name": (
        renamed("orgs.csv", f"orgs {'x' * 100}.csv"),
        f"beside it lies orgs {'x' * 74}…, with more in its name",
    ),
    "nothing like it": (
        renamed("users.csv", "people.csv"),
        "users.csv is missing; the manifest declares it bulk",
    ),
    **{
        f"a file that begins with {data!r}": (with_file("users.csv", data), words)
        for data, words in {
            b"PK\x03\x04\x14\x00": "users.csv is an Excel workbook or another zip; save or unpack it as CSV",
            b"\xd0\xcf\x11\xe0\xa1": "users.csv is an Excel workbook; save it as CSV",
            b"\x1f\x8b\x08": "users.csv is packed by gzip; unpack it",
            b"%PDF-1.7": "users.csv is a PDF; export it as CSV",
            b" <!DOCTYPE html>": "users.csv is a page of HTML or XML, perhaps of an error",
            b"<?xml": "users.csv is a page of HTML or XML, perhaps of an error",
        }.items()
    },
}

CELLS: dict[str, tuple[Bend, str]] = {
    "a blank id": (cell("users", 4, "sourcedId", " "), "users.csv, line 4, column sourcedId: must not be empty"),
    "empty and required": (cell("orgs", 3, "name", ""), "orgs.csv, line 3, column name: must not be empty"),
    "blank and required": (cell("users", 3, "givenName", "  "), "users.csv, line 3, column givenName: must not be"),
    "no id": (cell("orgs", 5, "sourcedId", ""), "orgs.csv, line 5, column sourcedId: must not be empty"),
    "too long an id": (cell("orgs", 5, "sourcedId", "x" * 256), "orgs.csv, line 5, column sourcedId: must be an id"),
    "word": (cell("orgs", 4, "type", "campus"), "orgs.csv, line 4, column type: must be one of department, district"),
    "role": (cell("users", 2, "role", "pupil"), "users.csv, line 2, column role: must be one of administrator, aide"),
    "status": (cell("users", 2, "status", "gone"), "users.csv, line 2, column status: must be one of active, inactive"),
    "day": (
        cell("academicSessions", 2, "startDate", "17/18/2026"),
        "academicSessions.csv, line 2, column startDate: must be a day of the calendar, YYYY-MM-DD",
    ),
    "flag": (
        cell("users", 4, "enabledUser", "ja"),
        "users.csv, line 4, column enabledUser: must be true or false (found 'ja')",
    ),
    "year": (cell("academicSessions", 2, "schoolYear", "26/27"), "academicSessions.csv, line 2, column schoolYear"),
    "pairs": (
        cell("users", 2, "userIds", "LDAP:1"),
        "users.csv, line 2, column userIds: must be a comma list of {type",
    ),
    "list": (
        cell("classes", 2, "termSourcedIds", "x" * 256),
        "classes.csv, line 2, column termSourcedIds: must be",
    ),
    "a guardian in a class": (
        cell("enrollments", 2, "role", "parent"),
        "enrollments.csv, line 2, column role: must be one of administrator, aide, proctor, student, teacher",
    ),
    "long values are cut, controls never shown": (
        cell("orgs", 4, "type", "y" * 500),
        f"(found '{'y' * 79}…')",
    ),
}

DUPLICATES: dict[str, tuple[Bend, str]] = {
    "an org twice, once gone": (
        with_row("orgs", sourcedId="spr-high", status="tobedeleted"),
        "orgs.csv, line 6, column sourcedId: stands in more than one row, also in line 4",
    ),
    "a session twice": (
        with_row("academicSessions", sourcedId="spr-2027"),
        "academicSessions.csv, line 9, column sourcedId: stands in more than one row, also in line 2",
    ),
    "a user twice in a delta": (
        both(declared("users", "delta"), with_row("users", sourcedId="spr-student-1", status="active")),
        "users.csv, line 17, column sourcedId: stands in more than one row, also in line 2 (found 'spr-student-1')",
    ),
}  # fmt: skip

SETS: dict[str, tuple[Bend, str]] = {
    "a ref to another type of record": (
        cell("enrollments", 2, "userSourcedId", "spr-high"),
        "enrollments.csv, line 2, column userSourcedId: names no row of users.csv (found 'spr-high')",
    ),
    "a class at a district": (
        cell("classes", 2, "schoolSourcedId", "spr-district"),
        "classes.csv, line 2, column schoolSourcedId: must name a row of orgs.csv of type school "
        "(found 'spr-district')",
    ),
    "the only term": (
        cell("classes", 2, "termSourcedIds", "winter"),
        "classes.csv, line 2, column termSourcedIds: names no row of academicSessions.csv (found 'winter')",
    ),
    "the only org": (
        cell("users", 8, "orgSourcedIds", "nowhere"),
        "users.csv, line 8, column orgSourcedIds: names no row of orgs.csv (found 'nowhere')",
    ),
    "demographics of nobody": (
        cell("demographics", 2, "sourcedId", "spr-student-99"),
        "demographics.csv, line 2, column sourcedId: names no row of users.csv (found 'spr-student-99')",
    ),
    "a ref to somebody who is gone": (
        cell_of("users", "spr-teacher-2", "status", "tobedeleted"),
        "enrollments.csv, line 13, column userSourcedId: names a row of users.csv that is marked as gone",
    ),
    "a circle of sessions": (
        cell_of("academicSessions", "spr-2027", "parentSourcedId", "spr-2027-q1"),
        "academicSessions.csv, line 2, column parentSourcedId: leads back to the row itself (found 'spr-2027-q1')",
    ),
}  # fmt: skip

SETS_1_2: dict[str, tuple[Bend, str]] = {
    "two primary roles": (
        cell_of("roles", "shv-role-08", "roleType", "primary"),
        "roles.csv, line 8, column roleType: is a second primary role of the user at this org (found 'primary')",
    ),
    "the role of nobody": (
        cell_of("roles", "shv-role-06", "userSourcedId", "nobody"),
        "roles.csv, line 7, column userSourcedId: names no row of users.csv (found 'nobody')",
    ),
    "the role word of 1.1": (
        cell_of("roles", "shv-role-09", "role", "administrator"),
        "roles.csv, line 10, column role: must be one of aide, counselor",
    ),
    "a bad extension": (
        cell_of("orgs", "shv-campus", "type", "ext:my campus"),
        "orgs.csv, line 5, column type: must be one of department, district, local, national, school, state or ext:",
    ),
}

FILES_1_2: dict[str, tuple[Bend, str]] = {
    "no manifest, and another name of the roles": (
        both(without_file("manifest.csv"), renamed("roles.csv", "roles (1).csv")),
        "roles.csv is missing; every export of oneroster 1.2 has it; beside it lies roles (1).csv, with the mark of a "
        "copy (name the one to load roles.csv)",
    ),
    "roles are absent": (
        both(declared("roles", "absent"), without_file("roles.csv")),
        "roles.csv is required, but the manifest declares it absent",
    ),
}

WHOLE = [
    *((SPRINGFIELD, name, *case) for table in (MANIFEST, FILES, BESIDE, DUPLICATES) for name, case in table.items()),
    *((SHELBYVILLE, name, *case) for name, case in FILES_1_2.items()),
]
ROWS = [
    *((SPRINGFIELD, name, *case) for table in (CELLS, SETS) for name, case in table.items()),
    *((SHELBYVILLE, name, *case) for name, case in SETS_1_2.items()),
]


@pytest.mark.parametrize(("export", "bend", "words"), [(it[0], *it[2:]) for it in WHOLE], ids=[it[1] for it in WHOLE])
def test_refused_as_a_whole(
    shared_engine: sa.Engine, copy_export: CopyExport, export: str, bend: Bend, words: str
) -> None:
    folder = copy_export(export)
    bend(folder)
    assert words in read_refusal(shared_engine, folder)


@pytest.mark.parametrize(
    ("export", "bend", "words"), every_other((it[0], *it[2:]) for it in ROWS), ids=[it[1] for it in ROWS]
)
def test_each_bad_row_is_rejected(
    shared_engine: sa.Engine, copy_export: CopyExport, export: str, bend: Bend, words: str
) -> None:
    folder = copy_export(export)
    bend(folder)
    assert words in read_rejects(shared_engine, folder)


CAUSES = {
    "one row, which one names": (1, 1, "1 row, in line 6: bad; rejected with it: 1 row that refers to it"),
    "one row, which some name": (1, 2, "1 row, in line 6: bad; rejected with it: 2 rows that refer to it"),
    "rows, which one names": (3, 1, "3 rows, first in line 6: bad; rejected with them: 1 row that refers to them"),
    "rows that nobody names": (1_200, 0, "1,200 rows, first in line 6: bad"),
}


@pytest.mark.parametrize(("rows", "consequences", "said"), CAUSES.values(), ids=CAUSES)
def test_a_cause_counts_its_rows(rows: int, consequences: int, said: str) -> None:
    assert str(Cause("users.csv", "role", "bad", rows, 6, consequences)) == f"users.csv, column role: {said}"


def test_many_are_shown_by_their_causes_and_all_are_counted(engine: sa.Engine, springfield: Path) -> None:
    both(column("users", "enabledUser", "ja"), column("enrollments", "role", "pupil"))(springfield)
    report = load(engine, "feed", springfield, options=Options(allow_mass_delete=True))
    # All users are refused, and so all that names them; nothing is named twice for the same reason.
    findings = report.findings
    assert (findings.total, len(findings.first)) == (15 + 17 + 6, 38)
    assert str(findings).splitlines() == [
        "users.csv, column enabledUser: 15 rows, first in line 2: must be true or false; "
        "rejected with them: 6 rows that refer to them",
        "enrollments.csv, column role: 17 rows, first in line 2: must be one of administrator, aide, proctor, student, "
        "teacher",
    ]
    assert report.rejected == 38


def test_findings_come_in_the_order_of_the_files(shared_engine: sa.Engine, springfield: Path) -> None:
    both(
        cell("users", 9, "enabledUser", "ja"),
        cell("users", 3, "orgSourcedIds", "nowhere"),
        cell("orgs", 5, "name", ""),
        cell("orgs", 4, "type", "x"),
    )(springfield)
    report = load(shared_engine, "feed", springfield, options=Options(dry_run=True))
    first = report.findings.first
    places = [(refusal.file, refusal.line) for refusal in first]
    assert places[:2] == [("orgs.csv", 4), ("orgs.csv", 5)]
    ordered = sorted(first, key=lambda it: (it.is_consequence, FILE_ORDER.index(it.file), it.line))
    assert [(it.file, it.line) for it in ordered] == places
    assert {("users.csv", 3), ("users.csv", 9)} < set(places)


def test_damage_is_found_in_every_file(shared_engine: sa.Engine, springfield: Path) -> None:
    both(replaced("users.csv", "Zoë", "Zo\x07"), replaced("orgs.csv", "spr-high,", "spr\x07high,"))(springfield)
    words = read_refusal(shared_engine, springfield)
    assert "orgs.csv, line 4, column sourcedId: holds a control character" in words
    assert "users.csv, line 2, column givenName: holds a control character" in words


@pytest.mark.parametrize(
    ("bend", "reported"),
    [
        (replaced("users.csv", "never-stored-1,7,free", "never-stored-1"), read_rejects),
        (replaced("users.csv", "never-stored-1", "never-stored-1\x07"), read_refusal),
        (replaced("users.csv", "never-stored-1", b"never-stored-1\x81"), read_refusal),
        (cell("users", 2, "enabledUser", "x"), read_rejects),
    ],
)
def test_passwords_are_never_shown(
    shared_engine: sa.Engine, springfield: Path, bend: Bend, reported: Callable[[sa.Engine, Path], str]
) -> None:
    """Neither where the row of the password is broken, nor where the cell itself is."""
    bend(springfield)
    assert "never" not in reported(shared_engine, springfield)
