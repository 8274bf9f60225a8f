"""What comes into, and goes out of, the copy of a vendor of single schools: a table of the events of one night."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from roster_service.auth.scopes import ScopeName
from roster_service.feeds.exclusions import ExclusionKind
from roster_service.roster.withheld import WithheldField
from roster_service.schemas.flags import PermissionFlag
from tests.contract.client import ROOTS
from tests.extent import cases
from tests.sync.export_changes import column

from .consumer import Consumer
from .copies import LEAS, PATHS, choose_interfaces, find_wrong, open_copies
from .fixed_district import Edits, edit
from .world import VERSIONS, World

Ids = dict[str, str]


@dataclass(frozen=True)
class Event:
    """What happens in a night, and what then goes from the collections of a vendor, or comes: ids without the feed;
    `a-d`: the students of the district on the vendor interface."""

    vendor: str
    edits: Edits
    gone: Ids = field(default_factory=dict)
    come: Ids = field(default_factory=dict)


def person(key: str, more: str = "") -> Ids:
    """A student with demographics."""
    found = {"/users": key, "/students": key, "/demographics": key, "a-d": key}
    return found | ({"/enrollments": more} if more else {})


STAYS_ENROLLED: Edits = (("roles", "a-r-p1", "orgSourcedId=a-s2"),)
CLASS_GOES = {
    "/classes": "k1", "/courses": "c3", "/enrollments": "n-p1 n-p4 n-t1", "/users": "p4", "/students": "p4",
    "a-d": "p4",
}  # fmt: skip
OTHER_SCHOOL = "classSourcedId=a-k2 schoolSourcedId=a-s2"
THIS_SCHOOL = "classSourcedId=a-k1 schoolSourcedId=a-s1"
EVENTS = {
    "a student moves away": Event(
        "one school", (*STAYS_ENROLLED, ("enrollments", "a-n-p1", OTHER_SCHOOL)), gone=person("p1", "n-p1")
    ),
    "a student moves away, whose enrollment ends": Event(
        "one school", (*STAYS_ENROLLED, ("enrollments", "a-n-p1", "")), gone=person("p1", "n-p1")
    ),
    # Whoever has an enrollment at a school belongs to it.
    "a student moves away, who stays enrolled": Event("one school", STAYS_ENROLLED),
    "a teacher moves away": Event(
        "one school",
        (("roles", "a-r-t1", "orgSourcedId=a-s2"), ("enrollments", "a-n-t1", OTHER_SCHOOL)),
        gone={"/users": "t1", "/teachers": "t1", "/enrollments": "n-t1"},
    ),
    "a guardian moves away": Event("two schools", (("roles", "a-r-g1", "orgSourcedId=a-s3"),), gone={"/users": "g1"}),
    "a second role ends": Event("one school", (("roles", "a-r-p3-2", ""),), gone=person("p3")),
    "a guest enrollment ends": Event(
        "one school", (("enrollments", "a-n-p4", ""),),
        gone={"/users": "p4", "/students": "p4", "/enrollments": "n-p4", "a-d": "p4"},
    ),
    "a student leaves the SIS": Event(
        "one school",
        (
            ("users", "a-p1", ""), ("roles", "a-r-p1", ""), ("demographics", "a-p1", ""),
            ("enrollments", "a-n-p1", ""), ("users", "a-g1", "agentSourcedIds="),
        ),
        gone=person("p1", "n-p1"),
    ),
    "a student moves in": Event(
        "one school",
        (("roles", "a-r-p2", "orgSourcedId=a-s1"), ("enrollments", "a-n-p2", THIS_SCHOOL)),
        come=person("p2", "n-p2"),
    ),
    "a teacher moves in": Event(
        "one school", (("roles", "a-r-t2", "orgSourcedId=a-s1"),), come={"/users": "t2", "/teachers": "t2"}
    ),
    "a guardian moves in": Event("two schools", (("roles", "a-r-g3", "orgSourcedId=a-s1"),), come={"/users": "g3"}),
    "a second role begins": Event(
        "one school",
        (("roles", "a-r-p2-2", "userSourcedId=a-p2 roleType=secondary role=student orgSourcedId=a-s1"),),
        come=person("p2"),
    ),
    "a guest enrollment begins": Event(
        "one school", (("enrollments", "a-n-2", f"{THIS_SCHOOL} userSourcedId=a-p2 role=student"),),
        come=person("p2", "n-2"),
    ),
    "a guest enrollment begins, and the guardian stays hidden": Event(
        "schools of two", (("enrollments", "a-n-1", f"{OTHER_SCHOOL} userSourcedId=a-p1 role=student"),),
        come=person("p1", "n-1"),
    ),
    "a student teaches a class of another school": Event(
        "one school", (("enrollments", "a-n-2", f"{THIS_SCHOOL} userSourcedId=a-p2 role=teacher"),),
        come={"/users": "p2", "/teachers": "p2", "/demographics": "p2", "/enrollments": "n-2"},
    ),
    "a guest becomes a teacher": Event(
        "one school", (("enrollments", "a-n-p4", "role=teacher"),),
        gone={"/students": "p4", "a-d": "p4"}, come={"/teachers": "p4"},
    ),
    "a guest becomes an aide": Event(
        "one school", (("enrollments", "a-n-p4", "role=ext:aide"),), gone={"/students": "p4", "a-d": "p4"}
    ),
    "a guest enrollment has ended by its days": Event(
        "one school", (("enrollments", "a-n-p4", "endDate=2001-01-01"),)
    ),
    # Its enrollments come along, and its people belong to its school.
    "a class moves in": Event(
        "one school", (("classes", "a-k2", "schoolSourcedId=a-s1"),),
        come=person("p2", "n-p2 n-t2") | {"/users": "p2 t2", "/classes": "k2", "/courses": "c2", "/teachers": "t2"},
    ),
    "a class moves away": Event(
        "one school",
        (("classes", "a-k1", "schoolSourcedId=a-s2"), ("enrollments", "a-n-p4", "schoolSourcedId=a-s2")),
        gone=CLASS_GOES,
    ),
    "a class changes its course": Event(
        "one school", (("classes", "a-k1", "courseSourcedId=a-c2"),), gone={"/courses": "c3"}, come={"/courses": "c2"}
    ),
    "the first class of another school's course": Event(
        "one school",
        (("classes", "a-k3", "title=K classType=scheduled courseSourcedId=a-c2 schoolSourcedId=a-s1 "
          "termSourcedIds=a-t1"),),
        come={"/classes": "k3", "/courses": "c2"},
    ),
    "the last class of another school's course ends": Event(
        "one school", (("classes", "a-k1", ""), *(("enrollments", f"a-n-{key}", "") for key in ("p1", "p4", "t1"))),
        gone=CLASS_GOES,
    ),
    "a student becomes a teacher": Event(
        "one school", (("roles", "a-r-p1", "role=teacher"), ("enrollments", "a-n-p1", "role=teacher")),
        gone={"/students": "p1", "a-d": "p1"}, come={"/teachers": "p1"},
    ),
    "a guardian becomes an aide": Event(
        "one school", (("roles", "a-r-g1", "role=aide"),), come={"/users": "g1"}
    ),
    "a guardian becomes an aide, and a student has one agent less on the vendor interface": Event(
        "two districts", (("roles", "a-r-g1", "role=aide"),)
    ),
    "demographics end": Event("a district", (("demographics", "a-p1", ""),), gone={"/demographics": "p1"}),
    "an enrollment ends": Event("a district", (("enrollments", "a-n-p1", ""),), gone={"/enrollments": "n-p1"}),
    "a teacher's enrollment ends": Event("a district", (("enrollments", "a-n-t1", ""),), gone={"/enrollments": "n-t1"}),
}  # fmt: skip


# One of each kind: a person, a class and its course, a part of a person; here, and of the changes of rights below.
QUICK_EVENTS = (
    "a student moves away", "a guest enrollment begins", "a class moves away", "a class changes its course",
    "a student becomes a teacher", "demographics end",
)  # fmt: skip
QUICK_RIGHTS = ("a school less", "a district more", "the guardians' scope is taken", "a field is withheld")


def list_ids(consumer: Consumer) -> set[tuple[str, str]]:
    """(collection, id) of each record of a copy."""
    return {(path, key) for path, records in consumer.copy.items() for key in records}


def read_ids(said: Ids, interface: str) -> set[tuple[str, str]]:
    """The same of the table, of one interface."""
    paths = LEAS if interface == "v1" else PATHS
    return {(path, f"a-{key}") for path, keys in said.items() if path in paths for key in keys.split()}


@pytest.mark.parametrize("name", cases({name: name for name in EVENTS}, quick=QUICK_EVENTS))
def test_a_sync_changes_the_copy_by_what_crosses(world: World, name: str) -> None:
    event = EVENTS[name]
    copies = open_copies(world, event.vendor, interfaces=choose_interfaces(name))
    before = {interface: list_ids(consumer) for interface, consumer in copies.items()}
    edit(world, event.edits)
    assert [interface for interface, consumer in copies.items() if not consumer.update()] == []
    found, expected = {}, {}
    for interface, consumer in copies.items():
        after = list_ids(consumer)
        found[interface] = {"gone": before[interface] - after, "come": after - before[interface]}
        expected[interface] = {"gone": read_ids(event.gone, interface), "come": read_ids(event.come, interface)}
    assert found == expected
    assert find_wrong(copies) == []


@dataclass(frozen=True)
class Right:
    """A change of a vendor's rights, and the change that takes it back."""

    vendor: str
    change: Callable[[World], None]
    back: Callable[[World], None]


