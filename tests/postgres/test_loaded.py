"""A database that was copied after a load is like one into which the export is loaded."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.accounts import vendors
from roster_service.db.engine import make_engine
from sync_scripts.engine.load import load
from tests.actors import TESTER
from tests.postgres.loaded import EXPORTS, load_first
from tests.sync.conftest import SPRINGFIELD, state


def test_a_copy_after_a_load_has_what_the_load_stores(engine: sa.Engine, make_database: Callable[[], str]) -> None:
    other = make_engine(make_database())
    loaded, copied = load(other, "feed", EXPORTS / SPRINGFIELD), load_first(engine, "feed", EXPORTS / SPRINGFIELD)
    assert (copied.counts, copied.run, copied.revision) == (loaded.counts, loaded.run, loaded.revision)
    assert _without_stamps(engine) == _without_stamps(other)
    assert load(engine, "feed", EXPORTS / SPRINGFIELD).outcome == "unchanged"
    other.dispose()


def test_nothing_that_a_test_has_made_is_lost(engine: sa.Engine, tmp_path: Path) -> None:
    changed = Path(shutil.copytree(EXPORTS / SPRINGFIELD, tmp_path / SPRINGFIELD))
    (changed / "users.csv").write_text("")
    with pytest.raises(AssertionError):
        load_first(engine, "feed", changed)
    with engine.connect() as connection:
        vendors.add_vendor(connection, TESTER, "a@vendors.example", "A vendor")
        connection.commit()
    with pytest.raises(AssertionError):
        load_first(engine, "feed", EXPORTS / SPRINGFIELD)


def test_only_a_first_load_is_copied(engine: sa.Engine) -> None:
    load_first(engine, "feed", EXPORTS / SPRINGFIELD)
    with pytest.raises(AssertionError):
        load_first(engine, "other", EXPORTS / SPRINGFIELD)


def _without_stamps(engine: sa.Engine) -> dict[str, dict[object, dict[str, object]]]:
    def drop(row: dict[str, object]) -> dict[str, object]:
        return {name: value for name, value in row.items() if name != "date_last_modified"}

    return {table.name: {key: drop(row) for key, row in rows.items()} for table, rows in state(engine).items()}
