"""`roster sync changes`: each record that a run changed, with its fields before and after."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.db.tables import sync_changes, sync_runs
from roster_service.settings import Settings
from sync_scripts.engine.load import Options, load
from sync_scripts.purge import purge
from sync_scripts.retention import delete_expired
from tests.cli.conftest import Roster
from tests.postgres.loaded import load_first
from tests.sync.conftest import EXPORTS, SHELBYVILLE, SPRINGFIELD
from tests.sync.export_changes import Bend, cell_of, with_row, without_rows

Answer = Callable[..., Any]


@pytest.fixture
def springfield(tmp_path: Path) -> Path:
    """A copy of the small 1.1 export."""
    return Path(shutil.copytree(EXPORTS / SPRINGFIELD, tmp_path / SPRINGFIELD))


@pytest.fixture
def shelbyville(tmp_path: Path) -> Path:
    """A copy of the small 1.2 export."""
    return Path(shutil.copytree(EXPORTS / SHELBYVILLE, tmp_path / SHELBYVILLE))


def load_changed(engine: sa.Engine, export: Path, *bends: Bend) -> None:
    """Loads an export as it is, and once more after its changes."""
    load_first(engine, "feed", export)
    for bend in bends:
        bend(export)
    load(engine, "feed", export)


def list_found(changes: Iterable[dict[str, Any]]) -> dict[tuple[str, str], tuple[str, dict[str, Any]]]:
    """(type, id) -> (change, fields)."""
    return {(it["type"], it["sourcedId"]): (it["change"], it["fields"]) for it in changes}


# A change of an export, and what is shown of it.
NAME = {"givenName": {"before": "Zoë", "after": "Zoe"}}
CHANGES: dict[str, tuple[Bend, dict[tuple[str, str], tuple[str, dict[str, Any]]]]] = {
    "a field": (
        cell_of("users", "spr-student-1", "givenName", "Zoe"), {("users", "spr-student-1"): ("changed", NAME)},
    ),
    "an emptied field": (
        cell_of("users", "spr-student-1", "phone", ""),
        {("users", "spr-student-1"): ("changed", {"phone": {"before": "+1-217-555-0102", "after": None}})},
    ),
    "metadata": (
        cell_of("users", "spr-student-2", "metadata.busRoute", "8"),
        {
            ("users", "spr-student-2"): (
                "changed", {"metadata": {"before": {"busRoute": "7"}, "after": {"busRoute": "8"}}},
            )
        },
    ),
    "a list": (
        cell_of("classes", "spr-class-math3-a", "termSourcedIds", "spr-2027-fall"),
        {
            ("classes", "spr-class-math3-a"): (
                "changed",
                {"termSourcedIds": {"before": ["spr-2027-fall", "spr-2027-spring"], "after": ["spr-2027-fall"]}},
            )
        },
    ),
    "an emptied list": (
        cell_of("users", "spr-student-2", "agentSourcedIds", ""),
        {("users", "spr-student-2"): ("changed", {"agents": {"before": ["spr-guardian-1"], "after": None}})},
    ),
    "a tombstone": (
        without_rows("enrollments", "spr-enr-08"), {("enrollments", "spr-enr-08"): ("tombstoned", {})},
    ),
    "a new child": (
        with_row("orgs", sourcedId="new", name="New", type="school", parentSourcedId="spr-district"),
        {("orgs", "new"): ("added", {}), ("orgs", "spr-district"): ("changed", {})},
    ),
}  # fmt: skip


def test_a_change_is_shown_with_both_values(answer: Answer, engine: sa.Engine, springfield: Path) -> None:
    """One run has them all, and nothing else."""
    load_changed(engine, springfield, *(bend for bend, _ in CHANGES.values()))
    expected: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {}
    for _, changes in CHANGES.values():
        for record, (change, fields) in changes.items():
            expected[record] = (change, expected.get(record, (change, {}))[1] | fields)
    assert list_found(answer("sync", "changes", "2")) == expected


def test_a_changed_role_is_a_change_of_its_user(answer: Answer, engine: sa.Engine, shelbyville: Path) -> None:
    load_changed(engine, shelbyville, cell_of("roles", "shv-role-15", "role", "counselor"))
    [change] = answer("sync", "changes", "2")
    before, after = change["fields"]["roles"]["before"], change["fields"]["roles"]["after"]
    assert change["change"] == "changed"
    assert [{**it, "role": None} for it in before] == [{**it, "role": None} for it in after]
    assert [new["role"] for old, new in zip(before, after, strict=True) if old != new] == ["counselor"]


def test_a_record_that_returns_is_revived_with_its_changes(
    answer: Answer, engine: sa.Engine, springfield: Path
) -> None:
    load_changed(engine, springfield, without_rows("demographics", "spr-student-3"))
    shutil.copy(EXPORTS / SPRINGFIELD / "demographics.csv", springfield)
    cell_of("demographics", "spr-student-3", "cityOfBirth", "Xi'an")(springfield)
    load(engine, "feed", springfield)
    [change] = answer("sync", "changes", "3")
    assert (change["sourcedId"], change["change"]) == ("spr-student-3", "revived")
    assert change["fields"]["cityOfBirth"]["after"] == "Xi'an"


def count_types(changes: Iterable[dict[str, Any]]) -> dict[tuple[str, str], int]:
    """Records by type and change."""
    counts: dict[tuple[str, str], int] = {}
    for it in changes:
        key = (it["type"], it["change"])
        counts[key] = counts.get(key, 0) + 1
    return counts


def test_a_first_load_stores_nothing_and_stays_known_as_it_was(
    answer: Answer, engine: sa.Engine, springfield: Path
) -> None:
    first = load_first(engine, "feed", springfield)
    with engine.connect() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(sync_changes)) == 0
    expected = {(name, "added"): count.added for name, count in first.counts.items()}
    assert count_types(answer("sync", "changes", "1")) == expected
    load(engine, "other", EXPORTS / SHELBYVILLE)
    cell_of("users", "spr-student-1", "givenName", "Zoe")(springfield)
    without_rows("enrollments", "spr-enr-08")(springfield)
    load(engine, "feed", springfield)
    assert count_types(answer("sync", "changes", "1")) == expected
    # After the purge, only the change of a later run shows that the enrollment was added.
    purge(engine, 0)
    assert count_types(answer("sync", "changes", "1")) == expected


def test_the_changes_of_one_type_are_chosen(answer: Answer, engine: sa.Engine, springfield: Path) -> None:
    load_first(engine, "feed", springfield)
    assert {it["type"] for it in answer("sync", "changes", "1", "--type", "academicSessions")} == {"academicSessions"}


def test_a_file_has_a_line_for_each_changed_field(
    roster: Roster, engine: sa.Engine, springfield: Path, tmp_path: Path
) -> None:
    load_changed(
        engine,
        springfield,
        cell_of("users", "spr-student-1", "givenName", "Zoe"),
        cell_of("users", "spr-student-1", "grades", "04"),
        without_rows("enrollments", "spr-enr-08"),
    )
    path = tmp_path / "changes.csv"
    assert roster("sync", "changes", "2", "--csv", str(path)).output == ""
    with path.open(newline="") as file:
        assert sorted(csv.reader(file)) == [
            ["enrollments", "spr-enr-08", "tombstoned", "", "", ""],
            ["type", "sourcedId", "change", "field", "before", "after"],
            ["users", "spr-student-1", "changed", "givenName", "Zoë", "Zoe"],
            ["users", "spr-student-1", "changed", "grades", '["03"]', '["04"]'],
        ]
    text = roster("sync", "changes", "2").stdout
    assert all(it in text for it in ("givenName", "Zoë", "Zoe", "tombstoned"))


def test_a_long_list_is_cut_on_a_terminal(roster: Roster, engine: sa.Engine, springfield: Path) -> None:
    load_first(engine, "feed", springfield)
    assert "more; `--csv FILE` writes all" in roster("sync", "changes", "1").stdout


def test_a_run_without_changes_says_so(answer: Answer, roster: Roster, engine: sa.Engine, springfield: Path) -> None:
    load_changed(engine, springfield)
    assert answer("sync", "changes", "2") == []
    assert roster("sync", "changes", "2").stdout == "no record changed\n"


def test_changes_that_are_not_stored_are_refused(roster: Roster, engine: sa.Engine, springfield: Path) -> None:
    load(engine, "feed", springfield, options=Options(Settings(change_days=0)))
    done = roster("sync", "changes", "1")
    assert (done.exit_code, "are not stored" in done.stderr) == (1, True)


def test_changes_are_deleted_after_their_retention(roster: Roster, engine: sa.Engine, springfield: Path) -> None:
    load_changed(engine, springfield, cell_of("users", "spr-student-1", "givenName", "Zoe"))
    assert delete_expired(engine, Settings(change_days=1))["changes of records"] == 0
    with engine.begin() as connection:
        connection.execute(sa.update(sync_runs).values(started_at=sa.func.now() - sa.func.make_interval(0, 0, 0, 2)))
    assert delete_expired(engine, Settings(change_days=1))["changes of records"] == 1
    with engine.connect() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(sync_changes)) == 0
    assert "are not stored" in roster("sync", "changes", "2").stderr


def test_a_later_run_without_stored_changes_is_named(roster: Roster, engine: sa.Engine, springfield: Path) -> None:
    load_first(engine, "feed", springfield)
    cell_of("users", "spr-student-1", "givenName", "Zoe")(springfield)
    load(engine, "feed", springfield, options=Options(Settings(change_days=0)))
    done = roster("sync", "changes", "1", "--json")
    assert done.exit_code == 0
    assert done.stderr == "roster: records added by run 1 and changed by run 2 are not listed\n"