def grants(vendor: str, district: str, schools: list[str] | None, before: list[str] | None) -> Right:
    """Other grants of a district."""
    return Right(
        vendor,
        lambda world: world.grant(vendor, district, schools),
        lambda world: world.grant(vendor, district, before),
    )


def scopes(vendor: str, scope: ScopeName) -> Right:
    """A scope that is given or taken."""

    def change(world: World) -> None:
        world.set_scopes(vendor, world.vendors[vendor].scopes ^ {scope})

    return Right(vendor, change, change)


def withholds(vendor: str, field: WithheldField) -> Right:
    """A field that is withheld or shown again."""

    def change(world: World) -> None:
        world.set_withheld(vendor, world.vendors[vendor].withheld ^ {field})

    return Right(vendor, change, change)


def flags(vendor: str, flag: PermissionFlag) -> Right:
    """A flag that is given or taken."""

    def change(world: World) -> None:
        world.set_flags(vendor, world.vendors[vendor].flags ^ {flag})

    return Right(vendor, change, change)


RIGHTS = {
    "a school more": grants("one school", "a-d", ["a-s1", "a-s2"], ["a-s1"]),
    "a school less": grants("two schools", "a-d", ["a-s1"], ["a-s1", "a-s2"]),
    "another school": grants("one school", "a-d", ["a-s2"], ["a-s1"]),
    "the last school": grants("one school", "a-d", [], ["a-s1"]),
    "a whole district for a school": grants("one school", "a-d", None, ["a-s1"]),
    "a district more": grants("a district", "b-d", None, []),
    "a district less": grants("two districts", "b-d", [], None),
    "a district of the same feed": grants("a district", "a-e", None, []),
    "the guardians' scope is given": scopes("a district", ScopeName.GUARDIANS),
    "the guardians' scope is taken": scopes("two districts", ScopeName.GUARDIANS),
    "the scope of demographics is taken": scopes("a district", ScopeName.DEMOGRAPHICS),
    "a field is withheld": withholds("a district", WithheldField.EMAIL),
    "a field is shown": withholds("schools of two", WithheldField.BIRTH_DATE),
    "agents are withheld": withholds("two districts", WithheldField.AGENTS),
    "the flag for contacts is taken": flags("a district", PermissionFlag.CONTACTS),
}


