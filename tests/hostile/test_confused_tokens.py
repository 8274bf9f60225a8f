"""Tokens that tell the service how to check them: it listens to none of it, at either door."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Any

import pytest
from joserfc.jwk import RSAKey

from tests.contract.client import RosterClient
from tests.contract.conftest import Served
from tests.contract.test_bearer import Sign, encode
from tests.contract.test_tokens import read_part
from tests.vendor.client import Account, VendorClient

BODY = {"districtlea": "17-0042"}
OWN = RSAKey.generate_key(2048, {"use": "sig", "alg": "RS256"}, auto_kid=True)

# What a header may bring along to be believed.
HEADERS: list[Any] = [
    pytest.param({"jku": "https://evil.example/keys.json"}, id="the address of a key set"),
    pytest.param({"x5u": "https://evil.example/cert.pem"}, id="the address of a certificate"),
    pytest.param({"jwk": OWN.as_dict(private=False)}, id="a key"),
    pytest.param({"kid": "../../../../dev/null"}, id="a path as key id"),
    pytest.param({"kid": "x' UNION SELECT public_jwk FROM signing_keys --"}, id="SQL as key id"),
    pytest.param({"kid": "|cat /etc/passwd"}, id="a command as key id"),
    pytest.param({"kid": ""}, id="a blank key id"),
    pytest.param({"kid": "x" * 8_000}, id="a long key id"),
    pytest.param({"crit": ["exp"], "exp": 1}, id="a critical header"),
]


def sign_with_own(token: str, header: dict[str, Any]) -> str:
    """The claims of a token under a stranger's signature, with more in its header."""
    head = encode({**read_part(token, 0), **header})
    claims = token.split(".")[1]
    private = OWN.private_key
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    signature = private.sign(f"{head}.{claims}".encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{head}.{claims}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


@pytest.fixture(scope="module")
def permission_token(vendor: VendorClient, account: Account) -> str:
    """A good permission token."""
    return vendor.token(account)


@pytest.mark.shows(
    "Credentials",
    "RS256 alone, with a key of the service's own that the token names by its id: no `alg: none`, HMAC or foreign key.",
)
@pytest.mark.parametrize("header", HEADERS)
def test_a_header_brings_no_key(
    client: RosterClient, vendor: VendorClient, account: Account, permission_token: str, header: dict[str, Any]
) -> None:
    assert client.call("v1p1", "/orgs").status == 200
    assert client.call("v1p1", "/orgs", bearer=sign_with_own(client.token("v1p1"), header)).status == 401
    assert vendor.students(account, permission_token, BODY).status == 200
    refused = vendor.students(account, sign_with_own(permission_token, header), BODY)
    assert refused.outcome == (401, "invalid-token")


@pytest.mark.parametrize(
    "header", [{"kid": ["x"]}, {"kid": None}, {"kid": {"a": 1}}, {"kid": True}, {"crit": ["b64"], "b64": False}]
)
def test_a_good_key_under_a_broken_header_is_refused(client: RosterClient, sign: Sign, header: dict[str, Any]) -> None:
    good = sign({}).split(".")
    token = ".".join([encode({**read_part(sign({}), 0), **header}), *good[1:]])
    assert client.call("v1p1", "/orgs", bearer=token).status == 401


@pytest.mark.parametrize("secret", ["pem", "jwk", "modulus"])
def test_the_public_key_is_no_shared_secret_of_permission_tokens(
    client: RosterClient, vendor: VendorClient, account: Account, permission_token: str, secret: str
) -> None:
    published = next(
        key
        for key in client.fetch("/.well-known/jwks.json").json["keys"]
        if key["kid"] == read_part(permission_token, 0)["kid"]
    )
    secrets = {
        "pem": RSAKey.import_key(published).as_pem(private=False),
        "jwk": json.dumps(published).encode(),
        "modulus": str(published["n"]).encode(),
    }
    head = encode({**read_part(permission_token, 0), "alg": "HS256"})
    claims = permission_token.split(".")[1]
    signature = hmac.digest(secrets[secret], f"{head}.{claims}".encode(), hashlib.sha256)
    tail = base64.urlsafe_b64encode(signature).decode().rstrip("=")
    assert vendor.students(account, f"{head}.{claims}.{tail}", BODY).outcome == (401, "invalid-token")


def test_an_encrypted_token_is_none(client: RosterClient, vendor: VendorClient, account: Account) -> None:
    """Five parts are a JWE, which anyone can make for a public key."""
    head = encode({"alg": "RSA-OAEP", "enc": "A128GCM", "typ": "at+jwt"})
    token = f"{head}.{'A' * 342}.{'A' * 16}.{'A' * 40}.{'A' * 22}"
    assert client.call("v1p1", "/orgs", bearer=token).status == 401
    assert vendor.students(account, token, BODY).outcome == (401, "invalid-token")


@pytest.mark.parametrize("kind", ["JWT", "pjwt+jwt", "application/at+jwt", "AT+JWT ", "at+jwt,pjwt+jwt"])
def test_another_kind_of_token_opens_nothing(client: RosterClient, sign: Callable[..., str], kind: str) -> None:
    assert client.call("v1p1", "/orgs", bearer=sign({}, {"typ": kind})).status == 401


def test_the_key_of_one_vendor_with_the_token_of_another(
    served: Served, client: RosterClient, vendor: VendorClient, account: Account, permission_token: str
) -> None:
    """And an access token beside an API key: each door takes its own pair alone."""
    refused = vendor.students(account, client.token("v1p1"), BODY)
    assert refused.outcome == (401, "invalid-token")
    headers = {"x-api-key": account.api_key}
    assert client.call("v1p1", "/orgs", bearer=permission_token, headers=headers).status == 401
    assert client.call("v1p1", "/orgs", bearer=None, headers=headers).status == 401
