"""HEAD outside the rostering interface: the status and the headers of GET, without the body."""

from __future__ import annotations

import pytest

from tests.contract.client import RosterClient

PATHS = (
    "/",
    "/docs",
    "/docs/guide",
    "/livez",
    "/readyz",
    "/.well-known/jwks.json",
    "/.well-known/oauth-authorization-server",
    "/v1/openapi.json",
    "/v1/nothing",
    "/oauth/token",
    "/nothing",
)
# Headers that differ from one request to the next.
OWN = frozenset({"X-Request-Id", "Date"})


@pytest.mark.parametrize("path", PATHS)
def test_head_answers_as_get_without_a_body(client: RosterClient, path: str) -> None:
    asked, read = client.fetch(path, "HEAD"), client.fetch(path)
    assert asked.status == read.status
    assert asked.body == b""
    assert {name: text for name, text in asked.headers.items() if name not in OWN} == {
        name: text for name, text in read.headers.items() if name not in OWN
    }
