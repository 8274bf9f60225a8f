"""`POST /oauth/token` (RFC 6749, section 4.4) and `/.well-known/jwks.json`.

Authlib runs the protocol: how a client authenticates, which grants exist, the shape of errors. What it asks us is
who the client is, which scopes it gets, and what goes into the token (a JWT as RFC 9068 has it).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.integrations.flask_oauth2.requests import FlaskOAuth2Payload, FlaskOAuth2Request
from authlib.oauth2.rfc6749 import ClientMixin, OAuth2Request
from authlib.oauth2.rfc6749.errors import InvalidClientError, InvalidScopeError
from authlib.oauth2.rfc6749.grants import ClientCredentialsGrant
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from flask import Flask, Request, Response, jsonify, request
from joserfc.jwk import KeySet
from sqlalchemy import Engine
from werkzeug.exceptions import BadRequest, TooManyRequests

from roster_service.access.credentials.access_token import make_access_token_audience
from roster_service.access.credentials.secrets import verify_secret
from roster_service.access.credentials.signing_keys import ALGORITHM, KeyRing
from roster_service.access.scope_grants import grant_scopes
from roster_service.access.scopes import TOKEN_PATH, read_scopes
from roster_service.access.throttles.token_throttle import TokenThrottle
from roster_service.access.vendors import RegisteredClient, find_client
from roster_service.oauth.transport import is_secure

JWKS_PATH = "/.well-known/jwks.json"
# Nobody knows a secret with this hash.
UNKNOWN_CLIENT = RegisteredClient("", (b"",), (), client_version=0, vendor_id=0, grant_version=0, visibility_key="")
INSECURE = (
    "a token is given over https alone, and this request came over plain http; a service behind a proxy that speaks "
    "TLS has to be told so by ROSTER_PUBLIC_URL or ROSTER_TRUSTED_PROXIES"
)
AUTH_METHODS = ("client_secret_basic", "client_secret_post")


class Client(ClientMixin):  # type: ignore[misc]  # Authlib has no types
    """A registered client, in the words of Authlib."""

    def __init__(self, registered: RegisteredClient) -> None:
        self.registered = registered

    def get_client_id(self) -> str:
        """The public half of its credentials."""
        return self.registered.client_id

    def get_allowed_scope(self, scope: str | None) -> str:
        """The scopes that it gets of those it asks for; '' where none is left."""
        return grant_scopes(scope, self.registered.scopes)

    def check_client_secret(self, client_secret: str) -> bool:
        """Whether this is its secret, or the one before it in its grace."""
        # Each is compared, whichever matches.
        return True in {verify_secret(client_secret, stored) for stored in self.registered.secret_hashes}

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        """Basic credentials, or both in the body."""
        return method in AUTH_METHODS

    def check_grant_type(self, grant_type: str) -> bool:
        """Client credentials alone."""
        return grant_type == "client_credentials"


class CredentialsGrant(ClientCredentialsGrant):  # type: ignore[misc]  # Authlib has no types
    """The client credentials grant, giving what is allowed of what is asked for rather than all or nothing."""

    TOKEN_ENDPOINT_AUTH_METHODS = AUTH_METHODS

    def validate_requested_scope(self) -> None:
        """InvalidScopeError where nothing is left; what is left is worked out again when the token is made."""
        if not self.request.client.get_allowed_scope(self.request.payload.scope):
            raise InvalidScopeError("none of the scopes that are asked for can be granted, or they name both versions")


class TokenRequest(FlaskOAuth2Request):  # type: ignore[misc]  # Authlib has no types
    """A request for a token, at the address that clients use: behind a proxy it can arrive at another one."""

    def __init__(self, arrived: Request, address: str) -> None:
        OAuth2Request.__init__(self, arrived.method, address, headers=arrived.headers)
        self._request = arrived
        self.payload = FlaskOAuth2Payload(arrived)


class TokenServer(AuthorizationServer):  # type: ignore[misc]  # Authlib has no types
    """Authlib's server, with one answer for whatever is wrong with the credentials."""

    throttle: TokenThrottle
    public_url: str | None

    def find_address(self) -> str:
        """The address that the client of this request uses."""
        return f"{self.public_url}{TOKEN_PATH}" if self.public_url else request.url

    def create_oauth2_request(self, _arrived: object) -> TokenRequest:
        """The request that is being answered, in the words of Authlib."""
        return TokenRequest(request, self.find_address())

    def authenticate_client(self, asked: Any, methods: Sequence[str], endpoint: str = "token") -> Client:
        """The client whose secret was given. InvalidClientError for a stranger, a wrong secret, a broken header."""
        # One request, one method (RFC 6749, section 2.3): a header that is there is the one that counts.
        allowed = AUTH_METHODS[:1] if "Authorization" in asked.headers else methods
        try:
            client: Client = super().authenticate_client(asked, allowed, endpoint)
        except (InvalidClientError, ValueError):
            raise InvalidClientError("the client id or the secret is wrong", status_code=401) from None
        require_no_wait(self.throttle.count_client(client.registered.client_id), "this client gets tokens too often")
        return client