@pytest.mark.parametrize("name", cases({name: name for name in RIGHTS}, quick=QUICK_RIGHTS))
def test_a_change_of_rights_makes_its_vendor_pull_whole_and_no_other(world: World, name: str) -> None:
    right, interfaces = RIGHTS[name], choose_interfaces(name)
    # Whether a vendor has to pull whole is the same in each collection.
    others = {
        other: open_copies(world, other, ("/orgs",), interfaces) for other in world.vendors if other != right.vendor
    }
    copies = open_copies(world, right.vendor, interfaces=interfaces)
    for change in (right.change, right.back):
        change(world)
        whole = {interface for interface, consumer in copies.items() if not consumer.update()}
        assert find_wrong(copies) == []
        # The vendor interface has no scopes.
        assert whole >= {interface for interface in interfaces if interface != "v1"}
        # Once: the floor is not later than the instant of the new copy.
        assert all(consumer.update() for consumer in copies.values() if consumer.instant)
    assert {
        (other, interface)
        for other, kept in others.items()
        for interface, consumer in kept.items()
        if consumer.instant and not consumer.update()
    } == set()


@pytest.mark.parametrize("path", ["/users", "/schools/a-s1/students", "/classes/a-k1/students", "/students"])
def test_a_pull_goes_on_with_who_has_left_since_its_first_page(world: World, path: str) -> None:
    """As a departure, below a parent, too: else the page would lack a record, and the pull would be refused."""
    reader, address = (
        world.read_rostering("one school", "v1p2"),
        f"{ROOTS['v1p2']}{path}?sort=sourcedId&orderBy=desc&limit",
    )

    def read(query: str) -> list[tuple[str, str]]:
        answer = reader._get(f"{address}={query}")
        assert answer.status_code == 200, answer.data
        return [(record["sourcedId"], record["status"]) for record in answer.get_json()["users"]]

    whole = [key for key, _ in read("100")]
    place = whole.index("a-p1")
    assert [key for key, _ in read("1")] == whole[:1]
    edit(world, EVENTS["a student moves away"].edits)
    assert read(f"1&offset={place}") == [("a-p1", "tobedeleted")]
    assert [key for key, _ in read("100&offset=1")] == whole[1:]


