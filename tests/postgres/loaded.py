"""Databases into which a small export is loaded: each is loaded once in a test process and then copied. A load takes
0.45 s of CPU, a copy 0.04 s."""

from __future__ import annotations

import contextlib
import filecmp
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import sqlalchemy as sa

from roster_service.db.engine import make_engine
from roster_service.db.tables import changes, feeds
from sync_scripts.engine.load import load
from sync_scripts.engine.report import Report
from sync_scripts.reading.registry import ONEROSTER, Family
from tests.postgres.databases import copy_database, drop_databases
from tests.postgres.server import drop_indexes

EXPORTS = Path(__file__).parent.parent / "exports"
# In the order of loading, which is also that of the ids: the records of a feed are together in a whole collection, and
# so the order of a collection is the order by sourcedId.
FEEDS = {"shelbyville": "shelbyville-1.2", "springfield": "springfield-1.1"}


@dataclass(frozen=True)
class _Loads:
    """(database, report of the last load) for each list of loads, as (family, feed, name of the export) in their order,
    in copies of the empty database `template`."""

    server_url: str
    template: str
    made: dict[tuple[tuple[Family, str, str], ...], tuple[str, Report]] = field(default_factory=dict)

    def copy(self, engine: sa.Engine, *loads: tuple[Family, str, str]) -> Report:
        """Makes the database of the engine one with these loads."""
        with engine.connect() as connection:
            for table in (feeds, changes):
                assert connection.scalar(sa.select(sa.func.count()).select_from(table)) == 0, table.name
        engine.dispose()
        if loads not in self.made:
            self.made[loads] = self._load(f"{self.template}_loaded_{len(self.made)}", loads)
        loaded, report = self.made[loads]
        drop_databases(self.server_url, str(engine.url.database))
        copy_database(self.server_url, loaded, str(engine.url.database))
        return report

    def _load(self, name: str, loads: tuple[tuple[Family, str, str], ...]) -> tuple[str, Report]:
        engine = make_engine(copy_database(self.server_url, self.template, name))
        drop_indexes(engine)
        reports = [load(engine, feed, EXPORTS / export, family=family) for family, feed, export in loads]
        engine.dispose()
        return name, reports[-1]


_OPEN: list[_Loads] = []


@contextlib.contextmanager
def keep_loads(server_url: str, template: str) -> Iterator[None]:
    """Lets tests call `load_first`. `template`: an empty, migrated database."""
    loads = _Loads(server_url, template)
    _OPEN.append(loads)
    yield
    _OPEN.remove(loads)
    drop_databases(server_url, *(name for name, _ in loads.made.values()))


def load_first(engine: sa.Engine, feed: str, folder: Path, family: Family = ONEROSTER) -> Report:
    """The first load of a small export, as it is, into an empty database; returns its report. The database becomes a
    copy of one into which the export is loaded, so its connections end; its next revision is that of a restored one.

    Raises AssertionError for an export that the test has changed, and for a database that has feeds or vendors.
    """
    names = sorted(path.name for path in folder.iterdir())
    assert names == sorted(path.name for path in (EXPORTS / folder.name).iterdir())
    assert filecmp.cmpfiles(folder, EXPORTS / folder.name, names, shallow=False) == (names, [], [])
    (loads,) = _OPEN
    return loads.copy(engine, (family, feed, folder.name))


def load_districts(engine: sa.Engine, feeds: Iterable[str] = FEEDS) -> None:
    """Loads both small exports, as FEEDS names them, in the same way. `feeds`: the order of the loads."""
    (loads,) = _OPEN
    loads.copy(engine, *((ONEROSTER, feed, FEEDS[feed]) for feed in feeds))
