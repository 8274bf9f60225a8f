"""Signing keys rotate while tokens are out, over workers that remember keys."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
import sqlalchemy as sa

from roster_service.auth.credentials.signing_keys import rotate_signing_key
from tests.actors import TESTER

from .client import VERSIONS, RosterClient
from .conftest import SECRET_KEY, Served
from .test_tokens import read_part


@pytest.fixture
def workers(make_served: Callable[..., Served]) -> tuple[Served, Served]:
    """Two on one database."""
    first = make_served()
    return first, make_served(first.url)


def rotate(served: Served, lasting: timedelta) -> str:
    """A new key."""
    with served.engine.begin() as connection:
        return rotate_signing_key(connection, TESTER, SECRET_KEY, lasting, is_lost=False)


def ask(client: RosterClient, version: str, token: str) -> int:
    """The status of a request."""
    return client.call(version, "/orgs", "limit=1", bearer=token).status


def read_ids(served: Served) -> set[str]:
    """The ids of the key set."""
    return {key["kid"] for key in served.client.fetch("/.well-known/jwks.json").json["keys"]}


@pytest.mark.parametrize("version", VERSIONS)
def test_an_old_token_counts_until_its_key_is_retired_in_every_worker(
    workers: tuple[Served, Served], version: str
) -> None:
    first, second = workers
    old_token = first.client.token(version)
    old_key = read_part(old_token, 0)["kid"]
    new_key = rotate(first, timedelta(hours=1))
    answer = second.client.ask_token(second.client.form(scope=f"{version}/roster.readonly"))
    new_token = answer.json["access_token"]
    assert read_part(new_token, 0)["kid"] == new_key
    for worker in workers:
        assert [ask(worker.client, version, token) for token in (old_token, new_token)] == [200, 200]
        assert read_ids(worker) == {old_key, new_key}
    # Both have the old key in mind by now.
    with first.engine.begin() as connection:
        connection.execute(
            sa.text("UPDATE signing_keys SET retired_at = now() - interval '1 second' WHERE key_id = :key"),
            {"key": old_key},
        )
    for worker in workers:
        assert [ask(worker.client, version, token) for token in (old_token, new_token)] == [401, 200]
        assert read_ids(worker) == {new_key}


@pytest.mark.shows(
    "Credentials",
    "Changed rights, a disabled vendor or client, and a new secret or signing key without a grace end tokens at once.",
)
def test_a_rotation_at_once_ends_every_token(workers: tuple[Served, Served]) -> None:
    tokens = [worker.client.token("v1p1") for worker in workers]
    assert [ask(worker.client, "v1p1", token) for worker, token in zip(workers, tokens, strict=True)] == [200, 200]
    rotate(workers[0], timedelta(0))
    assert [ask(worker.client, "v1p1", token) for worker, token in zip(workers, tokens, strict=True)] == [401, 401]
