"""The login with the account of a directory, such as Entra or Google, by OpenID Connect (Authlib).

The way to the directory and back has a cookie of its own: the browser sends the cookie of the console to no page that
another site leads to. It lives for ten minutes, and names one attempt.
"""

from __future__ import annotations

import contextlib
import logging
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import sqlalchemy as sa
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.requests_client import OAuth2Session
from flask import Response as FlaskResponse
from flask import redirect, request
from itsdangerous import BadData, URLSafeTimedSerializer
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import JWKRegistry, Key, KeySet
from requests import RequestException
from werkzeug import Response

from roster_service.accounts.operators import find_directory_operator
from roster_service.console.frame import render_page
from roster_service.console.visit import Tools
from roster_service.errors import SettingError
from roster_service.settings import Settings

PATH = "/directory"
COOKIE = "roster_directory"
ATTEMPT_SECONDS = 600
# How long the directory may take for each answer.
ANSWER_SECONDS = 10
ALGORITHMS = ["RS256", "ES256"]
_ERROR = re.compile(r"[a-z_]{1,40}", re.ASCII)
# What JSON of another shape makes raise, here and in the libraries.
_OF_SHAPE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
# What a directory that is away, or answers something else than its protocol, makes raise.
_AWAY = (RequestException, *_OF_SHAPE)
_UNTRUSTED = (AuthlibBaseError, JoseError)

_log = logging.getLogger(__name__)


class OtherIssuerError(ValueError):
    """The directory says that it has another issuer than the setting."""


@dataclass(frozen=True)
class Directory:
    """The directory, and the console as the directory knows it. `issuer`: without a slash at its end, which some
    directories have."""

    issuer: str
    client_id: str
    client_secret: str


def find_directory(settings: Settings) -> Directory | None:
    """Returns the directory that the settings name; None if they name none. Raises SettingError if they name a part of
    it alone."""
    url, secret = settings.oidc_url, settings.oidc_secret
    if (url is None) != (secret is None):
        raise SettingError("ROSTER_OIDC_URL and ROSTER_OIDC_SECRET belong together")
    if url is None or secret is None:
        return None
    scheme, rest = url.split("://")
    client_id, place = rest.split("@")
    return Directory(f"{scheme}://{place}", unquote(client_id), secret)


@dataclass(frozen=True)
class Attempt:
    """An attempt to log in: what the answer of the directory must carry, and what only this service knows."""

    state: str
    nonce: str
    verifier: str


