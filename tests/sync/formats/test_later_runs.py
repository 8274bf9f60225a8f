"""Runs of other formats, night after night: each leaves what a first load of its export makes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.db import tables
from roster_service.db.engine import make_engine
from roster_service.db.tables import ROSTER_TABLES
from sync_scripts.engine.load import Options, load
from sync_scripts.reading.registry import CLEVER, SDS, Family
from tests.extent import examples
from tests.sync.conftest import EXPORTS, PARTS, empty_roster, state
from tests.sync.export_changes import Rows, read_csv, write_csv

ANYTHING = Options(allow_mass_delete=True)
RUNS = 8
# What comes and goes as a whole, with all rows that have its id: the headers of its id by file.
Thing = Mapping[str, str]
# The family, the things, the column of the names that change.
SOURCES: dict[str, tuple[Family, tuple[Thing, ...], tuple[str, str]]] = {
    "shelbyville-clever": (
        CLEVER,
        (
            {"sections": "Section_id", "enrollments": "Section_id"},
            {"students": "Student_id", "enrollments": "Student_id"},
            {"teachers": "Teacher_id"},
            {"students": "Contact_name"},
            {
                "schools": "School_id",
                **dict.fromkeys(("sections", "students", "teachers", "staff", "admins"), "School_id"),
            },
        ),
        ("sections", "Name"),
    ),
    "northhaven-sds-v1": (
        SDS,
        (
            {"Section": "SIS ID", "StudentEnrollment": "Section SIS ID", "TeacherRoster": "Section SIS ID"},
            {"Student": "SIS ID", "StudentEnrollment": "SIS ID", "GuardianRelationship": "SIS ID"},
            {"Teacher": "SIS ID", "TeacherRoster": "SIS ID"},
            {"User": "Email", "GuardianRelationship": "Email"},
        ),
        ("Section", "Section Name"),
    ),
    "northhaven-sds-v2": (
        SDS,
        (
            {"classes": "sourcedId", "enrollments": "classSourcedId"},
            {"users": "sourcedId", "enrollments": "userSourcedId"},
        ),
        ("classes", "title"),
    ),
    "northhaven-sds": (
        SDS,
        (
            {"classes": "sourcedId", "enrollments": "classSourcedId"},
            {
                "users": "sourcedId",
                "relationships": "relationshipUserSourcedId",
                **dict.fromkeys(("roles", "enrollments", "demographics"), "userSourcedId"),
            },
            {"courses": "sourcedId", "classes": "courseSourcedId", "enrollments": "classSourcedId"},
            {"academicSessions": "sourcedId", "roles": "sessionSourcedId"},
            {"relationships": "userSourcedId"},
        ),
        ("classes", "title"),
    ),
}


@pytest.fixture(scope="module")
def anew(make_database: Callable[[], str]) -> Iterator[sa.Engine]:
    """A database for first loads."""
    engine = make_engine(make_database())
    yield engine
    engine.dispose()


@pytest.mark.parametrize("seed", range(examples(1, 1, 5)))
@pytest.mark.parametrize("name", SOURCES)
def test_a_run_leaves_what_a_first_load_makes(
    engine: sa.Engine, anew: sa.Engine, tmp_path: Path, name: str, seed: int
) -> None:
    """Where no row is rejected: else stored records stay, which a first load does not have."""
    family = SOURCES[name][0]
    choose, compared = random.Random(f"{name} {seed}"), 0
    for number in range(RUNS):
        export = write_next(name, tmp_path / str(number), choose)
        report = load(engine, "feed", export, family=family, options=ANYTHING)
        empty_roster(anew)
        first = load(anew, "feed", export, family=family, options=ANYTHING)
        if not report.rejected and not first.rejected:
            compared += 1
            assert read_active(engine) == read_active(anew), (number, sorted(it.name for it in export.iterdir()))
    assert compared >= RUNS // 2


def write_next(name: str, folder: Path, choose: random.Random) -> Path:
    """Writes an export without some things, in another order, and with another name in some rows."""
    _, things, (named, header) = SOURCES[name]
    files = {path.stem: read_csv(path) for path in sorted((EXPORTS / name).glob("*.csv"))}
    folder.mkdir()
    for thing in things:
        first, own = next(iter(thing.items()))
        ids = sorted({row[files[first][0].index(own)] for row in files[first][1:]} - {""})
        gone = {it for it in ids if choose.random() < 0.25}
        left = {file: drop(files[file], column, gone) for file, column in thing.items()}
        # A file without rows refuses the export.
        if all(len(rows) > 1 for rows in left.values()):
            files |= left
    for file, (headers, *rows) in files.items():
        choose.shuffle(rows)
        if file == named:
            place = headers.index(header)
            for row in rows:
                row[place] += choose.choice(("", "", " (new)"))
        write_csv(folder / f"{file}.csv", [headers, *rows])
    return folder


def drop(rows: Rows, column: str, gone: set[str]) -> Rows:
    place = rows[0].index(column)
    return [rows[0], *(row for row in rows[1:] if row[place] not in gone)]


def read_active(engine: sa.Engine) -> dict[str, Any]:
    """The active records and their parts, without stamps, numbers, and which of several schools is the primary one,
    which stays as it was while it can."""
    found, people = state(engine), set[str]()
    shown: dict[str, Any] = {}
    for table in ROSTER_TABLES:
        active = {key: row for key, row in found[table].items() if row["status"] == "active"}
        unlike = ("feed_id", "date_last_modified", "primary_org_id")
        shown[table.name] = {key: {it: row[it] for it in row if it not in unlike} for key, row in active.items()}
        people |= set(active) if table is tables.users else set()
    for table in PARTS:
        unlike = ("ordinal", "role_type")
        rows = [row for row in found[table].values() if row["user_id"] in people]
        shown[table.name] = sorted(str({it: row[it] for it in row if it not in unlike}) for row in rows)
    return shown
