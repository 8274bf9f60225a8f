"""`POST /oauth/token` (RFC 6749, section 4.4), `/.well-known/jwks.json` and the metadata of RFC 8414.

There is one grant, and it is for clients with a secret: a request is held against both, and gets a token of the scopes
that it asks for and the client may have.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sqlalchemy as sa
from authlib.oauth2.rfc6749.util import extract_basic_authorization
from flask import Flask, Request, Response, current_app, request
from werkzeug.exceptions import BadRequest, TooManyRequests

from roster_service.auth import scopes
from roster_service.auth.agreed_rights import NO_SCOPE_AGREED, note_ended
from roster_service.auth.credentials.secrets import verify_secret
from roster_service.auth.credentials.signing_keys import KeyRing
from roster_service.auth.credentials.tokens import sign_access_token
from roster_service.auth.registered_client import RegisteredClient, find_client
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.auth.throttling.throttles import TokenThrottle
from roster_service.errors import AGREEMENT_HEADER, NotAgreedError, Problem
from roster_service.http.request_facts import find_root_url, get_request_facts
from roster_service.http.stages import make_json
from roster_service.schemas.versions import VERSIONS

GRANT_TYPE = "client_credentials"
NO_GRANT_TYPE = (
    f"the parameter grant_type is missing; send grant_type={GRANT_TYPE} in a form, with the Content-Type "
    "application/x-www-form-urlencoded"
)
OTHER_GRANT_TYPE = f"there is one kind of grant here; send grant_type={GRANT_TYPE}"
# Some clients send these in the query. It never counts for credentials, because URLs end up in logs.
QUERY_PARAMETERS = ("grant_type", "scope")
AUTH_METHODS = ("client_secret_basic", "client_secret_post")
PUBLIC_CACHE = "public, max-age=300"
WRONG_CREDENTIALS = "the client id or the secret is wrong"
HOW_TO_LOG_IN = (
    "send `Authorization: Basic` and the base64 of `client_id:client_secret`, or client_id and client_secret in the "
    "form"
)
# RFC 7617 requires the realm.
_CHALLENGE = {"WWW-Authenticate": 'Basic realm="roster"'}


class RefusedTokenError(Exception):
    """A request gets no token (RFC 6749, section 5.2). `code`: the `error` of the response; `problem`: the reason, for
    the counters of refused requests; `headers`: further ones of the response."""

    def __init__(self, code: str, description: str, problem: Problem, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(description)
        self.code = code
        self.problem = problem
        self.headers = headers or {}


@dataclass(frozen=True)
class TokenEndpoint:
    """The endpoint. `engine`: of the role that may read accounts; `public_url`: the address that clients use, None for
    the address of each request; `seconds`: the validity of a token."""

    engine: sa.Engine
    keys: KeyRing
    throttle: TokenThrottle
    issuer: str
    public_url: str | None
    seconds: int

    def issue_token(self) -> Response:
        """Returns the response to a request for a token. Raises BadRequest, and TooManyRequests, which have the form of
        the other refusals."""
        require_no_wait(self.throttle.count_address(request.remote_addr or ""), "too many requests from your address")
        facts = get_request_facts()
        facts.named_caller = request.form.get("client_id")
        require_parameters(request)
        try:
            client = self._admit(request)
            granted = grant(request.values.get("scope"), client.scopes)
        except RefusedTokenError as refused:
            facts.refusal = refused.problem
            status = 401 if refused.code == "invalid_client" else 400
            return _answer({"error": refused.code, "error_description": str(refused)}, status, refused.headers)
        token = client.make_token(scopes.read_scopes(granted.split()), int(time.time()) + self.seconds)
        body: dict[str, object] = {
            "access_token": sign_access_token(token, self.keys, issuer=self.issuer),
            "token_type": "Bearer",
            "expires_in": self.seconds,
            "scope": granted,
        }
        return _answer(body, 200, {})

    def _admit(self, sent: Request) -> RegisteredClient:
        """Returns the client of a request, and counts its token.

        Raises RefusedTokenError for missing or malformed credentials, for an unknown client and a wrong secret in the
        same words, and, with the right secret, for a disabled client and one whose agreement does not hold now;
        TooManyRequests if the client exceeds its rate limit.
        """
        if sent.values.get("grant_type") != GRANT_TYPE:
            raise RefusedTokenError("unsupported_grant_type", OTHER_GRANT_TYPE, Problem.PARAMETER)
        client = self._authenticate(*read_credentials(sent))
        if client.disabled:
            reason = f"{client.disabled}; the operator of the service can change that"
            raise RefusedTokenError("invalid_client", reason, Problem.DISABLED, _CHALLENGE)
        not_agreed = client.not_agreed or (NO_SCOPE_AGREED if not client.scopes else None)
        if not_agreed is not None:
            note_ended(current_app.extensions["roster_counting_engine"])
            # A code that the endpoint has for nothing else, so that a product does not try again.
            said, header = NotAgreedError(not_agreed).description, {AGREEMENT_HEADER: not_agreed}
            raise RefusedTokenError("unauthorized_client", said, Problem.AGREEMENT, header)
        require_no_wait(self.throttle.count_client(client.client_id), "this client gets tokens too often")
        return client

    def _authenticate(self, client_id: str, secret: str) -> RegisteredClient:
        with self.engine.connect() as connection:
            # PostgreSQL refuses a text with a NUL, and no client has such an id.
            client = None if "\x00" in client_id else find_client(connection, client_id, even_disabled=True)
        # Compares with both hashes even if the first one matches, and with none for an unknown client, so that the time
        # tells nothing. No secret has the hash b"".
        known = (b"",) if client is None else client.secret_hashes
        is_right = True in {verify_secret(secret, stored) for stored in known}
        if client is None or not is_right:
            raise _refuse_credentials(WRONG_CREDENTIALS)
        return client

    def show_keys(self) -> Response:
        """Returns the public keys (RFC 7517)."""
        return _publish({"keys": list(self.keys.read_public().values())})

    def show_metadata(self) -> Response:
        """Returns the metadata of the endpoint (RFC 8414)."""
        return _publish(make_metadata(self.issuer, find_root_url(self.public_url)))


def require_parameters(sent: Request) -> None:
    """Raises BadRequest for a parameter that is given twice, and for a request without a grant type."""
    given = [*sent.form.lists(), *((name, sent.values.getlist(name)) for name in QUERY_PARAMETERS)]
    repeated = [name for name, values in given if len(values) > 1]
    if repeated:
        # RFC 6749, section 3.2: parameters must not be included more than once.
        raise BadRequest(f"the parameter {repeated[0]} is given more than once")
    if not sent.values.get("grant_type"):
        raise BadRequest(NO_GRANT_TYPE)


def read_credentials(sent: Request) -> tuple[str, str]:
    """Returns (client id, secret) of a request: those of the header, if there is one, because a request uses one method
    (RFC 6749, section 2.3). Raises RefusedTokenError that says what they lack, and how to send them."""
    authorization = sent.headers.get("Authorization")
    if authorization is None:
        missing = [name for name in ("client_id", "client_secret") if not sent.form.get(name)]
        if missing:
            in_url = "; in the URL, they do not count" if any(name in sent.args for name in missing) else ""
            raise _refuse_credentials(f"the request has no {' and no '.join(missing)}{in_url}; {HOW_TO_LOG_IN}")
        return sent.form["client_id"], sent.form["client_secret"]
    client_id: str | None
    secret: str | None
    scheme, _, coded = authorization.partition(" ")
    if scheme.lower() != "basic":
        raise _refuse_credentials(f"the scheme of the `Authorization` header is not Basic; {HOW_TO_LOG_IN}")
    try:
        client_id, secret = extract_basic_authorization({"Authorization": f"Basic {coded.strip()}"})
    except ValueError:
        # There is nothing to decode, or it is no UTF-8.
        client_id = secret = None
    if secret is None:
        raise _refuse_credentials(
            f"the `Authorization: Basic` header is no base64 of an id, a colon and a secret; {HOW_TO_LOG_IN}"
        )
    if not (client_id and secret):
        raise _refuse_credentials(f"the id or the secret is empty; {HOW_TO_LOG_IN}")
    return client_id, secret


def _refuse_credentials(words: str) -> RefusedTokenError:
    return RefusedTokenError("invalid_client", words, Problem.CREDENTIALS, _CHALLENGE)


def grant(requested: str | None, registered: Iterable[Scope]) -> str:
    """Returns the granted scopes, as `grant_scopes`. Raises RefusedTokenError if there is none."""
    held = tuple(registered)
    granted = scopes.grant_scopes(requested, held)
    if not granted:
        said = scopes.describe_refused_scopes(requested or "", held)
        raise RefusedTokenError("invalid_scope", said, Problem.SCOPE)
    return granted


def require_no_wait(seconds: int, reason: str) -> None:
    """Raises TooManyRequests, with `seconds` as its `Retry-After`, unless `seconds` is 0."""
    if seconds:
        raise TooManyRequests(f"{reason}; `Retry-After` says when to go on", retry_after=seconds)


def make_metadata(issuer: str, root: str) -> Mapping[str, object]:
    """Returns the metadata of the token endpoint (RFC 8414). `root`: of the addresses that the client uses."""
    return {
        "issuer": issuer,
        "token_endpoint": f"{root}{scopes.TOKEN_PATH}",
        "jwks_uri": f"{root}{scopes.JWKS_PATH}",
        "service_documentation": f"{root}/docs",
        "scopes_supported": [str(Scope(version.prefix, name)) for version in VERSIONS for name in ScopeName],
        # The RFC requires the member, and there is no authorization endpoint.
        "response_types_supported": ["none"],
        "grant_types_supported": [GRANT_TYPE],
        "token_endpoint_auth_methods_supported": list(AUTH_METHODS),
    }


def _answer(body: Mapping[str, object], status: int, headers: Mapping[str, str]) -> Response:
    """The response of RFC 6749, section 5.1 or 5.2, which no cache stores."""
    response = make_json(body, status)
    response.headers.update({"Pragma": "no-cache", **headers})
    return response


def _publish(body: Mapping[str, object]) -> Response:
    response = make_json(body, 200)
    response.headers["Cache-Control"] = PUBLIC_CACHE
    return response


def register_token_endpoint(app: Flask, endpoint: TokenEndpoint) -> None:
    """Registers the token endpoint, that of the public keys, and the metadata of both."""
    for path, view, method in (
        (scopes.TOKEN_PATH, endpoint.issue_token, "POST"),
        (scopes.JWKS_PATH, endpoint.show_keys, "GET"),
        (scopes.METADATA_PATH, endpoint.show_metadata, "GET"),
    ):
        app.add_url_rule(path, endpoint=view.__name__, view_func=view, methods=[method])
