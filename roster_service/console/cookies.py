"""The cookie of the console, which Flask signs with itsdangerous. Requests of other paths have none."""

from __future__ import annotations

import hmac

from flask import Flask, Request, request
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface


class ConsoleCookies(SecureCookieSessionInterface):
    """Flask's signed cookie, for the paths below `root` alone."""

    def __init__(self, root: str) -> None:
        self._root = root

    def open_session(self, app: Flask, request: Request) -> SecureCookieSession | None:
        """Reads the cookie; None for a path of another interface."""
        if request.path != self._root and not request.path.startswith(f"{self._root}/"):
            return None
        return super().open_session(app, request)

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
