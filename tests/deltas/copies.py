"""Copies of all collections of every interface, and how they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from zlib import crc32

from tests.extent import EXTENT, Extent

from .consumer import Consumer, Record
from .world import VERSIONS, World

WHOLE = ("/orgs", "/academicSessions", "/courses", "/classes", "/users", "/enrollments", "/demographics")
ROLES = {"/students": "student", "/teachers": "teacher"}
PATHS = (*WHOLE, *ROLES)
# The districts of the vendor interface.
LEAS = ("a-d", "a-e", "b-d", "c-d")
INTERFACES = (*VERSIONS, "v1")


def choose_interfaces(case: str) -> Sequence[str]:
    """The interfaces that a case of a table is asked on: a client has one floor, and a collection one stamp, for both
    versions, so each case but one of roles, whose words differ, is asked on one of them. In a run of all, on both."""
    if EXTENT is Extent.ALL or "role" in case or "becomes" in case:
        return INTERFACES
    return (VERSIONS[crc32(case.encode()) % 2], "v1")


def make_consumer(world: World, vendor: str, interface: str, paths: Sequence[str] = PATHS) -> Consumer:
    """A consumer of all collections of an interface, or of those of the rostering interface in `paths`. It has read
    nothing yet."""
    if interface == "v1":
        students = world.read_students(vendor)
        return Consumer(students.read, students)
    return Consumer(world.read_rostering(vendor, interface).read, paths)


def open_copies(
    world: World, vendor: str, paths: Sequence[str] = PATHS, interfaces: Sequence[str] = INTERFACES
) -> dict[str, Consumer]:
    """A copy of each interface, with the collections of `make_consumer`."""
    copies = {interface: make_consumer(world, vendor, interface, paths) for interface in interfaces}
    for consumer in copies.values():
        consumer.pull()
    return copies


def find_wrong(copies: Mapping[str, Consumer]) -> list[str]:
    """What is wrong with the copies."""
    wrong = []
    for interface, consumer in copies.items():
        truth = Consumer(consumer.read, consumer.collections)
        truth.pull()
        wrong += [f"{interface}: {item}" for item in list_differences(consumer.copy, truth.copy)]
    return wrong


def list_differences(copy: Mapping[str, dict[str, Record]], truth: Mapping[str, dict[str, Record]]) -> Iterator[str]:
    """What a copy has wrong."""
    yield from (f"{path} is kept" for path in copy if path not in truth)
    for path, records in truth.items():
        mine = copy.get(path, {})
        for key in sorted(mine.keys() | records.keys()):
            if key not in records:
                # In 1.1 these lists have whoever shows the role; who shows another one comes in /users with it.
                shown = copy.get("/users", {}).get(key, {}).get("role")
                if path not in ROLES or shown in (None, ROLES[path]):
                    yield f"{path} keeps {key}"
            elif key not in mine:
                yield f"{path} misses {key}"
            elif mine[key] != records[key]:
                names = mine[key].keys() | records[key].keys()
                fields = sorted(name for name in names if mine[key].get(name) != records[key].get(name))
                yield f"{path} has an old {key}: {', '.join(fields)}"
