"""The stored counts of the checks of data quality."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import sqlalchemy as sa

from roster_service.db.tables import feeds, quality_counts
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
