"""What a worker keeps of the requests that it has answered: no text of a caller that is long."""

from __future__ import annotations

import gc
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.contract.client import ROOTS
from tests.contract.conftest import Served

ROOT = ROOTS["v1p1"]
LONGEST_KEPT = 1024
# A page is found, its walk is kept, and it is read from there.
TIMES = 3

Text = Callable[[str], str]


def find_long_texts(mark: str) -> list[str]:
    """The beginning of every text of this process that is long and has the mark in it, whatever refers to it."""
    gc.collect()
    found: list[str] = []
    waiting: list[Any] = gc.get_objects()
    seen = {id(found), id(waiting)}
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, str | bytes):
            text = one if isinstance(one, str) else one.decode("latin-1")
            found += [text[:80]] if len(text) > LONGEST_KEPT and mark in text else []
        else:
            waiting += gc.get_referents(one)
    return found


def send(served: Served, address: str, headers: Mapping[str, str]) -> list[int]:
    """The statuses of the same request several times; of the answers nothing is left."""
    http = served.app.test_client()
    sent = {"Authorization": f"Bearer {served.client.token('v1p1')}", **headers}
    statuses = []
    for _ in range(TIMES):
        with http.get(address, headers=sent) as response:
            statuses.append(response.status_code)
    served.app.extensions["roster_access_log"].flush()
    # The test's own client has it keep the last addresses.
    urllib.parse.clear_cache()
    return statuses


def fill(mark: str, length: int) -> str:
    """A text of nothing but marks."""
    return (mark * length)[:length]


def ask(path: str, **query: Text) -> Text:
    """The address of a request, made of its mark when it is sent."""
    return lambda mark: (
        f"{ROOT}{path}?" + "&".join(f"{name}={urllib.parse.quote(text(mark))}" for name, text in query.items())
    )


SENT: list[Any] = [
    pytest.param(ask("/users", filter=lambda mark: f"familyName!='{fill(mark, 4000)}'"), {}, id="filter"),
    pytest.param(ask("/users", filter=lambda mark: f"grades!='{fill(mark, 4000)}'"), {}, id="list"),
    pytest.param(
        ask("/users", filter=lambda mark: f"familyName!='{fill(mark, 2000)}' AND email!='{fill(mark, 2000)}'"),
        {},
        id="two-clauses",
    ),
    pytest.param(ask("/users", filter=lambda mark: f"metadata.{fill(mark, 4000)}!='x'"), {}, id="key"),
    pytest.param(ask("/users", sort=lambda mark: f"metadata.{fill(mark, 500)}"), {}, id="sort"),
    pytest.param(ask("/users", fields=lambda mark: f"sourcedId,{fill(mark, 4000)}"), {}, id="fields"),
    pytest.param(ask("/users/spr-student-1", fields=lambda mark: fill(mark, 4000)), {}, id="fields-of-a-record"),
    pytest.param(lambda mark: f"{ROOT}/schools/{fill(mark, 4000)}/students", {}, id="id"),
    pytest.param(ask("/users"), {"Accept-Encoding": lambda mark: f"gzip, {fill(mark, 4000)}"}, id="accept-encoding"),
    pytest.param(ask("/users"), {"If-None-Match": lambda mark: f'"{fill(mark, 4000)}"'}, id="if-none-match"),
    pytest.param(ask("/users"), {"Host": lambda mark: f"{mark}x." * 200 + "example"}, id="host"),
]


@pytest.mark.parametrize(("address", "headers"), SENT)
def test_no_long_text_of_a_caller_is_kept(
    served: Served, request: pytest.FixtureRequest, address: Text, headers: Mapping[str, Text]
) -> None:
    mark = f"kept-by-{request.node.callspec.id}-"
    # SQLAlchemy keeps the values of the first statement of each shape, and there are few shapes: others come first, one
    # before and one after what the caller may see is kept.
    for sent in ("first-", "second-", mark):
        assert send(served, address(sent), {name: text(sent) for name, text in headers.items()}) == [200] * TIMES
    assert find_long_texts(mark) == []


def test_a_long_text_that_is_kept_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    text = fill("kept-on-purpose-", LONGEST_KEPT + 1)
    monkeypatch.setattr(urllib.parse, "kept", ({"a": text},), raising=False)
    assert find_long_texts("kept-on-purpose-") == [text[:80]]
