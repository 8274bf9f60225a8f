"""Every state of a permission token, and the order of refusals."""

from __future__ import annotations

import base64
import itertools
import json
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from joserfc import jwt
from joserfc.jwk import RSAKey

from roster_service.accounts import clients, vendor_rights, vendors
from roster_service.auth.credentials.api_keys import rotate_key
from roster_service.auth.credentials.secrets import set_password
from roster_service.auth.credentials.signing_keys import KeyRing, add_signing_key
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.schemas.flags import PermissionFlag
from tests.actors import TESTER
from tests.contract.conftest import SECRET_KEY
from tests.vendor.client import Account, VendorClient
from tests.vendor.conftest import Served

LEA = "17-0042"
BODY = {"districtlea": LEA}
ISSUER = "http://127.0.0.1:8000"


@pytest.fixture
def account(served: Served) -> Account:
    """A vendor who may see Springfield."""
    return served.add(grants={"spr-district": ()})


def make_claims(account: Account, version: int, **changed: Any) -> dict[str, Any]:
    """The claims of a good token, but for what is changed; None leaves a claim out."""
    now = int(time.time())
    claims = {
        "iss": ISSUER,
        "aud": f"{ISSUER}/v1",
        "sub": str(account.id),
        "districts": ["spr-district"],
        "schools": [],
        "flags": [],
        "ver": version,
        "iat": now,
        "exp": now + 1000,
    }
    return {name: value for name, value in (claims | changed).items() if value is not None}


def sign(served: Served, claims: dict[str, Any], **header: Any) -> str:
    """A token signed with the service's own key."""
    [key] = KeyRing(served.engine, SECRET_KEY).read_private().keys
    made = {"alg": "RS256", "typ": "pjwt+jwt", "kid": key.kid} | header
    return jwt.encode({name: value for name, value in made.items() if value is not None}, claims, key)


def version_of(served: Served, account: Account) -> int:
    """The grant version of a vendor."""
    with served.engine.connect() as connection:
        return vendors.find_vendor(connection, account.email).grant_version


def test_the_claims_of_these_tests_are_good_ones(served: Served, client: VendorClient, account: Account) -> None:
    token = sign(served, make_claims(account, version_of(served, account)))
    assert client.students(account, token, BODY).status == 200


CLAIMS: list[Any] = [
    pytest.param({"exp": 1}, id="expired"),
    pytest.param({"exp": int(time.time())}, id="expired just now"),
    pytest.param({"exp": None}, id="endless"),
    pytest.param({"exp": "tomorrow"}, id="a text as its end"),
    pytest.param({"iat": None}, id="of no time"),
    pytest.param({"iat": 10**11}, id="of the future"),
    pytest.param({"iss": "https://elsewhere.example"}, id="another issuer"),
    pytest.param({"iss": None}, id="no issuer"),
    pytest.param({"aud": f"{ISSUER}/ims/oneroster"}, id="another audience"),
    pytest.param({"aud": None}, id="no audience"),
    pytest.param({"sub": None}, id="of no vendor"),
    pytest.param({"sub": "0"}, id="of another vendor"),
    pytest.param({"ver": 0}, id="an old grant version"),
    pytest.param({"ver": None}, id="no grant version"),
]


@pytest.mark.parametrize("changed", CLAIMS)
def test_claims_that_do_not_count(
    served: Served, client: VendorClient, account: Account, changed: dict[str, Any]
) -> None:
    token = sign(served, make_claims(account, version_of(served, account), **changed))
    assert client.students(account, token, BODY).outcome == (401, "invalid-token")


@pytest.mark.parametrize("header", [{"typ": None}, {"typ": "JWT"}, {"typ": "at+jwt"}, {"kid": None}, {"kid": "x"}])
def test_headers_that_do_not_count(
    served: Served, client: VendorClient, account: Account, header: dict[str, Any]
) -> None:
    token = sign(served, make_claims(account, version_of(served, account)), **header)
    assert client.students(account, token, BODY).outcome == (401, "invalid-token")


