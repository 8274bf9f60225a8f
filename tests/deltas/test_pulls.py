"""Pulls of clients of one to three districts, with syncs and purges between their pages: each is whole, or 410."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from random import Random
from urllib.parse import urlencode

import pytest
import sqlalchemy as sa
from werkzeug.test import TestResponse

from roster_service.db import tables
from roster_service.db.engine import make_engine
from sync_scripts.retention import delete_old_orderings
from tests.conftest import Tally
from tests.contract.client import ROOTS, VERSIONS
from tests.contract.model import RESOURCES, filterable, sortable
from tests.extent import examples

from .consumer import Rostering
from .world import DATA, World

# make test: 20 pulls; make check-long: 500.
PULLS_OF_A_RUN = 20
RUNS = examples(1, 1, 25)
# A vendor -> its districts.
DISTRICTS = {"a district": "a-d", "two districts": "a-d b-d", "schools of two": "a-d b-d c-d"}
FILTERS = {"text": "{}!='x'", "instant": "{}>'2020-01-01'", "day": "{}!='2020-01-01'", "flag": "{}!='false'"}
EVERYTHING = "1000"


@pytest.fixture
def world(make_database: Callable[[], str], tmp_path: Path) -> Iterator[World]:
    """A world whose vendors see whole districts, and no withheld fields."""
    engine = make_engine(make_database())
    made = World(engine, tmp_path)
    for vendor, districts in DISTRICTS.items():
        made.set_withheld(vendor, frozenset())
        for district in districts.split():
            made.grant(vendor, district, None)
    yield made
    made.close()
    engine.dispose()


def list_ids(answer: TestResponse) -> list[str]:
    """The ids of a page."""
    assert answer.status_code == 200, answer.data
    (records,) = (value for key, value in answer.get_json().items() if key != "statusInfoSet")
    return [record["sourcedId"] for record in records]


def draw_query(dice: Random, version: str, path: str) -> dict[str, str]:
    """A query without a limit: a sort or none, and a filter or none."""
    query = {}
    if dice.random() < 0.8:
        query["sort"] = dice.choice(["sourcedId", *sortable(version, path)])
        query["orderBy"] = dice.choice(["asc", "desc"])
    if dice.random() < 0.5:
        kinds = {name: kind for name, kind in filterable(version, path).items() if kind in FILTERS}
        name = dice.choice(sorted(kinds))
        query["filter"] = FILTERS[kinds[name]].format(name)
    return query


def change_something(world: World, dice: Random) -> None:
    """A sync, or a purge."""
    kind = dice.choice(["a purge", *DATA])
    DATA[kind](world, dice)


def read_pull(
    get: Callable[[str], TestResponse], address: str, limit: int, *, by_link: bool, between: Callable[[], None]
) -> list[str] | None:
    """The ids of all pages; None where one of them is 410."""
    found: list[str] = []
    next_page: str | None = f"{address}&limit={limit}"
    while next_page:
        answer = get(next_page)
        if answer.status_code == 410:
            return None
        found += list_ids(answer)
        if by_link:
            links = dict(reversed(link.split("; ")) for link in answer.headers.get("Link", "").split(",") if link)
            next_page = links.get('rel="next"', "").strip(" <>") or None
        else:
            offset = len(found)
            next_page = (
                f"{address}&limit={limit}&offset={offset}" if offset < int(answer.headers["X-Total-Count"]) else None
            )
        between()
    return found


@pytest.mark.parametrize("run", range(RUNS))
def test_each_pull_is_whole_or_refused(world: World, tally: Tally, run: int) -> None:
    dice, outcomes = Random(run), Counter[str]()
    readers = {(vendor, version): world.read_rostering(vendor, version) for vendor in DISTRICTS for version in VERSIONS}
    for number in range(PULLS_OF_A_RUN):
        version, path = dice.choice(VERSIONS), dice.choice(RESOURCES)
        reader: Rostering = readers[dice.choice(sorted(DISTRICTS)), version]
        query = draw_query(dice, version, path)
        address = f"{ROOTS[version]}{path}?{urlencode(query)}"
        expected = list_ids(reader._get(f"{address}&limit={EVERYTHING}"))
        assert len(set(expected)) == len(expected) < int(EVERYTHING)
        if query.get("sort") == "sourcedId":
            assert expected == sorted(expected, reverse=query["orderBy"] == "desc")

        def between() -> None:
            if dice.random() < 0.15:
                change_something(world, dice)

        limit = dice.choice([1, 2, 3, 7, 20, dice.randint(1, 1000)])
        found = read_pull(reader._get, address, limit, by_link=dice.random() < 0.5, between=between)
        outcomes["410" if found is None else "whole"] += 1
        assert found in (None, expected), (number, address, limit)
    assert outcomes["whole"] > PULLS_OF_A_RUN / 2
    tally(f"pulls: {dict(outcomes)}")


@pytest.mark.parametrize("sorts", [("", "&sort=sourcedId"), ("&sort=sourcedId", "")])
def test_the_order_by_district_and_the_order_by_id_do_not_mix(world: World, sorts: tuple[str, str]) -> None:
    reader = world.read_rostering("two districts", "v1p2")
    for path in ("/users", "/orgs", "/enrollments"):
        orders = []
        for sort in sorts:
            address = f"{ROOTS['v1p2']}{path}?{sort}"
            ids = read_pull(reader._get, address, 4, by_link=False, between=lambda: None)
            assert ids is not None
            orders.append(ids)
            if sort:
                assert ids == sorted(ids)
        assert orders[0] != orders[1]
        assert sorted(orders[0]) == sorted(orders[1])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_later_page_of_a_pull_that_has_ended_is_refused(world: World, version: str) -> None:
    """Also by offset alone, once its revision is gone. Who never began one gets the page."""
    reader, other = (world.read_rostering(vendor, version) for vendor in ("two districts", "a district"))
    address = f"{ROOTS[version]}/users?limit=2"
    assert len(list_ids(reader._get(address))) == 2
    DATA["a person joins"](world, Random(1))
    with world.engine.begin() as connection:
        connection.execute(sa.update(tables.pulls).values(ends_at=tables.pulls.c.begun_at))
        connection.execute(tables.orderings.delete())
    assert reader._get(f"{address}&offset=2").status_code == 410
    assert other._get(f"{address}&offset=2").status_code == 200
    assert reader._get(address).status_code == 200
    assert reader._get(f"{address}&offset=2").status_code == 200


@pytest.mark.parametrize("is_under_way", [True, False])
def test_the_nightly_sync_leaves_what_a_pull_under_way_reads(world: World, is_under_way: bool) -> None:
    """While nothing changes, an ordering of days ago serves."""
    reader = world.read_rostering("two districts", "v1p2")
    address = f"{ROOTS['v1p2']}/users?sort=familyName&limit=2"
    assert len(list_ids(reader._get(address))) == 2
    with world.engine.begin() as connection:
        connection.execute(sa.update(tables.orderings).values(made_at=sa.func.now() - timedelta(days=2)))
        if not is_under_way:
            connection.execute(sa.update(tables.pulls).values(ends_at=tables.pulls.c.begun_at))
    DATA["a person joins"](world, Random(1))
    delete_old_orderings(world.engine)
    assert reader._get(f"{address}&offset=2").status_code == (200 if is_under_way else 410)


@pytest.mark.parametrize("query", ["filter=status%3D%27active%27", "filter=status%3D%27active%27&sort=familyName", ""])
def test_a_purge_of_what_left_before_a_grant_leaves_a_pull(world: World, query: str) -> None:
    """The departures hide nothing any more from whoever was granted something after them; the view is the same."""
    for number in range(4):
        DATA["a student moves"](world, Random(number))
    world.grant("a district", "b-d", None)
    reader = world.read_rostering("a district", "v1p2")
    # Terms have no tombstones, so a whole collection of theirs loses no record.
    address = f"{ROOTS['v1p2']}{'/users' if query else '/academicSessions'}?{query}"

    def count_departures() -> int:
        with world.engine.connect() as connection:
            return int(connection.scalar(sa.select(sa.func.count()).select_from(tables.departures)) or 0)

    def between() -> None:
        assert count_departures() == 0 if purged else count_departures() > 0
        if not purged:
            world.purge()
            purged.append(True)

    purged: list[bool] = []
    expected = list_ids(reader._get(f"{address}&limit={EVERYTHING}"))
    assert read_pull(reader._get, address, 2, by_link=True, between=between) == expected
    assert purged
