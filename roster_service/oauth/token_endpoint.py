"""`POST /oauth/token` (RFC 6749, section 4.4), `/.well-known/jwks.json` and the metadata of RFC 8414.

Authlib implements the protocol: client authentication, grant types and the format of errors. This module gives it the
client, its scopes and the claims of the token, which is a JWT (RFC 9068).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.integrations.flask_oauth2.requests import FlaskOAuth2Payload, FlaskOAuth2Request
from authlib.oauth2.rfc6749 import ClientMixin, OAuth2Request
from authlib.oauth2.rfc6749.errors import (
    InvalidClientError,
    InvalidScopeError,
    UnauthorizedClientError,
    UnsupportedGrantTypeError,
)
from authlib.oauth2.rfc6749.grants import ClientCredentialsGrant
from authlib.oauth2.rfc6749.util import extract_basic_authorization
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from flask import Flask, Request, Response, current_app, jsonify, request
from joserfc.jwk import KeySet
from werkzeug.exceptions import BadRequest, TooManyRequests

from roster_service.auth import scopes
from roster_service.auth.agreed_rights import NO_SCOPE_AGREED, note_ended
from roster_service.auth.credentials.secrets import verify_secret
from roster_service.auth.credentials.signing_keys import ALGORITHM, KeyRing
from roster_service.auth.credentials.tokens import make_access_token_audience
from roster_service.auth.registered_client import RegisteredClient, find_client
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.auth.throttling.throttles import TokenThrottle
from roster_service.errors import AGREEMENT_HEADER, NotAgreedError, Problem
from roster_service.http.request_facts import find_root_url, get_request_facts
from roster_service.roster.withheld import FIELDS_DIGEST
from roster_service.schemas.versions import VERSIONS

GRANT_TYPE = "client_credentials"
NO_GRANT_TYPE = (
    f"the parameter grant_type is missing; send grant_type={GRANT_TYPE} in a form, with the Content-Type "
    "application/x-www-form-urlencoded"
)
OTHER_GRANT_TYPE = f"there is one kind of grant here; send grant_type={GRANT_TYPE}"
# Some clients send these in the query. It never counts for credentials, because URLs end up in logs.
QUERY_PARAMETERS = ("grant_type", "scope")
# Stands in for an unknown client. No secret has this hash.
UNKNOWN_CLIENT = RegisteredClient(
    "",
    (b"",),
    (),
    (),
    client_version=0,
    vendor_id=0,
    grant_version=0,
    visibility_key="",
    withheld=frozenset(),
    metadata_keys=frozenset(),
    has_rules=False,
)
AUTH_METHODS = ("client_secret_basic", "client_secret_post")
PUBLIC_CACHE = "public, max-age=300"


# The code of a refusal -> its reason; that of any other code is PARAMETER, and a RefusedClientError has its own.
PROBLEMS = {
    "invalid_scope": Problem.SCOPE,
    "unauthorized_client": Problem.AGREEMENT,
    "method_not_allowed": Problem.METHOD,
    "too_many_requests": Problem.RATE,
}

WRONG_CREDENTIALS = "the client id or the secret is wrong"
HOW_TO_LOG_IN = (
    "send `Authorization: Basic` and the base64 of `client_id:client_secret`, or client_id and client_secret in the "
    "form"
)


class RefusedClientError(InvalidClientError):  # type: ignore[misc]  # Authlib has no types
    """The request has no credentials, wrong ones, or those of a disabled client. `problem`: which of these."""

    def __init__(self, description: str, problem: Problem) -> None:
        super().__init__(description, status_code=401)
        self.problem = problem

    def get_headers(self) -> list[tuple[str, str]]:
        """Returns the headers of the response. RFC 7617 requires the realm, which Authlib's challenge lacks."""
        others = [(name, text) for name, text in super().get_headers() if name != "WWW-Authenticate"]
        return [*others, ("WWW-Authenticate", 'Basic realm="roster"')]


