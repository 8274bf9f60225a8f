"""Each event of the guide's table does to a copy, and to a running pull, what the table says."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from werkzeug.test import TestResponse

from tests.contract.client import ROOTS
from tests.extent import cases

from .copies import choose_interfaces, find_wrong, open_copies
from .events import EVENTS, Copy, Running, make_vendor
from .world import World

QUICK = (
    "a school is added to a district",
    "a district or a school is granted, or a grant ends",
    "a pupil or a guardian is kept from you, or no longer",
    "tombstones are deleted after 7 days",
)


def begin_pulls(world: World, name: str) -> dict[str, Callable[[], TestResponse]]:
    """Begins a pull on each interface; what asks for all the rest of it."""
    pulls: dict[str, Callable[[], TestResponse]] = {}
    for version, root in ROOTS.items():
        reader = world.read_rostering(name, version)
        assert reader._get(f"{root}/users?limit=1").status_code == 200
        pulls[version] = lambda reader=reader, root=root: reader._get(f"{root}/users?limit=1000&offset=1")
    students = world.read_students(name)
    # The next pages ask for what the first one asked for, whatever a new login says.
    body = {"districtlea": "a-d", "limit": 1, "include": sorted(world.vendors[name].flags)}
    assert students._post(body).status_code == 200
    pulls["v1"] = lambda: students._post(body | {"limit": 1000, "offset": 1})
    return pulls


@pytest.mark.parametrize("words", cases({words: words for words in EVENTS}, quick=QUICK))
def test_the_event_does_what_the_table_says(world: World, words: str) -> None:
    event, name = EVENTS[words], f"event {len(world.vendors)}"
    interfaces = [interface for interface in event.interfaces if interface in choose_interfaces(words)]
    world.add_vendor(name, make_vendor())
    event.before(world, name)
    try:
        for take in event.takes:
            copies = open_copies(world, name, interfaces=interfaces)
            pulls = begin_pulls(world, name)
            take(world, name)
            outcomes = {interface: pulls[interface]().status_code for interface in interfaces}
            expected = dict.fromkeys(interfaces, 200 if event.running is Running.GOES_ON else 410)
            if event.running in (Running.IS_REFUSED, Running.NAMES_NOTHING):
                expected["v1"] = 403
            assert outcomes == expected
            deltas = {interface: copy.update() for interface, copy in copies.items()}
            assert deltas == dict.fromkeys(interfaces, event.copy is Copy.DELTA)
            assert find_wrong(copies) == []
    finally:
        event.after(world, name)