def test_a_delta_without_a_change_is_empty(world: World) -> None:
    """Of the instant of a copy, not of one before it: a record with the stamp of this instant was in the copy."""
    edit(world, EVENTS["a student moves away"].edits)
    for shown in (False, True):
        world.keep("some grades", "a-p2", shown=shown)
        for name in world.vendors:
            for interface, consumer in open_copies(world, name).items():
                answers = {path: consumer.read(path, consumer.instant) for path in consumer.collections}
                assert consumer.instant
                assert {path: answer[0] for path, answer in answers.items() if answer and answer[0]} == {}, interface


def test_the_same_rights_again_move_nothing(world: World) -> None:
    copies = open_copies(world, "one school")
    world.grant("one school", "a-d", ["a-s1"])
    world.set_scopes("one school", world.vendors["one school"].scopes)
    world.set_withheld("one school", world.vendors["one school"].withheld)
    world.set_flags("one school", world.vendors["one school"].flags)
    assert all(consumer.update() for consumer in copies.values())


def test_the_purge_of_what_a_student_included_makes_no_wrong_copy(world: World) -> None:
    """Tombstones of enrollments and demographics leave `include` at once, so that their purge changes no student."""
    copies = open_copies(world, "two districts")
    edit(world, (("enrollments", "a-n-p1", ""), ("enrollments", "a-n-t1", ""), ("demographics", "a-p1", "")))
    for consumer in copies.values():
        consumer.update()
    student = copies["v1"].copy["a-d"]["a-p1"]
    assert (student.get("enrollments", []), student.get("demographics")) == ([], None)
    world.purge()
    assert all(consumer.update() for consumer in copies.values())
    assert find_wrong(copies) == []


def test_nobody_up_to_date_pulls_whole_after_a_purge(world: World) -> None:
    """Not of tombstones, not of departures alone, and not again and again in a quiet week."""
    copies = open_copies(world, "one school")
    late = open_copies(world, "one school")
    edit(world, EVENTS["a second role ends"].edits)
    assert all(consumer.update() for consumer in copies.values())
    for _ in range(2):
        world.purge()
        assert all(consumer.update() for consumer in copies.values())
        assert find_wrong(copies) == []
    # Who has not seen the departure is told.
    assert not any(consumer.update() for consumer in late.values())
    assert find_wrong(late) == []


@pytest.mark.parametrize("kind", ExclusionKind)
def test_who_was_erased_or_hidden_is_in_no_copy(world: World, kind: ExclusionKind) -> None:
    """Also where the person had left the vendor's school before: a departure would go on naming the person."""
    copies = {name: open_copies(world, name) for name in ("one school", "a district")}
    edit(world, EVENTS["a second role ends"].edits)
    world.exclude(kind, "a-p3")
    for kept in copies.values():
        for consumer in kept.values():
            consumer.update()
        assert find_wrong(kept) == []
        listed = {key for consumer in kept.values() for _, key in list_ids(consumer)}
        assert "a-p3" not in listed
        answers = [consumer.read(path, None) for consumer in kept.values() for path in consumer.collections]
        assert not any("a-p3" in str(answer[0]) for answer in answers if answer)
    world.end_exclusion(kind, "a-p3")


# The vendor does not see the other district of the feed, nor its school.
METADATA = {"orgs": 3, "academicSessions": 0, "courses": 0, "classes": 0, "enrollments": 0}


@pytest.mark.parametrize(("file", "changed"), METADATA.items())
def test_metadata_that_no_interface_serves_stamps_no_record(world: World, file: str, changed: int) -> None:
    copies = open_copies(world, "two districts")
    world.load("a", column(file, "metadata.room", "7"))
    for version in ("v1p1", "v1p2"):
        consumer = copies[version]
        deltas = {path: consumer.read(path, consumer.instant) for path in PATHS}
        records = {path: len(answer[0]) for path, answer in deltas.items() if answer and answer[0]}
        assert records == ({"/orgs": changed} if changed else {})


