"""The WSGI application that gunicorn serves: it answers 503 until it can use the database, then with the Flask
application.

gunicorn stops the whole service if a worker cannot start. So a worker starts without a database too, and tries to
connect again when a request arrives.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from flask import Flask, request
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from roster_service.db.deadline import limit_time
from roster_service.db.engine import START_SECONDS
from roster_service.errors import DatabaseUnavailableError, ErrorProfile, SchemaError, SettingError
from roster_service.http.request_facts import LIVE_PATH, READY_PATH, add_common_headers, register_host_check
from roster_service.rostering.blueprints import set_error_profile
from roster_service.rostering.paths import EncodedIds
from roster_service.web.error_handlers import register_error_handlers
from roster_service.web.health import Need, register_health
from roster_service.web.request_log import register_request_end
from roster_service.web.time_limit import BODY_BYTES, RequestHead

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

# The shortest time between two attempts of a worker to use the database.
PAUSE_SECONDS = 0.5

log = logging.getLogger(__name__)


class LateApp:
    """The WSGI application. Threads may share it."""

    def __init__(self, make_app: Callable[[], WSGIApplication], seconds: float, v1p2_errors: ErrorProfile) -> None:
        """`make_app`: makes the Flask application and raises as `create_app`. `seconds`: how long a request may wait
        for the database; the attempts to use it count. `v1p2_errors`: the form of errors in OneRoster 1.2."""
        self._make_app = make_app
        self._seconds = seconds
        self._app: WSGIApplication | None = None
        self._refusing: WSGIApplication = make_refusing_app(lambda: self._unmet, v1p2_errors)
        self._lock = threading.Lock()
        self._tried_at = float("-inf")
        self._reason = ""
        self._unmet = Need.DATABASE

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if self._app is not None:
            return self._app(environ, start_response)
        with limit_time(self._seconds):
            return self._find()(environ, start_response)

    def find_body_bytes(self, head: RequestHead) -> int | None:
        """Returns the most bytes that the body of a request may have; None for the bound of the service."""
        ask = self._app.extensions.get(BODY_BYTES) if isinstance(self._app, Flask) else None
        if ask is None:
            return None
        with limit_time(self._seconds):
            most: int | None = ask(head)
        return most

    def start(self) -> None:
        """Makes the Flask application if it can use the database now; else logs the reason.

        Raises SettingError. At the start of a worker, this stops the service; later, `_find` logs it and requests are
        refused.
        """
        try:
            with limit_time(START_SECONDS):
                self._app = self._make_app()
        except DatabaseUnavailableError as error:
            self._report(Need.SCHEMA if isinstance(error, SchemaError) else Need.DATABASE, str(error))
        except SQLAlchemyError as error:
            self._report(Need.DATABASE, f"the database failed ({_describe(error)})")
        finally:
            self._tried_at = time.monotonic()
        if self._app is not None and self._reason:
            log.warning("the database can be used now")

    def _find(self) -> WSGIApplication:
        """Returns the Flask application, or the refusing one. Only one thread at a time tries to make the former."""
        if self._lock.acquire(blocking=False):
            try:
                if self._app is None and time.monotonic() - self._tried_at >= PAUSE_SECONDS:
                    self.start()
            except SettingError as error:
                self._report(Need.SETTINGS, str(error))
            finally:
                self._lock.release()
        return self._app or self._refusing

    def _report(self, unmet: Need, reason: str) -> None:
        """Logs a reason, unless it is the one that was logged last."""
        self._unmet = unmet
        if reason != self._reason:
            self._reason = reason
            log.error("%s; requests are answered 503 until it can be used", reason)


def _describe(error: SQLAlchemyError) -> str:
    """Returns the type of an error and its SQLSTATE, because the driver's message can quote the values of a
    statement."""
    if isinstance(error, DBAPIError):
        return f"{type(error.orig).__name__}, SQLSTATE {getattr(error.orig, 'pgcode', None)}"
    return type(error).__name__


def make_refusing_app(find_unmet: Callable[[], Need], v1p2_errors: ErrorProfile) -> Flask:
    """Makes an application that answers every request but `/livez` 503, in the format of its interface. `find_unmet`:
    returns the need for which the service cannot answer."""
    app = Flask("roster_service", static_folder=None)
    register_request_end(app)
    set_error_profile(app, v1p2_errors)
    register_error_handlers(app)
    register_host_check(app)
    register_health(app, find_unmet)
    app.before_request(_refuse)
    app.after_request(add_common_headers)
    app.wsgi_app = EncodedIds(app.wsgi_app)  # type: ignore[method-assign]
    return app


def _refuse() -> None:
    if request.path not in (LIVE_PATH, READY_PATH):
        raise DatabaseUnavailableError("the database cannot be used")
