"""Taking a run back: by a load of the export before it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from roster_service.accounts.kept_people import list_kept
from roster_service.cli import main as roster
from roster_service.db.tables import changes, demographics, sync_runs, users
from roster_service.feeds.held_runs import OTHER_IDS
from roster_service.feeds.undo import FOLDER, read_undo
from roster_service.people import ExclusionKind, exclude_person, finish
from roster_service.settings import Settings
from sync_scripts.engine.feed_removal import remove_feed
from sync_scripts.engine.load import Options, load
from sync_scripts.reading.registry import CLEVER, ONEROSTER, Family
from sync_scripts.retention import delete_expired
from tests.actors import TESTER
from tests.postgres.loaded import load_first
from tests.sync.conftest import SHELBYVILLE, SPRINGFIELD, snapshot
from tests.sync.export_changes import both, cell_of, declared, with_other_ids, without_file, without_rows

Call = Callable[..., Result]
GONE = "spr-student-4"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Of the loads, whose copies lie in a data folder."""
    return Settings(home=tmp_path / "home", secret_key="s" * 40)


@pytest.fixture
def second(engine: sa.Engine, springfield: Path, settings: Settings) -> Path:
    """Two loads of the feed springfield: the second lacks a pupil, and names another one otherwise. The folder has the
    second export."""
    load(engine, "springfield", springfield, options=Options(settings, keeps_copy=True))
    cell_of("users", "spr-student-1", "givenName", "Changed")(springfield)
    for file in ("users", "demographics"):
        without_rows(file, GONE)(springfield)
    assert load(engine, "springfield", springfield, options=Options(settings, keeps_copy=True)).outcome in (
        "done",
        "partial",
    )
    return springfield


