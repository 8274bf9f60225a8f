"""Runs that are held: when, what remains of them, and how they end."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from roster_service.accounts.kept_people import list_kept
from roster_service.cli import main as roster
from roster_service.db.tables import demographics, feeds, sync_changes, sync_runs, users
from roster_service.errors import StorageError
from roster_service.feeds.change_history import find_changes
from roster_service.feeds.held_runs import OTHER_IDS
from roster_service.feeds.run_history import ReadFile
from roster_service.settings import Settings
from sync_scripts.applying.changes import Counts
from sync_scripts.engine.exit_codes import ExitCode
from sync_scripts.engine.hold_policy import HoldLimits, find_excess
from sync_scripts.engine.load import Options, load
from sync_scripts.engine.loader_command import make_command
from sync_scripts.reading.completeness import IncompleteExportError
from sync_scripts.reading.manifest import BULK, DELTA
from sync_scripts.reading.registry import ONEROSTER
from sync_scripts.retention import delete_expired
from tests.extent import every_other
from tests.postgres.loaded import load_first
from tests.sync.conftest import snapshot, state
from tests.sync.export_changes import (
    Bend,
    Rows,
    both,
    cell_of,
    column,
    declared,
    raw,
    rows_of,
    with_other_ids,
    with_row,
    without_file,
    without_rows,
    zipped,
)

LIMITS = HoldLimits(tombstones_percent=10, changes_percent=75, rejected_percent=5, least_records=50)


@pytest.mark.shows("Exports", "A run that deletes or changes too much of a type is held, and changes nothing.")
@pytest.mark.parametrize(
    ("counts", "excess"),
    [
        pytest.param(Counts(tombstoned=10, unchanged=90), [], id="10% vanish"),
        pytest.param(
            Counts(tombstoned=11, unchanged=89), ["11 of 100 users would vanish, more than 10%"], id="more vanish"
        ),
        pytest.param(Counts(changed=75, unchanged=25), [], id="75% change"),
        pytest.param(
            Counts(changed=76, unchanged=24), ["76 of 100 users would change, more than 75%"], id="more change"
        ),
        pytest.param(Counts(added=1000, unchanged=50), [], id="many are new"),
        pytest.param(Counts(revived=1000, unchanged=50), [], id="many come back"),
        pytest.param(Counts(tombstoned=49), [], id="few records"),
        pytest.param(Counts(tombstoned=50), ["50 of 50 users would vanish, more than 10%"], id="just enough records"),
        pytest.param(Counts(added=50), [], id="the first load"),
    ],
)
def test_too_much(counts: Counts, excess: list[str]) -> None:
    assert list(find_excess({"users": counts}, [], LIMITS)) == excess


SHARES = {
    "5% are rejected": (ReadFile("users.csv", BULK, 100, 5), []),
    "more are rejected": (
        ReadFile("users.csv", BULK, 100, 6),
        ["6 of 100 rows of users.csv are rejected, more than 5%"],
    ),
    "few rows": (ReadFile("users.csv", BULK, 40, 20), []),
    "every row": (ReadFile("users.csv", BULK, 4, 4), ["4 of 4 rows of users.csv are rejected, more than 5%"]),
    "every row of a delta": (ReadFile("users.csv", DELTA, 1, 1), []),
    "a file that was not read": (ReadFile("users.csv", BULK, None, None), []),
}


@pytest.mark.parametrize(("file", "excess"), SHARES.values(), ids=SHARES)
def test_too_many_rejected_rows(file: ReadFile, excess: list[str]) -> None:
    assert list(find_excess({}, [file], LIMITS)) == excess


def test_a_record_whose_row_is_rejected_is_not_a_row_more(engine: sa.Engine, springfield: Path) -> None:
    """The stored record stays, and counts as unchanged; the export has one row of it."""
    load_first(engine, "springfield", springfield)
    for number in range(1, 5):
        cell_of("users", f"spr-student-{number}", "enabledUser", "maybe")(springfield)
    options = Options(Settings(home=springfield.parent / "home", hold_least_records=15))
    assert load(engine, "springfield", springfield, options=options).message == (
        "4 of 15 rows of users.csv are rejected, more than 5%"
    )


@pytest.fixture
def options(tmp_path: Path) -> Options:
    """Limits that the small exports can exceed."""
    return Options(Settings(home=tmp_path / "home", hold_least_records=5))


@pytest.fixture
def held(engine: sa.Engine, springfield: Path, tmp_path: Path, options: Options) -> int:
    """A held run of the feed springfield, whose folder is bent no more; its number."""
    load_first(engine, "springfield", springfield)
    without_rows("demographics", "spr-student-4")(springfield)
    report = load(engine, "springfield", zipped(springfield, tmp_path / "night.zip"), options=options)
    assert report.outcome == "held"
    assert report.run is not None
    return report.run


Call = Callable[..., Result]


@pytest.fixture
def call(engine: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs `roster ARGUMENTS` on the test's database."""
    monkeypatch.setenv("ROSTER_DATABASE_URL", engine.url.render_as_string(hide_password=False))
    monkeypatch.setenv("ROSTER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ROSTER_HOLD_LEAST_RECORDS", "5")
    return lambda *arguments: CliRunner().invoke(roster, [str(argument) for argument in arguments])


