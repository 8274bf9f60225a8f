"""What gunicorn serves: the application from the moment that the database can be used, and 503 until then.

A worker that cannot start ends the whole service, because gunicorn's master gives up with it. So a worker starts
without its database, and looks for it when it is asked for something.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from flask import Flask
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from roster_service.app import add_common_headers
from roster_service.db.deadline import limit_time
from roster_service.db.engine import START_SECONDS
from roster_service.errors import DatabaseUnavailableError, SettingError
from roster_service.rostering.paths import EncodedIds
from roster_service.web.error_handlers import register_error_handlers

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

# How often a worker looks for its database at most.
PAUSE_SECONDS = 1.0

log = logging.getLogger(__name__)


class LateApp:
    """The WSGI application. `make_app` raises DatabaseUnavailableError or SQLAlchemyError while the database cannot be
    used, and SettingError where a setting is wrong."""

    def __init__(self, make_app: Callable[[], WSGIApplication]) -> None:
        self._make_app = make_app
        self._app: WSGIApplication | None = None
        self._refusing: WSGIApplication = make_refusing_app()
        self._lock = threading.Lock()
        self._tried_at = float("-inf")
        self._trouble = ""

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        app = self._app or self._find()
        return app(environ, start_response)

    def start(self) -> None:
        """Makes the application, if the database can be used now.

        Raises SettingError, which stops the start; found later, it is told, and requests are refused.
        """
        try:
            with limit_time(START_SECONDS):
                self._app = self._make_app()
        except DatabaseUnavailableError as error:
            self._report(str(error))
        except SQLAlchemyError as error:
            self._report(f"the database failed ({_describe(error)})")
        finally:
            self._tried_at = time.monotonic()
        if self._app is not None and self._trouble:
            log.warning("roster: the database can be used now")

    def _find(self) -> WSGIApplication:
        """The application, if it can be made; of all threads, one tries."""
        if self._lock.acquire(blocking=False):
            try:
                if self._app is None and time.monotonic() - self._tried_at >= PAUSE_SECONDS:
                    self.start()
            except SettingError as error:
                self._report(str(error))
            finally:
                self._lock.release()
        return self._app or self._refusing

    def _report(self, trouble: str) -> None:
        """Says once what is the matter."""
        if trouble != self._trouble:
            self._trouble = trouble
            log.error("roster: %s; requests are answered 503 until it can be used", trouble)


def _describe(error: SQLAlchemyError) -> str:
    """The kind alone: a driver's message can quote the values of a statement."""
    if isinstance(error, DBAPIError):
        return f"{type(error.orig).__name__}, SQLSTATE {getattr(error.orig, 'pgcode', None)}"
    return type(error).__name__


def make_refusing_app() -> Flask:
    """An application that refuses every request, as the interface does that it came to."""
    app = Flask("roster_service", static_folder=None)
    register_error_handlers(app)
    app.before_request(_refuse)
    app.after_request(add_common_headers)
    app.wsgi_app = EncodedIds(app.wsgi_app)  # type: ignore[method-assign]
    return app


def _refuse() -> None:
    raise DatabaseUnavailableError("the database cannot be used")
