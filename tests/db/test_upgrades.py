"""An upgrade while others read: it waits for them, for a while, and is done as a whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import sqlalchemy as sa

from roster_service.errors import DatabaseUnavailableError
from roster_service.roster import revisions, upgrades
from roster_service.roster.revisions import read_revisions
from roster_service.roster.upgrades import upgrade
from tests.db.next_revision import add_revision

EXPORT = Path(__file__).parent.parent / "exports" / "springfield-1.1"
READ = sa.text("SELECT count(*) FROM orgs")


def read_current(engine: sa.Engine) -> str | None:
    with engine.connect() as connection:
        return read_revisions(connection)[0]


@pytest.fixture
def newest(engine: sa.Engine) -> str:
    """The revision of this version."""
    return str(read_current(engine))


@pytest.fixture(autouse=True)
def next_revision(newest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a revision after it, and an upgrade has little patience."""
    monkeypatch.setattr(revisions, "FOLDERS", add_revision(tmp_path, newest))
    monkeypatch.setattr(upgrades, "LOCK_SECONDS", 0.05)


def pause_with(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> list[float]:
    """Instead of a pause, something happens; the seconds of each pause."""
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        act()

    monkeypatch.setattr(upgrades, "time", SimpleNamespace(sleep=pause))
    return pauses


@pytest.fixture
def reader(engine: sa.Engine) -> sa.Connection:
    """A transaction that has read a table which the upgrade changes."""
    connection = engine.connect()
    connection.execute(READ)
    return connection


def test_an_upgrade_waits_for_a_reader_and_begins_again(
    engine: sa.Engine, newest: str, reader: sa.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = pause_with(monkeypatch, reader.close)
    assert upgrade(engine) == (newest, "of_the_tests")
    assert pauses == [upgrades.PAUSE_SECONDS]


def test_an_upgrade_that_waits_keeps_nobody_from_reading_meanwhile(
    engine: sa.Engine, reader: sa.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has given back its locks, so a request that would queue behind them is answered."""

    def read_beside() -> None:
        with engine.connect() as another:
            another.execute(sa.text("SET LOCAL lock_timeout = '1ms'"))
            another.execute(READ)
        reader.close()

    pauses = pause_with(monkeypatch, read_beside)
    upgrade(engine)
    assert len(pauses) == 1


def test_an_upgrade_that_gets_no_lock_changes_nothing(
    engine: sa.Engine, newest: str, reader: sa.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = pause_with(monkeypatch, lambda: None)
    monkeypatch.setattr(upgrades, "ATTEMPTS", 3)
    with pytest.raises(DatabaseUnavailableError, match="because a sync or a long query uses them"):
        upgrade(engine)
    reader.close()
    assert len(pauses) == 2
    assert read_current(engine) == newest
