"""The stored counts of the checks of data quality."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.db.tables import feeds, quality_counts
from roster_service.feeds import data_quality
from roster_service.feeds.data_quality import read_quality, store_counts
from tests.conditions import is_blocked, wait_for
from tests.postgres.loaded import load_districts


def test_a_feed_that_two_count_at_the_same_time_has_its_counts(engine: sa.Engine) -> None:
    load_districts(engine, ["springfield"])
    with engine.connect() as connection:
        feed = connection.execute(sa.select(feeds.c.id.label("feed_id"), feeds.c.revision)).mappings().one()
    with ThreadPoolExecutor(1) as pool, engine.connect() as first:
        first.execute(sa.insert(quality_counts).values(**feed, totals={}, schools={"orphans": {"": 7}}))
        second = pool.submit(store_counts, engine)
        wait_for(lambda: is_blocked(engine))
        first.commit()
        second.result()
    with engine.connect() as connection:
        (counted,) = read_quality(connection)
    assert counted.totals == {"orphans": 7}


def test_a_count_that_a_run_has_overtaken_leaves_the_counts_of_the_run(
    engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_districts(engine, ["springfield"])
    store_counts(engine)
    with engine.begin() as connection:
        connection.execute(sa.update(feeds).values(revision=feeds.c.revision + 1))
    count = data_quality.count_findings

    def publish_and_count(*given: Any) -> Any:
        monkeypatch.undo()
        with engine.begin() as connection:
            connection.execute(sa.update(feeds).values(revision=feeds.c.revision + 1))
        # The run that has published counts, too.
        store_counts(engine)
        return count(*given)

    monkeypatch.setattr(data_quality, "count_findings", publish_and_count)
    store_counts(engine)
    with engine.connect() as connection:
        (counted,) = read_quality(connection)
        revision = connection.scalar(sa.select(feeds.c.revision))
        stored = connection.execute(sa.select(quality_counts.c.revision, quality_counts.c.schools.is_(None))).all()
    assert counted.revision == revision
    assert (revision, False) in [tuple(row) for row in stored]
