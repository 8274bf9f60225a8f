"""A person who is kept from one vendor: what the vendor is answers of it, and that nobody else is answers anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import sqlalchemy as sa

from roster_service.accounts.kept_people import list_kept
from roster_service.accounts.vendors import find_vendor
from roster_service.db import tables
from roster_service.errors import CommandError, UnknownPersonError
from roster_service.feeds.exclusions import ExclusionKind
from roster_service.people import keep_person
from tests.actors import TESTER
from tests.contract.client import ROOTS

from .consumer import Consumer
from .copies import INTERFACES, find_wrong, open_copies
from .fixed_district import edit, reset
from .world import World

VENDOR, OTHER = "two schools", "a district"
PUPIL, GUARDIAN, TEACHER = "a-p1", "a-g1", "a-t2"
# Where the vendor has the pupil, and the records of the pupil there.
OWN = {"/users": PUPIL, "/students": PUPIL, "/enrollments": "a-n-p1", "/demographics": PUPIL, "a-d": PUPIL}


@pytest.fixture
def world(shared_world: World) -> Iterator[World]:
    """The fixed district, and nobody is kept from a vendor."""
    reset(shared_world)
    yield shared_world
    with shared_world.engine.begin() as connection:
        kept = list_kept(connection)
    for person in kept:
        (name,) = (name for name in shared_world.vendors if shared_world.find_email(name) == person.vendor)
        shared_world.keep(name, person.sourced_id, shown=True)


def find_places(consumer: Consumer, key: str) -> set[str]:
    """The collections of a copy with a record that is, or names, somebody: by the id in any text."""
    return {path for path, records in consumer.copy.items() if f"'{key}'" in str(records)}


def test_the_vendor_loses_a_person_by_departures_and_gets_the_person_anew(world: World) -> None:
    copies, others = open_copies(world, VENDOR), open_copies(world, OTHER)
    before = {interface: str(consumer.copy) for interface, consumer in others.items()}
    for interface, consumer in copies.items():
        assert find_places(consumer, PUPIL) == {path for path in OWN if path in consumer.copy}, interface
    world.keep(VENDOR, PUPIL, shown=False)
    for consumer in copies.values():
        assert consumer.update(), "a delta is enough"
        assert find_places(consumer, PUPIL) == set()
    assert find_wrong(copies) == []
    # Nothing of the others has another stamp.
    for interface, consumer in others.items():
        assert consumer.update()
        assert str(consumer.copy) == before[interface]
    world.keep(VENDOR, PUPIL, shown=True)
    for interface, consumer in copies.items():
        assert consumer.update()
        assert find_places(consumer, PUPIL) == {path for path in OWN if path in consumer.copy}, interface
    assert find_wrong(copies) == []


def test_who_names_a_kept_guardian_shows_another_record(world: World) -> None:
    copies = open_copies(world, VENDOR)
    assert "/users" in find_places(copies["v1p2"], GUARDIAN)
    for shown in (False, True):
        world.keep(VENDOR, GUARDIAN, shown=shown)
        assert all(consumer.update() for consumer in copies.values())
        assert ("/users" in find_places(copies["v1p2"], GUARDIAN)) is shown
        assert find_wrong(copies) == []


def test_a_vendor_reads_everything_anew_without_a_teacher(world: World) -> None:
    copies = open_copies(world, VENDOR)
    world.keep(VENDOR, TEACHER, shown=False)
    assert not any(consumer.update() for consumer in copies.values())
    assert all(find_places(consumer, TEACHER) == set() for consumer in copies.values())


@pytest.mark.parametrize("how", ["by its links", "by offsets alone"])
@pytest.mark.parametrize("shown", [False, True], ids=["kept", "shown again"])
def test_a_pull_from_before_is_refused(world: World, how: str, *, shown: bool) -> None:
    """A page of another order would lack a record that no delta brings, as the person no longer counts."""
    if shown:
        world.keep(VENDOR, PUPIL, shown=False)
    reader, path = world.read_rostering(VENDOR, "v1p2"), f"{ROOTS['v1p2']}/users"
    first = reader._get(f"{path}?filter=status%3D'active'&limit=2")
    following = f"{path}?filter=status%3D'active'&limit=2&offset=2"
    links = dict(reversed(link.split("; ")) for link in first.headers["Link"].split(","))
    world.keep(VENDOR, PUPIL, shown=shown)
    answer = reader._get(links['rel="next"'].strip(" <>") if how == "by its links" else following)
    assert answer.status_code == 410
    whole = reader._get(f"{path}?filter=status%3D'active'&limit=2")
    assert whole.headers["X-Roster-Revision"] != first.headers["X-Roster-Revision"]
    assert reader._get(following).status_code == 200


def test_what_a_kept_person_does_stays_unknown_and_a_sync_brings_nobody_back(world: World) -> None:
    world.keep(VENDOR, PUPIL, shown=False)
    edit(world, (("users", "a-p4", "email=new@example.org"),))
    copies = open_copies(world, VENDOR)
    moves = (("roles", "a-r-p1", "orgSourcedId=a-s3"), ("users", PUPIL, "email=other@example.org"))
    back = (("roles", "a-r-p1", "orgSourcedId=a-s1"), ("enrollments", "a-n-p1", "role=student primary=true"))
    gone = (("users", PUPIL, ""), ("roles", "a-r-p1", ""), ("enrollments", "a-n-p1", ""), ("demographics", PUPIL, ""))
    for edits in (moves, back, gone):
        edit(world, edits)
        for interface in INTERFACES:
            consumer = copies[interface]
            answers = [consumer.read(path, consumer.instant) for path in consumer.collections]
            assert not [answer for answer in answers if answer and f"'{PUPIL}'" in str(answer[0])], (interface, edits)
            assert consumer.update()
    # The departures of the time are not answers after it, either.
    since = copies["v1p2"].instant
    reset(world)
    edit(world, (moves[0], ("enrollments", "a-n-p1", "")))
    world.keep(VENDOR, PUPIL, shown=True)
    answer = copies["v1p2"].read("/users", since)
    assert answer is not None
    assert PUPIL not in [record["sourcedId"] for record in answer[0]]


def test_a_departure_that_was_not_read_yet_outlives_a_later_one(world: World) -> None:
    copies = open_copies(world, VENDOR)
    away, back = (("roles", "a-r-p1", f"orgSourcedId=a-{school}") for school in ("s3", "s1"))
    edit(world, (away,))
    world.keep(VENDOR, PUPIL, shown=False)
    edit(world, (back,))
    edit(world, (away,))
    assert all(consumer.update() for consumer in copies.values())
    assert find_wrong(copies) == []


def test_the_purge_forgets_who_came_back(world: World) -> None:
    copies = open_copies(world, VENDOR)
    for shown in (False, True):
        world.keep(VENDOR, PUPIL, shown=shown)
    world.purge()
    with world.engine.connect() as connection:
        number = find_vendor(connection, world.find_email(VENDOR)).id
        own = sa.select(tables.vendors.c.has_rules).where(tables.vendors.c.id == number)
        assert connection.scalar(sa.select(sa.func.count()).select_from(tables.kept_people)) == 0
        assert connection.scalar(own) is False
    for consumer in copies.values():
        consumer.update()
    assert find_wrong(copies) == []


def test_an_erased_person_leaves_no_trace_of_having_been_kept(world: World) -> None:
    world.keep(VENDOR, GUARDIAN, shown=False)
    world.keep(VENDOR, PUPIL, shown=False)
    world.exclude(ExclusionKind.ERASED, PUPIL)
    with world.engine.begin() as connection:
        left = connection.execute(sa.select(tables.kept_people.c.user_id, tables.kept_people.c.named_by)).all()
        assert [tuple(row) for row in left] == [(GUARDIAN, [])]
        connection.execute(sa.delete(tables.exclusions))
        connection.execute(sa.update(tables.feeds).values(last_digest=None, fingerprinted=False))


@pytest.mark.parametrize(
    ("times", "person", "shown", "reason", "words"),
    [
        (2, PUPIL, False, None, "already kept"),
        (1, PUPIL, True, None, "not kept"),
        (1, "nobody-has-this", False, None, "nobody"),
        (1, PUPIL, False, "an order about a-p1", "names the person"),
    ],
    ids=["twice", "not kept", "unknown", "a reason with the id"],
)
def test_what_means_nothing_is_refused(
    world: World, times: int, person: str, shown: bool, reason: str | None, words: str
) -> None:
    def keep() -> None:
        with world.engine.begin() as connection:
            actor = replace(TESTER, reason=reason)
            keep_person(connection, actor, world.find_email(VENDOR), person, world.settings, shown=shown)

    for _ in range(times - 1):
        keep()
    with pytest.raises((CommandError, UnknownPersonError), match=words):
        keep()


def test_the_reason_of_a_return_names_nobody_either(world: World) -> None:
    world.keep(VENDOR, PUPIL, shown=False)
    actor = replace(TESTER, reason="the order about A-P1 has ended")
    with world.engine.begin() as connection, pytest.raises(CommandError, match="names the person"):
        keep_person(connection, actor, world.find_email(VENDOR), PUPIL, world.settings, shown=True)


def test_the_change_log_names_the_vendor_and_not_the_person(world: World) -> None:
    for shown in (False, True):
        world.keep(VENDOR, PUPIL, shown=shown)
    email = world.find_email(VENDOR)
    with world.engine.connect() as connection:
        log = tables.changes.c
        rows = connection.execute(sa.select(tables.changes).where(log.vendor == email).order_by(log.id.desc()).limit(2))
        last, first = rows.all()
    assert (first.verb, first.before, first.after) == ("person hide", {"kept_from": []}, {"kept_from": [email]})
    assert (last.verb, last.before, last.after) == ("person show", {"kept_from": [email]}, {"kept_from": []})
    assert PUPIL not in f"{first} {last}"
