"""`POST /v1/login`: what it takes, what it gives, and how failures are answered and slowed."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from joserfc import jws

from roster_service.accounts import vendor_rights, vendors
from roster_service.auth.credentials.api_keys import rotate_key
from roster_service.db import tables
from roster_service.schemas.flags import PermissionFlag
from tests.actors import TESTER
from tests.vendor.client import Account, VendorClient
from tests.vendor.conftest import Served

from .test_permission_tokens import make_claims, sign

PATHS = ["/v1/login", "/v1/students"]


@pytest.fixture
def account(served: Served) -> Account:
    """A vendor who may see a district and a school of another, with one flag."""
    grants = {"spr-district": (), "shv-district": ("shv-north",)}
    return served.add(grants=grants, flags=(PermissionFlag.CONTACTS,))


@pytest.mark.shows("Credentials", "An access token is valid for 1 hour, a permission token for 24 hours.")
def test_the_token_says_what_the_vendor_may_see_for_24_hours(client: VendorClient, account: Account) -> None:
    before = datetime.now(UTC)
    answer = client.login(account)
    assert answer.status == 200
    claims = read_claims(answer.json["token"])
    assert {name: claims[name] for name in ("sub", "districts", "schools", "flags")} == {
        "sub": str(account.id),
        "districts": ["spr-district"],
        "schools": ["shv-north"],
        "flags": ["contacts"],
    }
    assert claims["exp"] - claims["iat"] == answer.json["expiresIn"] == 86_400
    assert answer.json["tokenType"] == "Bearer"
    ends = datetime.fromisoformat(answer.json["expiresAt"])
    assert ends.timestamp() == claims["exp"]
    assert abs(ends - before - timedelta(days=1)) < timedelta(minutes=1)


def read_claims(token: str) -> Any:
    """What a token says; its signature is another test's matter."""
    return json.loads(jws.extract_compact(token.encode()).payload)


def test_an_e_mail_is_known_however_it_is_written(client: VendorClient, account: Account) -> None:
    assert client.login(account, email=f" {account.email.upper()} ").status == 200


def ended_key(engine: sa.Engine, account: Account) -> str:
    """A key that was rotated away."""
    with engine.begin() as connection:
        rotate_key(connection, account.id, timedelta())
    return account.api_key


def test_the_answer_lists_the_permission_flags(served: Served, client: VendorClient, account: Account) -> None:
    """They are the words that `include` can have, after each change of them."""
    every = [flag.value for flag in PermissionFlag]
    for flags in ((PermissionFlag.CONTACTS,), tuple(PermissionFlag), ()):
        with served.engine.begin() as connection:
            vendor_rights.set_flags(connection, TESTER, account.email, flags)
        login = client.login(account).json
        assert login["flags"] == sorted(flags)
        for word in every:
            body = {"districtlea": login["districts"][0]["districtlea"], "include": [word]}
            answer = client.students(account, login["token"], body)
            assert answer.status == (200 if word in login["flags"] else 403)
            assert answer.status == 200 or "the answer of the login lists your flags" in answer.message


def test_without_any_grant_each_path_has_the_same_words(served: Served, client: VendorClient, account: Account) -> None:
    """An empty list would be read as an empty roster."""
    token = client.token(account)
    with served.engine.begin() as connection:
        for district in ("spr-district", "shv-district"):
            vendor_rights.revoke(connection, TESTER, account.email, district)
    assert client.students(account, token, {"districtlea": "17-0042"}).outcome == (401, "invalid-token")
    # A token can be made before its vendor's grants end, and be used after it.
    with served.engine.connect() as connection:
        found = sa.select(tables.vendors.c.grant_version).where(tables.vendors.c.id == account.id)
        version = connection.execute(found).scalar_one()
    token = sign(served, make_claims(account, version, districts=[]))
    headers = {"x-api-key": account.api_key, "Authorization": f"Bearer {token}"}
    answers = [
        client.login(account),
        client.students(account, token, {"districtlea": "17-0042"}),
        client.send("/v1/status", raw=b"", method="GET", headers=headers),
    ]
    assert [answer.outcome for answer in answers] == [(403, "no-privilege")] * 3
    assert {answer.message for answer in answers} == {"no district is granted to you"}
    assert client.login(account, password="wrong").outcome == (401, "unauthorized")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "key",
    [
        pytest.param(None, id="missing"),
        pytest.param("", id="empty"),
        pytest.param("secret", id="malformed"),
        pytest.param("key-\xe9", id="no ASCII"),
        pytest.param("key-00000000-" + "A" * 43, id="unknown"),
        pytest.param("OWN ", id="with a space"),
        pytest.param("ENDED", id="deactivated"),
    ],
)
def test_without_a_good_api_key_everything_is_forbidden(
    served: Served, client: VendorClient, account: Account, path: str, key: str | None
) -> None:
    headers = {"Authorization": f"Bearer {client.token(account)}"}
    if key == "ENDED":
        key = ended_key(served.engine, account)
    elif key is not None:
        key = key.replace("OWN ", f"{account.api_key} x")
    if key is not None:
        headers["x-api-key"] = key
    bodies: list[Any] = [{"email": account.email, "password": account.password}, {"districtlea": "17-0042"}, {}, None]
    for body in bodies:
        assert client.send(path, body, headers=headers).outcome == (403, "Forbidden")