class NotAgreedClientError(UnauthorizedClientError):  # type: ignore[misc]  # Authlib has no types
    """The agreement of the vendor does not hold now: a code that the endpoint has for nothing else, so that a product
    does not try again. `words`: as of `NotAgreedError`."""

    def __init__(self, words: str) -> None:
        super().__init__(NotAgreedError(words).description)
        self.words = words

    def get_headers(self) -> list[tuple[str, str]]:
        """Returns the headers of the response, with that of the other interfaces."""
        return [*super().get_headers(), (AGREEMENT_HEADER, self.words)]


class TokenClient(ClientMixin):  # type: ignore[misc]  # Authlib has no types
    """A registered client, with the interface that Authlib requires."""

    def __init__(self, registered: RegisteredClient) -> None:
        self.registered = registered

    def get_client_id(self) -> str:
        """Returns the id of the client."""
        return self.registered.client_id

    def get_allowed_scope(self, scope: str | None) -> str:
        """Returns the scopes that the client gets, as `grant_scopes`; '' if it gets none."""
        return scopes.grant_scopes(scope, self.registered.scopes)

    def check_client_secret(self, client_secret: str) -> bool:
        """Returns whether this is the client's secret, or its previous secret during the grace."""
        # Compares with both hashes even if the first one matches, so that the time tells nothing.
        return True in {verify_secret(client_secret, stored) for stored in self.registered.secret_hashes}

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        """Returns whether the client may authenticate so: with HTTP Basic, or with id and secret in the body."""
        return method in AUTH_METHODS

    def check_grant_type(self, grant_type: str) -> bool:
        """Returns True for client credentials, the only grant type."""
        return grant_type == GRANT_TYPE


class CredentialsGrant(ClientCredentialsGrant):  # type: ignore[misc]  # Authlib has no types
    """The client credentials grant. It grants the requested scopes that the client may have, where Authlib would refuse
    the request if one of them is not allowed."""

    TOKEN_ENDPOINT_AUTH_METHODS = AUTH_METHODS

    def validate_requested_scope(self) -> None:
        """Raises InvalidScopeError if the client gets no scope. Authlib asks the client for its scopes again when it
        makes the token."""
        if not self.request.client.get_allowed_scope(self.request.payload.scope):
            requested = self.request.payload.scope or ""
            raise InvalidScopeError(scopes.describe_refused_scopes(requested, self.request.client.registered.scopes))


class TokenRequest(FlaskOAuth2Request):  # type: ignore[misc]  # Authlib has no types
    """A token request, with the address that clients use: behind a proxy, Flask's request can have another one."""

    def __init__(self, flask_request: Request, address: str) -> None:
        OAuth2Request.__init__(self, flask_request.method, address, headers=flask_request.headers)
        self._request = flask_request
        self.payload = FlaskOAuth2Payload(flask_request)


