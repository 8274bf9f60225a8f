"""A tombstone whose school, group or vendor changes after it was flagged: nobody is told of the deletion twice, and its
purge leaves nothing of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

import pytest
import sqlalchemy as sa

from roster_service.db import tables
from sync_scripts.purge import purge
from tests.extent import cases

from .copies import WHOLE, find_wrong, open_copies
from .fixed_district import Edits, edit
from .world import VERSIONS, World

AWAY: Edits = (("roles", "a-r-p1", "orgSourcedId=a-s2"),)
DAYS = 7


@dataclass(frozen=True)
class Move:
    """What flags records, what then takes them from where they were, and who is served them; `records`: (table, id)."""

    vendor: str
    flag: Callable[[World], None]
    move: Callable[[World], None]
    records: tuple[tuple[str, str], ...]
    before: Edits = ()


def keep(vendor: str, person: str) -> Callable[[World], None]:
    """An operator keeps a person from a vendor."""
    return lambda world: world.keep(vendor, person, shown=False)


def load(*edits: tuple[str, str, str]) -> Callable[[World], None]:
    """A sync."""
    return lambda world: edit(world, edits)


MOVES = {
    "an enrollment, whose pupil moves": Move(
        "one school", load(("enrollments", "a-n-p1", "")), load(*AWAY), (("enrollments", "a-n-p1"),)
    ),
    "demographics, whose pupil moves": Move(
        "one school",
        load(("demographics", "a-p1", ""), ("enrollments", "a-n-p1", "")),
        load(*AWAY),
        (("demographics", "a-p1"),),
    ),
    "an enrollment, whose class moves": Move(
        "one school",
        load(("enrollments", "a-n-p4", "")),
        load(("classes", "a-k1", "schoolSourcedId=a-s2")),
        (("enrollments", "a-n-p4"),),
    ),
    "demographics, whose pupil leaves a group": Move(
        "some classes",
        load(("demographics", "a-p1", "")),
        load(("classes", "a-k1", "subjects=Art")),
        (("demographics", "a-p1"),),
        before=(("classes", "a-k1", "subjects=Math"),),
    ),
    "an enrollment, which leaves a group": Move(
        "some classes",
        load(("enrollments", "a-n-p1", "")),
        load(("classes", "a-k1", "subjects=Art")),
        (("enrollments", "a-n-p1"),),
        before=(("classes", "a-k1", "subjects=Math"),),
    ),
    "a person, who is kept from a vendor": Move(
        "two schools",
        load(
            *(("users", "a-p3", ""), ("demographics", "a-p3", "")),
            *(("roles", key, "") for key in ("a-r-p3", "a-r-p3-2")),
        ),
        keep("two schools", "a-p3"),
        (("users", "a-p3"), ("demographics", "a-p3")),
    ),
}


def read_stamps(world: World, move: Move) -> dict[tuple[str, str, str], str]:
    """The stamps with which the vendor is served the tombstones, by version, collection and id."""
    wanted = {(f"/{table}", key) for table, key in move.records}
    found = {}
    for version in VERSIONS:
        read = world.read_rostering(move.vendor, version).read
        for path in WHOLE:
            answer = read(path, None)
            for record in answer[0] if answer else ():
                if (path, record["sourcedId"]) in wanted and record["status"] == "tobedeleted":
                    found[version, path, record["sourcedId"]] = record["dateLastModified"]
    return found


@pytest.fixture
def shown_again(world: World) -> Iterator[None]:
    """At the end, nobody is kept from a vendor."""
    yield
    with world.engine.begin() as connection:
        connection.execute(sa.delete(tables.kept_people))


@pytest.mark.usefixtures("shown_again")
@pytest.mark.parametrize("move", cases(MOVES, quick=("an enrollment, whose pupil moves",)))
def test_a_tombstone_that_moves_is_served_as_before(world: World, move: Move) -> None:
    edit(world, move.before)
    late = open_copies(world, move.vendor)
    move.flag(world)
    before = read_stamps(world, move)
    assert before
    move.move(world)
    assert {key: stamp for key, stamp in read_stamps(world, move).items() if key in before} == before
    for consumer in late.values():
        consumer.update()
    assert find_wrong(late) == []


@pytest.mark.usefixtures("shown_again")
@pytest.mark.parametrize("move", cases(MOVES, quick=("an enrollment, whose pupil moves",)))
def test_a_purge_leaves_nothing_of_a_tombstone_that_moved(world: World, move: Move) -> None:
    edit(world, move.before)
    move.flag(world)
    with world.engine.begin() as connection:
        for table in tables.ROSTER_TABLES:
            old = {"date_last_modified": table.c.date_last_modified - timedelta(days=DAYS + 1)}
            connection.execute(sa.update(table).where(table.c.status == "tobedeleted").values(old))
    move.move(world)
    purge(world.engine, DAYS)
    assert read_stamps(world, move) == {}
    with world.engine.connect() as connection:
        left = {(row.type, row.sourced_id) for row in connection.execute(sa.select(tables.departures))}
    assert left.isdisjoint(move.records)
