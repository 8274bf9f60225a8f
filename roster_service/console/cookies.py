"""The cookies of the console, signed with itsdangerous. Requests of other paths have none."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from flask import Flask, Request, request
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface
from itsdangerous import BadData, URLSafeTimedSerializer
from werkzeug import Response

from roster_service.change_log.actors import normalize_email

# The member of the cookie with the token of a session.
TOKEN = "token"  # noqa: S105  (a name)


class ConsoleCookies(SecureCookieSessionInterface):
    """Flask's signed cookie, for the paths below `root` alone."""

    def __init__(self, root: str) -> None:
        self._root = root

    def covers(self, path: str) -> bool:
        """Returns whether a path is one of the console."""
        return path == self._root or path.startswith(f"{self._root}/")

    def open_session(self, app: Flask, request: Request) -> SecureCookieSession | None:
        """Reads the cookie; None for a path of another interface."""
        return super().open_session(app, request) if self.covers(request.path) else None

    def get_cookie_secure(self, app: Flask) -> bool:
        """Whether the cookie is for https alone: always, unless the request itself came without, which a login allows
        on the operator's own machine only."""
        return request.is_secure


def set_up_cookies(app: Flask, secret_key: str, root: str) -> None:
    """Sets the cookies of an application up. `secret_key`: of the service; the cookies have a key that follows from
    it."""
    app.secret_key = hmac.digest(secret_key.encode(), b"console cookies", "sha256")
    app.config["SESSION_COOKIE_NAME"] = "roster_console"
    app.config["SESSION_COOKIE_PATH"] = root
    app.config["SESSION_COOKIE_HTTPONLY"] = True
    app.config["SESSION_COOKIE_SAMESITE"] = "Strict"
    app.session_interface = ConsoleCookies(root)


class KnownBrowsers:
    """A cookie that a login leaves in the browser for half a year: with it, the failed logins of others do not keep the
    operator waiting. It opens nothing."""

    NAME, SECONDS = "roster_known", 180 * 86_400

    def __init__(self, secret_key: str, root: str) -> None:
        self._signer = URLSafeTimedSerializer(secret_key, salt="known browser")
        self._root = root

    def find(self, email: str) -> str | None:
        """Returns the id of the browser of the request, if the operator with this e-mail was the last to log in with
        it."""
        try:
            browser, operator = self._signer.loads(request.cookies.get(self.NAME, ""), max_age=self.SECONDS)
        except (BadData, TypeError, ValueError):
            return None
        return str(browser) if operator == self._hash(email) else None

    def remember(self, response: Response, email: str) -> None:
        """Makes the browser of the request one of an operator, who has logged in."""
        response.set_cookie(
            self.NAME,
            str(self._signer.dumps([secrets.token_urlsafe(16), self._hash(email)])),
            max_age=self.SECONDS,
            path=self._root,
            secure=request.is_secure,
            httponly=True,
            samesite="Strict",
        )

    @staticmethod
    def _hash(email: str) -> str:
        return hashlib.sha256(normalize_email(email).encode()).hexdigest()[:32]
