"""What a worker keeps of the requests that it has answered: no text of a caller that is long."""

from __future__ import annotations

import gc
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.contract.client import ROOTS
from tests.contract.conftest import Served
from tests.extent import EXTENT, Extent

ROOT = ROOTS["v1p1"]
LONGEST_KEPT = 1024
# A page is found, its walk is kept, and it is read from there.
TIMES = 3

Text = Callable[[str], str]


def find_long_texts(*marks: str) -> list[str]:
    """The beginning of every text of this process that is long and has one of the marks in it, whatever refers to
    it."""
    gc.collect()
    found: list[str] = []
    waiting: list[Any] = gc.get_objects()
    seen = {id(found), id(waiting)}
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        # By its type: some lazy objects of libraries do not bear to be asked for their class.
        if issubclass(type(one), str | bytes):
            text = one if isinstance(one, str) else one.decode("latin-1")
            found += [text[:80]] if len(text) > LONGEST_KEPT and any(mark in text for mark in marks) else []
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


SENT: dict[str, tuple[Text, Mapping[str, Text]]] = {
    "filter": (ask("/users", filter=lambda mark: f"familyName!='{fill(mark, 4000)}'"), {}),
    "list": (ask("/users", filter=lambda mark: f"grades!='{fill(mark, 4000)}'"), {}),
    "two-clauses": (
        ask("/users", filter=lambda mark: f"familyName!='{fill(mark, 2000)}' AND email!='{fill(mark, 2000)}'"),
        {},
    ),
    "key": (ask("/users", filter=lambda mark: f"metadata.{fill(mark, 4000)}!='x'"), {}),
    "sort": (ask("/users", sort=lambda mark: f"metadata.{fill(mark, 500)}"), {}),
    "fields": (ask("/users", fields=lambda mark: f"sourcedId,{fill(mark, 4000)}"), {}),
    "fields-of-a-record": (ask("/users/spr-student-1", fields=lambda mark: fill(mark, 4000)), {}),
    "id": (lambda mark: f"{ROOT}/schools/{fill(mark, 4000)}/students", {}),
    "accept-encoding": (ask("/users"), {"Accept-Encoding": lambda mark: f"gzip, {fill(mark, 4000)}"}),
    "if-none-match": (ask("/users"), {"If-None-Match": lambda mark: f'"{fill(mark, 4000)}"'}),
    "host": (ask("/users"), {"Host": lambda mark: f"{mark}x." * 200 + "example"}),
}


@pytest.mark.shows("Load", "A worker keeps no text of more than 1,024 characters from the tested rostering requests.")
def test_no_long_text_of_a_caller_is_kept(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search looks at every object of the process: but for check-long, once for the texts of all requests. It finds
    one that is kept on purpose."""
    marks = {name: f"kept-by-{name}-" for name in SENT}
    for name, (address, headers) in SENT.items():
        # SQLAlchemy keeps the values of the first statement of each shape, and there are few shapes: others come first,
        # one before and one after what the caller may see is kept.
        for sent in ("first-", "second-", marks[name]):
            statuses = send(served, address(sent), {header: text(sent) for header, text in headers.items()})
            assert statuses == [200] * TIMES, name
        if EXTENT is Extent.ALL:
            assert find_long_texts(marks[name]) == []
    kept = fill("kept-on-purpose-", LONGEST_KEPT + 1)
    monkeypatch.setattr(urllib.parse, "kept", ({"a": kept},), raising=False)
    assert find_long_texts(kept[:20], *marks.values()) == [kept[:80]]
