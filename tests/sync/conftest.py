"""Exports to load and to bend, and a look at what was loaded."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.db.engine import make_engine
from roster_service.db.tables import (
    PART_TABLES,
    ROSTER_TABLES,
    metadata,
    roster_state,
    sync_runs,
    user_agents,
    user_profiles,
    user_roles,
    vendor_defaults,
)
from roster_service.roster import revisions
from sync_scripts.engine.load import Options, load
from sync_scripts.reading.rejections import Findings, RefusedExportError, cut_value

EXPORTS = Path(__file__).parent.parent / "exports"
PARTS = (user_roles, user_profiles, user_agents)
# What the sync notes for itself.
NOTED = (
    "fingerprint",
    "row_id",
    "taken_back",
    "label_id",
    "school_opens",
    "parts_changed",
    "teachers_changed",
    "ended_by_need",
)
SPRINGFIELD, SHELBYVILLE = "springfield-1.1", "shelbyville-1.2"


@pytest.fixture(autouse=True)
def copies_apart(own_home: None) -> None:
    """The loaders keep copies of exports in the data folder."""


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


@pytest.fixture(scope="session")
def shared_engine(make_database: Callable[[], str]) -> Iterator[sa.Engine]:
    """A writing engine on a database that stays empty: for tests that change nothing."""
    engine = make_engine(make_database())
    yield engine
    engine.dispose()


@pytest.fixture(scope="session")
def reused_engine(make_database: Callable[[], str]) -> Iterator[sa.Engine]:
    """A writing engine on the database that `engine` empties for each test."""
    engine = make_engine(make_database())
    yield engine
    engine.dispose()


@pytest.fixture
def engine(reused_engine: sa.Engine) -> sa.Engine:
    """A writing engine on an empty roster. Emptying one database is faster than making a hundred."""
    empty_roster(reused_engine)
    return reused_engine


def lend_engine(patch: pytest.MonkeyPatch, engine: sa.Engine) -> None:
    """Lets the commands that a test calls in its own process use the engine of the test, and its connections."""
    patch.setenv("ROSTER_DATABASE_URL", engine.url.render_as_string(hide_password=False))
    patch.setattr(revisions, "make_engine", lambda _url, **_options: engine)


def empty_roster(engine: sa.Engine) -> None:
    """Makes the database as good as new."""
    emptied = [table.name for table in metadata.sorted_tables if table not in (roster_state, vendor_defaults)]
    keys = ", ".join(str(table.primary_key.name) for table in (*ROSTER_TABLES, *PART_TABLES))
    with engine.begin() as connection:
        # A table whose file is empty has had no row since it was emptied last; to empty it again takes 1 ms.
        used = sa.text("SELECT name FROM unnest(:emptied) AS name WHERE pg_relation_size(name::regclass) > 0")
        names = ", ".join(connection.scalars(used, {"emptied": emptied}))
        if names:
            connection.execute(sa.text(f"TRUNCATE {names} RESTART IDENTITY CASCADE"))
        connection.execute(sa.text(f"DROP INDEX IF EXISTS {keys}"))
        connection.execute(
            sa.update(roster_state).values(revision=0, as_of=sa.func.to_timestamp(0), deletions_since=sa.func.now())
        )


def snapshot(engine: sa.Engine, table: sa.Table) -> dict[Any, dict[str, Any]]:
    """The rows of a table by their primary key (a tuple where it has several columns), without what the sync notes
    for itself."""
    columns = [column for column in table.columns if column.name not in NOTED]
    with engine.connect() as connection:
        rows = [dict(row._mapping) for row in connection.execute(sa.select(*columns))]
    keys = [column.name for column in table.primary_key]
    return {row[keys[0]] if len(keys) == 1 else tuple(row[key] for key in keys): row for row in rows}


def read_refusal(engine: sa.Engine, path: Path) -> str:
    """The words with which an export is refused as a whole; checks that nothing was loaded, and that the run is
    remembered."""
    with pytest.raises(RefusedExportError) as caught:
        load(engine, "refused", path)
    with engine.connect() as connection:
        for table in ROSTER_TABLES:
            assert connection.scalar(sa.select(sa.func.count()).select_from(table)) == 0, table.name
        last = connection.execute(sa.select(sync_runs).order_by(sync_runs.c.id.desc()).limit(1)).one()
    assert (last.outcome, last.rejected) == ("refused", caught.value.findings.total)
    return describe(caught.value.findings)


def read_rejects(engine: sa.Engine, path: Path) -> str:
    """The words with which rows are rejected by an export that is loaded but for them; nothing of it is kept."""
    report = load(engine, "refused", path, options=Options(dry_run=True))
    assert report.rejected > 0
    return describe(report.findings)


def describe(findings: Findings) -> str:
    """The first findings, a line each, with the values that are kept and not printed."""
    found = ("" if it.value is None else f" (found {cut_value(it.value)!r})" for it in findings.first)
    return "\n".join(f"{it}{value}" for it, value in zip(findings.first, found, strict=True))


def state(engine: sa.Engine) -> dict[sa.Table, dict[Any, dict[str, Any]]]:
    """The whole roster."""
    return {table: snapshot(engine, table) for table in (*ROSTER_TABLES, *PARTS)}


def read_state(engine: sa.Engine) -> Any:
    """The row of roster_state."""
    with engine.connect() as connection:
        return connection.execute(sa.select(roster_state)).one()
