"""An enrollment is at the school of its class, whatever its row says."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.db import tables
from roster_service.roster.label_check import find_wrong_labels
from sync_scripts.engine.load import Options, load
from sync_scripts.formats.tolerated import OTHER_SCHOOL, Tolerated
from sync_scripts.reading.registry import CLEVER
from sync_scripts.reading.rejections import RefusedExportError
from tests.sync.conftest import EXPORTS, snapshot
from tests.sync.export_changes import Bend, both, cell, cell_of, read_csv, rows_of, without_rows

from .test_deltas import alone, only


def say(line: int) -> str:
    return str(Tolerated("enrollments.csv", OTHER_SCHOOL, "schoolSourcedId", 1, line=line))


def find_schools(engine: sa.Engine) -> dict[str, str]:
    return {key: row["school_id"] for key, row in snapshot(engine, tables.enrollments).items()}


def elsewhere(identifier: str) -> Bend:
    return cell_of("enrollments", identifier, "schoolSourcedId", "spr-elementary")


def test_an_enrollment_is_at_the_school_of_its_class(engine: sa.Engine, springfield: Path) -> None:
    """Every night says so, and changes nothing; a delta without the class knows it, too."""
    load(engine, "feed", springfield)
    good = find_schools(engine)
    [name] = [key for key, school in good.items() if school != "spr-elementary"][:1]
    elsewhere(name)(springfield)
    line = 1 + [row[0] for row in read_csv(springfield / "enrollments.csv")].index(name)
    with pytest.raises(RefusedExportError, match="at another school than its class"):
        load(engine, "feed", springfield, options=Options(strict=True))
    report = load(engine, "feed", springfield)
    assert (report.outcome, say(line) in report.notices) == ("unchanged", True)
    cell("users", 2, "givenName", "Another")(springfield)
    again = load(engine, "feed", springfield)
    assert (again.counts["enrollments"].any, say(line) in again.notices) == (False, True)
    alone(only("enrollments", name), elsewhere(name))(springfield)
    delta = load(engine, "feed", springfield)
    assert (delta.outcome, say(2) in delta.notices) == ("unchanged", True)
    assert find_schools(engine) == good


@pytest.mark.parametrize("order", [1, -1])
def test_the_order_of_the_seats_of_a_student_says_nothing(engine: sa.Engine, tmp_path: Path, order: int) -> None:
    folder = tmp_path / "export"
    folder.mkdir()
    for file in (EXPORTS / "shelbyville-clever").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())

    def add_another_school(rows: list[list[str]]) -> None:
        place = rows[0].index("School_id")
        schools = sorted({row[place] for row in rows[1:]})
        other = [*rows[1]]
        other[place] = next(school for school in schools if school != rows[1][place])
        rows[1:2] = [rows[1], other][::order]

    load(engine, "feed", folder, family=CLEVER)
    good = find_schools(engine)
    rows_of("enrollments", add_another_school)(folder)
    load(engine, "feed", folder, family=CLEVER)
    assert find_schools(engine) == good


@pytest.mark.parametrize("way", ["in a delta", "in bulk, beside the same enrollments"])
def test_enrollments_move_with_their_class(engine: sa.Engine, springfield: Path, way: str) -> None:
    """Those whose own rows say nothing else."""
    load(engine, "feed", springfield)
    cell("users", 2, "givenName", "Another")(springfield)
    load(engine, "feed", springfield)
    name = "spr-class-math3-a"
    with engine.connect() as connection:
        of_class = sa.select(tables.enrollments.c.sourced_id).where(tables.enrollments.c.class_id == name)
        moved = set(connection.scalars(of_class))
    move = cell_of("classes", name, "schoolSourcedId", "spr-high")
    (alone(only("classes", name), move) if way == "in a delta" else move)(springfield)
    report = load(engine, "feed", springfield, options=Options(allow_mass_delete=True))
    assert (report.counts["enrollments"].changed, len(moved) > 1) == (len(moved), True)
    assert {key for key, school in find_schools(engine).items() if school == "spr-high"} > moved
    with engine.connect() as connection:
        assert find_wrong_labels(connection) == {}
    again = snapshot(engine, tables.enrollments)
    load(engine, "feed", springfield, options=Options(allow_mass_delete=True))
    assert snapshot(engine, tables.enrollments) == again


def list_of_class(engine: sa.Engine, name: str) -> dict[str, tuple[str, str]]:
    """(status, school) of the enrollments of a class."""
    rows = snapshot(engine, tables.enrollments)
    return {key: (row["status"], row["school_id"]) for key, row in rows.items() if row["class_id"] == name}


CLOSED, OPEN, MOVED = "spr-elementary", "spr-high", ("spr-class-math3-a", "spr-class-homeroom-3")


@pytest.mark.parametrize("way", ["in a delta", "in bulk", "in bulk, on a night that compares hashes"])
def test_enrollments_stay_when_their_class_moves_from_a_school_that_closes(
    engine: sa.Engine, springfield: Path, way: str
) -> None:
    """In the same export, whose enrollments still name the closed school, if it has any."""
    load(engine, "feed", springfield)
    if way.endswith("hashes"):
        cell("users", 2, "givenName", "Another")(springfield)
        load(engine, "feed", springfield)
    seats = {name: set(list_of_class(engine, name)) for name in MOVED}
    moves = [cell_of("classes", name, "schoolSourcedId", OPEN) for name in MOVED]
    if way == "in a delta":
        ends = cell_of("orgs", CLOSED, "status", "tobedeleted")
        alone(only("orgs", CLOSED), only("classes", *MOVED), ends, *moves)(springfield)
    else:
        both(without_rows("orgs", CLOSED), *moves)(springfield)
    load(engine, "feed", springfield, options=Options(allow_mass_delete=True))
    for name in MOVED:
        assert list_of_class(engine, name) == dict.fromkeys(seats[name], ("active", OPEN))


def test_a_moved_class_is_reported_beside_enrollments_that_did_not_change(engine: sa.Engine, springfield: Path) -> None:
    """Their lines name the former school. A strict run refuses them on each night."""
    load(engine, "feed", springfield)
    cell("users", 2, "givenName", "Another")(springfield)
    load(engine, "feed", springfield)
    count = len(list_of_class(engine, MOVED[0]))
    cell_of("classes", MOVED[0], "schoolSourcedId", OPEN)(springfield)
    words = f"enrollments.csv, column schoolSourcedId: in {count} rows"
    for name in ("One", "Two"):
        with pytest.raises(RefusedExportError, match="at another school than its class"):
            load(engine, "feed", springfield, options=Options(strict=True))
        report = load(engine, "feed", springfield, options=Options(allow_mass_delete=True))
        assert [it for it in report.notices if it.startswith(words)]
        cell("users", 2, "givenName", name)(springfield)
