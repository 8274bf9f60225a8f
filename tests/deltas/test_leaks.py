"""A departure says that a record has left, and nothing else, to nobody who did not see the record before."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.auth.scopes import ScopeName
from roster_service.db import tables
from roster_service.db.engine import make_engine
from roster_service.roster.visibility import ContentRights, Viewer, row_is_visible
from tests.contract.client import RosterClient
from tests.extent import EXTENT, Extent, examples

from .consumer import Record
from .copies import INTERFACES, make_consumer
from .fixed_district import edit
from .test_crossings import EVENTS
from .test_deltas import deal_steps
from .world import STEPS, VERSIONS, World

# Runs of so many steps.
RUNS, STEPS_OF_A_RUN = examples(1, 1, 30), examples(13, 13, 25)
TABLES = {
    "/orgs": tables.orgs,
    "/academicSessions": tables.academic_sessions,
    "/courses": tables.courses,
    "/classes": tables.classes,
    "/enrollments": tables.enrollments,
    "/demographics": tables.demographics,
}
# What only records of the roster say.
SAID = re.compile(r"Given|Text|Class \d|Course|New|School \w|District \w|@|201[45]-|\b[abc]-[a-z]")


def list_watched(world: World) -> Iterator[tuple[str, str]]:
    """(vendor, interface): of each vendor all but one, in turn; in a run of all, each."""
    for place, vendor in enumerate(world.vendors):
        for turn, interface in enumerate(INTERFACES):
            if EXTENT is Extent.ALL or turn != place % len(INTERFACES):
                yield vendor, interface


class Watch:
    """Looks at all that vendors are shown. `shown`: what each list has shown since the vendor saw more orgs."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.shown: dict[str, dict[tuple[str, str], set[str]]] = defaultdict(lambda: defaultdict(set))
        # They keep their tokens, as consumers do, and need a new one only after a change of their rights.
        self.consumers = {(it, face): make_consumer(world, it, face) for it, face in list_watched(world)}
        self.orgs: dict[str, set[str]] = {}
        self.groups: dict[str, set[int]] = {}
        self.known_orgs: set[str] = set()

    def look(self, *vendors: str) -> Iterator[tuple[str, str, str, Record]]:
        """(vendor, interface, collection, record) of each departure that a vendor sees now; of each without
        `vendors`."""
        for vendor in vendors or self.world.vendors:
            tombstones = self.read_tombstones(vendor)
            own = {face: consumer for (name, face), consumer in self.consumers.items() if name == vendor}
            for interface, consumer in own.items():
                for path in consumer.collections:
                    answer = consumer.read(path, None)
                    for record in answer[0] if answer else ():
                        key = record["sourcedId"]
                        if record["status"] == "active":
                            self.shown[vendor][interface, path].add(key)
                        elif (TABLES.get(path, tables.users).name, key) not in tombstones:
                            yield vendor, interface, path, record
        with self.world.engine.connect() as connection:
            self.known_orgs = set(connection.scalars(sa.select(tables.orgs.c.sourced_id)))

    def read_tombstones(self, vendor: str) -> set[tuple[str, str]]:
        """(table, id) of the tombstones that a vendor sees. Forgets what was shown where it sees more orgs than before
        of those that there were, and where it has another group."""
        guardians = ScopeName.GUARDIANS in self.world.vendors[vendor].scopes
        rights = ContentRights(
            Viewer.RULED_VENDOR, guardians, metadata=frozenset(), metadata_keys=None, withheld=frozenset()
        )
        found = set()
        with self.world.engine.connect() as connection:
            own = tables.vendors.c.email == self.world.find_email(vendor)
            number = connection.scalar(sa.select(tables.vendors.c.id).where(own))
            granted = tables.visible_orgs.c.shared & (tables.visible_orgs.c.vendor_id == number)
            orgs = set(connection.scalars(sa.select(tables.visible_orgs.c.org_id).where(granted)))
            own_groups = tables.visible_groups.c.vendor_id == number
            groups = set(connection.scalars(sa.select(tables.visible_groups.c.group_id).where(own_groups)))
            for table in tables.ROSTER_TABLES:
                gone = sa.select(table.c.sourced_id).where(table.c.status == "tobedeleted")
                visible = gone.where(row_is_visible(table, table, rights))
                found |= {(table.name, key) for key in connection.scalars(visible, {"vendor_id": number})}
        has_other_rules = bool(groups - self.groups.get(vendor, groups))
        if has_other_rules or (orgs - self.orgs.get(vendor, orgs)) & self.known_orgs:
            self.shown[vendor].clear()
        self.groups[vendor] = groups
        self.orgs[vendor] = orgs
        return found