@pytest.mark.shows("Exports", "A run that deletes or changes too much of a type is held, and changes nothing.")
def test_a_held_run_changes_nothing(engine: sa.Engine, held: int, tmp_path: Path) -> None:
    row = snapshot(engine, sync_runs)[held]
    assert (row["outcome"], row["stamp"]) == ("held", None)
    assert row["message"] == "1 of 6 demographics would vanish, more than 10%"
    assert row["counts"]["demographics"] == {
        "added": 0, "changed": 0, "revived": 0, "tombstoned": 1, "unchanged": 5, "rejected": 0, "purged": 0,
    }  # fmt: skip
    assert Path(row["kept_export"]).read_bytes() == (tmp_path / "night.zip").read_bytes()
    assert {user["status"] for user in snapshot(engine, users).values()} == {"active"}


def test_the_output_of_a_held_run_has_no_value_of_a_record(
    engine: sa.Engine, springfield: Path, options: Options
) -> None:
    """It goes to logs; the stored preview has samples."""
    load_first(engine, "springfield", springfield)
    without_rows("demographics", "spr-student-4")(springfield)
    cell_of("users", "spr-student-1", "givenName", "Plantedname")(springfield)
    report = load(engine, "springfield", springfield, options=options)
    assert "Plantedname" in str(snapshot(engine, sync_runs)[report.run]["preview"])
    printed = report.to_json()
    assert (printed["preview"].keys() >= {"schools", "classes"}, "Plantedname" in str(printed)) == (True, False)


# The change of the held run of these tests.
GONE = ("demographics", "spr-student-4", "tombstoned")


def list_changes(engine: sa.Engine, run: int) -> list[tuple[str, str, str]]:
    with engine.connect() as connection:
        history = find_changes(connection, run)
        return [] if history is None else [(it.type, it.sourcedId, it.change) for it in history.read(connection)]


def test_the_changes_of_a_held_run_are_kept_until_it_is_decided(engine: sa.Engine, held: int, call: Call) -> None:
    with engine.begin() as connection:
        connection.execute(sa.update(sync_runs).values(started_at="2020-01-01"))
    delete_expired(engine, Settings())
    assert list_changes(engine, held) == [GONE]
    assert call("sync", "discard", held).exit_code == 0
    assert list_changes(engine, held) == []
    assert snapshot(engine, sync_changes) == {}