class DirectoryLogin:
    """The login with a directory. `root`: the path of the console; `begin`: begins the session of an operator, by
    e-mail, on a connection."""

    def __init__(self, directory: Directory, tools: Tools, root: str, begin: Any) -> None:
        self._directory = directory
        self._tools = tools
        self._root = root
        self._begin = begin
        self._signer = URLSafeTimedSerializer(tools.settings.read_secret_key(), salt="directory login")

    @property
    def _path(self) -> str:
        return f"{self._root}{PATH}"

    def start(self) -> Response:
        """Leads the browser to the directory."""
        attempt = Attempt(*(secrets.token_urlsafe(32) for _ in range(3)))
        try:
            found = self._discover()
            address, _ = self._open().create_authorization_url(
                found["authorization_endpoint"],
                state=attempt.state,
                nonce=attempt.nonce,
                code_verifier=attempt.verifier,
            )
        except _AWAY as error:
            return self._refuse_for(error)
        response = redirect(address, 303)
        response.set_cookie(
            COOKIE,
            self._signer.dumps([attempt.state, attempt.nonce, attempt.verifier]),
            max_age=ATTEMPT_SECONDS,
            path=self._path,
            secure=request.is_secure,
            httponly=True,
            samesite="Lax",
        )
        return response

    def finish(self) -> Response:
        """Takes the browser back: the operator whose account the directory names gets a session."""
        try:
            attempt = Attempt(*self._signer.loads(request.cookies.get(COOKIE, ""), max_age=ATTEMPT_SECONDS))
        except (BadData, TypeError):
            return self._refuse("The login took too long, or began in another browser; begin again.", 401)
        if "code" not in request.args:
            word = request.args.get("error", "")
            return self._refuse(
                f"The directory refused the login{f' ({word})' if _ERROR.fullmatch(word) else ''}.", 401
            )
        try:
            claims = self._read_claims(attempt)
        except (*_AWAY, *_UNTRUSTED) as error:
            return self._refuse_for(error)
        with self._tools.owner.begin() as connection:
            response = self._log_in(connection, claims)
        response.delete_cookie(COOKIE, path=self._path)
        return response

    def _log_in(self, connection: sa.Connection, claims: dict[str, Any]) -> Response:
        email = claims.get("email")
        # Some directories of one organization leave the member out: its administrators give the addresses.
        is_verified = claims.get("email_verified", self._tools.settings.oidc_trust_email)
        if not isinstance(email, str) or is_verified is not True:
            return self._refuse(
                "The directory does not say that the e-mail address of your account is verified. If its members cannot "
                "choose their address, whoever runs this service can set ROSTER_OIDC_TRUST_EMAIL.",
                403,
            )
        operator = find_directory_operator(connection, f"{claims['iss']} {claims['sub']}", email)
        if operator is None:
            return self._refuse(
                f"No enabled operator has this account, {email}; an owner can add or enable one, or, if the directory "
                "has made the account anew, reset the operator.",
                403,
            )
        self._begin(connection, operator.email)
        # The cookie of the console comes back from a page of the console only, so no redirect leads on.
        return render_page("continue", title="You are logged in", root=self._root)

    def _read_claims(self, attempt: Attempt) -> dict[str, Any]:
        """Exchanges the code of the request for the ID token, and returns what it claims once it is checked."""
        found = self._discover()
        session = self._open(attempt.state)
        token = session.fetch_token(
            found["token_endpoint"],
            authorization_response=request.url,
            code_verifier=attempt.verifier,
            timeout=ANSWER_SECONDS,
        )
        published = session.get(found["jwks_uri"], withhold_token=True, timeout=ANSWER_SECONDS)
        published.raise_for_status()
        keys = KeySet(list(_read_keys(published.json())))
        decoded = jwt.decode(token["id_token"], keys, algorithms=ALGORITHMS)
        jwt.JWTClaimsRegistry(
            leeway=60,
            iss={"essential": True, "value": found["issuer"]},
            aud={"essential": True, "value": self._directory.client_id},
            nonce={"essential": True, "value": attempt.nonce},
            exp={"essential": True},
            sub={"essential": True},
        ).validate(decoded.claims)
        return dict(decoded.claims)

    def _discover(self) -> dict[str, Any]:
        """Returns the metadata of the directory. Raises OtherIssuerError if they are of another one."""
        issuer = self._directory.issuer
        answer = self._open().get(
            f"{issuer}/.well-known/openid-configuration", withhold_token=True, timeout=ANSWER_SECONDS
        )
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        if str(found["issuer"]).rstrip("/") != issuer:
            raise OtherIssuerError
        return found

    def _open(self, state: str | None = None) -> OAuth2Session:
        return OAuth2Session(
            self._directory.client_id,
            self._directory.client_secret,
            scope="openid email profile",
            redirect_uri=f"{self._tools.origin}{self._path}/return",
            code_challenge_method="S256",
            state=state,
        )

    def _refuse_for(self, error: Exception) -> FlaskResponse:
        # Without its message, which can quote what the directory answered.
        _log.warning("console: a login with the directory failed (%s)", type(error).__name__)
        if isinstance(error, OtherIssuerError):
            return self._refuse(
                "The directory has another issuer than ROSTER_OIDC_URL; whoever runs this service can set that. Until "
                "then, log in with your password.",
                503,
            )
        if isinstance(error, _AWAY):
            return self._refuse("The directory does not answer; try again, or log in with your password.", 503)
        return self._refuse("The answer of the directory cannot be trusted; begin again.", 401)

    def _refuse(self, words: str, status: int) -> FlaskResponse:
        return render_page("refusal", status, title="Not logged in", text=words)


def _read_keys(published: dict[str, Any]) -> Iterator[Key]:
    """Yields the keys of a set. It ignores those that it cannot use, as RFC 7517, section 5, asks for."""
    for key in published["keys"]:
        with contextlib.suppress(JoseError, *_OF_SHAPE):
            yield JWKRegistry.import_key(key)