class TokenServer(AuthorizationServer):  # type: ignore[misc]  # Authlib has no types
    """Authlib's server, with the throttle, and with the same response for every kind of wrong credentials."""

    throttle: TokenThrottle
    public_url: str | None

    def find_address(self) -> str:
        """Returns the address of the token endpoint that the client uses."""
        return f"{self.public_url}{scopes.TOKEN_PATH}" if self.public_url else request.url

    def create_oauth2_request(self, _request: object) -> TokenRequest:
        """Returns Flask's current request as Authlib's."""
        return TokenRequest(request, self.find_address())

    def get_token_grant(self, token_request: Any) -> CredentialsGrant:
        """Returns the grant of the request. Raises UnsupportedGrantTypeError that names the only one, as Authlib's does
        not."""
        try:
            grant: CredentialsGrant = super().get_token_grant(token_request)
        except UnsupportedGrantTypeError as error:
            error.description = OTHER_GRANT_TYPE
            raise
        return grant

    def handle_error_response(self, token_request: Any, error: Any) -> Response:
        """Returns the response to a refused request."""
        refusal = error.problem if isinstance(error, RefusedClientError) else find_problem(error.error)
        get_request_facts().refusal = refusal
        response: Response = super().handle_error_response(token_request, error)
        return response

    def authenticate_client(self, token_request: Any, methods: Sequence[str], endpoint: str = "token") -> TokenClient:
        """Returns the client of the request, and counts its token.

        Raises RefusedClientError for missing or malformed credentials, for an unknown client and a wrong secret in the
        same words, and for a disabled client with the right secret; TooManyRequests if the client exceeds its rate
        limit.
        """
        # A request uses one authentication method only (RFC 6749, section 2.3): the header, if there is one.
        allowed = AUTH_METHODS[:1] if "Authorization" in token_request.headers else methods
        try:
            client: TokenClient = super().authenticate_client(token_request, allowed, endpoint)
        except (InvalidClientError, ValueError):
            raise RefusedClientError(find_malformation(request) or WRONG_CREDENTIALS, Problem.CREDENTIALS) from None
        if client.registered.disabled:
            reason = f"{client.registered.disabled}; the operator of the service can change that"
            raise RefusedClientError(reason, Problem.DISABLED)
        not_agreed = client.registered.not_agreed or (NO_SCOPE_AGREED if not client.registered.scopes else None)
        if not_agreed is not None:
            note_ended(current_app.extensions["roster_counting_engine"])
            raise NotAgreedClientError(not_agreed)
        require_no_wait(self.throttle.count_client(client.registered.client_id), "this client gets tokens too often")
        return client


class TokenGenerator(JWTBearerTokenGenerator):  # type: ignore[misc]  # Authlib has no types
    """Makes access tokens. A token carries the versions of the grants and of the client, the visibility key, and the
    withheld fields; it ends when one of them changes."""

    def __init__(self, keys: KeyRing, issuer: str, seconds: int) -> None:
        super().__init__(issuer, alg=ALGORITHM, expires_generator=lambda _client, _grant: seconds)
        self.keys = keys

    def get_jwks(self) -> KeySet:
        """Returns the private key that signs."""
        return self.keys.read_private()

    def get_audiences(self, client: TokenClient, user: object, scope: str) -> str:
        """Returns the `aud` claim: the rostering interface."""
        return make_access_token_audience(self.issuer)

    def get_extra_claims(self, client: TokenClient, grant_type: str, user: object, scope: str) -> dict[str, Any]:
        """Returns the claims by which the database admits the client, and the granted scopes in their long spelling."""
        keys = client.registered.metadata_keys
        return {
            "scope": " ".join(map(str, scopes.read_scopes(scope.split()))),
            "vendor_id": client.registered.vendor_id,
            "grant_version": client.registered.grant_version,
            "client_version": client.registered.client_version,
            "visibility_key": client.registered.visibility_key,
            "withheld": sorted(client.registered.withheld),
            "fields": FIELDS_DIGEST,
            "metadata_keys": None if keys is None else sorted(keys),
            "has_rules": client.registered.has_rules,
        }


def find_problem(code: str) -> Problem:
    """Returns the reason of a refusal. `code`: the `error` of its body."""
    return PROBLEMS.get(code, Problem.PARAMETER)


def find_malformation(sent: Request) -> str | None:
    """Returns what a token request lacks to have credentials, and how to send them; None if it has an id and a
    secret."""
    authorization = sent.headers.get("Authorization")
    if authorization is not None:
        scheme, _, coded = authorization.partition(" ")
        if scheme.lower() != "basic":
            return f"the scheme of the `Authorization` header is not Basic; {HOW_TO_LOG_IN}"
        try:
            client_id, secret = extract_basic_authorization({"Authorization": f"Basic {coded.strip()}"})
        except ValueError:
            # There is nothing to decode, or it is no UTF-8.
            secret = None
        if secret is None:
            return f"the `Authorization: Basic` header is no base64 of an id, a colon and a secret; {HOW_TO_LOG_IN}"
        return None if client_id and secret else f"the id or the secret is empty; {HOW_TO_LOG_IN}"
    missing = [name for name in ("client_id", "client_secret") if not sent.form.get(name)]
    if not missing:
        return None
    in_url = "; in the URL, they do not count" if any(name in sent.args for name in missing) else ""
    return f"the request has no {' and no '.join(missing)}{in_url}; {HOW_TO_LOG_IN}"


