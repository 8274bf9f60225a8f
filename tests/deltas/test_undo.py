"""A run is taken back: the copies of every vendor, kept by deltas, follow from before to between to after."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
import sqlalchemy as sa

from roster_service.db.tables import users
from roster_service.feeds.exclusions import ExclusionKind
from tests.extent import examples

from .copies import find_wrong, open_copies
from .districts import CHANGES
from .world import World

SEEDS = range(examples(1, 1, 5))


@pytest.mark.parametrize("seed", SEEDS)
def test_copies_by_deltas_are_right_before_between_and_after_an_undo(
    engine: sa.Engine, tmp_path: Path, seed: int
) -> None:
    world, dice = World(engine, tmp_path, seed), Random(seed)
    try:
        district = world.districts["a"]
        district.dice = dice
        world.load("a")
        known = set(district.rows["users"])
        for name in dice.sample(sorted(CHANGES), 3):
            CHANGES[name](district)
        # The export that the undo loads again has this person.
        erased = dice.choice(sorted(known.intersection(district.rows["users"])))
        world.exclude(ExclusionKind.ERASED, erased)
        world.load("a")
        # Who reads each time, and who does not read between.
        prompt = {name: open_copies(world, name) for name in world.vendors}
        late = {name: open_copies(world, name) for name in world.vendors}
        for name in dice.sample(sorted(CHANGES), 6):
            CHANGES[name](district)
        world.load("a")
        for copies in prompt.values():
            for consumer in copies.values():
                consumer.update()
        assert [wrong for copies in prompt.values() for wrong in find_wrong(copies)] == []
        world.undo("a")
        for copies in (*prompt.values(), *late.values()):
            for consumer in copies.values():
                consumer.update()
        assert [wrong for copies in (*prompt.values(), *late.values()) for wrong in find_wrong(copies)] == []
        with engine.connect() as connection:
            assert connection.scalar(sa.select(users.c.status).where(users.c.sourced_id == erased)) is None
    finally:
        world.close()
