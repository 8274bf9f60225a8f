"""A copy of a vendor whose grants have rules equals a whole pull, whatever moves records into its groups and out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from roster_service.db.engine import make_engine
from roster_service.feeds.group_check import find_wrong_groups
from tests.extent import examples

from .copies import find_wrong, make_consumer
from .world import DATA, STEPS, World

# What changes what rules ask for, and the rules themselves.
MOVING = (
    "grades change",
    "subjects change",
    "an enrollment ends",
    "an enrollment changes",
    "a class moves",
    "agents change",
    "rules change",
    "a role word changes",
    "a student moves",
    "a person leaves",
    "a person is kept from a vendor",
    "a person is kept from a vendor",
    "a student moves",
    "a person returns to a vendor",
    "a purge",
)
RUNS = examples(1, 1, 30)
STEPS_OF_A_RUN = 24
TURNS = examples(4, 4, 1)


@pytest.mark.parametrize("number", range(RUNS))
def test_copies_follow_groups(make_database: Callable[[], str], tmp_path: Path, number: int) -> None:
    engine, dice = make_engine(make_database()), Random(number)
    world = World(engine, tmp_path, number)
    try:
        ruled = [name for name, vendor in world.vendors.items() if vendor.rules]
        copies = {
            f"{name}, {interface}": make_consumer(world, name, interface)
            for name in ruled
            for interface in ("v1p2", "v1")
        }
        for consumer in copies.values():
            consumer.pull()
        followed = 0
        for step in range(STEPS_OF_A_RUN):
            kind = MOVING[step % len(MOVING)]
            STEPS[kind](world, Random(dice.random()))
            deltas = {name: consumer.update() for name, consumer in copies.items()}
            followed += sum(deltas.values())
            if kind in DATA and kind != "a purge":
                # Of a vendor that sees some people without rules, an agent of theirs may come or go by a rule.
                ruled_alone = [name for name in deltas if not world.vendors[name.rpartition(", ")[0]].grants]
                assert all(deltas[name] for name in ruled_alone), f"after {kind}, whole pulls for nothing: {deltas}"
            with engine.connect() as connection:
                assert find_wrong_groups(connection) == {}, kind
            # One interface after this step, the other after the next, but at full length.
            wrong = find_wrong(dict(list(copies.items())[step % TURNS :: TURNS]))
            assert not wrong, "\n".join([f"after step {step}, {kind}:", *wrong])
        assert followed > STEPS_OF_A_RUN
    finally:
        world.close()
        engine.dispose()