@pytest.mark.first
@pytest.mark.parametrize("number", range(RUNS))
def test_a_departure_says_nothing_and_only_where_the_record_was(
    make_database: Callable[[], str], tmp_path: Path, number: int
) -> None:
    assert follow_departures(make_database(), tmp_path / str(number), number) > 10


def follow_departures(url: str, folder: Path, number: int) -> int:
    """Takes the steps of a run, and returns how many departures vendors saw."""
    engine: sa.Engine = make_engine(url)
    world = World(engine, folder, number)
    watch, found = Watch(world), 0
    # Of each interface and type, what all departures say.
    fixed: dict[tuple[str, str], dict[str, Any]] = {}
    try:
        assert list(watch.look()) == []
        for kind, dice in deal_steps(Random(1000 + number), STEPS_OF_A_RUN):
            STEPS[kind](world, Random(dice))
            for vendor, interface, path, record in watch.look():
                found += 1
                shown = watch.shown[vendor]
                known = set(shown[interface, path])
                if interface == "v1p1" and path in ("/students", "/teachers"):
                    # 1.1 lists a person under one role alone, and a label has all of them.
                    known |= shown[interface, "/users"]
                assert record["sourcedId"] in known, (kind, vendor, interface, path)
                rest = {name: value for name, value in record.items() if name not in ("sourcedId", "dateLastModified")}
                assert rest == fixed.setdefault((interface, TABLES.get(path, tables.users).name), rest)
                assert not SAID.search(json.dumps(rest))
    finally:
        world.close()
        engine.dispose()
    return found


NOTHING = {"sourcedId": ""}
# What the guide says that a departure has beside `sourcedId`, `status` and `dateLastModified`, by its list; of a
# reference, the id alone.
FIXED: dict[str, dict[str, dict[str, Any]]] = {
    "v1p1": {
        "/courses/a-c3": {"title": ""},
        "/classes/a-k1": {"title": "", "course": NOTHING, "school": NOTHING, "terms": []},
        "/users/a-p4": {
            "enabledUser": "false", "givenName": "", "familyName": "", "username": "", "orgs": [],
            "role": "administrator",
        },
        "/enrollments/a-n-p1": {"user": NOTHING, "class": NOTHING, "school": NOTHING, "role": "administrator"},
    },
    "v1p2": {
        "/courses/a-c3": {"title": "", "courseCode": ""},
        "/classes/a-k1": {"title": "", "course": NOTHING, "school": NOTHING, "terms": []},
        "/users/a-p4": {"enabledUser": "false", "givenName": "", "familyName": "", "roles": []},
        "/enrollments/a-n-p1": {"user": NOTHING, "class": NOTHING, "school": NOTHING, "role": "administrator"},
    },
}  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
def test_a_departure_has_the_fixed_values_of_the_guide(world: World, version: str) -> None:
    edit(world, EVENTS["a class moves away"].edits)
    reader, own = world.read_rostering("one school", version), {"sourcedId", "status", "dateLastModified"}
    for path, fixed in FIXED[version].items():
        collection, _, key = path.rpartition("/")
        answer = reader.read(collection, None)
        assert answer is not None
        (found,) = (record for record in answer[0] if record["sourcedId"] == key)
        rest = {
            name: {"sourcedId": value["sourcedId"]} if isinstance(value, dict) else value
            for name, value in found.items()
            if name not in own
        }
        assert (found["status"], rest) == ("tobedeleted", fixed), path


