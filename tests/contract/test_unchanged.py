"""304 for an answer that the client has: one look at the caller, and never for who lost the right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event, text

from roster_service import unchanged
from roster_service.access import callers
from roster_service.db.prepared import prepare
from roster_service.db.tables import ROSTER_TABLES

from .client import CORE, ROOTS, Answer, RosterClient
from .conftest import Served

PATHS = ("/users?limit=3", "/users/spr-student-1", "/schools/spr-high/students", "/users?filter=status%3D'active'")


@contextmanager
def watching(served: Served) -> Iterator[list[str]]:
    """The statements that requests run meanwhile."""
    seen: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        seen.append(statement)

    engines = [served.app.extensions[f"roster_{name}engine"] for name in ("", "accounts_", "walking_")]
    for engine in engines:
        event.listen(engine, "before_cursor_execute", note)
    yield seen
    for engine in engines:
        event.remove(engine, "before_cursor_execute", note)


def ask(client: RosterClient, path: str, tag: str | None = None, **more: str) -> Answer:
    """A request with a tag that is known."""
    before, _, query = path.partition("?")
    return client.call("v1p1", before, query, headers=more if tag is None else more | {"If-None-Match": tag})


@pytest.mark.parametrize("path", PATHS)
def test_one_statement_answers_and_it_looks_for_the_caller_alone(served: Served, path: str) -> None:
    tag = ask(served.client, path).headers["ETag"]
    # The first time it is remembered.
    ask(served.client, path, tag)
    with watching(served) as seen:
        assert ask(served.client, path, tag).status == 304
    (statement,) = seen
    called = prepare(callers._ADMIT)
    assert f"EXECUTE {called.name} (" in statement
    assert called.text.startswith("SELECT * FROM admit_client(")
    assert not any(table.name in statement + called.text for table in ROSTER_TABLES)


def test_a_304_has_the_headers_of_the_application_s(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    tag = ask(served.client, "/users").headers["ETag"]
    quick = ask(served.client, "/users", tag)
    monkeypatch.setattr(unchanged.Unchanged, "_make_headers", lambda *_: None)
    slow = ask(served.client, "/users", tag)
    own = {"X-Request-Id"}
    assert {k: v for k, v in quick.headers.items() if k not in own} == {
        k: v for k, v in slow.headers.items() if k not in own
    }
    assert own <= set(quick.headers.keys())


@pytest.mark.parametrize(
    "change",
    [
        pytest.param("UPDATE oauth_clients SET enabled = false", id="client-disabled"),
        pytest.param("UPDATE vendors SET enabled = false", id="vendor-disabled"),
        pytest.param("UPDATE vendors SET grant_version = grant_version + 1", id="grants-changed"),
        pytest.param("UPDATE oauth_clients SET version = version + 1", id="secret-changed"),
        pytest.param("UPDATE signing_keys SET retired_at = now()", id="key-retired"),
    ],
)
def test_who_lost_the_right_is_refused(make_served: Callable[..., Served], change: str) -> None:
    own = make_served()
    tag = ask(own.client, "/users").headers["ETag"]
    assert ask(own.client, "/users", tag).status == 304
    with own.engine.begin() as connection:
        connection.execute(text(change))
    assert ask(own.client, "/users", tag).status == 401


def test_a_new_revision_is_sent(make_served: Callable[..., Served]) -> None:
    own = make_served()
    tag = ask(own.client, "/users").headers["ETag"]
    with own.engine.begin() as connection:
        connection.execute(text("UPDATE roster_state SET revision = revision + 1"))
    answer = ask(own.client, "/users", tag)
    assert answer.status == 200
    assert ask(own.client, "/users", answer.headers["ETag"]).status == 304


def test_another_token_is_admitted_by_itself(client: RosterClient) -> None:
    """What one may ask says nothing of another: neither a vendor nor a narrower token."""
    path = "/schools/spr-high/students"
    tag = ask(client, path).headers["ETag"]
    address = ROOTS["v1p1"] + path
    for token, status in (
        (client.token("v1p1", (CORE,)), 403),
        (client.token("v1p2"), 400),
        (client.token("v1p1", vendor="springfield"), 200),
        ("nonsense", 401),
    ):
        headers = {"Authorization": f"Bearer {token}", "If-None-Match": tag}
        assert client.fetch(address, headers=headers).status == status
    assert client.fetch(address, headers={"If-None-Match": tag}).status == 401
    with_token = {"Authorization": f"Bearer {client.token('v1p1')}", "If-None-Match": tag}
    assert client.fetch(address, method="POST", headers=with_token).status == 400
    assert client.fetch(address, headers=with_token | {"Host": "other.example"}).status == 200


def test_each_304_leaves_an_entry(make_served: Callable[..., Served]) -> None:
    own = make_served()
    tag = ask(own.client, "/users/spr-student-1").headers["ETag"]
    for _ in range(3):
        ask(own.client, "/users/spr-student-1", tag)
    own.app.extensions["roster_journal"].flush()
    with own.engine.connect() as connection:
        counted = connection.execute(
            text("SELECT endpoint, requests, bytes FROM usage WHERE status_class = '3xx'")
        ).all()
    assert counted == [("GET /ims/oneroster/v1p1/users/{sourcedId}", 3, 0)]


def test_what_is_remembered_is_bounded(make_served: Callable[..., Served], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unchanged, "REMEMBERED", 2)
    own = make_served()
    tags = {path: ask(own.client, path).headers["ETag"] for path in PATHS}
    for path, tag in tags.items():
        assert ask(own.client, path, tag).status == 304
    assert len(own.app.extensions["roster_unchanged"]._admitted) == 2