def require_no_wait(seconds: int, reason: str) -> None:
    """Raises TooManyRequests, with `seconds` as its `Retry-After`, unless `seconds` is 0."""
    if seconds:
        raise TooManyRequests(f"{reason}; `Retry-After` says when to go on", retry_after=seconds)


def register_oauth(
    app: Flask,
    engine: sa.Engine,
    keys: KeyRing,
    throttle: TokenThrottle,
    *,
    issuer: str,
    public_url: str | None,
    seconds: int,
) -> None:
    """Registers the token endpoint, the endpoint of the public keys, and the metadata of both.

    `engine`: of the role that may read accounts. `public_url`: the address that clients use; None: the address of each
    request. `seconds`: the validity of a token.
    """

    def query_client(client_id: str) -> TokenClient:
        with engine.connect() as connection:
            # PostgreSQL refuses a text with a NUL, and no client has such an id.
            registered = None if "\x00" in client_id else find_client(connection, client_id, even_disabled=True)
        # An unknown client fails at the comparison of the secret, and so gets the same response as a wrong secret.
        return TokenClient(registered or UNKNOWN_CLIENT)

    server = TokenServer(app, query_client=query_client, save_token=lambda _token, _request: None)
    server.throttle = throttle
    server.public_url = public_url
    server.register_token_generator("default", TokenGenerator(keys, issuer, seconds))
    server.register_grant(CredentialsGrant)

    def issue_token() -> Response:
        require_no_wait(throttle.count_address(request.remote_addr or ""), "too many requests from your address")
        get_request_facts().named_caller = request.form.get("client_id")
        sent = [*request.form.lists(), *((name, request.values.getlist(name)) for name in QUERY_PARAMETERS)]
        repeated = [name for name, values in sent if len(values) > 1]
        if repeated:
            # RFC 6749, section 3.2: parameters must not be included more than once.
            raise BadRequest(f"the parameter {repeated[0]} is given more than once")
        if not request.values.get("grant_type"):
            raise BadRequest(NO_GRANT_TYPE)
        response: Response = server.create_token_response()
        return response

    def show_keys() -> Response:
        response = jsonify({"keys": list(keys.read_public().values())})
        response.headers["Cache-Control"] = PUBLIC_CACHE
        return response

    def show_metadata() -> Response:
        response = jsonify(make_metadata(issuer, find_root_url(public_url)))
        response.headers["Cache-Control"] = PUBLIC_CACHE
        return response

    for path, view, method in (
        (scopes.TOKEN_PATH, issue_token, "POST"),
        (scopes.JWKS_PATH, show_keys, "GET"),
        (scopes.METADATA_PATH, show_metadata, "GET"),
    ):
        app.add_url_rule(path, endpoint=view.__name__, view_func=view, methods=[method])


def make_metadata(issuer: str, root: str) -> AuthorizationServerMetadata:
    """Returns the metadata of the token endpoint (RFC 8414). `root`: of the addresses that the client uses."""
    return AuthorizationServerMetadata(
        issuer=issuer,
        token_endpoint=f"{root}{scopes.TOKEN_PATH}",
        jwks_uri=f"{root}{scopes.JWKS_PATH}",
        service_documentation=f"{root}/docs",
        scopes_supported=[str(Scope(version.prefix, name)) for version in VERSIONS for name in ScopeName],
        # The RFC requires the member, and there is no authorization endpoint.
        response_types_supported=["none"],
        grant_types_supported=[GRANT_TYPE],
        token_endpoint_auth_methods_supported=list(AUTH_METHODS),
    )