class TokenGenerator(JWTBearerTokenGenerator):  # type: ignore[misc]  # Authlib has no types
    """Makes the token; it carries the versions and the key that a change of grants or secret leaves behind."""

    def __init__(self, keys: KeyRing, issuer: str, seconds: int) -> None:
        super().__init__(issuer, alg=ALGORITHM, expires_generator=lambda _client, _grant: seconds)
        self.keys = keys

    def get_jwks(self) -> KeySet:
        """The key to sign with."""
        return self.keys.read_private()

    def get_audiences(self, client: Client, user: object, scope: str) -> str:
        """The rostering interface."""
        return make_access_token_audience(self.issuer)

    def get_extra_claims(self, client: Client, grant_type: str, user: object, scope: str) -> dict[str, Any]:
        """What the client is admitted by, and the granted scopes in one spelling."""
        return {
            "scope": " ".join(map(str, read_scopes(scope.split()))),
            "vendor_id": client.registered.vendor_id,
            "grant_version": client.registered.grant_version,
            "client_version": client.registered.client_version,
            "visibility_key": client.registered.visibility_key,
        }


def require_no_wait(seconds: int, trouble: str) -> None:
    """Raises TooManyRequests where somebody has to wait."""
    if seconds:
        raise TooManyRequests(f"{trouble}; `Retry-After` says when to go on", retry_after=seconds)


def register_oauth(
    app: Flask,
    engine: Engine,
    keys: KeyRing,
    throttle: TokenThrottle,
    *,
    issuer: str,
    public_url: str | None,
    seconds: int,
) -> None:
    """Registers the token endpoint and the key set.

    `engine`: one that may read the accounts. `public_url`: the address that clients use; None: the one of each request.
    `seconds`: the validity of a token.
    """

    def query_client(client_id: str) -> Client:
        with engine.connect() as connection:
            # PostgreSQL has no text with a NUL in it, so no client has such an id.
            registered = None if "\x00" in client_id else find_client(connection, client_id)
        # A stranger fails where a wrong secret does, and so gets the same answer.
        return Client(registered or UNKNOWN_CLIENT)

    server = TokenServer(app, query_client=query_client, save_token=lambda _token, _request: None)
    server.throttle = throttle
    server.public_url = public_url
    server.register_token_generator("default", TokenGenerator(keys, issuer, seconds))
    server.register_grant(CredentialsGrant)

    def issue_token() -> Response:
        if not is_secure(server.find_address(), request.remote_addr):
            raise BadRequest(INSECURE)
        require_no_wait(throttle.count_address(request.remote_addr or ""), "too many requests from your address")
        repeated = [name for name, values in request.form.lists() if len(values) > 1]
        if repeated:
            # RFC 6749, section 3.2.
            raise BadRequest(f"the parameter {repeated[0]} is given more than once")
        response: Response = server.create_token_response()
        return response

    def show_keys() -> Response:
        response = jsonify({"keys": list(keys.read_public().values())})
        response.headers["Cache-Control"] = "public, max-age=300"
        return response

    app.add_url_rule(TOKEN_PATH, endpoint="issue_token", view_func=issue_token, methods=["POST"])
    app.add_url_rule(JWKS_PATH, endpoint="show_keys", view_func=show_keys, methods=["GET"])
