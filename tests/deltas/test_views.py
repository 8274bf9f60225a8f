"""Pulls whose caller sees something else between two of their pages: each is whole under one view, or is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Protocol
from urllib.parse import urlencode

import pytest
from werkzeug.test import TestResponse

from roster_service.db.engine import make_engine
from tests.conftest import Tally
from tests.contract.client import ROOTS, VERSIONS
from tests.contract.model import RESOURCES
from tests.extent import examples

from .consumer import Record, Rostering, Students
from .test_pulls import draw_query
from .world import DATA, RARE, RIGHTS, World

# make test: 2 vendors with 15 pulls each; make check-long: 900 pulls.
VENDORS = ("two districts", "two rules, and a school", "some grades")
PULLS_OF_A_RUN = 15
RUNS = examples(1, 1, 60)
# A nested path, and the collection whose fields its records have.
NESTED = {
    "/students": "/users",
    "/schools/a-s1/enrollments": "/enrollments",
    "/schools/a-s1/students": "/users",
    "/schools/a-s1/classes": "/classes",
}
STATE = ("X-Total-Count", "X-Roster-Revision", "X-Roster-As-Of", "X-Roster-Deletions-Since")
REFUSED = (403, 410)


@dataclass
class Page:
    """A page. `records`: None where it was refused; `state`: the headers that all pages of a pull have in common;
    `following`: what asks for the next one, None on the last."""

    records: list[Record] | None
    state: tuple[str, ...]
    following: Any


class Pull(Protocol):
    """Asks for the pages of one collection. `names_revision`: whether the next page names the revision of the pull."""

    names_revision: bool

    def begin(self, limit: int) -> Page:
        """The first page."""

    def go_on(self, page: Page) -> Page:
        """The next page."""


def make_page(answer: TestResponse, records: str | None, following: Callable[[Any, Mapping[str, str]], Any]) -> Page:
    """The page of an answer, whose body has `records`; None for the only member."""
    if answer.status_code in REFUSED:
        return Page(None, (), None)
    assert answer.status_code == 200, answer.data
    body, headers = answer.get_json(), answer.headers
    shown = body[records] if records else next(value for key, value in body.items() if key != "statusInfoSet")
    # The vendor interface has the number in its body.
    state = tuple(headers.get(name, "") for name in STATE)
    return Page(shown, state, following(body, headers))


@dataclass
class CollectionPull:
    """A pull of a collection of the rostering interface."""

    reader: Rostering
    address: str
    names_revision: bool

    def begin(self, limit: int) -> Page:
        return self._ask(f"{self.address}&limit={limit}", limit, 0)

    def go_on(self, page: Page) -> Page:
        return self._ask(*page.following)

    def _ask(self, address: str, limit: int, offset: int) -> Page:
        def find_next(_body: Any, headers: Mapping[str, str]) -> Any:
            links = dict(reversed(link.split("; ")) for link in headers.get("Link", "").split(",") if link)
            following, at = links.get('rel="next"', "").strip(" <>"), offset + limit
            if not following:
                return None
            return (following if self.names_revision else f"{self.address}&limit={limit}&offset={at}"), limit, at

        return make_page(self.reader._get(address), None, find_next)


@dataclass
class StudentsPull:
    """A pull of students of the vendor interface."""

    reader: Students
    names_revision: bool
    body: dict[str, Any]

    def begin(self, limit: int) -> Page:
        return self._ask(self.body | {"limit": limit, "offset": 0})

    def go_on(self, page: Page) -> Page:
        return self._ask(page.following)

    def _ask(self, asked: dict[str, Any]) -> Page:
        def find_next(body: Any, headers: Mapping[str, str]) -> Any:
            if "nextOffset" not in body:
                return None
            named = {"revision": int(headers["X-Roster-Revision"])} if self.names_revision else {}
            return asked | {"offset": body["nextOffset"]} | named

        return make_page(self.reader._post(asked), "students", find_next)


def draw_pull(world: World, name: str, dice: Random) -> Pull:
    """A pull of something, on one of the interfaces."""
    interface, names_revision = dice.choice([*VERSIONS, *VERSIONS, "v1"]), dice.random() < 0.5
    if interface == "v1":
        include = sorted(flag for flag in world.vendors[name].flags if dice.random() < 0.5)
        body = {"districtlea": dice.choice(["a-d", "b-d"]), "include": include}
        return StudentsPull(world.read_students(name), names_revision, body)
    path = dice.choice([*RESOURCES, "/users", *NESTED])
    query = draw_query(dice, interface, NESTED.get(path, path))
    return CollectionPull(
        world.read_rostering(name, interface), f"{ROOTS[interface]}{path}?{urlencode(query)}", names_revision
    )


class Change:
    """Changes what a vendor sees before one of the pages of a pull, at times after a sync."""

    def __init__(self, world: World, dice: Random, pages: int) -> None:
        self._world, self._dice = world, dice
        happens = pages > 1 and dice.random() < 0.75
        self._place, self.steps = dice.randrange(1, pages) if happens else 0, list[str]()

    def happen(self, place: int) -> bool:
        """Changes something if this is the page; returns whether it has."""
        if place != self._place:
            return False
        if self._dice.random() < 0.3:
            self._take(DATA, "a person joins", "a purge")
        rights = [kind for kind in RIGHTS if kind != "rules change" or any(it.rules for it in self._list_vendors())]
        if self._dice.random() < 0.15:
            self._take(RARE, "a person is erased", "a person is hidden", "a school changes its district")
        else:
            self._take(RIGHTS, *rights)
        return True

    def _list_vendors(self) -> list[Any]:
        return list(self._world.vendors.values())

    def _take(self, steps: Mapping[str, Callable[[World, Random], object]], *kinds: str) -> None:
        self.steps.append(self._dice.choice(kinds))
        steps[self.steps[-1]](self._world, self._dice)

    @property
    def only_rights(self) -> bool:
        """Whether the roster is as before."""
        return RIGHTS.keys() >= {*self.steps}


def read_pull(pull: Pull, limit: int, change: Change, *, begins_another: bool) -> list[Record] | None:
    """The records of all pages; None where a page was refused, or another pull has begun in place of this one."""
    first = page = pull.begin(limit)
    assert page.records is not None
    found, number, must_end = list(page.records), 0, False
    while page.following is not None:
        number += 1
        if change.happen(number) and begins_another:
            another = pull.begin(limit)
            if not pull.names_revision:
                return None
            must_end = change.only_rights and another.state != first.state
        page = pull.go_on(page)
        if page.records is None:
            return None
        assert not must_end, "a page of a former pull is answered"
        assert page.state == first.state
        found += page.records
    return found


@pytest.mark.parametrize("number", range(RUNS))
def test_each_pull_is_whole_under_one_view_or_refused(
    make_database: Callable[[], str], tmp_path: Path, tally: Tally, number: int
) -> None:
    engine, dice, outcomes = make_engine(make_database()), Random(number), Counter[str]()
    world, name = World(engine, tmp_path, number), VENDORS[number % len(VENDORS)]
    # The steps change the rights of one of them.
    world.vendors = {name: world.vendors[name]}
    try:
        for _ in range(PULLS_OF_A_RUN):
            pull = draw_pull(world, name, dice)
            whole = pull.begin(1000).records
            if not whole:
                world.grant(name, "a-d", None)
                continue
            limit = dice.randint(1, max(1, len(whole) - 1))
            change = Change(world, dice, -(-len(whole) // limit))
            found = read_pull(pull, limit, change, begins_another=dice.random() < 0.4)
            outcomes["refused" if found is None else "whole"] += 1
            if found is not None and not change.only_rights:
                assert [it["sourcedId"] for it in found] == [it["sourcedId"] for it in whole], (pull, change.steps)
            elif found is not None:
                assert found == whole, (pull, limit, change.steps)
            # Begun again, it is whole.
            again = pull.begin(1000).records
            assert again is None or read_pull(pull, limit, Change(world, dice, 0), begins_another=False) == again
    finally:
        world.close()
        engine.dispose()
    assert outcomes["refused"] > 2, outcomes
    tally(f"views: {dict(outcomes)}")
