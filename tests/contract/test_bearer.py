"""Tokens that the service did not make for this door, or that are not what they were: 401, always in the same words."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from roster_service.auth.credentials.signing_keys import KeyRing

from .client import FULL, VERSIONS, RosterClient
from .conftest import SECRET_KEY, Served
from .test_tokens import read_part

each_version = pytest.mark.parametrize("version", VERSIONS)
ISSUER = "http://127.0.0.1:8000"
Sign = Callable[..., str]


def encode(value: Any) -> str:
    """One part of a token."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.fixture(scope="module")
def sign(served: Served) -> Sign:
    """Signs claims with the service's own key: those of a good token but for the `changed` ones, without those of None
    among these."""
    (key,) = KeyRing(served.engine, SECRET_KEY).read_private().keys
    good = read_part(served.client.token("v1p1", (FULL,)), 1)

    def sign_token(
        changed: dict[str, Any], header: dict[str, Any] | None = None, with_key: RSAKey | None = None
    ) -> str:
        claims = {name: value for name, value in (good | changed).items() if name not in changed or value is not None}
        sent = {"typ": "at+jwt", "alg": "RS256", "kid": key.kid} | (header or {})
        return jwt.encode(sent, claims, with_key or key)

    return sign_token


def test_a_token_signed_here_with_the_same_claims_is_taken(client: RosterClient, sign: Sign) -> None:
    """The other tests of this file change one thing each of a token that works."""
    assert client.call("v1p1", "/orgs", bearer=sign({})).status == 200


CHANGED = [
    pytest.param({"exp": 1_000_000_000, "iat": 999_996_400}, id="expired"),
    pytest.param({"exp": None}, id="without-an-end"),
    pytest.param({"iat": None}, id="without-a-beginning"),
    pytest.param({"iat": time.time() + 86_400}, id="from-tomorrow"),
    pytest.param({"nbf": time.time() + 86_400}, id="not-before-tomorrow"),
    pytest.param({"iss": "https://elsewhere.example"}, id="other-issuer"),
    pytest.param({"iss": None}, id="no-issuer"),
    pytest.param({"metadata_keys": None}, id="no-word-on-metadata"),
    pytest.param({"fields": None}, id="no-word-on-fields"),
    pytest.param({"fields": "0123456789abcdef"}, id="fields-of-another-version"),
    pytest.param({"aud": ISSUER}, id="other-audience"),
    pytest.param({"aud": f"{ISSUER}/v1"}, id="audience-of-the-other-door"),
    pytest.param({"aud": None}, id="no-audience"),
    pytest.param({"client_id": "client-nobody"}, id="unknown-client"),
    pytest.param({"client_id": "client-\0"}, id="client-with-a-nul"),
    pytest.param({"client_id": None}, id="no-client"),
    pytest.param({"scope": None}, id="no-scope"),
    pytest.param({"scope": ""}, id="blank-scope"),
    pytest.param({"scope": "v1p1/gradebook.readonly"}, id="foreign-scope"),
    pytest.param({"grant_version": None}, id="no-grant-version"),
    pytest.param({"grant_version": 0}, id="older-grant-version"),
    pytest.param({"grant_version": 99}, id="newer-grant-version"),
    pytest.param({"grant_version": "two"}, id="grant-version-that-is-none"),
    pytest.param({"grant_version": 2**70}, id="huge-grant-version"),
    pytest.param({"client_version": 0}, id="older-secret"),
    pytest.param({"client_version": []}, id="client-version-that-is-none"),
]


@pytest.mark.shows(
    "Credentials",
    "A token does not open the other interface, and does not count with another vendor's API key.",
)
@pytest.mark.parametrize("changed", CHANGED)
def test_a_token_with_other_claims_is_refused(client: RosterClient, sign: Sign, changed: dict[str, Any]) -> None:
    answer = client.call("v1p1", "/orgs", bearer=sign(changed))
    assert (answer.status, answer.minor) == (401, "unauthorisedrequest")
    assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]


@pytest.mark.parametrize(
    "header",
    [
        pytest.param({"typ": "JWT"}, id="another-kind-of-token"),
        pytest.param({"typ": None}, id="no-kind"),
        pytest.param({"kid": "no-such-key"}, id="unknown-key"),
        pytest.param({"kid": "\0"}, id="key-with-a-nul"),
        pytest.param({"alg": "RS512"}, id="another-algorithm"),
        pytest.param({"alg": "PS256"}, id="another-padding"),
    ],
)
def test_a_token_with_another_header_is_refused(client: RosterClient, sign: Sign, header: dict[str, Any]) -> None:
    try:
        token = sign({}, {name: value for name, value in header.items() if value is not None})
    except Exception:  # noqa: BLE001  (what the library refuses to make is made by hand)
        good = sign({}).split(".")
        token = ".".join([encode(read_part(sign({}), 0) | header), *good[1:]])
    if header.get("typ", "") is None:
        good = sign({}).split(".")
        token = ".".join([encode({"alg": "RS256", "kid": read_part(sign({}), 0)["kid"]}), *good[1:]])
    assert client.call("v1p1", "/orgs", bearer=token).status == 401