def encode(value: Any) -> str:
    """A part of a token."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def part(token: str, number: int) -> Any:
    """A part of a token, read."""
    piece = token.split(".")[number]
    return json.loads(base64.urlsafe_b64decode(piece + "=" * (-len(piece) % 4)))


def without_signature(token: str) -> str:
    """As `alg: none` has it."""
    return f"{encode(part(token, 0) | {'alg': 'none'})}.{token.split('.')[1]}."


def with_hmac(token: str) -> str:
    """The key id of ours under another algorithm."""
    _, body, signature = token.split(".")
    return f"{encode(part(token, 0) | {'alg': 'HS256'})}.{body}.{signature}"


def widened(token: str) -> str:
    """Another district, under the old signature."""
    header, _, signature = token.split(".")
    return f"{header}.{encode(part(token, 1) | {'districts': ['shv-district']})}.{signature}"


def by_a_stranger(token: str) -> str:
    """Signed with a key of somebody else's, under the id of ours."""
    key = RSAKey.generate_key(2048)
    return jwt.encode(part(token, 0), part(token, 1), key)


MISSHAPEN: list[Any] = [
    pytest.param(without_signature, id="alg none"),
    pytest.param(with_hmac, id="another algorithm"),
    pytest.param(widened, id="altered"),
    pytest.param(by_a_stranger, id="another key"),
    pytest.param(
        lambda token: f"{encode(part(token, 0) | {'kid': 5})}.{token.partition('.')[2]}", id="a key in digits"
    ),
    pytest.param(lambda token: token[:-2], id="cut"),
    pytest.param(lambda token: token + "x", id="longer"),
    pytest.param(lambda token: token.replace(".", "", 1), id="two parts"),
    pytest.param(lambda _token: "...", id="dots"),
    pytest.param(lambda _token: "x" * 5000, id="long"),
    pytest.param(lambda _token: "é", id="no ASCII"),
    pytest.param(lambda _token: "", id="empty"),
    pytest.param(lambda token: f"{token} {token}", id="two tokens"),
]


@pytest.mark.shows(
    "Credentials",
    "RS256 alone, with a key of the service's own that the token names by its id: no `alg: none`, HMAC or foreign key.",
)
@pytest.mark.parametrize("bend", MISSHAPEN)
def test_a_token_that_is_bent_does_not_count(
    client: VendorClient, account: Account, bend: Callable[[str], str]
) -> None:
    answer = client.students(account, bend(client.token(account)), BODY)
    assert answer.outcome == (401, "invalid-token")
    assert answer.message == "the permission token is not valid; log in again"


@pytest.mark.parametrize("scheme", ["Basic ", "Token ", ""])
def test_another_scheme_is_no_token(client: VendorClient, account: Account, scheme: str) -> None:
    answer = client.students(account, None, BODY, headers={"Authorization": f"{scheme}{client.token(account)}"})
    assert answer.outcome == (401, "invalid-token")
    assert "must be `Bearer TOKEN`" in answer.message


@pytest.mark.parametrize("headers", [{}, {"Authorization": ""}, {"Authorization": " "}])
def test_a_missing_header_is_unauthorized(client: VendorClient, account: Account, headers: dict[str, str]) -> None:
    answer = client.students(account, None, BODY, headers=headers)
    assert answer.outcome == (401, "unauthorized")
    assert "/v1/login" in answer.message


@pytest.mark.shows(
    "Credentials",
    "A token does not open the other interface, and does not count with another vendor's API key.",
)
def test_a_token_with_another_vendor_s_key(served: Served, client: VendorClient, account: Account) -> None:
    other = served.add(grants={"spr-district": ()})
    assert client.students(other, client.token(account), BODY).outcome == (401, "invalid-token")


CHANGES: list[Any] = [
    pytest.param(
        lambda on, own: vendor_rights.grant(on, TESTER, own.email, "shv-district", []), 200, id="a grant more"
    ),
    pytest.param(lambda on, own: vendor_rights.revoke(on, TESTER, own.email, "spr-district"), 403, id="the last grant"),
    pytest.param(
        lambda on, own: vendor_rights.grant(on, TESTER, own.email, None, (), [PermissionFlag.CONTACTS]),
        200,
        id="a flag",
    ),
    pytest.param(lambda on, own: vendors.set_vendor_enabled(on, TESTER, own.email, enabled=False), 401, id="disabled"),
]