VENDOR = "one school"
# A list, and what it has of the student who moved away.
LISTS = {
    "/users": {"a-p1"},
    "/students": {"a-p1"},
    "/teachers": set(),
    "/enrollments": {"a-n-p1"},
    "/demographics": {"a-p1"},
    "/classes": set(),
    "/schools/a-s1/students": set(),
    "/schools/a-s1/enrollments": set(),
    "/schools/a-s1/classes/a-k1/students": set(),
    "/schools/a-s1/classes/a-k1/enrollments": set(),
    "/classes/a-k1/students": set(),
}
QUERIES: dict[str, tuple[dict[str, str], bool]] = {
    "its id": ({"filter": "sourcedId='a-p1'"}, True),
    "its status": ({"filter": "status='tobedeleted'"}, True),
    "the other status": ({"filter": "status='active'"}, False),
    "not the other status": ({"filter": "status!='active'"}, True),
    "its stamp": ({"filter": "dateLastModified>'2020-01-01'"}, True),
    "an older stamp": ({"filter": "dateLastModified<'2020-01-01'"}, False),
    "a field that it does not say": ({"filter": "givenName='N'"}, False),
    "a field that it does not say, negated": ({"filter": "givenName!='x'"}, False),
    "an absent field, negated": ({"filter": "middleName!='x'"}, False),
    "a list, negated": ({"filter": "grades!='05'"}, False),
    "its status or another field": ({"filter": "status='tobedeleted' OR givenName='x'"}, True),
    "its status and another field": ({"filter": "status='tobedeleted' AND givenName!='x'"}, False),
    "a field of its schema's fixed values": ({"filter": "familyName=''"}, False),
    "every sort": ({"sort": "familyName"}, True),
    "backwards": ({"sort": "dateLastModified", "orderBy": "desc"}, True),
    "one field": ({"fields": "sourcedId"}, True),
}


@pytest.fixture
def client(world: World) -> RosterClient:
    """A client of the vendors, whose every answer is held against the document, after a student moved away."""
    edit(world, EVENTS["a student moves away"].edits)
    return RosterClient(world.app, {name: vendor.login for name, vendor in world.vendors.items()})


def call(world: World, client: RosterClient, version: str, path: str, **query: str) -> Any:
    """What the vendor of the school is answered."""
    scopes = tuple(map(str, sorted(world.vendors[VENDOR].scopes)))
    return client.call(version, path, query, vendor=VENDOR, scopes=scopes)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_lists_that_showed_a_record_show_its_departure(
    world: World,
    client: RosterClient,
    version: str,
) -> None:
    found = {}
    for path in LISTS:
        answer = call(world, client, version, path)
        assert answer.total == len(answer.ids) == len(set(answer.ids))
        found[path] = {key for key in answer.ids if key.endswith("p1")}
        assert {record["status"] for record in answer.records if record["sourcedId"] in found[path]} <= {"tobedeleted"}
        pages = [call(world, client, version, path, limit="1", offset=str(at)).ids for at in range(answer.total)]
        assert [key for page in pages for key in page] == answer.ids
    assert found == LISTS


@pytest.mark.parametrize("version", VERSIONS)
def test_a_departure_matches_what_it_says_alone(
    world: World,
    client: RosterClient,
    version: str,
) -> None:
    found = {}
    for name, (query, _) in QUERIES.items():
        answer = call(world, client, version, "/users", **query)
        assert answer.total == len(answer.ids)
        found[name] = "a-p1" in answer.ids
    assert found == {name: is_there for name, (_, is_there) in QUERIES.items()}


@pytest.mark.parametrize("version", VERSIONS)
def test_what_left_is_readable_by_its_id(world: World, client: RosterClient, version: str) -> None:
    for path in ("/users/a-p1", "/students/a-p1", "/enrollments/a-n-p1", "/demographics/a-p1"):
        (record,) = call(world, client, version, path).records
        assert record["status"] == "tobedeleted"
        assert not SAID.search(json.dumps({**record, "sourcedId": ""}))
    for path in ("/teachers/a-p1", "/users/a-p2", "/enrollments/a-n-p2", "/demographics/a-p2"):
        assert call(world, client, version, path).status == 404


def list_departures(world: World, vendor: str) -> set[tuple[str, str, str]]:
    """What a vendor sees of the student of the second role, as a departure."""
    return {(interface, path, record["sourcedId"]) for _, interface, path, record in Watch(world).look(vendor)}


def test_a_departure_is_for_who_sees_its_org_now_and_did_then(world: World) -> None:
    edit(world, EVENTS["a second role ends"].edits)
    assert list_departures(world, "one school")
    # These two did not see the school when the person left, or have lost it since.
    world.grant("schools of two", "a-d", ["a-s1"])
    world.grant("one school", "a-d", [])
    assert list_departures(world, "schools of two") == set()
    assert list_departures(world, "one school") == set()
    world.grant("one school", "a-d", ["a-s1"])
    assert list_departures(world, "one school") == set()
    assert list_departures(world, "a district") == set()
    world.grant("schools of two", "a-d", ["a-s2"])