@pytest.fixture
def call(engine: sa.Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs `roster ARGUMENTS` on the test's database."""
    monkeypatch.setenv("ROSTER_DATABASE_URL", engine.url.render_as_string(hide_password=False))
    monkeypatch.setenv("ROSTER_HOME", str(settings.home))
    monkeypatch.setenv("ROSTER_SECRET_KEY", str(settings.secret_key))
    return lambda *arguments: CliRunner().invoke(roster, [str(argument) for argument in arguments])


def find_last(engine: sa.Engine) -> int:
    """The number of the last run."""
    with engine.connect() as connection:
        return int(connection.scalar(sa.select(sa.func.max(sync_runs.c.id))) or 0)


def list_copies(settings: Settings) -> list[str]:
    """The folders of the copies."""
    return sorted(path.name for path in (settings.home / FOLDER).glob("*"))


def test_a_run_says_that_its_export_could_not_be_kept(engine: sa.Engine, springfield: Path, settings: Settings) -> None:
    settings.home.mkdir()
    (settings.home / FOLDER).write_text("a file where the folder should be")
    report = load(engine, "springfield", springfield, options=Options(settings, keeps_copy=True))
    assert report.outcome == "done"
    assert report.notices[-1].startswith("the next run cannot be taken back: the export cannot be kept at ")
    assert snapshot(engine, sync_runs)[find_last(engine)]["notices"] == list(report.notices)


def test_an_undone_run_leaves_the_roster_of_before_with_new_stamps(engine: sa.Engine, second: Path, call: Call) -> None:
    run = find_last(engine)
    stamp = snapshot(engine, sync_runs)[run]["stamp"]
    done = call("sync", "undo", run, "--reason", "cut off")
    assert done.exit_code == 0, done.output
    after = snapshot(engine, users)
    assert (after[GONE]["status"], after["spr-student-1"]["given_name"] != "Changed") == ("active", True)
    assert {after[name]["date_last_modified"] > stamp for name in (GONE, "spr-student-1")} == {True}
    undoing = find_last(engine)
    assert snapshot(engine, sync_runs)[undoing]["undoes"] == run
    with engine.connect() as connection:
        row = connection.execute(sa.select(changes).where(changes.c.verb == "sync undo")).one()
    assert (row.after, row.reason) == ({"undone_by": undoing}, "cut off")
    assert f"the run {run} cannot be taken back: run {undoing} has changed" in call("sync", "undo", run).output


@pytest.mark.usefixtures("scripts_in_process")
def test_a_run_is_undone_after_the_data_folder_has_moved(
    engine: sa.Engine, second: Path, call: Call, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROSTER_HOME", str(settings.home.rename(settings.home.with_name("elsewhere"))))
    done = call("sync", "undo", find_last(engine))
    assert done.exit_code == 0, done.output
    assert snapshot(engine, users)[GONE]["status"] == "active"


def test_an_undone_export_is_held_when_it_comes_again(
    engine: sa.Engine, second: Path, call: Call, settings: Settings
) -> None:
    run = find_last(engine)
    call("sync", "undo", run)
    again = load(engine, "springfield", second, options=Options(settings, keeps_copy=True))
    assert (again.outcome, again.message) == (
        "held",
        f"the export is that of run {run}, which run {run + 1} has taken back",
    )
    # An operator may approve it, and then it comes each night.
    assert call("sync", "approve", again.run).exit_code == 0
    assert load(engine, "springfield", second, options=Options(settings, keeps_copy=True)).outcome == "unchanged"


def test_an_undo_can_be_taken_back_too(engine: sa.Engine, second: Path, call: Call, settings: Settings) -> None:
    call("sync", "undo", find_last(engine))
    assert call("sync", "undo", find_last(engine)).exit_code == 0
    assert snapshot(engine, users)[GONE]["status"] == "tobedeleted"
    assert load(engine, "springfield", second, options=Options(settings, keeps_copy=True)).outcome == "unchanged"


def _lose_copy(engine: sa.Engine, settings: Settings) -> None:
    shutil.rmtree(settings.home / FOLDER / str(find_last(engine) - 1))


def _erase(engine: sa.Engine, settings: Settings) -> None:
    with engine.begin() as connection:
        removal = exclude_person(connection, TESTER, ExclusionKind.ERASED, "spr-student-2", settings)
    finish(engine, settings.home, removal, 0)
    assert list_copies(settings) == []


def _expire(engine: sa.Engine, settings: Settings) -> None:
    with engine.begin() as connection:
        connection.execute(sa.update(sync_runs).values(started_at=sa.func.now() - sa.text("interval '31 days'")))
    assert delete_expired(engine, settings)["exports for an undo"] == 2
    assert list_copies(settings) == []


def _tamper(engine: sa.Engine, settings: Settings) -> None:
    [users_file] = (settings.home / FOLDER / str(find_last(engine) - 1)).rglob("users.csv")
    users_file.write_text(users_file.read_text().replace("spr-student-1", "spr-student-x"))


def _remove(engine: sa.Engine, settings: Settings) -> None:
    remove_feed(engine, TESTER, "springfield", settings, at_once=False)
    assert list_copies(settings) == []


REFUSED = {
    "its copy is lost": (_lose_copy, "is not kept (any more)"),
    "a person of the feed was erased": (_erase, "is not kept (any more)"),
    "its days are over": (_expire, "is not kept (any more)"),
    "somebody has changed the copy": (_tamper, "somebody has changed it"),
    "the feed is removed": (_remove, "cannot be taken back"),
}


@pytest.mark.parametrize(("happens", "reason"), REFUSED.values(), ids=REFUSED)
def test_no_undo(
    engine: sa.Engine,
    second: Path,
    call: Call,
    settings: Settings,
    happens: Callable[[sa.Engine, Settings], None],
    reason: str,
) -> None:
    run = find_last(engine)
    happens(engine, settings)
    before = snapshot(engine, users)
    done = call("sync", "undo", run)
    assert (done.exit_code, reason in done.output) == (1, True), done.output
    assert snapshot(engine, users) == before


lacking = both(declared("demographics", "absent"), without_file("demographics.csv"))


def test_no_undo_by_an_export_that_lacks_a_file_of_the_run(
    engine: sa.Engine, springfield: Path, call: Call, settings: Settings, tmp_path: Path
) -> None:
    """A load without demographics would leave those of the run, and count as its undo."""
    complete = Path(shutil.copytree(springfield, tmp_path / "complete"))
    springfield = Path(shutil.copytree(springfield, tmp_path / "smaller"))
    lacking(springfield)
    load(engine, "springfield", springfield, options=Options(settings, keeps_copy=True))
    load(engine, "springfield", complete, options=Options(settings, keeps_copy=True))
    run = find_last(engine)
    done = call("sync", "undo", run)
    assert done.exit_code == 1
    assert f"the export of run {run - 1}, before it, lacks demographics.csv" in " ".join(done.output.split())


@pytest.mark.usefixtures("scripts_in_process")
def test_a_run_without_a_file_is_taken_back(
    engine: sa.Engine, springfield: Path, call: Call, settings: Settings
) -> None:
    load(engine, "springfield", springfield, options=Options(settings, keeps_copy=True))
    before = snapshot(engine, demographics)
    lacking(springfield)
    cell_of("users", GONE, "givenName", "Other")(springfield)
    load(engine, "springfield", springfield, options=Options(settings, keeps_copy=True))
    assert call("sync", "undo", find_last(engine)).exit_code == 0
    assert snapshot(engine, users)[GONE]["given_name"] != "Other"
    assert snapshot(engine, demographics) == before


# An export, and a cell of it with a bad value and then with a wrong one: of which column in the row of which record.
LASTING: dict[str, tuple[str, Family, tuple[str, str, str], tuple[str, str], str]] = {
    "a user": (SPRINGFIELD, ONEROSTER, ("users", "spr-student-2", "enabledUser"), ("maybe", "false"), "users.csv"),
    "a role": (SHELBYVILLE, ONEROSTER, ("roles", "shv-role-02", "role"), ("?", "aide"), "roles.csv"),
    "Clever": (
        "shelbyville-clever",
        CLEVER,
        ("sections", "20", "Term_start"),
        ("never", "8/18/2026"),
        "enrollments.csv, sections.csv",
    ),
}


@pytest.mark.usefixtures("scripts_in_process")
@pytest.mark.parametrize(("export", "family", "place", "values", "files"), LASTING.values(), ids=LASTING)
def test_no_undo_by_an_export_whose_row_of_a_changed_record_is_rejected(
    engine: sa.Engine,
    copy_export: Callable[[str], Path],
    call: Call,
    settings: Settings,
    export: str,
    family: Family,
    place: tuple[str, str, str],
    values: tuple[str, str],
    files: str,
) -> None:
    """A rejected row leaves its record as it is, so what the run has written would stay."""
    folder = copy_export(export)
    for value in values:
        cell_of(*place, value)(folder)
        report = load(engine, "feed", folder, family=family, options=Options(settings, keeps_copy=True))
        assert (report.outcome, report.rejected > 0) == ("done", value == values[0])
    run, before = find_last(engine), snapshot(engine, users)
    done = call("sync", "undo", run)
    assert done.exit_code == 1
    assert f"the run {run} cannot be taken back: the export before it has rejected rows in {files}" in done.output
    assert snapshot(engine, users) == before


@pytest.mark.usefixtures("scripts_in_process")
def test_a_run_that_left_the_records_of_rejected_rows_alone_is_taken_back(
    engine: sa.Engine, springfield: Path, call: Call, settings: Settings
) -> None:
    load_first(engine, "springfield", springfield)
    cell_of("users", "spr-student-2", "enabledUser", "maybe")(springfield)
    for name in ("Before", "After"):
        cell_of("users", GONE, "givenName", name)(springfield)
        assert load(engine, "springfield", springfield, options=Options(settings, keeps_copy=True)).rejected == 1
    done = call("sync", "undo", find_last(engine))
    assert (done.exit_code, snapshot(engine, users)[GONE]["given_name"]) == (0, "Before"), done.output


@pytest.mark.usefixtures("scripts_in_process")
@pytest.mark.shows("Erased people", "Who is hidden or kept from a vendor stays so under another id.")
@pytest.mark.parametrize("options", [(), ("--from", "reader@vendor.example")], ids=["hidden", "kept from a vendor"])
def test_an_undo_asks_for_the_former_ids_of_people_who_are_kept_out(
    engine: sa.Engine, springfield: Path, call: Call, settings: Settings, options: tuple[str, ...]
) -> None:
    of_loads = Options(settings, keeps_copy=True)
    load(engine, "springfield", springfield, options=of_loads)
    with_other_ids(springfield)
    held = load(engine, "springfield", springfield, options=of_loads)
    assert OTHER_IDS in (held.message or "")
    assert call("sync", "approve", held.run).exit_code == 0
    assert call("vendor", "add", "reader@vendor.example", "--name", "Reader").exit_code == 0
    assert call("person", "hide", "b-student-2", *options, "--yes").exit_code == 0
    run = find_last(engine)
    refused = call("sync", "undo", run)
    assert (refused.exit_code, f"`roster sync undo {run} --excluded REFERENCE=NEWID`" in refused.output) == (1, True)
    done = call("sync", "undo", run, "--excluded", "b-student-2=spr-student-2")
    assert done.exit_code == 0, done.output
    after = snapshot(engine, users)
    assert after["spr-student-1"]["status"] == "active"
    with engine.connect() as connection:
        kept = {person.sourced_id for person in list_kept(connection)}
    # Who is hidden is in no export; who is kept from a vendor is, and stays kept.
    assert (after.get("spr-student-2", {}).get("status"), kept) == (
        ("active", {"b-student-2", "spr-student-2"}) if options else ("tobedeleted", set())
    )


def test_an_excluded_person_stays_out(engine: sa.Engine, second: Path, call: Call, settings: Settings) -> None:
    run = find_last(engine)
    with engine.begin() as connection:
        exclude_person(connection, TESTER, ExclusionKind.HIDDEN, GONE, settings)
    assert call("sync", "undo", run).exit_code == 0
    assert GONE not in snapshot(engine, users)


def test_the_first_load_and_a_run_without_a_change_cannot_be_taken_back(
    engine: sa.Engine, springfield: Path, settings: Settings
) -> None:
    load(engine, "springfield", springfield, options=Options(settings, keeps_copy=True))
    first = find_last(engine)
    load(engine, "springfield", springfield, options=Options(settings, keeps_copy=True))
    with engine.connect() as connection:
        assert read_undo(connection, first, settings.home).why_not == "it is the first load of the feed"
        assert read_undo(connection, first + 1, settings.home).why_not == "it has changed nothing"


def test_two_private_copies_are_kept_and_none_without_values_of_changes(
    engine: sa.Engine, second: Path, settings: Settings
) -> None:
    cell_of("users", "spr-student-1", "givenName", "Again")(second)
    load(engine, "springfield", second, options=Options(settings, keeps_copy=True))
    last = find_last(engine)
    assert list_copies(settings) == [str(last - 1), str(last)]
    assert {path.stat().st_mode & 0o077 for path in (settings.home / FOLDER).glob("*")} == {0}
    cell_of("users", "spr-student-1", "givenName", "Without")(second)
    load(engine, "springfield", second, options=Options(Settings(home=settings.home, change_days=0), keeps_copy=True))
    with engine.connect() as connection:
        assert "not kept" not in str(read_undo(connection, last + 1, settings.home).why_not)
    assert str(last + 1) not in list_copies(settings)