def test_a_token_of_a_stranger_s_key_is_refused(client: RosterClient, sign: Sign) -> None:
    """Also under the id of the service's own key, and with the key brought along in the header."""
    stranger = RSAKey.generate_key(2048, {"use": "sig", "alg": "RS256"}, auto_kid=True)
    assert client.call("v1p1", "/orgs", bearer=sign({}, with_key=stranger)).status == 401
    assert client.call("v1p1", "/orgs", bearer=sign({}, {"kid": stranger.kid}, stranger)).status == 401
    brought = {"kid": stranger.kid, "jwk": stranger.as_dict(private=False)}
    assert client.call("v1p1", "/orgs", bearer=sign({}, brought, stranger)).status == 401


@pytest.mark.shows(
    "Credentials",
    "RS256 alone, with a key of the service's own that the token names by its id: no `alg: none`, HMAC or foreign key.",
)
def test_an_unsigned_token_is_refused(client: RosterClient, sign: Sign) -> None:
    _, claims, signature = sign({}).split(".")
    for algorithm in ("none", "None", "NONE", ""):
        header = encode({"typ": "at+jwt", "alg": algorithm})
        for tail in ("", signature):
            assert client.call("v1p1", "/orgs", bearer=f"{header}.{claims}.{tail}").status == 401


@pytest.mark.shows(
    "Credentials",
    "RS256 alone, with a key of the service's own that the token names by its id: no `alg: none`, HMAC or foreign key.",
)
def test_the_public_key_is_no_shared_secret(client: RosterClient, sign: Sign) -> None:
    """HS256 over the published key: the classic confusion of algorithms."""
    published = client.fetch("/.well-known/jwks.json").json["keys"][0]
    claims = sign({}).split(".")[1]
    header = encode({"typ": "at+jwt", "alg": "HS256", "kid": published["kid"]})
    for secret in (RSAKey.import_key(published).as_pem(private=False), json.dumps(published).encode(), b""):
        signature = hmac.digest(secret or b"\0", f"{header}.{claims}".encode(), hashlib.sha256)
        tail = base64.urlsafe_b64encode(signature).decode().rstrip("=")
        assert client.call("v1p1", "/orgs", bearer=f"{header}.{claims}.{tail}").status == 401


@each_version
def test_any_altered_part_is_refused(client: RosterClient, version: str) -> None:
    parts = client.token(version).split(".")
    claims = read_part(".".join(parts), 1)
    wider = encode(claims | {"client_id": client.form("both")["client_id"], "grant_version": 3})
    for altered in (
        [parts[0], wider, parts[2]],
        [parts[0], parts[1], parts[2][:-4] + "AAAA"],
        [parts[0], parts[1], ""],
        [parts[0], parts[1]],
        [*parts, parts[2]],
        ["", parts[1], parts[2]],
        [encode({"alg": "RS256"}), parts[1], parts[2]],
        [encode([]), parts[1], parts[2]],
        [encode("x"), parts[1], parts[2]],
    ):
        assert client.call(version, "/orgs", bearer=".".join(altered)).status == 401


@pytest.mark.parametrize(
    "token",
    ["x", "..", "...", "a.b.c", "é", "a" * 5000, "e30.e30.", "e30.e30.e30", "null", "%00", "bnVsbA.bnVsbA.bnVsbA"],
)
def test_what_is_no_token_is_refused(client: RosterClient, token: str) -> None:
    answer = client.call("v1p2", "/orgs", bearer=token)
    assert (answer.status, answer.minor) == (401, "unauthorisedrequest")


def test_every_refusal_has_the_same_words(client: RosterClient, sign: Sign) -> None:
    """Nobody learns which part of a forged token was right."""
    tokens = [
        "a.b.c",
        sign({"iss": "x"}),
        sign({"exp": 1_000_000_000}),
        sign({}, {"kid": "x"}),
        sign({}, {"typ": "JWT"}),
    ]
    assert len({client.call("v1p1", "/orgs", bearer=token).body for token in tokens}) == 1


@each_version
@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_is_read_in_any_case(client: RosterClient, version: str, scheme: str) -> None:
    header = {"Authorization": f"{scheme} {client.token(version)}"}
    assert client.call(version, "/orgs", bearer=None, headers=header).status == 200


@each_version
@pytest.mark.parametrize(
    "header",
    [
        pytest.param(None, id="none"),
        pytest.param("", id="blank"),
        pytest.param("Bearer", id="no-token"),
        pytest.param("Bearer  ", id="blank-token"),
        pytest.param("Basic dXNlcjpwYXNz", id="other-scheme"),
    ],
)
def test_a_missing_token_gets_no_error_code(client: RosterClient, version: str, header: str | None) -> None:
    """RFC 6750, section 3.1: a request without a token is told only how to authenticate."""
    headers = {} if header is None else {"Authorization": header}
    answer = client.call(version, "/orgs", bearer=None, headers=headers)
    assert (answer.status, answer.minor) == (401, "unauthorisedrequest")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer ")
    assert "error" not in answer.headers["WWW-Authenticate"]


@each_version
def test_a_token_that_is_not_valid_is_answered_with_where_to_get_one(client: RosterClient, version: str) -> None:
    """It may be the permission token of the vendor interface, of which a new one would not be valid either."""
    assert "get a new one from /oauth/token" in client.call(version, "/orgs", bearer="token").description


@each_version
def test_a_token_in_the_query_does_not_count(client: RosterClient, version: str) -> None:
    answer = client.call(version, "/orgs", {"access_token": client.token(version)}, bearer=None)
    assert answer.status == 401