# What moves a stamp of which a vendor of the whole district sees nothing else: collection, id, the versions, and how.
SECOND_ROLE = "userSourcedId=a-p2 roleType=secondary role=student orgSourcedId=a-s1"
NEW_CLASS = "title=K classType=scheduled courseSourcedId=a-c2 schoolSourcedId=a-s1 termSourcedIds=a-t1"
UNSEEN: dict[str, tuple[str, str, tuple[str, ...], Callable[[World], None]]] = {
    "demographics, whose pupil comes to another school": (
        "/demographics", "a-p2", VERSIONS, lambda world: edit(world, (("roles", "a-r-p2-2", SECOND_ROLE),)),
    ),
    "a pupil, whose guardian comes to another school": (
        "/users", "a-p1", VERSIONS, lambda world: edit(world, (("roles", "a-r-g1", "orgSourcedId=a-s2"),)),
    ),
    "a course, with its first class at a school": (
        "/courses", "a-c2", VERSIONS, lambda world: edit(world, (("classes", "a-k3", NEW_CLASS),)),
    ),
    "a field of 1.2": (
        "/users", "a-p1", ("v1p1",), lambda world: edit(world, (("users", "a-p1", "pronouns=they"),)),
    ),
    "metadata of a teacher": (
        "/users", "a-t1", VERSIONS, lambda world: world.load("a", column("users", "metadata.room", "7")),
    ),
}  # fmt: skip


@pytest.mark.parametrize("unseen", cases(UNSEEN, quick=("a field of 1.2",)))
def test_a_stamp_moves_as_the_guide_says(
    world: World, unseen: tuple[str, str, tuple[str, ...], Callable[[World], None]]
) -> None:
    path, key, versions, change = unseen
    copies = open_copies(world, "two districts")
    change(world)
    for version in versions:
        before = copies[version].copy[path][key]
        answer = copies[version].read(path, copies[version].instant)
        assert answer is not None
        (after,) = (record for record in answer[0] if record["sourcedId"] == key)
        assert after["dateLastModified"] > before["dateLastModified"]
        assert after | {"dateLastModified": before["dateLastModified"]} == before


def test_the_vendor_interface_documents_both_headers(world: World) -> None:
    document = world.http.get("/v1/openapi.json").get_json()
    described = next(item for path, item in document["paths"].items() if path.endswith("/students"))["post"][
        "responses"
    ]["200"]["headers"]
    assert {"X-Roster-As-Of", "X-Roster-Deletions-Since"} <= set(described)


def test_a_student_goes_to_another_district_that_the_vendor_sees(world: World) -> None:
    """The vendor interface is asked for one district at a time."""
    world.grant("a district", "a-e", None)
    copies = open_copies(world, "a district")
    edit(world, (("roles", "a-r-p1", "orgSourcedId=a-s3"), ("enrollments", "a-n-p1", "")))
    assert all(consumer.update() for consumer in copies.values())
    students = copies["v1"].copy
    assert ("a-p1" in students["a-d"], "a-p1" in students["a-e"]) == (False, True)
    assert find_wrong(copies) == []
    edit(world, (("orgs", "a-s2", "parentSourcedId=a-e"),))
    for consumer in copies.values():
        consumer.update()
    assert find_wrong(copies) == []
    world.grant("a district", "a-e", [])


@pytest.mark.parametrize("version", VERSIONS)
def test_what_gets_another_type_leaves_the_lists_of_its_type_without_a_departure(world: World, version: str) -> None:
    """As the guide says, a copy of all orgs and sessions has the type of now."""
    edit(world, (("academicSessions", "a-t1", "type=term"),))
    paths = ("/orgs", "/academicSessions", "/terms", "/schools", "/gradingPeriods")
    copies = open_copies(world, "a district", paths, (version,))
    edit(world, (("academicSessions", "a-t1", "type=gradingPeriod"), ("orgs", "a-s2", "type=department")))
    assert copies[version].update(), "a delta is enough"
    copy = copies[version].copy
    assert [copy[path][key]["type"] for path, key in (("/academicSessions", "a-t1"), ("/orgs", "a-s2"))] == [
        "gradingPeriod",
        "department",
    ]
    assert find_wrong(copies) == [f"{version}: /terms keeps a-t1", f"{version}: /schools keeps a-s2"]
    edit(world, (("academicSessions", "a-t1", "type=term"),))
    assert copies[version].update(), "a delta is enough"
    assert f"{version}: /gradingPeriods keeps a-t1" in find_wrong(copies)
