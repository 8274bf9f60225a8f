"""Whatever kills an undo, the roster is as before it or undone, and the undo or the next night goes on from there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.db.engine import make_engine
from roster_service.db.tables import sync_runs
from roster_service.feeds.undo import FOLDER, drop_unknown_copies, find_undone_by, read_undo
from roster_service.settings import Settings
from sync_scripts.engine.load import Options, load

from .conftest import read_roster, watching, write_load_runs
from .killed_undo import COMMITTED, POINTS

Roster = dict[str, list[dict[str, Any]]]


def load_both(engine: sa.Engine, exports: Sequence[Path], settings: Settings) -> sa.Row[Any]:
    """The two exports; returns the first run."""
    for export in exports:
        load(engine, "feed", export, options=Options(settings, allow_mass_delete=True, keeps_copy=True))
    with engine.connect() as connection:
        return connection.execute(sa.select(sync_runs).order_by(sync_runs.c.id)).first()


def undo(engine: sa.Engine, first: sa.Row[Any], settings: Settings) -> None:
    """Takes the second run back."""
    options = Options(settings, undoes=first.id + 1, keeps_copy=True, source=first.source)
    assert load(engine, "feed", Path(first.kept_export), options=options).outcome in ("done", "partial")


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The exports of two days."""
    return write_load_runs(tmp_path_factory.mktemp("exports"))


@pytest.fixture(scope="module")
def before_and_after(
    make_database: Callable[[], str], exports: Sequence[Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Roster, Roster]:
    """The rosters before and after an undo that nothing disturbs."""
    engine, settings = make_engine(make_database()), Settings(home=tmp_path_factory.mktemp("home"))
    first = load_both(engine, exports, settings)
    before = read_roster(engine)
    undo(engine, first, settings)
    after = read_roster(engine)
    engine.dispose()
    assert before != after
    return before, after


@pytest.mark.parametrize("point", POINTS)
def test_an_undo_that_is_killed_has_happened_or_has_not(
    engine: sa.Engine, exports: Sequence[Path], before_and_after: tuple[Roster, Roster], tmp_path: Path, point: str
) -> None:
    settings = Settings(home=tmp_path / "home", secret_key="s" * 40)
    first = load_both(engine, exports, settings)
    last, is_undone = first.id + 1, point == COMMITTED
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.faults.killed_undo", point, "--feed", "feed", "--undoes", str(last)),
            *("--source", first.source, "--", first.kept_export),
        ],
        env={
            **os.environ,
            "ROSTER_DATABASE_URL": engine.url.render_as_string(hide_password=False),
            "ROSTER_HOME": str(settings.home),
            "ROSTER_SECRET_KEY": str(settings.secret_key),
        },
        capture_output=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    with watching(engine) as watch:
        while watch() is not None:
            pass
    assert read_roster(engine) == before_and_after[is_undone]
    with engine.connect() as connection:
        assert find_undone_by(connection, last) == (last + 1 if is_undone else None)
        assert (read_undo(connection, last, settings.home).why_not is None) != is_undone
    # The SIS brings the same export again.
    again = load(engine, "feed", exports[1], options=Options(settings, allow_mass_delete=False, keeps_copy=True))
    assert again.outcome == ("held" if is_undone else "unchanged")
    if not is_undone:
        undo(engine, first, settings)
    assert read_roster(engine) == before_and_after[1]
    with engine.connect() as connection:
        drop_unknown_copies(connection, settings.home)
        kept = connection.scalars(sa.select(sync_runs.c.kept_export).where(sync_runs.c.outcome != "held")).all()
    assert {Path(path).parent.name for path in kept if path} == {it.name for it in (settings.home / FOLDER).iterdir()}
