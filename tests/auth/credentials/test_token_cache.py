"""Verified tokens are remembered; an ended one, or one of a key that is gone, is not taken for it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from joserfc import jwt

from roster_service.auth.credentials import tokens
from roster_service.auth.credentials.signing_keys import ALGORITHM, KeyRing, add_signing_key
from roster_service.auth.credentials.tokens import LEEWAY_SECONDS, TOKEN_TYPE, TokenReader, make_access_token_audience
from roster_service.db.tables import signing_keys
from roster_service.errors import Problem, RefusedRequestError
from roster_service.roster.withheld import FIELDS_DIGEST

ISSUER = "https://roster.example"
SECRET = "a secret key of the tests, long enough"
HOUR = 3600


@dataclass(frozen=True)
class Desk:
    """A ring with one key, a reader, and what signs."""

    ring: KeyRing
    reader: TokenReader

    def sign(self, client: str = "one", **more: Any) -> str:
        """A token that is good for an hour, with more claims; None leaves one out."""
        now = int(time.time())
        claims = {
            "iss": ISSUER,
            "aud": make_access_token_audience(ISSUER),
            "iat": now,
            "exp": now + HOUR,
            "client_id": client,
            "scope": "v1p1/roster.readonly",
            "grant_version": 1,
            "client_version": 1,
            "vendor_id": 1,
            "visibility_key": "6f2c5d0e-0000-4000-8000-000000000000",
            "withheld": [],
            "fields": FIELDS_DIGEST,
            "metadata_keys": [],
            "has_rules": False,
            **more,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        (key,) = self.ring.read_private().keys
        return jwt.encode({"typ": TOKEN_TYPE, "alg": ALGORITHM, "kid": key.kid}, claims, key)


@pytest.fixture
def desk(engine: sa.Engine) -> Desk:
    """On a database of this test's own."""
    with engine.begin() as connection:
        add_signing_key(connection, SECRET)
    ring = KeyRing(engine, SECRET)
    return Desk(ring, TokenReader(ring, ISSUER))


def test_a_token_is_verified_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    token = desk.sign()
    first = desk.reader.read(token)
    monkeypatch.setattr(tokens, "read_access_token", None)
    assert desk.reader.read(token) is first


def test_a_remembered_token_ends_in_time(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    token = desk.sign()
    desk.reader.read(token)
    end = time.time() + HOUR + LEEWAY_SECONDS + 2
    monkeypatch.setattr(time, "time", lambda: end)
    with pytest.raises(RefusedRequestError):
        desk.reader.read(token)


def test_a_remembered_token_ends_with_its_key(desk: Desk, engine: sa.Engine) -> None:
    token = desk.sign()
    desk.reader.read(token)
    with engine.begin() as connection:
        connection.execute(signing_keys.update().values(retired_at=sa.func.now() - timedelta(seconds=1)))
    desk.ring.read_public()
    with pytest.raises(RefusedRequestError):
        desk.reader.read(token)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_altered_token_is_none_that_is_remembered(desk: Desk, place: int) -> None:
    token = desk.sign()
    desk.reader.read(token)
    parts = token.split(".")
    parts[place] = parts[place][:-2] + ("A" if parts[place][-2] != "A" else "B") + parts[place][-1]
    with pytest.raises(RefusedRequestError):
        desk.reader.read(".".join(parts))


def test_the_oldest_are_forgotten(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "KEPT_TOKENS", 2)
    reader = TokenReader(desk.ring, ISSUER)
    first, *others = (desk.sign(name) for name in ("a", "b", "c"))
    for token in (first, *others):
        reader.read(token)
    monkeypatch.setattr(tokens, "read_access_token", None)
    for token in others:
        assert reader.read(token).client_id
    with pytest.raises(TypeError):
        reader.read(first)


@pytest.mark.shows("Visibility", "A token, tag or pull of before a field was withheld shows nothing of it.")
@pytest.mark.parametrize("claim", [None, "email", ["no such field"], [["email"]], 7], ids=repr)
def test_a_token_without_known_withheld_fields_is_refused(desk: Desk, claim: Any) -> None:
    """A version that withholds nothing has made it, or a later one with more fields: both would show too much."""
    assert desk.reader.read(desk.sign(withheld=["email", "sms"])).withheld == {"email", "sms"}
    with pytest.raises(RefusedRequestError) as refused:
        desk.reader.read(desk.sign(withheld=claim))
    assert refused.value.problem is Problem.BAD_TOKEN


def test_a_token_that_does_not_say_which_metadata_is_agreed_is_refused(desk: Desk) -> None:
    assert desk.reader.read(desk.sign(metadata_keys=["a"])).metadata_keys == {"a"}
    with pytest.raises(RefusedRequestError):
        desk.reader.read(desk.sign(metadata_keys=None))
