"""Pulls that change between the primary and a standby, which replays or not, while syncs commit: against the model."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from roster_service.db.engine import make_reading_engine
from roster_service.metrics import READS
from roster_service.serving.orderings import Orderings
from roster_service.serving.standby import Standby, StandbyReader
from tests.extent import examples, long
from tests.postgres.databases import copy_database
from tests.postgres.pair import Pair
from tests.postgres.server import TEMPLATE
from tests.serving.test_pulls import STEPS, Consumers, make_consumers, take_step

__all__ = ["make_consumers"]

# Beside the steps of the model. The standby is at rest after `replay`, and falls behind after `pause`.
REPLAYS = st.one_of(st.tuples(st.just("pause")), st.tuples(st.just("replay")), st.tuples(st.just("replay")))


@pytest.fixture(scope="module")
def make_database(pair: Pair) -> Callable[[], str]:
    """Makes an empty, migrated database on both servers."""
    return lambda: copy_database(pair.primary.make_url(), TEMPLATE, "standby_pulls")


def read_from_both(consumers: Consumers, pair: Pair) -> Standby:
    """Gives the workers of the consumers a standby."""
    questioner = consumers.questioner
    name = str(sa.make_url(consumers.url).database)
    url = sa.make_url(pair.standby.make_url(name)).set(username=questioner.reading.url.username)
    address = url.render_as_string(hide_password=False)
    standby = Standby(
        questioner.reading, make_reading_engine(address, statement_seconds=60, pool_size=2, own_sessions=True)
    )
    standby.start()
    orderings = Orderings(questioner.ordering, 1000)
    readers = [StandbyReader(questioner.round_trips, orderings, standby) for _ in questioner.workers]
    questioner.workers = list(readers)
    return standby


@long
def test_any_sequence_of_pulls_syncs_and_replays(make_consumers: Callable[[], Consumers], pair: Pair) -> None:
    from_standby = READS.labels("standby")._value

    @settings(
        max_examples=examples(2, 2, 30),
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(st.one_of(STEPS, REPLAYS), min_size=15, max_size=50))
    def check(steps: list[tuple[object, ...]]) -> None:
        before = from_standby.get()
        consumers = make_consumers()
        pair.resume()
        standby = read_from_both(consumers, pair)
        for step in steps:
            match step:
                case ("pause",):
                    pair.pause()
                case ("replay",):
                    pair.resume()
                case _:
                    take_step(consumers, step)
            if step == ("restart",):
                standby.close()
                standby = read_from_both(consumers, pair)
        while consumers.pulls:
            consumers.go_on(0)
        assert not standby.is_away
        standby.close()
        consumers.questioner.close()
        event("the standby was read" if from_standby.get() > before else "the primary was read alone")

    before = from_standby.get()
    check()
    pair.resume()
    assert from_standby.get() > before
