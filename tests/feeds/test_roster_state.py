"""The revision of the roster: one more with each publication, and never one that a lost roster had."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.db.embedded_server import open_embedded
from roster_service.db.engine import make_engine
from roster_service.feeds.roster_state import MIN_RESTORE_STEP, advance_state
from roster_service.roster.upgrades import upgrade
from tests.conditions import wait_for
from tests.postgres.databases import administer, copy_database, drop_databases


def advance(engine: sa.Engine) -> int:
    """Publishes a revision."""
    with engine.begin() as connection:
        return advance_state(connection, [])


def is_recovering(engine: sa.Engine) -> bool:
    """Whether the server still takes no writes."""
    with engine.connect() as connection:
        return bool(connection.scalar(sa.text("SELECT pg_is_in_recovery()")))


def test_each_publication_adds_one(engine: sa.Engine) -> None:
    assert [advance(engine) for _ in range(3)] == [1, 2, 3]


def copy(engine: sa.Engine, server_url: str) -> Iterator[sa.Engine]:
    """A copy of the database stands in for a backup that was restored under another name."""
    engine.dispose()
    copied = make_engine(copy_database(server_url, str(engine.url.database), "roster_test_restored"))
    yield copied
    copied.dispose()
    drop_databases(server_url, "roster_test_restored")


def replace_table(engine: sa.Engine, _server_url: str) -> Iterator[sa.Engine]:
    """`pg_restore --clean` makes the tables anew."""
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE restored (LIKE roster_state INCLUDING ALL)"))
        connection.execute(sa.text("INSERT INTO restored SELECT * FROM roster_state"))
        connection.execute(sa.text("DROP TABLE roster_state"))
        connection.execute(sa.text("ALTER TABLE restored RENAME TO roster_state"))
    yield engine


RESTORED: dict[str, Callable[[sa.Engine, str], Iterator[sa.Engine]]] = {
    "as another database": copy,
    "as another table": replace_table,
}


@pytest.mark.parametrize("restore", RESTORED.values(), ids=RESTORED)
def test_a_restored_roster_leaves_the_revisions_that_it_may_have_had(
    engine: sa.Engine, server_url: str, restore: Callable[[sa.Engine, str], Iterator[sa.Engine]]
) -> None:
    before = [advance(engine) for _ in range(2)][-1]
    for restored in restore(engine, server_url):
        first = advance(restored)
        assert first - before >= MIN_RESTORE_STEP
        assert advance(restored) == first + 1


def test_a_new_timeline_leaves_the_revisions_of_the_former() -> None:
    """A server that recovers from an archive, or is promoted, begins a timeline."""
    with tempfile.TemporaryDirectory(prefix="roster-test-") as home:
        with open_embedded(Path(home)) as url:
            engine = make_engine(url)
            upgrade(engine)
            before = [advance(engine) for _ in range(2)][-1]
            engine.dispose()
            administer(url, "ALTER SYSTEM SET restore_command = 'false'")
        cluster = Path(home) / "postgres"
        cluster.joinpath("recovery.signal").touch()
        with open_embedded(Path(home)) as url:
            engine = make_engine(url)
            wait_for(lambda: not is_recovering(engine))
            first = advance(engine)
            assert first - before >= MIN_RESTORE_STEP
            assert advance(engine) == first + 1
            engine.dispose()