def test_a_service_that_stores_no_changes_stores_none_of_a_held_run(
    engine: sa.Engine, springfield: Path, options: Options
) -> None:
    load_first(engine, "springfield", springfield)
    without_rows("demographics", "spr-student-4")(springfield)
    settings = dataclasses.replace(options.settings, change_days=0)
    report = load(engine, "springfield", springfield, options=Options(settings))
    assert (report.outcome, list_changes(engine, report.run or 0)) == ("held", [])


@pytest.mark.parametrize("ends", [*("discard", "approve"), "next run"])
def test_a_copy_of_the_database_deletes_no_export_in_the_data_folder_of_the_other(
    engine: sa.Engine, held: int, call: Call, springfield: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    kept, home = Path(snapshot(engine, sync_runs)[held]["kept_export"]), springfield.parent / "home of the copy"
    monkeypatch.setenv("ROSTER_HOME", str(home))
    if ends == "next run":
        load(engine, "springfield", springfield, options=Options(Settings(home=home)))
    else:
        assert call("sync", ends, held).exit_code == 0
    assert snapshot(engine, sync_runs)[held]["kept_export"] is None
    assert kept.exists()


@pytest.mark.usefixtures("scripts_in_process")
def test_a_held_run_is_approved_after_its_data_folder_has_moved(
    engine: sa.Engine, held: int, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = (tmp_path / "home").rename(tmp_path / "elsewhere")
    monkeypatch.setenv("ROSTER_HOME", str(moved))
    done = call("sync", "approve", held)
    assert done.exit_code == 0, done.stderr
    assert [path.name for path in moved.glob("held/*")] == []


def test_approving_applies_the_kept_export(engine: sa.Engine, held: int, call: Call, tmp_path: Path) -> None:
    (tmp_path / "night.zip").write_bytes(b"another export by now")
    kept = Path(snapshot(engine, sync_runs)[held]["kept_export"])
    done = call("sync", "approve", held, "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["counts"]["demographics"]["tombstoned"] == 1
    runs = snapshot(engine, sync_runs)
    assert [runs[number]["outcome"] for number in sorted(runs)] == ["done", "approved", "done"]
    assert not kept.exists()
    assert (list_changes(engine, held), list_changes(engine, held + 1)) == ([], [GONE])
    again = call("sync", "approve", held)
    assert (again.exit_code, again.stderr) == (
        1,
        f"roster: the run {held} is not held; it is approved by an operator\n",
    )
    undone = call("sync", "undo", held)
    assert f"the run {held} cannot be taken back: it was held, and run {held + 1} applied it" in undone.stderr


STUDENTS = 8


def add_students(first: int, turn: int = 0) -> Bend:
    """Adds students with ids from `first` on, each with the name and birth date of the one that is `turn` further."""

    def change_users(rows: Rows) -> None:
        for number in range(STUDENTS):
            row = list(rows[1])
            row[0], row[rows[0].index("familyName")] = f"new-{first + number}", f"Family {(number + turn) % STUDENTS}"
            rows.append(row)

    def change_demographics(rows: Rows) -> None:
        for number in range(STUDENTS):
            row = list(rows[1])
            row[0], row[rows[0].index("birthDate")] = f"new-{first + number}", f"2012-01-1{(number + turn) % STUDENTS}"
            rows.append(row)

    return both(rows_of("users", change_users), rows_of("demographics", change_demographics))


MANY = both(add_students(10), add_students(20))
NAMED_ALIKE = rows_of("users", lambda rows: [row.__setitem__(9, "X") for row in rows[1:]])
OTHER_EXPORTS: dict[str, tuple[Bend, str | None]] = {
    "the same ids of other people": (
        both(add_students(0, turn=3), MANY),
        "8 of 39 ids are now those of people with another name and another birth date",
    ),
    "one other person": (
        both(
            add_students(0),
            MANY,
            cell_of("demographics", "new-1", "birthDate", "2013-02-02"),
            cell_of("users", "new-1", "familyName", "X"),
        ),
        None,
    ),
    "other names": (both(add_students(0), MANY, NAMED_ALIKE), None),
    "other birth dates": (both(add_students(0), MANY, column("demographics", "birthDate", "2013-02-02")), None),
    "other ids": (
        both(add_students(100), add_students(110), add_students(120)),
        "24 of 39 users would vanish and 24 be new",
    ),
}


@pytest.mark.parametrize(("bend", "words"), OTHER_EXPORTS.values(), ids=OTHER_EXPORTS)
def test_an_export_with_the_ids_of_other_people_is_held(
    engine: sa.Engine, springfield: Path, tmp_path: Path, bend: Bend, words: str | None
) -> None:
    """However few of the records they are."""
    other = Path(shutil.copytree(springfield, tmp_path / "other"))
    both(add_students(0), MANY)(springfield)
    bend(other)
    load(engine, "springfield", springfield)
    # No share of changes counts here: the exports are smaller than what the shares are for.
    report = load(engine, "springfield", other, options=Options(Settings(home=tmp_path / "home")))
    assert report.outcome == ("done" if words is None else "held")
    if words is not None:
        assert f"{OTHER_IDS}: {words}" in (report.message or "")


def load_with_other(engine: sa.Engine, springfield: Path, tmp_path: Path) -> Path:
    """Loads an export, and returns another one in which the same people have other ids."""
    other = Path(shutil.copytree(springfield, tmp_path / "other"))
    add_students(0)(springfield)
    add_students(0, turn=3)(other)
    load(engine, "springfield", springfield)
    return other


@pytest.mark.usefixtures("scripts_in_process")
def test_an_excluded_person_does_not_come_back_under_another_id(
    engine: sa.Engine, springfield: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROSTER_SECRET_KEY", "s" * 40)
    other = load_with_other(engine, springfield, tmp_path)
    done = call("person", "erase", "new-3", "--yes", "--json")
    assert done.exit_code == 0, done.stderr
    reference = json.loads(done.stdout)["reference"]
    settings = dataclasses.replace(Settings.from_environ(os.environ), home=tmp_path / "home")
    report = load(engine, "springfield", other, options=Options(settings))
    refused = call("sync", "approve", report.run)
    assert (refused.exit_code, "1 person is erased, hidden or kept from a vendor" in refused.stderr) == (1, True)
    unknown = call("sync", "approve", report.run, "--excluded", "somebody=new-0")
    assert (unknown.exit_code, "nobody is erased, hidden or kept from a vendor as" in unknown.stderr) == (1, True)
    again = call("sync", "approve", report.run, "--excluded", f"{reference}=new-0")
    # The person of before under this id vanishes, which the run did not show.
    assert "held: " + OTHER_IDS in again.stderr
    assert call("sync", "approve", (report.run or 0) + 1).exit_code == 1
    done = call("sync", "approve", (report.run or 0) + 1, "--others-gone")
    assert done.exit_code == 0, done.stderr
    active = {
        key for key, row in snapshot(engine, users).items() if row["status"] == "active" and key.startswith("new-")
    }
    assert active == {f"new-{number}" for number in range(STUDENTS)} - {"new-0", "new-3"}


@pytest.mark.shows("Erased people", "Who is hidden or kept from a vendor stays so under another id.")
@pytest.mark.usefixtures("scripts_in_process")
def test_a_person_who_is_kept_from_a_vendor_stays_kept_under_another_id(
    engine: sa.Engine, springfield: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROSTER_SECRET_KEY", "s" * 40)
    other = load_with_other(engine, springfield, tmp_path)
    email = "reader@vendor.example"
    assert call("vendor", "add", email, "--name", "Reader").exit_code == 0
    assert call("person", "hide", "new-3", "--from", email, "--yes").exit_code == 0
    settings = dataclasses.replace(Settings.from_environ(os.environ), home=tmp_path / "home")
    report = load(engine, "springfield", other, options=Options(settings))
    refused = call("sync", "approve", report.run)
    assert (refused.exit_code, "1 person is erased, hidden or kept from a vendor" in refused.stderr) == (1, True)
    # Of no held run, and with a reason that names the person: nobody is kept before the run is approved.
    for run, reason in (((report.run or 0) + 9, "a new SIS"), (report.run, "new-3 has a new id")):
        assert call("sync", "approve", run, "--excluded", "new-3=new-0", "--reason", reason).exit_code == 1
    with engine.connect() as connection:
        assert [person.sourced_id for person in list_kept(connection)] == ["new-3"]
    done = call("sync", "approve", report.run, "--excluded", "new-3=new-0")
    assert done.exit_code == 0, done.stderr
    with engine.connect() as connection:
        kept = [(person.sourced_id, person.vendor) for person in list_kept(connection)]
    assert kept == [("new-0", email), ("new-3", email)]


@pytest.mark.shows("Erased people", "Who is hidden or kept from a vendor stays so under another id.")
@pytest.mark.usefixtures("scripts_in_process")
@pytest.mark.parametrize("now", [(), ("--now",)], ids=["its tombstones stay", "its records are deleted"])
def test_a_feed_that_is_added_again_with_other_ids_is_held_while_a_person_is_hidden(
    engine: sa.Engine,
    springfield: Path,
    tmp_path: Path,
    call: Call,
    monkeypatch: pytest.MonkeyPatch,
    now: tuple[str, ...],
) -> None:
    monkeypatch.setenv("ROSTER_SECRET_KEY", "s" * 40)
    settings = dataclasses.replace(Settings.from_environ(os.environ), home=tmp_path / "home")
    load_first(engine, "springfield", springfield)

    def add_again() -> None:
        for words in (("remove", "springfield", "--yes", *now), ("add", "springfield", "--format", "oneroster")):
            done = call("feed", *words)
            assert done.exit_code == 0, done.stderr

    assert call("person", "hide", "spr-student-2", "--yes").exit_code == 0
    add_again()
    with_other_ids(springfield)
    report = load(engine, "springfield", springfield, options=Options(settings))
    assert (report.outcome, f"{OTHER_IDS}: the feed has lost its users" in (report.message or "")) == ("held", True)
    refused = call("sync", "approve", report.run)
    assert (refused.exit_code, "1 person is erased, hidden or kept from a vendor" in refused.stderr) == (1, True)
    done = call("sync", "approve", report.run, "--excluded", "spr-student-2=b-student-2")
    assert done.exit_code == 0, done.stderr
    active = {key for key, row in snapshot(engine, users).items() if row["status"] == "active"}
    assert ("b-student-1" in active, "b-student-2" in active) == (True, False)
    # With the ids that it had, a feed is not held: nobody comes back.
    if not now:
        add_again()
        assert load(engine, "springfield", springfield, options=Options(settings)).outcome == "done"


@pytest.mark.usefixtures("scripts_in_process")
def test_an_export_with_the_former_ids_is_held_too(
    engine: sa.Engine, springfield: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its users return, and none is new."""
    monkeypatch.setenv("ROSTER_SECRET_KEY", "s" * 40)
    settings = dataclasses.replace(Settings.from_environ(os.environ), home=tmp_path / "home")
    other = Path(shutil.copytree(springfield, tmp_path / "other"))
    with_other_ids(other)
    load_first(engine, "springfield", springfield)
    load(engine, "springfield", other, options=Options(settings, allow_mass_delete=True))
    report = load(engine, "springfield", springfield, options=Options(settings))
    words = f"{OTHER_IDS}: 15 of 15 users would vanish and 0 be new, 15 return, and who approves it"
    assert (report.outcome, words in (report.message or "")) == ("held", True)
    assert call("person", "hide", "b-student-2", "--yes").exit_code == 0
    refused = call("sync", "approve", report.run)
    assert (refused.exit_code, "1 person is erased, hidden or kept from a vendor" in refused.stderr) == (1, True)


def replace_folder(folder: Path, other: Path) -> None:
    """Puts a folder in the place of another one."""
    folder.rename(folder.with_name("before"))
    other.rename(folder)


def replace_zip(path: Path, other: Path) -> None:
    """Puts a zip in the place of another one, which a process may still read."""
    zipped(other, path.with_name("other.zip")).replace(path)


def rewrite_zip(path: Path, other: Path) -> None:
    """Writes another zip into the same file."""
    path.write_bytes(zipped(other, path.with_name("other.zip")).read_bytes())


# How an export is replaced by another one: whether it is a zip, what is done, and how the other one differs.
REPLACED: dict[str, tuple[bool, Callable[[Path, Path], object], Bend]] = {
    "a folder": (False, replace_folder, without_rows("demographics")),
    "a folder by one of other bytes alone": (False, replace_folder, column("users", "email", "somebody@example.org")),
    "a folder by one of another mode": (False, replace_folder, declared("demographics", "delta")),
    "a zip": (True, replace_zip, without_rows("demographics")),
    "a zip in its place": (True, rewrite_zip, without_rows("demographics")),
}


@pytest.mark.parametrize("step", ["stage", "compare"])
@pytest.mark.parametrize(("is_zip", "replace", "bend"), every_other(REPLACED.values()), ids=REPLACED)
def test_an_export_that_was_replaced_after_it_was_read_is_not_held(
    engine: sa.Engine,
    springfield: Path,
    copy_export: Callable[[str], Path],
    tmp_path: Path,
    options: Options,
    is_zip: bool,
    replace: Callable[[Path, Path], object],
    bend: Bend,
    step: str,
) -> None:
    load_first(engine, "springfield", springfield)
    other = springfield.rename(tmp_path / "other")
    export = copy_export(springfield.name)
    without_rows("demographics", "spr-student-4")(export)
    bend(other)
    path = zipped(export, tmp_path / "night.zip") if is_zip else export
    before = state(engine)

    def replace_it(event: Mapping[str, Any]) -> None:
        if event["step"] == step and "seconds" in event:
            replace(path, other)

    with pytest.raises(IncompleteExportError) as caught:
        load(engine, "springfield", path, options=dataclasses.replace(options, notify=replace_it))
    assert str(caught.value) == f"{path.name} was changed while it was read; nothing was changed"
    runs = snapshot(engine, sync_runs)
    assert [(run["outcome"], run["kept_export"]) for run in runs.values()] == [("done", None), ("incomplete", None)]
    assert list((tmp_path / "home").glob("held/*")) == []
    assert state(engine) == before


def test_an_export_with_the_lock_of_an_editor_is_kept(engine: sa.Engine, springfield: Path, options: Options) -> None:
    load_first(engine, "springfield", springfield)
    without_rows("demographics", "spr-student-4")(springfield)
    (springfield / ".#users.csv").symlink_to("me@host.123:456")
    report = load(engine, "springfield", springfield, options=options)
    assert report.outcome == "held"
    kept = Path(snapshot(engine, sync_runs)[report.run]["kept_export"])
    assert {file.name for file in kept.iterdir()} == {file.name for file in springfield.iterdir() if file.is_file()}


def test_an_export_that_cannot_be_kept_fails_the_run(
    engine: sa.Engine, springfield: Path, tmp_path: Path, options: Options
) -> None:
    load_first(engine, "springfield", springfield)
    without_rows("demographics", "spr-student-4")(springfield)
    (tmp_path / "home").write_bytes(b"no folder")
    with pytest.raises(StorageError, match=r"the export cannot be kept at .*: Not a directory"):
        load(engine, "springfield", springfield, options=options)
    assert [run["outcome"] for run in snapshot(engine, sync_runs).values()] == ["done", "failed"]
    assert snapshot(engine, sync_changes) == {}


# What somebody does to a kept export, and what approving it says then.
EDITS: dict[str, tuple[Bend, str]] = {
    "a cell": (cell_of("users", "spr-student-1", "sms", "1"), "is not what was held"),
    "a row less": (without_rows("demographics", "spr-student-5"), "is not what was held"),
    "a row more": (with_row("demographics", sourcedId="spr-student-4"), "is not what was held"),
    "a broken row": (raw("users.csv", lambda data: data + b'"'), "is not what was held"),
    "another mode": (declared("demographics", "delta"), "is not what was held"),
    "a file less": (without_file("demographics.csv"), "is not what was held"),
}


@pytest.mark.parametrize(("edit", "words"), every_other(EDITS.values()), ids=EDITS)
@pytest.mark.usefixtures("scripts_in_process")
def test_an_edited_export_is_not_applied(
    engine: sa.Engine, held: int, springfield: Path, call: Call, edit: Bend, words: str
) -> None:
    kept = Path(snapshot(engine, sync_runs)[held]["kept_export"])
    before = state(engine)
    edit(springfield)
    kept.write_bytes(zipped(springfield, springfield.with_name("edited.zip")).read_bytes())
    done = call("sync", "approve", held)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith(f"roster: the run {held} was not applied:\n")
    assert words in done.stderr
    assert [run["outcome"] for run in snapshot(engine, sync_runs).values()] == ["done", "held", "refused"]
    assert state(engine) == before
    assert call("sync", "discard", held).exit_code == 0


@pytest.mark.usefixtures("scripts_in_process")
def test_the_export_that_was_loaded_last_is_not_applied_for_another(
    engine: sa.Engine,
    springfield: Path,
    call: Call,
    options: Options,
    copy_export: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    """Though it changes nothing, the run that was shown is not approved by it."""
    load_first(engine, "springfield", springfield)
    original = springfield.rename(tmp_path / "original")
    export = copy_export(springfield.name)
    without_rows("demographics", "spr-student-4")(export)
    held = load(engine, "springfield", export, options=options).run
    kept = Path(snapshot(engine, sync_runs)[held]["kept_export"])
    shutil.rmtree(kept)
    original.rename(kept)
    done = call("sync", "approve", held)
    assert (done.exit_code, snapshot(engine, sync_runs)[held]["outcome"]) == (1, "held")
    assert "is not what was held" in done.stderr


def test_a_loader_that_does_not_start_has_applied_nothing(
    engine: sa.Engine, held: int, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interpreter ends with 1 then, as a loader does that leaves out single rows."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    done = call("sync", "approve", held)
    assert (done.exit_code, done.stdout) == (1, "")
    assert snapshot(engine, sync_runs)[held]["outcome"] == "held"


# What becomes of the roster by hand after a run was held, and what the approval comes to.
LOOK_ANEW = "UPDATE feeds SET fingerprinted = false"
REVIVE = "UPDATE demographics SET status = 'active' WHERE sourced_id = 'spr-student-5'"
CHANGED_SINCE: dict[str, tuple[list[str], str | None]] = {
    "more would vanish": ([REVIVE], "2 of 6 demographics would vanish, not 1 as the run {} showed"),
    "more would change": (
        ["UPDATE users SET sms = '1' WHERE sourced_id = 'spr-student-1'"],
        "1 of 15 users would change, not 0 as the run {} showed",
    ),
    "less would vanish": (["UPDATE demographics SET status = 'tobedeleted' WHERE sourced_id = 'spr-student-4'"], None),
}


@pytest.mark.parametrize(("by_hand", "words"), every_other(CHANGED_SINCE.values()), ids=CHANGED_SINCE)
@pytest.mark.usefixtures("scripts_in_process")
def test_a_run_that_would_do_more_than_it_showed_is_held_again(
    engine: sa.Engine, springfield: Path, call: Call, options: Options, by_hand: list[str], words: str | None
) -> None:
    load_first(engine, "springfield", springfield)
    without_rows("demographics", "spr-student-5")(springfield)
    load(engine, "springfield", springfield)
    without_rows("demographics", "spr-student-4")(springfield)
    held = load(engine, "springfield", springfield, options=options).run
    before = snapshot(engine, sync_runs)[held]
    with engine.begin() as connection:
        for statement in (*by_hand, LOOK_ANEW):
            connection.execute(sa.text(statement))
    roster_by_hand = state(engine)
    done = call("sync", "approve", held)
    runs = snapshot(engine, sync_runs)
    if words is None:
        assert (done.exit_code, runs[held]["outcome"]) == (0, "approved")
        return
    assert done.exit_code == 1
    assert f"held: {words.format(held)}; `roster sync approve {held + 1}` applies it" in done.stderr
    assert state(engine) == roster_by_hand
    assert (runs[held]["outcome"], runs[held]["message"]) == ("replaced", f"replaced by run {held + 1}")
    again = runs[held + 1]
    assert (again["outcome"], again["message"]) == ("held", words.format(held))
    assert again["kept_digest"] == before["kept_digest"]
    assert not Path(before["kept_export"]).exists()
    assert call("sync", "approve", held + 1).exit_code == 0
    assert snapshot(engine, demographics)["spr-student-4"]["status"] == "tobedeleted"


def test_discarding_forgets_it(engine: sa.Engine, held: int, call: Call) -> None:
    before = state(engine)
    kept = Path(snapshot(engine, sync_runs)[held]["kept_export"])
    done = call("sync", "discard", held)
    assert (done.exit_code, done.stdout) == (0, f"discarded the run {held} of the feed springfield\n")
    assert snapshot(engine, sync_runs)[held]["outcome"] == "discarded"
    assert not kept.exists()
    assert state(engine) == before
    assert call("sync", "approve", 99).stderr == "roster: there is no run 99\n"


def test_the_list_shows_what_waits(held: int, call: Call) -> None:
    [first, second] = json.loads(call("sync", "list", "--json").stdout)
    assert (first["run"], first["feed"], first["outcome"]) == (held, "springfield", "held")
    assert second["outcome"] == "done"
    assert "1 of 6 demographics would vanish, more than 10%" in call("sync", "list").stdout


def test_a_newer_run_replaces_a_held_one(
    engine: sa.Engine, held: int, springfield: Path, options: Options, call: Call
) -> None:
    kept = Path(snapshot(engine, sync_runs)[held]["kept_export"])
    second = load(engine, "springfield", springfield, options=options)
    runs = snapshot(engine, sync_runs)
    assert (second.outcome, runs[held]["outcome"]) == ("held", "replaced")
    assert runs[held]["message"] == f"replaced by run {second.run}"
    refused = call("sync", "approve", held)
    assert refused.stderr == f"roster: the run {held} is not held; it is replaced by run {second.run}\n"
    assert not kept.exists()


def test_a_feed_has_limits_of_its_own(engine: sa.Engine, springfield: Path, options: Options) -> None:
    load_first(engine, "springfield", springfield)
    column("users", "sms", "1")(springfield)
    without_rows("demographics", "spr-student-4")(springfield)
    with engine.begin() as connection:
        connection.execute(sa.update(feeds).values(hold_tombstones_percent=20, hold_changes_percent=0))
    report = load(engine, "springfield", springfield, options=options)
    assert report.message == "15 of 15 users would change, more than 0%"


def test_the_loader_says_that_it_holds(engine: sa.Engine, springfield: Path, call: Call) -> None:
    load_first(engine, "springfield", springfield)
    without_rows("demographics", "spr-student-4")(springfield)
    arguments = ["--feed", "springfield", str(springfield)]
    done = CliRunner().invoke(make_command(ONEROSTER), arguments)
    assert done.exit_code == ExitCode.HELD
    assert "held: 1 of 6 demographics would vanish, more than 10%; `roster sync approve 2` applies it" in done.stderr
    forced = CliRunner().invoke(make_command(ONEROSTER), [*arguments, "--allow-mass-delete"])
    assert forced.exit_code == ExitCode.LOADED
    assert call("sync", "list").exit_code == 0