@pytest.mark.shows(
    "Credentials",
    "Changed rights, a disabled vendor or client, and a new secret or signing key without a grace end tokens at once.",
)
@pytest.mark.parametrize(("change", "login"), CHANGES)
def test_a_change_ends_the_tokens_made_before(
    served: Served, client: VendorClient, account: Account, change: Any, login: int
) -> None:
    token = client.token(account)
    assert client.students(account, token, BODY).status == 200
    with served.engine.begin() as connection:
        change(connection, account)
    assert client.students(account, token, BODY).outcome == (401, "invalid-token")
    assert client.login(account).status == login


@pytest.mark.shows(
    "Credentials",
    "A new API key ends the old one at once or after its grace; permission tokens go on with the new key.",
)
def test_a_new_key_goes_on_with_the_old_token(served: Served, client: VendorClient, account: Account) -> None:
    """The key was in wrong hands, not the grants: rotating it interrupts nothing else."""
    token = client.token(account)
    with served.engine.begin() as connection:
        made = rotate_key(connection, account.id, timedelta())
    assert client.students(account, token, BODY).outcome == (403, "Forbidden")
    renewed = Account(account.id, account.email, made.api_key, account.password)
    assert client.students(renewed, token, BODY).status == 200


def test_a_retired_signing_key_ends_its_tokens_at_once(
    served: Served, client: VendorClient, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the new key's tokens are good at once, however short ago the service read the keys."""
    monkeypatch.setattr(KeyRing, "pause", 3600.0)
    token = client.token(account)
    assert client.students(account, token, BODY).status == 200
    with served.engine.begin() as connection:
        kept = add_signing_key(connection, SECRET_KEY)
        connection.execute(
            sa.text("UPDATE signing_keys SET retired_at = now() - interval '1 second' WHERE key_id <> :kept"),
            {"kept": kept},
        )
    assert client.students(account, token, BODY).outcome == (401, "invalid-token")
    assert client.students(account, client.token(account), BODY).status == 200


@pytest.mark.shows(
    "Credentials",
    "A token does not open the other interface, and does not count with another vendor's API key.",
)
def test_no_token_opens_the_other_interface(served: Served, client: VendorClient, account: Account) -> None:
    with served.engine.begin() as connection:
        made = clients.add_client(connection, TESTER, account.email, "tests", [Scope("v1p1", ScopeName.FULL)])
    http = served.app.test_client()
    form = {"grant_type": "client_credentials", "client_id": made.client_id, "client_secret": made.client_secret}
    access_token = http.post("/oauth/token", data=form).json["access_token"]
    assert client.students(account, access_token, BODY).outcome == (401, "invalid-token")
    permission_token = client.token(account)
    refused = http.get("/ims/oneroster/v1p1/orgs", headers={"Authorization": f"Bearer {permission_token}"})
    assert refused.status_code == 401


def test_a_new_password_does_not_open_with_the_old(served: Served, client: VendorClient, account: Account) -> None:
    with served.engine.begin() as connection:
        set_password(connection, account.id, "a password of a new kind")
    assert client.login(account).status == 401
    assert client.login(account, password="a password of a new kind").status == 200


# What may be wrong, in the order in which it is refused.
FAULTS = ("key", "header", "token", "body", "privilege")
REFUSALS = {
    "key": (403, "Forbidden"),
    "header": (401, "unauthorized"),
    "token": (401, "invalid-token"),
    "body": (400, "bad-request"),
    "privilege": (403, "no-privilege"),
}


@pytest.mark.parametrize("faults", [*itertools.combinations(FAULTS, 2)], ids="-".join)
def test_of_two_faults_the_earlier_is_reported(client: VendorClient, account: Account, faults: tuple[str, ...]) -> None:
    token = "no token" if "token" in faults else client.token(account)
    body = {"districtlea": "17-0077" if "privilege" in faults else LEA} | ({"limit": 0} if "body" in faults else {})
    headers = {"x-api-key": "none"} if "key" in faults else {}
    answer = client.students(account, None if "header" in faults else token, body, headers=headers)
    assert answer.outcome == REFUSALS[min(faults, key=FAULTS.index)]
