"""Every page shows what the tables say, whatever the roster, the rights of the caller, and what it asks for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from random import Random
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.auth.scopes import ScopeName
from roster_service.db.engine import make_engine
from roster_service.roster.withheld import WithheldField
from roster_service.schemas.flags import PermissionFlag
from tests.access_matrix.cells import RESOURCES
from tests.access_matrix.path_collections import COLLECTIONS
from tests.access_matrix.record_json import Json, Shower
from tests.access_matrix.roster import ROSTER
from tests.access_matrix.visible_records import Eyes, Grants, Roster, by_id
from tests.conftest import Tally
from tests.contract.client import CORE, DEMOGRAPHICS, FULL, GUARDIANS, SCOPES, VERSIONS, Answer, RosterClient
from tests.contract.model import top_level
from tests.extent import examples

from .districts import CHANGES, move_school
from .filled_exports import add_strange_records, fill
from .world import Vendor, World

# Rosters, and the vendors that ask for pages of each; the first one sees everything.
ROSTERS, VENDORS = examples(1, 1, 60), examples(3, 4, 9)
EVERYTHING = "everything"
# The scopes that open parts of a roster; either of the two others opens the rest.
CONTENTS = [scope for scope in SCOPES if scope not in (CORE, FULL)]
PATHS = [path for path in COLLECTIONS if "{" not in path]


@dataclass(frozen=True)
class Caller:
    """Who asks, and what the operator has decided about it."""

    vendor: str
    version: str
    scopes: tuple[str, ...]
    grants: Grants
    withheld: frozenset[str]


def read_roster(engine: sa.Engine) -> Roster:
    """The tables, as their owner reads them."""
    with engine.connect() as connection:
        roster = {
            name: [dict(row) for row in connection.execute(sa.text(f"SELECT * FROM {name}")).mappings()]
            for name in ROSTER
        }
    for rows in roster.values():
        for row in rows:
            if "date_last_modified" in row:
                row["date_last_modified"] = row["date_last_modified"].astimezone(UTC)
    return roster


class FilledWorld(World):
    """A world whose feeds bring strange records too, and say something in every column."""

    def load(self, feed: str, bend: Callable[[Path], None] | None = None) -> None:
        if not self.districts[feed].find("orgs", type="state"):
            add_strange_records(self.districts[feed])
        super().load(feed, bend or fill(self.districts[feed].dice))


def change(world: World, dice: Random) -> None:
    """Some runs of the sync, in which people, classes and schools come, move and go."""
    for feed in "baa":
        district = world.districts[feed]
        for name in dice.sample(sorted(CHANGES), 20):
            CHANGES[name](district)
        if feed == "a":
            move_school(district)
        world.load(feed)


def draw_grants(roster: Roster, dice: Random) -> Grants:
    """Whole districts, single schools of others, or both; something at least."""
    active = [org for org in roster["orgs"] if org["status"] == "active" and org["district_id"]]
    whole = dice.sample(list_districts(roster), dice.choice([0, 0, 1, 2]))
    others = [org for org in active if org["type"] == "school" and org["district_id"] not in whole]
    schools = sorted(org["sourced_id"] for org in others)
    return Grants(tuple(whole), tuple(dice.sample(schools, dice.randint(0 if whole else 1, 3))))


def list_districts(roster: Roster) -> list[str]:
    """The ids of the districts, which never end."""
    return sorted(org["sourced_id"] for org in roster["orgs"] if org["type"] == "district")


def make_vendor(roster: Roster, grants: Grants, withheld: Collection[WithheldField], *, contacts: bool) -> Vendor:
    """A vendor with these grants, whose client has every scope; `contacts`: whether it has the permission flags."""
    orgs, given = by_id("orgs", roster), dict[str, list[str] | None]()
    for school in grants.schools:
        given[orgs[school]["district_id"]] = [*(given.get(orgs[school]["district_id"]) or ()), school]
    flags = frozenset(PermissionFlag) if contacts else frozenset[PermissionFlag]()
    return Vendor({**given, **dict.fromkeys(grants.districts)}, frozenset(ScopeName), frozenset(withheld), flags)


def add_callers(world: World, roster: Roster, dice: Random) -> Iterator[Caller]:
    """New vendors, who are shown no departure of before their grants. What is withheld from one is not from the next,
    and a scope that one has in a version it lacks in the other."""
    everything = Grants(tuple(list_districts(roster)))
    world.add_vendor(EVERYTHING, make_vendor(roster, everything, (), contacts=True))
    yield from (Caller(EVERYTHING, version, SCOPES, everything, frozenset()) for version in VERSIONS)
    for number in range(1, VENDORS):
        if number % 2:
            fields = dice.sample(sorted(WithheldField), len(WithheldField))
        name, grants, contacts = f"vendor {number}", draw_grants(roster, dice), dice.random() < 0.7
        withheld = fields[number % 2 :: 2]
        world.add_vendor(name, make_vendor(roster, grants, withheld, contacts=contacts))
        hidden = frozenset({*map(str, withheld), *(() if contacts else ("phone", "sms"))})
        more = dice.sample(CONTENTS, len(CONTENTS))
        for place, version in enumerate(VERSIONS):
            yield Caller(name, version, (dice.choice([CORE, FULL]), *more[place::2]), grants, hidden)


def expect(roster: Roster, caller: Caller, path: str, fields: list[str]) -> list[Json]:
    """What a collection shows a caller: its records in the order of feeds and ids, less what was not asked for."""
    collection = COLLECTIONS[path]
    eyes = Eyes(caller.grants, guardians=GUARDIANS in caller.scopes, roster=roster)
    shower = Shower(eyes, caller.version, caller.scopes, caller.withheld)
    seen = getattr(eyes, collection.table)
    return [
        {name: value for name, value in shower.show(collection.table, row).items() if not fields or name in fields}
        for row in sorted(roster[collection.table], key=lambda row: (row["feed_id"], row["sourced_id"]))
        if row["sourced_id"] in seen and collection.holds(eyes, row, {}, caller.version)
    ]


def read_pages(client: RosterClient, caller: Caller, path: str, fields: list[str], limit: int) -> list[Json]:
    """All records of a collection, page by page."""
    query = {"limit": str(limit)} | ({"fields": ",".join(fields)} if fields else {})

    def ask(offset: int) -> Answer:
        more = {"offset": str(offset)}
        return client.call(caller.version, path, query | more, scopes=caller.scopes, vendor=caller.vendor)

    first = ask(0)
    records = [*first.records, *(it for at in range(limit, first.total, limit) for it in ask(at).records)]
    assert first.total == len(records)
    return records


def find_difference(expected: list[Json], found: list[Json]) -> Any:
    """The first difference of two lists of records; None where there is none."""
    ids = [[record["sourcedId"] for record in records] for records in (expected, found)]
    if ids[0] != ids[1]:
        return {"missing": sorted({*ids[0]} - {*ids[1]}), "too many": sorted({*ids[1]} - {*ids[0]}), "found": ids[1]}
    for record, other in zip(expected, found, strict=True):
        names = [name for name in {**record, **other} if record.get(name) != other.get(name)]
        if names:
            return record["sourcedId"], {name: (record.get(name), other.get(name)) for name in names}
    return None


@pytest.fixture
def engine(make_database: Callable[[], str]) -> Iterator[sa.Engine]:
    """A database for this test."""
    made = make_engine(make_database())
    yield made
    made.dispose()


def compare(client: RosterClient, roster: Roster, caller: Caller, dice: Random) -> Iterator[tuple[str, list[Json]]]:
    """Compares every collection, whole or some fields of it; yields the table and the records of each."""
    for path in PATHS:
        if path == "/demographics" and DEMOGRAPHICS not in caller.scopes:
            continue
        table = COLLECTIONS[path].table
        names = {"sourcedId", *dice.sample(top_level(caller.version, RESOURCES[table]), 4)}
        fields = sorted(names) if caller.vendor != EVERYTHING and dice.random() < 0.2 else []
        expected = expect(roster, caller, path, fields)
        found = read_pages(client, caller, path, fields, dice.choice([7, 40, 1000]))
        wrong = find_difference(expected, found)
        assert wrong is None, f"{caller} {path} {fields}: by the tables, and as shown: {wrong}"
        yield table, found


@pytest.mark.parametrize("number", range(ROSTERS))
def test_pages_show_what_the_tables_say(engine: sa.Engine, tmp_path: Path, tally: Tally, number: int) -> None:
    world, dice, compared = FilledWorld(engine, tmp_path, 3 * number), Random(number), 0
    shown: dict[tuple[str, str], set[str]] = defaultdict(set)
    try:
        change(world, dice)
        roster = read_roster(engine)
        callers = list(add_callers(world, roster, dice))
        client = RosterClient(world.app, {name: vendor.login for name, vendor in world.vendors.items()})
        for caller in callers:
            for table, records in compare(client, roster, caller, dice):
                compared += len(records)
                shown[caller.version, table].update(*records)
    finally:
        world.close()
    tally(f"pages: {compared} records compared")
    # A field that no record has would not have been compared.
    for version, table in shown:
        assert shown[version, table] == {*top_level(version, RESOURCES[table])} - {"resources"}
