"""The rights of a vendor change while its request for students is answered: no answer has rights of two times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.db import tables
from roster_service.schemas.sharing_rules import Rules, Staff
from roster_service.serving import students
from roster_service.serving.orderings import Orderings
from roster_service.serving.reader import Reader
from roster_service.serving.roster_status import RosterStatusReader
from roster_service.vendor import views

from .copies import find_wrong, make_consumer
from .world import World

EVERY_PUPIL = Rules("givenName='N'", None, Staff.ALL, guardians=True)
PUPILS = {"a-p1", "a-p2", "a-p3", "a-p4"}
# (the vendor, how its rights change, the students that it has after it)
CHANGES: dict[str, tuple[str, Callable[[World], None], set[str]]] = {
    "a grant gets rules": (
        "a district",
        lambda world: world.set_rules("a district", "a-d", [("", EVERY_PUPIL)]),
        PUPILS,
    ),
    "the first guardian is kept": (
        "two schools",
        lambda world: world.keep("two schools", "a-g1", shown=False),
        PUPILS,
    ),
    "a grant is narrowed": (
        "a district",
        lambda world: world.grant("a district", "a-d", ["a-s1"]),
        {"a-p1", "a-p3", "a-p4"},
    ),
    "the last grant ends": ("a district", lambda world: world.grant("a district", "a-d", []), set()),
}
# What the service does next when the change commits.
NEXT: dict[str, tuple[Any, str]] = {
    "finds the districts": (students, "_find_districts"),
    "reads the page": (Reader, "read_page"),
}


@pytest.fixture
def world(world: World) -> Iterator[World]:
    """The fixed district; at the end, the vendors have their first rights."""
    yield world
    with world.engine.connect() as connection:
        has_kept = connection.scalar(sa.select(sa.func.count()).select_from(tables.kept_people))
    if has_kept:
        world.keep("two schools", "a-g1", shown=True)
    world.set_rules("a district", "a-d", [])
    world.grant("a district", "a-d", None)


def change_before(monkeypatch: pytest.MonkeyPatch, place: tuple[Any, str], change: Callable[[], None]) -> None:
    """Something changes, once, right before the service does this."""
    owner, name = place
    real = getattr(owner, name)

    def change_first(*arguments: Any, **options: Any) -> Any:
        monkeypatch.undo()
        change()
        return real(*arguments, **options)

    monkeypatch.setattr(owner, name, change_first)


@pytest.mark.parametrize("is_delta", [False, True], ids=["a whole list", "a delta"])
@pytest.mark.parametrize("place", NEXT.values(), ids=NEXT)
@pytest.mark.parametrize(("vendor", "change", "pupils"), CHANGES.values(), ids=CHANGES)
def test_a_request_from_before_a_change_of_rights_is_refused(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    vendor: str,
    change: Callable[[World], None],
    pupils: set[str],
    place: tuple[Any, str],
    *,
    is_delta: bool,
) -> None:
    """As on the rostering interface. Nothing of it is stored: after a new login, lists and deltas are right."""
    copies = {"v1": make_consumer(world, vendor, "v1")}
    copies["v1"].pull()
    reader = world.read_students(vendor)
    assert list(reader) == ["a-d"]
    change_before(monkeypatch, place, lambda: change(world))
    body = {"districtlea": "a-d", "include": reader.flags, "limit": 5000}
    body |= {"modifiedSince": copies["v1"].instant} if is_delta else {}
    headers = {"x-api-key": reader.api_key, "Authorization": f"Bearer {reader.token}"}
    answer = world.http.post("/v1/students", json=body, headers=headers)
    assert (answer.status_code, answer.get_json().get("code")) == (401, "invalid-token")
    copies["v1"].update()
    assert copies["v1"].copy.get("a-d", {}).keys() == pupils
    assert find_wrong(copies) == []


def test_a_login_during_a_change_of_rights_is_no_wrong_login(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its token is refused, so the vendor logs in once more."""
    reader, schools = world.read_students("a district"), ["a-s1"]
    change_before(monkeypatch, (views, "list_districts"), lambda: world.grant("a district", "a-d", schools))
    headers = {"x-api-key": reader.api_key}
    login = world.http.post("/v1/login", json=reader.login, headers=headers)
    assert login.status_code == 200
    assert [school["sourcedId"] for school in login.get_json()["districts"][0]["schools"]] == schools
    headers["Authorization"] = f"Bearer {login.get_json()['token']}"
    assert world.http.post("/v1/students", json={"districtlea": "a-d"}, headers=headers).status_code == 401


@pytest.mark.parametrize(
    "place",
    [(views, "list_districts"), (RosterStatusReader, "read")],
    ids=["finds the districts", "reads the feeds"],
)
def test_the_status_of_before_a_change_of_rights_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch, place: tuple[Any, str]
) -> None:
    reader = world.read_students("a district")
    assert list(reader) == ["a-d"]
    change_before(monkeypatch, place, lambda: world.grant("a district", "a-d", ["a-s1"]))
    headers = {"x-api-key": reader.api_key, "Authorization": f"Bearer {reader.token}"}
    answer = world.http.get("/v1/status", headers=headers)
    assert (answer.status_code, answer.get_json().get("code")) == (401, "invalid-token")


@pytest.mark.parametrize("name", ["make", "keep"], ids=["the order is made", "the pull is stored"])
def test_a_request_whose_key_ends_is_refused(world: World, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    reader = world.read_students("a district")
    assert list(reader) == ["a-d"]

    def end_keys(end: sa.ColumnElement[Any] | None) -> None:
        with world.engine.begin() as connection:
            connection.execute(sa.update(tables.api_keys).values(expires_at=end))

    # Not the present: the column has milliseconds, and may round it to an instant that is still to come.
    change_before(monkeypatch, (Orderings, name), lambda: end_keys(sa.func.now() - timedelta(seconds=1)))
    headers = {"x-api-key": reader.api_key, "Authorization": f"Bearer {reader.token}"}
    answer = world.http.post("/v1/students", json={"districtlea": "a-d", "limit": 1}, headers=headers)
    end_keys(None)
    assert (answer.status_code, answer.get_json().get("code")) == (401, "invalid-token")
