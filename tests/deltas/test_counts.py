"""Counts without records (`limit=0`) while syncs commit: each is that of the present roster."""

from __future__ import annotations

from typing import Any

import pytest

from roster_service.serving.orderings import Orderings
from tests.contract.client import ROOTS

from .consumer import Rostering
from .fixed_district import edit
from .world import World

NEW_PUPIL = (
    ("users", "a-p9", "givenName=N email=p9@example.org"),
    ("roles", "a-r-p9", "userSourcedId=a-p9 roleType=primary role=student orgSourcedId=a-s1"),
)
# (path, filter): a collection of which a sync of one feed leaves the rest, and a filtered one.
COLLECTIONS = {"a whole collection": ("/users", ""), "a filtered one": ("/users", "filter=status%3D'active'&")}


def read(reader: Rostering, path: str, query: str) -> Any:
    """A page of the collection."""
    answer = reader._get(f"{ROOTS['v1p2']}{path}?{query}")
    assert answer.status_code == 200, answer.data
    return answer


def count(reader: Rostering, path: str, query: str) -> int:
    """The count that a request without records gets."""
    return int(read(reader, path, f"{query}limit=0").headers["X-Total-Count"])


@pytest.mark.parametrize(("path", "query"), COLLECTIONS.values(), ids=COLLECTIONS)
def test_a_count_from_before_a_sync_is_not_stored_for_the_roster_after_it(
    world: World, monkeypatch: pytest.MonkeyPatch, path: str, query: str
) -> None:
    reader = world.read_rostering("a district", "v1p2")
    real = Orderings.store_total

    def load_first(*arguments: Any, **options: Any) -> None:
        monkeypatch.undo()
        edit(world, NEW_PUPIL)
        real(*arguments, **options)

    monkeypatch.setattr(Orderings, "store_total", load_first)
    before, *after = (count(reader, path, query) for _ in range(3))
    assert len(read(reader, path, f"{query}limit=1000").get_json()["users"]) == before + 1
    assert after == [before + 1, before + 1]


@pytest.mark.parametrize("revision", [False, True], ids=["without a revision", "with that of the pull"])
def test_a_count_with_an_offset_belongs_to_no_pull(world: World, *, revision: bool) -> None:
    """A pull of the same collection is under way, whose order counts something else."""
    reader = world.read_rostering("a district", "v1p2")
    first = read(reader, "/users", "limit=2")
    edit(world, NEW_PUPIL)
    named = f"&revision={first.headers['X-Roster-Revision']}" if revision else ""
    assert count(reader, "/users", f"offset=3{named}&") == int(first.headers["X-Total-Count"]) + 1
    following = read(reader, "/users", f"limit=2&offset=2{named}")
    assert following.headers["X-Total-Count"] == first.headers["X-Total-Count"]


def test_a_count_with_an_offset_is_stored_as_one_without(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = world.read_rostering("a district", "v1p2")
    counts = [count(reader, "/users", "offset=3&")]
    monkeypatch.setattr(Orderings, "store_total", None)
    assert [count(reader, "/users", query) for query in ("offset=3&", "offset=7&", "")] == counts * 3
