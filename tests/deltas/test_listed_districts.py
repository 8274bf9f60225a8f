"""A copy of the vendor interface asks for the districts that the login lists, whatever becomes of districts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from roster_service.db.engine import make_engine
from tests.extent import examples

from .copies import make_consumer
from .fixed_district import edit
from .test_deltas import Observer, deal_steps
from .world import NAMES, STEPS, World

# Rights, feeds and purges, between the changes of districts.
KINDS = (
    *NAMES, "a school changes its district", "a district is granted or revoked", "schools are granted or revoked",
    "a feed is removed", "a feed is removed at once", "a feed returns", "a purge", "flags change", "a student moves",
    "a person leaves", "a school opens",
)  # fmt: skip
RUNS = examples(1, 1, 60)
TURNS = examples(2, 2, 1)
# Each kind once, or twice.
STEPS_OF_A_RUN = len(KINDS) * examples(1, 1, 2)


@pytest.mark.parametrize("number", range(RUNS))
def test_a_copy_of_the_listed_districts_equals_a_whole_pull(
    make_database: Callable[[], str], tmp_path: Path, number: int
) -> None:
    engine = make_engine(make_database())
    world, dice, steps = World(engine, tmp_path, number), Random(number), STEPS | NAMES
    # test_rules.py follows the others.
    names = [name for name, vendor in world.vendors.items() if not vendor.rules]
    observers = {name: Observer(world, name, "v1") for name in names}
    try:
        for step, (kind, seed) in enumerate(deal_steps(dice, STEPS_OF_A_RUN, KINDS)):
            steps[kind](world, Random(seed))
            wrong = [
                f"{name}: {item}"
                for place, (name, observer) in enumerate(observers.items())
                if (place + step) % TURNS == 0
                for item in observer.compare(also_late=dice.random() < 1 / 3)
            ]
            assert not wrong, "\n".join([f"after {kind}:", *wrong])
        pulled = sum(observer.whole_pulls for observer in observers.values())
        assert 0 < pulled < STEPS_OF_A_RUN * len(observers)
    finally:
        world.close()
        engine.dispose()


def read_login(world: World, name: str) -> dict[str, str]:
    """The status of each listed district."""
    vendor = world.vendors[name]
    answer = world.http.post("/v1/login", json=vendor.account, headers={"x-api-key": vendor.api_key}).get_json()
    return {district["sourcedId"]: district["status"] for district in answer.get("districts", ())}


def test_a_district_is_listed_until_its_last_tombstone_is_purged(world: World) -> None:
    consumer = make_consumer(world, "two districts", "v1")
    consumer.pull()
    assert consumer.copy["b-d"]
    world.remove_feed("b", at_once=False)
    assert read_login(world, "two districts") == {"a-d": "active", "b-d": "tobedeleted"}
    tombstones = consumer.read("b-d", consumer.instant)
    assert tombstones is not None
    assert {student["sourcedId"] for student in tombstones[0]} == set(consumer.copy["b-d"])
    assert consumer.update()
    assert consumer.copy["b-d"] == {}
    world.purge()
    assert read_login(world, "two districts") == {"a-d": "active"}
    consumer.update()
    assert set(consumer.copy) == {"a-d"}


def test_whoever_asks_for_schools_finds_those_that_close(world: World) -> None:
    rows = world.districts["a"].rows
    here = [(file, key, "") for file in ("roles", "enrollments", "classes") for key, row in rows[file].items()
            if "a-s1" in row.values()]  # fmt: skip
    vendor = world.vendors["a district"]
    edit(world, (*here, ("orgs", "a-s1", "")))
    answer = world.http.post("/v1/login", json=vendor.account, headers={"x-api-key": vendor.api_key}).get_json()
    (district,) = answer["districts"]
    assert {school["sourcedId"]: school["status"] for school in district["schools"]} == {
        "a-s1": "tobedeleted", "a-s2": "active"
    }  # fmt: skip


def test_another_identifier_makes_who_sees_the_district_pull_whole(world: World) -> None:
    """The lists of two districts change places, and no student has a stamp of it."""
    world.grant("a district", "a-e", None)
    seeing = make_consumer(world, "a district", "v1")
    seeing.pull()
    before = {path: set(records) for path, records in seeing.copy.items()}
    edit(world, (("orgs", "a-d", "identifier=a-e"), ("orgs", "a-e", "identifier=a-d")))
    assert not seeing.update()
    assert {path: set(records) for path, records in seeing.copy.items()} == {
        "a-d": before["a-e"], "a-e": before["a-d"]
    }  # fmt: skip
    assert seeing.update()
    world.grant("a district", "a-e", [])
