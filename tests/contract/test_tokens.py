"""The token endpoint: who gets a token, for which scopes, and what stands in it."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping

import pytest
import sqlalchemy as sa
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata
from joserfc import jwt
from joserfc.jwk import KeySet

from .client import CORE, FULL, GUARDIANS, SCOPES, VERSIONS, Answer, RosterClient
from .conftest import Served

each_version = pytest.mark.parametrize("version", VERSIONS)
PREFIX = "https://purl.imsglobal.org/spec/or"
GRADEBOOK = f"{PREFIX}/v1p1/scope/gradebook.readonly"


def basic(client_id: str, secret: str) -> dict[str, str]:
    """The header of Basic credentials."""
    return {"Authorization": "Basic " + base64.b64encode(f"{client_id}:{secret}".encode()).decode()}


def bare(form: Mapping[str, str]) -> dict[str, str]:
    """A form without the credentials."""
    return {name: text for name, text in form.items() if not name.startswith("client_")}


def assert_granted(answer: Answer) -> None:
    """RFC 6749, section 5.1."""
    assert answer.status == 200, answer.body
    assert set(answer.json) == {"access_token", "token_type", "expires_in", "scope"}
    assert (answer.json["token_type"], answer.json["expires_in"]) == ("Bearer", 3600)
    assert answer.headers["Content-Type"] == "application/json"
    assert (answer.headers["Cache-Control"], answer.headers["Pragma"]) == ("no-store", "no-cache")


def assert_refused(answer: Answer, status: int, error: str) -> None:
    """RFC 6749, section 5.2."""
    assert (answer.status, answer.json["error"]) == (status, error), answer.body
    assert set(answer.json) <= {"error", "error_description"}
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "access_token" not in answer.json


# --- who the client is -------------------------------------------------------------------------------------------


def test_credentials_are_taken_from_the_body(client: RosterClient) -> None:
    assert_granted(client.ask_token(client.form(scope="v1p1/roster.readonly")))


@pytest.mark.parametrize("scheme", ["Basic", "basic", "BASIC"])
def test_credentials_are_taken_from_the_header(client: RosterClient, scheme: str) -> None:
    form = client.form(scope="v1p1/roster.readonly")
    header = basic(form["client_id"], form["client_secret"])["Authorization"].partition(" ")[2]
    assert_granted(client.ask_token(bare(form), {"Authorization": f"{scheme} {header}"}))


def test_ids_and_secrets_need_no_encoding(client: RosterClient) -> None:
    """Some clients percent-encode them before base64 and some do not; unreserved characters stay the same."""
    form = client.form()
    assert all(char.isalnum() or char in "-._~" for char in form["client_id"] + form["client_secret"])


CREDENTIALS = [
    pytest.param({"client_secret": "secret-wrong"}, id="wrong-secret"),
    pytest.param({"client_id": "client-nobody"}, id="unknown-client"),
    pytest.param({"client_id": "client-\0"}, id="nul-in-the-client"),
    pytest.param({"client_secret": "secret-\0"}, id="nul-in-the-secret"),
    pytest.param({"client_id": "клиент", "client_secret": "тайна"}, id="other-script"),
    pytest.param({"client_secret": "x" * 10_000}, id="long-secret"),
]


@pytest.mark.parametrize("changed", CREDENTIALS)
def test_wrong_credentials_are_401_invalid_client(client: RosterClient, changed: dict[str, str]) -> None:
    """In the body as in the header; and nothing tells an unknown client from a wrong secret."""
    form = client.form(scope="v1p1/roster.readonly") | changed
    in_body = client.ask_token(form)
    assert_refused(in_body, 401, "invalid_client")
    in_header = client.ask_token(bare(form), basic(form["client_id"], form["client_secret"]))
    assert_refused(in_header, 401, "invalid_client")
    assert in_header.headers["WWW-Authenticate"] == 'Basic realm="roster"'
    assert in_body.body == client.ask_token(client.form() | {"client_secret": "secret-another"}).body


NO_PAIR = "is no base64 of an id, a colon and a secret"
NOT_BASIC = "the scheme of the `Authorization` header is not Basic"


@pytest.mark.parametrize(
    ("form", "headers", "missing"),
    [
        pytest.param({}, basic("", "x"), "the id or the secret is empty", id="blank-client"),
        pytest.param({}, basic("x", ""), "the id or the secret is empty", id="blank-secret"),
        pytest.param({}, {"Authorization": "Basic"}, NO_PAIR, id="no-credentials-in-the-header"),
        pytest.param({}, {"Authorization": "Basic %%%"}, NO_PAIR, id="no-base64"),
        pytest.param({}, {"Authorization": "Basic bm9jb2xvbg=="}, NO_PAIR, id="no-colon"),
        pytest.param({}, {"Authorization": "Basic //46eA=="}, NO_PAIR, id="no-utf-8"),
        pytest.param({}, {"Authorization": "Bearer bm9jb2xvbg=="}, NOT_BASIC, id="other-scheme"),
        pytest.param({}, {"Authorization": ""}, NOT_BASIC, id="blank-header"),
        pytest.param({}, {}, "the request has no client_id and no client_secret", id="no-credentials"),
        pytest.param({"client_id": "x"}, {}, "the request has no client_secret", id="no-secret-in-the-form"),
        pytest.param({"client_secret": "x"}, {}, "the request has no client_id", id="no-client-in-the-form"),
    ],
)
def test_missing_or_malformed_credentials_are_named(
    client: RosterClient, form: dict[str, str], headers: dict[str, str], missing: str
) -> None:
    answer = client.ask_token({"grant_type": "client_credentials", **form}, headers)
    assert_refused(answer, 401, "invalid_client")
    assert missing in answer.json["error_description"]
    assert "client_id and client_secret in the form" in answer.json["error_description"]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        pytest.param("UPDATE oauth_clients SET enabled = false", "the client is disabled", id="client"),
        pytest.param("UPDATE vendors SET enabled = false", "the vendor of the client is disabled", id="vendor"),
        pytest.param(
            "UPDATE oauth_clients SET secret_expires_at = now()", "the secret of the client has ended", id="secret"
        ),
    ],
)
def test_only_the_right_secret_learns_why_a_client_gets_no_token(
    make_served: Callable[..., Served], statement: str, reason: str
) -> None:
    own = make_served()
    with own.engine.begin() as connection:
        connection.execute(sa.text(statement))
    right, wrong = own.client.ask_token(own.client.form()), own.client.ask_token(own.client.form(client_secret="x"))
    assert_refused(right, 401, "invalid_client")
    assert reason in right.json["error_description"]
    assert wrong.json["error_description"] == "the client id or the secret is wrong"


def test_credentials_in_the_address_do_not_count(client: RosterClient) -> None:
    """Addresses end up in logs."""
    form = client.form()
    query = f"client_id={form['client_id']}&client_secret={form['client_secret']}"
    answer = client.ask_token({"grant_type": "client_credentials"}, path=f"/oauth/token?{query}")
    assert_refused(answer, 401, "invalid_client")
    assert "in the URL, they do not count" in answer.json["error_description"]


def test_grant_type_and_scope_may_be_in_the_query(client: RosterClient) -> None:
    """Libraries of other consumers send them there."""
    form = client.form()
    query = "grant_type=client_credentials&scope=v1p2/roster.readonly"
    del form["grant_type"]
    answer = client.ask_token(form, path=f"/oauth/token?{query}")
    assert_granted(answer)
    assert answer.json["scope"] == "v1p2/roster.readonly"
    assert_refused(client.ask_token(client.form(), path=f"/oauth/token?{query}"), 400, "invalid_request")


def test_a_trailing_slash_changes_nothing(client: RosterClient) -> None:
    assert_granted(client.ask_token(client.form(), path="/oauth/token/"))
    for path in ("/.well-known/jwks.json", "/.well-known/oauth-authorization-server"):
        assert client.fetch(f"{path}/").json == client.fetch(path).json


def test_a_wrong_header_is_not_made_up_for_by_the_body(client: RosterClient) -> None:
    form = client.form()
    assert client.ask_token(form, basic(form["client_id"], "secret-wrong")).status in (400, 401)


# --- the request -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "error"),
    [
        pytest.param({"grant_type": "password"}, "unsupported_grant_type", id="password"),
        pytest.param({"grant_type": "authorization_code"}, "unsupported_grant_type", id="code"),
        pytest.param({"grant_type": "Client_Credentials"}, "unsupported_grant_type", id="other-case"),
        pytest.param({"grant_type": "refresh_token"}, "unsupported_grant_type", id="refresh"),
    ],
)
def test_another_grant_is_refused_with_the_one_that_there_is(
    client: RosterClient, form: dict[str, str], error: str
) -> None:
    answer = client.ask_token(client.form() | form)
    assert_refused(answer, 400, error)
    assert "grant_type=client_credentials" in answer.json["error_description"]


def test_no_grant_type_is_refused(client: RosterClient) -> None:
    form = client.form()
    del form["grant_type"]
    for body in (form, form | {"grant_type": ""}, None, json.dumps(client.form())):
        answer = client.ask_token(body)
        assert_refused(answer, 400, "invalid_request")
        assert "grant_type" in answer.json["error_description"]
        assert "application/x-www-form-urlencoded" in answer.json["error_description"]


@pytest.mark.parametrize("repeated", ["scope", "grant_type"])
def test_a_repeated_parameter_is_refused(client: RosterClient, repeated: str) -> None:
    """RFC 6749, section 3.2: taking the first and dropping the other would hide a mistake."""
    form = client.form(scope="v1p1/roster.readonly")
    text = "&".join(f"{name}={value}" for name, value in [*form.items(), (repeated, form[repeated])])
    assert_refused(client.ask_token(text), 400, "invalid_request")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_the_endpoint_is_post_alone(client: RosterClient, method: str) -> None:
    answer = client.fetch("/oauth/token", method)
    assert answer.status == 405
    assert "POST" in answer.headers["Allow"]
    assert answer.json["error_description"] == "this path takes POST"


def test_a_body_that_is_too_large_is_413(client: RosterClient) -> None:
    answer = client.ask_token({**client.form(), "padding": "x" * 100_000})
    assert (answer.status, answer.json["error_description"]) == (413, "the body is longer than 65,536 bytes")


# --- scopes ------------------------------------------------------------------------------------------------------

SPELLINGS = [
    pytest.param("v1p1/roster.readonly", id="short"),
    pytest.param(f"{PREFIX}/v1p1/scope/roster.readonly", id="long"),
    pytest.param("http://purl.imsglobal.org/spec/or/v1p2/scope/roster.readonly", id="http"),
    pytest.param(f"v1p2/roster.readonly {PREFIX}/v1p2/scope/guardians.readonly", id="mixed"),
]


@pytest.mark.parametrize("scope", SPELLINGS)
def test_scopes_are_granted_in_the_spelling_they_were_asked_for(client: RosterClient, scope: str) -> None:
    answer = client.ask_token(client.form(scope=scope))
    assert_granted(answer)
    assert answer.json["scope"] == scope
    version = "v1p1" if "v1p1" in scope else "v1p2"
    assert client.call(version, "/schools/spr-high/classes", bearer=answer.json["access_token"]).total == 3


@pytest.mark.parametrize(
    ("asked", "granted"),
    [
        pytest.param(f"v1p1/roster.readonly {GRADEBOOK}", "v1p1/roster.readonly", id="gradebook"),
        pytest.param(
            f"{GRADEBOOK} {PREFIX}/v1p2/scope/resource.readonly v1p1/roster.readonly",
            "v1p1/roster.readonly",
            id="foreign-scopes-of-the-other-version",
        ),
        pytest.param("openid v1p2/roster-core.readonly profile", "v1p2/roster-core.readonly", id="other-protocols"),
        pytest.param("v1p1/roster.readonly  v1p1/roster.readonly", "v1p1/roster.readonly", id="twice"),
        pytest.param("v1p1/roster.readonly V1P1/guardians.readonly", "v1p1/roster.readonly", id="other-case"),
        pytest.param("v1p1/roster.readonly v1p3/roster.readonly", "v1p1/roster.readonly", id="another-version"),
    ],
)
def test_what_is_not_ours_is_left_out_of_the_grant(client: RosterClient, asked: str, granted: str) -> None:
    answer = client.ask_token(client.form(scope=asked))
    assert_granted(answer)
    assert answer.json["scope"] == granted


COMMAS = "scopes are separated by spaces, not by commas, as in `{}`"


@pytest.mark.parametrize(
    ("asked", "mistake"),
    [
        pytest.param("v1p1/roster.readonly v1p2/roster.readonly", "are of both versions", id="both-versions"),
        pytest.param(
            f"v1p1/guardians.readonly {PREFIX}/v1p2/scope/roster.readonly", "of both versions", id="both-spellings"
        ),
        pytest.param(GRADEBOOK, f"there is no scope `{GRADEBOOK}`", id="gradebook-alone"),
        pytest.param(
            "roster.readonly", "`roster.readonly` has no version: write v1p2/roster.readonly", id="no-version"
        ),
        pytest.param("v1p1/", "there is no scope `v1p1/`", id="no-name"),
        pytest.param("v1p1/roster.readonly/", "there is no scope `v1p1/roster.readonly/`", id="slash-behind"),
        pytest.param(
            "v1p1/roster.readonly,v1p1/guardians.readonly",
            COMMAS.format("v1p1/roster.readonly,v1p1/guardians.readonly"),
            id="commas",
        ),
        pytest.param(f"x{PREFIX}/v1p1/scope/roster.readonly", "there is no scope `xhttps:", id="letter-before"),
        pytest.param("*", "there is no scope `*`", id="star"),
        pytest.param('é"\\', "there is no scope `???`", id="what-a-description-may-not-have"),
    ],
)
def test_nothing_left_or_both_versions_is_invalid_scope(client: RosterClient, asked: str, mistake: str) -> None:
    answer = client.ask_token(client.form(scope=asked))
    assert_refused(answer, 400, "invalid_scope")
    assert mistake in answer.json["error_description"]
    assert "written v1p2/NAME" in answer.json["error_description"]
    assert "this client may have: v1p1/roster-core.readonly, v1p1/roster.readonly" in answer.json["error_description"]


@pytest.mark.parametrize(
    "more",
    [pytest.param({}, id="absent"), pytest.param({"scope": ""}, id="blank"), pytest.param({"scope": " "}, id="space")],
)
def test_without_a_scope_all_of_the_first_version_is_granted(client: RosterClient, more: dict[str, str]) -> None:
    """RFC 6749, section 3.2: a parameter without a value counts as left out."""
    answer = client.ask_token(client.form() | more)
    assert_granted(answer)
    assert answer.json["scope"].split() == [f"{PREFIX}/v1p1/scope/{name}" for name in SCOPES]


# --- the token ---------------------------------------------------------------------------------------------------


def read_part(token: str, place: int) -> dict[str, object]:
    """The header (0) or the claims (1) of a token."""
    part = token.split(".")[place]
    found: dict[str, object] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return found


@pytest.mark.shows("Credentials", "An access token is valid for 1 hour, a permission token for 24 hours.")
@each_version
def test_the_token_is_a_jwt_of_rfc_9068(client: RosterClient, version: str) -> None:
    token = client.token(version, (CORE, FULL, GUARDIANS))
    header, claims = read_part(token, 0), read_part(token, 1)
    assert (header["typ"], header["alg"]) == ("at+jwt", "RS256")
    keys = {key["kid"]: key for key in client.fetch("/.well-known/jwks.json").json["keys"]}
    assert header["kid"] in keys
    form = client.form()
    assert claims["client_id"] == claims["sub"] == form["client_id"]
    assert claims["iss"] == "http://127.0.0.1:8000"
    assert claims["aud"] == "http://127.0.0.1:8000/ims/oneroster"
    assert claims["exp"] - claims["iat"] == 3600  # type: ignore[operator]
    assert abs(claims["iat"] - time.time()) < 3600  # type: ignore[operator]
    assert str(claims["scope"]).split() == [f"{PREFIX}/{version}/scope/{name}" for name in (CORE, FULL, GUARDIANS)]
    assert form["client_secret"] not in token


@pytest.mark.shows(
    "Logs and transport",
    "The published keys and the metadata of the token endpoint may be kept for five minutes.",
)
def test_the_metadata_lead_to_the_endpoints(client: RosterClient) -> None:
    """RFC 8414; Authlib has the rules of its members."""
    answer = client.fetch("/.well-known/oauth-authorization-server")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    assert answer.headers["Cache-Control"] == "public, max-age=300"
    metadata = AuthorizationServerMetadata(answer.json)
    metadata.validate()
    assert metadata["issuer"] == read_part(client.token("v1p1"), 1)["iss"]
    assert_granted(client.ask_token(client.form(), path=metadata["token_endpoint"]))
    assert client.fetch(metadata["jwks_uri"]).json["keys"]
    asked = [scope for scope in metadata["scopes_supported"] if "/v1p2/" in scope]
    assert client.ask_token(client.form(scope=" ".join(asked))).json["scope"].split() == asked
    assert len(metadata["scopes_supported"]) == 2 * len(SCOPES)


@each_version
def test_anyone_can_verify_the_token_with_the_published_keys(client: RosterClient, version: str) -> None:
    keys = KeySet.import_key_set(client.fetch("/.well-known/jwks.json").json)
    assert jwt.decode(client.token(version), keys, algorithms=["RS256"]).claims["client_id"]


def test_no_two_tokens_are_the_same(client: RosterClient) -> None:
    tokens = [client.ask_token(client.form()).json["access_token"] for _ in range(2)]
    assert len({read_part(token, 1)["jti"] for token in tokens}) == 2


@pytest.mark.shows(
    "Logs and transport",
    "The published keys and the metadata of the token endpoint may be kept for five minutes.",
)
def test_the_published_keys_have_no_private_part(client: RosterClient) -> None:
    answer = client.fetch("/.well-known/jwks.json")
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "public, max-age=300"
    for key in answer.json["keys"]:
        assert set(key) == {"alg", "e", "kid", "kty", "n", "use"}
        assert (key["kty"], key["alg"], key["use"]) == ("RSA", "RS256", "sig")


@each_version
def test_a_client_gets_only_what_it_is_registered_for(served: Served, version: str) -> None:
    """Nothing about who is asked for what can be learned from a vendor's own grants."""
    answer = served.client.ask_token(served.client.form("nobody", scope=f"{version}/roster.readonly"))
    assert_granted(answer)
