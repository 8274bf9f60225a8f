"""Exports to load and to bend, and a look at what was loaded."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, Table, select

from roster_service.db.engine import make_engine

EXPORTS = Path(__file__).parent.parent / "exports"
SPRINGFIELD, SHELBYVILLE = "springfield-1.1", "shelbyville-1.2"


@pytest.fixture
def copy_export(tmp_path: Path) -> Callable[[str], Path]:
    """Copies one of the small exports to a folder of the test's own."""
    return lambda name: Path(shutil.copytree(EXPORTS / name, tmp_path / name))


@pytest.fixture(params=[SPRINGFIELD, SHELBYVILLE])
def each_export(request: pytest.FixtureRequest, copy_export: Callable[[str], Path]) -> Path:
    """A copy of each of the small exports."""
    return copy_export(request.param)


@pytest.fixture
def springfield(copy_export: Callable[[str], Path]) -> Path:
    """A copy of the small 1.1 export."""
    return copy_export(SPRINGFIELD)


@pytest.fixture
def shelbyville(copy_export: Callable[[str], Path]) -> Path:
    """A copy of the small 1.2 export."""
    return copy_export(SHELBYVILLE)


@pytest.fixture(scope="module")
def shared_engine(make_database: Callable[[], str]) -> Iterator[Engine]:
    """A writing engine on a database that the tests of a module share: for those that change nothing."""
    engine = make_engine(make_database())
    yield engine
    engine.dispose()


def snapshot(engine: Engine, table: Table) -> dict[Any, dict[str, Any]]:
    """The rows of a table by their primary key (a tuple where it has several columns)."""
    with engine.connect() as connection:
        rows = [dict(row._mapping) for row in connection.execute(select(table))]
    keys = [column.name for column in table.primary_key]
    return {row[keys[0]] if len(keys) == 1 else tuple(row[key] for key in keys): row for row in rows}
