"""A copy that is kept by the recipe of docs/vendors.md equals a whole pull, whatever happened."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from random import Random

import pytest
import sqlalchemy as sa

from roster_service.db.engine import make_engine
from tests.conftest import Tally
from tests.extent import examples

from .consumer import Answer, Consumer
from .copies import INTERFACES, list_differences, make_consumer
from .world import DATA, RIGHTS, STEPS, World

# make test: 30 steps; make check-long: 3,000.
STEPS_OF_A_RUN = 30
RUNS = examples(1, 1, 100)
# Each copy is compared after one of so many steps, but at full length: what is wrong in a copy stays wrong until the
# next whole pull.
TURNS = examples(8, 8, 1)


class Observer:
    """A vendor's consumers on one interface: one that follows each step, and one that skips some of them."""

    def __init__(self, world: World, vendor: str, interface: str) -> None:
        self.prompt, self.late = (make_consumer(world, vendor, interface) for _ in range(2))
        self.world, self.interface = world, interface
        self.floor = self.as_of = ""
        self.whole_pulls = 0
        self.prompt.pull()
        self.late.pull()

    def compare(self, *, also_late: bool) -> list[str]:
        """Updates the copies, and returns what is wrong with them."""
        collections = self.prompt.collections
        answers: dict[str, Answer | None] = {path: self.prompt.read(path, None) for path in collections}
        truth = Consumer(lambda path, _since: answers[path], collections)
        truth.pull()
        self.as_of = truth.instant
        self.floor = max((answer[1]["X-Roster-Deletions-Since"] for answer in answers.values() if answer), default="")
        self.whole_pulls += not self.prompt.update()
        wrong = [f"{item} (each step)" for item in list_differences(self.prompt.copy, truth.copy)]
        if also_late:
            self.late.update()
            wrong += [f"{item} (late)" for item in list_differences(self.late.copy, truth.copy)]
        if self.interface == "v1":
            # What a consumer cannot know of, it cannot delete.
            absent = self.world.list_leas() - answers.keys()
            wrong += [f"{lea} can be asked for and is not listed" for lea in absent if self.prompt.read(lea, None)]
        return wrong


def deal_steps(dice: Random, count: int, kinds: Collection[str] = STEPS) -> list[tuple[str, int]]:
    """Steps, each kind before any comes again, and a number for the dice of each."""
    decks = (dice.sample(sorted(kinds), len(kinds)) for _ in range(count // len(kinds) + 1))
    return [(name, dice.randrange(10**6)) for deck in decks for name in deck][:count]


class Run:
    """A sequence of steps, after each of which every copy is compared."""

    def __init__(self, engine: sa.Engine, folder: Path, number: int, counts: Counter[str]) -> None:
        self.world, self.counts, self.dice = World(engine, folder, number), counts, Random(number)
        self.steps, self.floors = 0, dict[tuple[str, bool], str]()
        # By vendor, the steps since its floor was looked at, and whether each took nothing from it.
        self.since: dict[tuple[str, bool], list[tuple[str, bool]]] = defaultdict(list)
        self.observers = {
            (name, interface): Observer(self.world, name, interface)
            for name in self.world.vendors
            for interface in INTERFACES
        }

    def compare(self, kind: str, changed: str | None) -> list[str]:
        """Compares copies with whole pulls, and looks at the floors; returns what is wrong. `changed`: the vendor whose
        rights have changed."""
        wrong = []
        self.steps += 1
        for name in self.world.vendors:
            for is_students in (False, True):
                self.since[name, is_students].append((kind, kind in DATA or (kind in RIGHTS and name != changed)))
        for place, ((name, interface), observer) in enumerate(self.observers.items()):
            if (place + self.steps) % TURNS:
                continue
            wrong += [f"{name}, {interface}: {item}" for item in observer.compare(also_late=self.dice.random() < 1 / 3)]
            self.counts["copies"] += 1
            # The scopes belong to the client of the rostering interface.
            floor = name, interface == "v1"
            moved = self.floors.get(floor, observer.floor) != observer.floor
            self.floors[floor] = observer.floor
            since = self.since.pop(floor, [])
            self.counts[f"moved: {kind}"] += moved and len(since) == 1
            is_free = all(free for _, free in since)
            # A purge moves the floor, and never past the as-of: whoever is up to date goes on.
            may_move = any(step == "a purge" for step, _ in since) and observer.floor <= observer.as_of
            if moved and is_free and not may_move and self.world.vendors[name].has_whole_districts:
                wrong.append(f"{name}, {interface}: has to pull whole for nothing")
        return wrong

    def take(self, kind: str, number: int) -> None:
        """Takes a step."""
        wrong = self.compare(kind, STEPS[kind](self.world, Random(number)))
        assert not wrong, "\n".join([f"after {kind}:", *wrong])


@pytest.fixture(scope="module")
def counts(tally: Tally) -> Iterator[Counter[str]]:
    """What all runs counted; the end of the run says it."""
    found: Counter[str] = Counter()
    yield found
    moved = {kind: found[f"moved: {kind}"] for kind in STEPS if found[f"moved: {kind}"]}
    tally(f"deltas: {found['copies']} copies, {found['whole']} whole pulls; floors that moved, by step: {moved}")


@pytest.mark.first
@pytest.mark.parametrize("number", range(RUNS))
def test_a_copy_equals_a_whole_pull_after_each_step(
    make_database: Callable[[], str], tmp_path: Path, number: int, counts: Counter[str]
) -> None:
    engine = make_engine(make_database())
    run = Run(engine, tmp_path, number, counts)
    try:
        for kind, dice in deal_steps(Random(number), STEPS_OF_A_RUN):
            run.take(kind, dice)
        counts["whole"] += sum(observer.whole_pulls for observer in run.observers.values())
    finally:
        run.world.close()
        engine.dispose()