@pytest.mark.shows("Credentials", "An unknown e-mail costs as much as a wrong password, and has the same answer.")
@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"password": "not the password"}, id="password"),
        pytest.param({"email": "nobody@vendors.example"}, id="e-mail"),
        pytest.param({"email": "OTHER", "password": "OTHER"}, id="another vendor's, both right"),
    ],
)
def test_a_wrong_pair_has_one_answer(
    served: Served, client: VendorClient, account: Account, wrong: dict[str, str]
) -> None:
    other = served.add()
    stands_for = {"email": other.email, "password": other.password}
    sent = {name: stands_for[name] if value == "OTHER" else value for name, value in wrong.items()}
    answer = client.login(account, **sent)
    assert answer.outcome == (401, "unauthorized")
    assert answer.message == "the e-mail or the password is wrong"


def test_a_disabled_vendor_cannot_log_in(served: Served, client: VendorClient, account: Account) -> None:
    with served.engine.begin() as connection:
        vendors.set_vendor_enabled(connection, TESTER, account.email, enabled=False)
    assert client.login(account).outcome == (401, "unauthorized")


BAD_BODIES: list[Any] = [
    pytest.param(b"", "no JSON", id="nothing"),
    pytest.param(b"{", "no JSON", id="half"),
    pytest.param(b"\xff\xfe{}", "no JSON", id="no UTF-8"),
    pytest.param(b"[" * 60_000, "no JSON", id="deep"),
    pytest.param(b'{"email": NaN}', "no JSON", id="NaN"),
    pytest.param(b"9" * 5000, "no JSON", id="an endless number"),
    pytest.param(b" " * 65_537, "longer than 65,536 bytes", id="long"),
    pytest.param(b"[]", "a JSON object", id="a list"),
    pytest.param(b"null", "a JSON object", id="null"),
    pytest.param(b'{"email": "a@b", "email": "c@d"}', "`email` is given more than once", id="a key twice"),
    pytest.param(b'{"password": "x"}', "`email`", id="no e-mail"),
    pytest.param(b'{"email": "a@b"}', "`password`", id="no password"),
    pytest.param(b'{"email": 1, "password": "x"}', "`email`", id="a number"),
    pytest.param(b'{"email": null, "password": "x"}', "`email`", id="an e-mail of null"),
    pytest.param(b'{"email": "", "password": "x"}', "`email`", id="an empty e-mail"),
    pytest.param(b'{"email": "a@b", "password": "\\u0000"}', "`password`", id="a NUL"),
    pytest.param(b'{"email": "a@b", "password": "\\ud800"}', "`password`", id="half a surrogate pair"),
    pytest.param(b'{"email": "a@b", "password": "x", "pasword": 1}', "did you mean `password`", id="an unknown key"),
    pytest.param(b'{"email": "a@b", "password": "x", "\\ud800": 1}', "no key", id="a key that is no text"),
]


@pytest.mark.parametrize(("raw", "reported"), BAD_BODIES)
def test_a_body_that_cannot_be_used_says_why(client: VendorClient, account: Account, raw: bytes, reported: str) -> None:
    answer = client.send("/v1/login", raw=raw, headers={"x-api-key": account.api_key})
    assert answer.outcome == (400, "bad-request")
    assert reported in answer.message


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""])
def test_the_content_type_must_be_json(client: VendorClient, account: Account, kind: str) -> None:
    headers = {"x-api-key": account.api_key, "Content-Type": kind}
    answer = client.send("/v1/login", {"email": account.email, "password": account.password}, headers=headers)
    assert answer.outcome == (400, "bad-request")
    assert "Content-Type" in answer.message


def test_a_body_that_is_too_large_is_a_bad_request(client: VendorClient, account: Account) -> None:
    answer = client.send("/v1/login", raw=b" " * 70_000, headers={"x-api-key": account.api_key})
    assert answer.outcome == (400, "bad-request")


def test_query_parameters_are_refused(client: VendorClient, account: Account) -> None:
    answer = client.send("/v1/login?limit=1", {}, headers={"x-api-key": account.api_key})
    assert answer.outcome == (400, "bad-request")


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"])
@pytest.mark.parametrize("path", PATHS)
def test_other_methods_are_not_allowed(client: VendorClient, path: str, method: str) -> None:
    answer = client.send(path, method=method)
    assert answer.outcome == (405, "method-not-allowed")
    assert answer.headers["Allow"] == "POST"


@pytest.mark.parametrize("path", ["/v1", "/v1/", "/v1/student", "/v1//login"])
def test_an_unknown_path_answers_in_the_same_shape(client: VendorClient, path: str) -> None:
    assert client.send(path).outcome == (404, "not-found")


@pytest.mark.shows("Credentials", "Failed logins of vendors are slowed per e-mail and per vendor, and nobody else's.")
def test_repeated_failures_are_slowed_for_that_account_and_nobody_else(
    served: Served, client: VendorClient, account: Account
) -> None:
    """Five a minute for an account; also its right password waits then, and no other vendor does."""
    other, third = (served.add(grants={"spr-district": ()}) for _ in range(2))
    for _ in range(5):
        assert client.login(account, password="wrong").status == 401
    for password in ("wrong", account.password):
        slowed = client.login(account, password=password)
        assert slowed.outcome == (429, "rate-limited")
        assert 1 <= int(slowed.headers["Retry-After"]) <= 61
    # Whoever tries the account with a key of their own slows themselves alone.
    for _ in range(6):
        client.login(other, email=account.email, password="wrong")
    assert client.login(other, email=account.email, password="wrong").status == 429
    assert client.login(other).status == 200
    assert client.login(third).status == 200


@pytest.mark.shows("Credentials", "Failed logins of vendors are slowed per e-mail and per vendor, and nobody else's.")
def test_many_accounts_tried_with_one_key_are_slowed(served: Served, client: VendorClient, account: Account) -> None:
    for number in range(20):
        assert client.login(account, email=f"guess-{number}@vendors.example").status == 401
    assert client.login(account).outcome == (429, "rate-limited")
