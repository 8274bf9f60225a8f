"""What stored records name that a delta ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.db import tables
from sync_scripts.engine.load import Options, load
from sync_scripts.purge import purge
from tests.sync.conftest import SHELBYVILLE, SPRINGFIELD, snapshot, state
from tests.sync.export_changes import Bend, both, cell_of

from .test_deltas import alone, only

ALLOW = Options(allow_mass_delete=True)


def end(file: str, *identifiers: str) -> Bend:
    """A delta that ends these records and says nothing else."""
    return alone(only(file, *identifiers), *(cell_of(file, it, "status", "tobedeleted") for it in identifiers))


@dataclass(frozen=True)
class Case:
    """A delta, a record that it does not name, a column of the record, and what stands there after."""

    export: str
    delta: Bend
    table: sa.Table
    key: str
    column: str
    after: Any


CASES = {
    "one of two terms": Case(
        SPRINGFIELD, end("academicSessions", "spr-2027-fall", "spr-2027-q1", "spr-2027-q2"),
        tables.classes, "spr-class-math3-a", "term_ids", ["spr-2027-spring"],
    ),
    "the last term": Case(
        SPRINGFIELD, end("academicSessions", "spr-2027-summer"),
        tables.classes, "spr-class-chem-summer", "term_ids", ["spr-2027-summer"],
    ),
    "a school year": Case(
        SPRINGFIELD, end("academicSessions", "spr-2027"),
        tables.courses, "spr-course-math3", "school_year_id", None,
    ),
    "the session above": Case(
        SPRINGFIELD, end("academicSessions", "spr-2027-spring"),
        tables.academic_sessions, "spr-2027-q3", "parent_id", None,
    ),
    "the first school of a user": Case(
        SPRINGFIELD, end("orgs", "spr-elementary"),
        tables.users, "spr-teacher-1", "primary_org_id", "spr-high",
    ),
    "the only school of a user": Case(
        SPRINGFIELD, end("orgs", "spr-elementary"),
        tables.users, "spr-student-2", "primary_org_id", None,
    ),
    "the primary org": Case(
        SHELBYVILLE, end("orgs", "shv-north"),
        tables.users, "shv-student-2", "primary_org_id", None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_reference_ends_with_what_it_names(engine: sa.Engine, copy_export: Callable[[str], Path], case: Case) -> None:
    folder = copy_export(case.export)
    load(engine, "feed", folder)
    before = snapshot(engine, case.table)[case.key]
    case.delta(folder)
    report = load(engine, "feed", folder, options=ALLOW)
    after = snapshot(engine, case.table)[case.key]
    is_stamped = after["date_last_modified"] == report.stamp
    assert (after[case.column], is_stamped) == (case.after, after[case.column] != before[case.column])
    again = state(engine)
    assert load(engine, "feed", folder, options=ALLOW).outcome == "unchanged"
    assert state(engine) == again


def test_an_agent_ends_with_their_record(engine: sa.Engine, springfield: Path) -> None:
    """The others keep their order."""
    agents = tables.user_agents.c
    of_pupil = sa.select(agents.ordinal, agents.agent_id).where(agents.user_id == "spr-student-1")
    load(engine, "feed", springfield)
    with engine.connect() as connection:
        assert len(connection.execute(of_pupil).all()) == 2
    end("users", "spr-guardian-1")(springfield)
    report = load(engine, "feed", springfield, options=ALLOW)
    with engine.connect() as connection:
        assert connection.execute(of_pupil).all() == [(1, "spr-parent-1")]
    assert snapshot(engine, tables.users)["spr-student-1"]["date_last_modified"] == report.stamp


def test_what_nothing_names_is_purged(engine: sa.Engine, springfield: Path) -> None:
    load(engine, "feed", springfield)
    ended = {
        tables.academic_sessions: ("spr-2027-fall", "spr-2027-q1", "spr-2027-q2"),
        tables.users: ("spr-guardian-1",),
    }
    sessions, people = ended.values()
    both(
        alone(only("academicSessions", *sessions), only("users", *people)),
        *(cell_of("academicSessions", it, "status", "tobedeleted") for it in sessions),
        *(cell_of("users", it, "status", "tobedeleted") for it in people),
    )(springfield)
    load(engine, "feed", springfield, options=ALLOW)
    with engine.begin() as connection:
        for table in ended:
            long_ago = table.c.date_last_modified - timedelta(days=30)
            gone = table.c.status == "tobedeleted"
            connection.execute(sa.update(table).where(gone).values(date_last_modified=long_ago))
    purge(engine, 7, wait=0)
    # The class of the fall alone keeps its last term.
    assert [key for key in sessions if key in snapshot(engine, tables.academic_sessions)] == ["spr-2027-fall"]
    assert "spr-guardian-1" not in snapshot(engine, tables.users)


def test_an_enrollment_returns_at_the_school_to_which_its_class_has_moved(engine: sa.Engine, springfield: Path) -> None:
    whole = {path.name: path.read_bytes() for path in springfield.iterdir()}
    load(engine, "feed", springfield)
    of_class = {
        key for key, row in snapshot(engine, tables.enrollments).items() if row["class_id"] == "spr-class-chem-1"
    }
    end("classes", "spr-class-chem-1")(springfield)
    load(engine, "feed", springfield, options=ALLOW)
    assert of_class
    assert {snapshot(engine, tables.enrollments)[key]["status"] for key in of_class} == {"tobedeleted"}
    for name, data in whole.items():
        (springfield / name).write_bytes(data)
    alone(
        only("classes", "spr-class-chem-1"),
        cell_of("classes", "spr-class-chem-1", "status", "active"),
        cell_of("classes", "spr-class-chem-1", "schoolSourcedId", "spr-elementary"),
    )(springfield)
    load(engine, "feed", springfield, options=ALLOW)
    rows = [snapshot(engine, tables.enrollments)[key] for key in of_class]
    assert {(row["status"], row["school_id"]) for row in rows} == {("active", "spr-elementary")}
