"""The row of a run: there from its start, and right whatever becomes of the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.db.tables import feeds, sync_runs
from roster_service.errors import CommandError, DatabaseUnavailableError, StorageError
from roster_service.feeds.run_history import STEPS, ReadFile, Run, find_run, list_runs
from roster_service.feeds.sync_lock import INTERRUPTED, RUNNING, LockedError, hold_lock
from roster_service.settings import Settings
from sync_scripts.engine.feed_removal import remove_feed
from sync_scripts.engine.load import Options, load
from sync_scripts.reading.rejections import RefusedExportError
from tests.actors import TESTER
from tests.sync.conftest import snapshot
from tests.sync.export_changes import with_row


def read_runs(engine: sa.Engine) -> list[Run]:
    """What `roster sync list` shows."""
    with engine.begin() as connection:
        return list_runs(connection, None, 20)


def test_a_run_is_there_from_its_start_to_its_end(engine: sa.Engine, springfield: Path) -> None:
    seen: list[Run] = []

    def look(event: Mapping[str, Any]) -> None:
        if "seconds" in event:
            seen.extend(read_runs(engine))

    load(engine, "feed", springfield, options=Options(notify=look))
    assert [(run.run, run.feed, run.outcome, run.finished) for run in seen] == [(1, "feed", "running", None)] * len(
        STEPS
    )
    [run] = read_runs(engine)
    assert (run.run, run.outcome) == (1, "done")
    assert run.finished is not None
    assert run.started <= run.finished


def test_a_run_has_the_files_of_its_export(engine: sa.Engine, springfield: Path) -> None:
    """With their rows, unless they were as in the last run; without any if the export was refused."""
    with_row("users", sourcedId="stranger", orgSourcedIds="nowhere")(springfield)
    (springfield / "demographics.csv").unlink()
    rows = len((springfield / "users.csv").read_text(encoding="utf-8").splitlines()) - 1
    found = []
    for _ in range(2):
        report = load(engine, "feed", springfield)
        assert report.run is not None
        with engine.connect() as connection:
            files = {it.file: it for it in find_run(connection, report.run).files}
        found.append([files[name] for name in ("users.csv", "demographics.csv")])
    absent = ReadFile("demographics.csv", "absent", None, None)
    assert found[0] == [ReadFile("users.csv", "bulk", rows, 1), absent]
    # An export with rejected rows is read again.
    assert found[1] == found[0]


def test_the_files_of_the_last_export_are_not_read_again(engine: sa.Engine, springfield: Path) -> None:
    for _ in range(2):
        report = load(engine, "feed", springfield)
    assert {(it.mode, it.rows, it.rejected) for it in report.files} == {("bulk", None, None)}


def raise_it(error: BaseException) -> Callable[..., None]:
    """A function that raises an error, whatever it is asked."""

    def fail(*_arguments: Any, **_options: Any) -> None:
        raise error

    return fail


def lose_the_connection(connection: sa.Connection, *_arguments: Any, **_state: Any) -> None:
    """The database gives up on the run."""
    connection.execute(sa.text("SELECT pg_terminate_backend(pg_backend_pid())"))


def fill_the_disk(connection: sa.Connection, *_arguments: Any, **_state: Any) -> None:
    """The database says that it has no room."""
    connection.execute(sa.text("DO $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '53100'; END $$"))


# What happens in the last step; the error that `load` raises, the outcome of the run and what is said of it.
ENDS: dict[str, tuple[Callable[..., None], type[BaseException], str, str]] = {
    "a fault": (raise_it(ValueError("somebody")), ValueError, "failed", "ValueError"),
    "by hand": (raise_it(KeyboardInterrupt()), KeyboardInterrupt, "failed", "KeyboardInterrupt"),
    "no room": (raise_it(StorageError("no room")), StorageError, "failed", "no room"),
    "a command": (raise_it(CommandError("cannot be done")), CommandError, "refused", "cannot be done"),
    "the database": (
        lose_the_connection,
        DatabaseUnavailableError,
        "failed",
        "the database gave up: it ended the connection; its log has the reason",
    ),
    "a full disk of the database": (
        fill_the_disk,
        StorageError,
        "failed",
        "the disk of the database is full: no room",
    ),
}


@pytest.mark.parametrize(("fail", "error", "outcome", "words"), ENDS.values(), ids=ENDS)
def test_a_run_that_breaks_off_says_why(
    engine: sa.Engine,
    springfield: Path,
    monkeypatch: pytest.MonkeyPatch,
    fail: Callable[..., None],
    error: type[BaseException],
    outcome: str,
    words: str,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("sync_scripts.engine.load.publish", fail)
        with pytest.raises(error):
            load(engine, "feed", springfield)
    [run] = read_runs(engine)
    assert (run.outcome, run.message, run.counts) == (outcome, words, {})
    assert run.finished is not None
    assert load(engine, "feed", springfield).outcome == "done"


def test_a_refused_run_says_why(engine: sa.Engine, springfield: Path) -> None:
    with_row("orgs", sourcedId="spr-high")(springfield)
    with pytest.raises(RefusedExportError):
        load(engine, "feed", springfield)
    [run] = read_runs(engine)
    assert (run.outcome, run.message, run.rejected) == (
        "refused",
        "orgs.csv, column sourcedId: 2 rows, first in line 4: stands in more than one row",
        2,
    )


def test_a_run_that_was_kept_out_is_none(engine: sa.Engine, springfield: Path) -> None:
    with engine.connect() as other, hold_lock(other, "feed"), pytest.raises(LockedError):
        load(engine, "feed", springfield)
    assert snapshot(engine, sync_runs) == snapshot(engine, feeds) == {}


def dry_run(engine: sa.Engine, path: Path) -> None:
    """A load that changes nothing."""
    load(engine, "feed", path, options=Options(dry_run=True))


# What takes the lock of the feed next.
NEXT: dict[str, Callable[[sa.Engine, Path], object]] = {
    "a load": lambda engine, path: load(engine, "feed", path),
    "a dry run": dry_run,
    "a removal": lambda engine, _path: remove_feed(engine, TESTER, "feed", Settings(), at_once=False),
}


@pytest.mark.parametrize("come", NEXT.values(), ids=NEXT)
def test_who_comes_next_finds_the_interrupted_run(
    engine: sa.Engine, springfield: Path, come: Callable[[sa.Engine, Path], object]
) -> None:
    with engine.begin() as connection:
        connection.execute(sa.insert(feeds).values(name="feed", format="oneroster"))
        row = {"feed_id": 1, "format": "oneroster", "source": "x", "started_at": sa.text("now()")}
        connection.execute(sa.insert(sync_runs).values(**row, outcome=RUNNING, counts={}, seconds={}))
    come(engine, springfield)
    row = snapshot(engine, sync_runs)[1]
    assert (row["outcome"], row["finished_at"]) == (INTERRUPTED, None)
    assert row["message"] == "its process ended before the run; nothing was changed"
