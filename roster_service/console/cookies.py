"""The cookie of the console, which Flask signs with itsdangerous. Requests of other paths have none."""

from __future__ import annotations

import hmac

from flask import Flask, Request, request
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface
from itsdangerous import BadSignature
from werkzeug.http import parse_cookie

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


def takes_upload(app: object, path: str, cookies: str) -> bool:
    """Returns whether a request may have the body of an upload: if the service has signed its cookie for an operator
    who logged in. A server asks before it reads the body, so nobody else fills its disk; the session itself is looked
    up after that. `cookies`: the header."""
    if not isinstance(app, Flask) or not isinstance(app.session_interface, ConsoleCookies):
        return False
    signer = app.session_interface.get_signing_serializer(app)
    if signer is None or not app.session_interface.covers(path):
        return False
    try:
        return TOKEN in signer.loads(parse_cookie(cookies).get(app.config["SESSION_COOKIE_NAME"], ""))
    except BadSignature:
        return False
