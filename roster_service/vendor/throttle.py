"""The rate limits of the vendor interface, with Flask-Limiter: a short window and a daily one for each vendor, which
both paths share.

The limits belong to the vendor, not to its API key: during the rotation of a key, both keys share them. If the service
cannot reach the counters, requests pass, so that an outage of Redis does not become an outage of the roster.
"""

from __future__ import annotations

import logging
import math
import time
from typing import Any

from flask import Flask, Response, g
from flask_limiter import Limiter, RateLimitExceeded
from limits.errors import ConfigurationError
from limits.storage import Storage
from sqlalchemy import Engine

from roster_service.access.throttling.limits import format_windows
from roster_service.access.throttling.storage import URI
from roster_service.errors import SettingError, ThrottledRequestError

log = logging.getLogger(__name__)

PAUSE_SECONDS = 60.0


class OutageFilter(logging.Filter):
    """A filter for Flask-Limiter's logger. It turns each error into a warning of this module, at most one in `pause`
    seconds, without the driver's message.

    This module logs the warning because the only handler of Flask-Limiter's logger writes nothing.
    """

    def __init__(self, pause: float = PAUSE_SECONDS) -> None:
        super().__init__()
        self._pause = pause
        self._logged_at = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        """Lets records below the level of errors pass, and no others."""
        if record.levelno < logging.ERROR:
            return True
        now = time.monotonic()
        if now - self._logged_at >= self._pause:
            self._logged_at = now
            kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else "unknown"
            log.warning("throttle: the counters cannot be reached (%s); requests pass", kind)
        return False


class Throttle:
    """Counts the requests of each vendor, refuses those beyond its limits, and adds the `RateLimit` headers.

    It needs `g.key_holder`, the vendor of the current request.
    """

    def __init__(self, app: Flask, engine: Engine, storage_url: str | None) -> None:
        """`engine`: of the database that keeps the counters, unless `storage_url` names a Redis server.

        Raises SettingError if the package for Redis is not installed.
        """
        options: dict[str, Any] = {"engine": engine} if storage_url is None else {}
        try:
            self._limiter = Limiter(
                _name_vendor,
                storage_uri=storage_url or URI,
                storage_options=options,
                strategy="moving-window",
                # If the storage fails, Flask-Limiter logs it and the request passes.
                swallow_errors=True,
            )
            # A limiter that is registered already adds no hooks: so it does not check the requests of other interfaces.
            app.extensions.setdefault("limiter", set()).add(self._limiter)
            self._limiter.init_app(app)
        except ConfigurationError:
            raise SettingError(
                "ROSTER_RATE_STORAGE_URL needs the package `redis`: pip install 'roster-service[redis]'"
            ) from None
        self._limiter.logger.addFilter(OutageFilter())
        # Both paths call this one function, because Flask-Limiter counts separately for each decorated function.
        self._admit = self._limiter.shared_limit(_make_windows, scope="vendor")(lambda: None)

    @property
    def storage(self) -> Storage:
        """The storage of the counters, which the other throttles share."""
        return self._limiter.storage

    def admit(self) -> None:
        """Counts the current request. Raises ThrottledRequestError if it exceeds a limit of its vendor."""
        try:
            self._admit()
        except RateLimitExceeded:
            seconds = int(self._read_headers().get("RateLimit-Reset", "1"))
            raise ThrottledRequestError(
                "too many requests; `Retry-After` says when to go on", max(1, seconds)
            ) from None

    def add_headers(self, response: Response) -> Response:
        """Adds the `RateLimit` headers to a response."""
        response.headers.update(self._read_headers())
        return response

    def _read_headers(self) -> dict[str, str]:
        current = self._limiter.current_limit
        if current is None:
            return {}
        try:
            seconds = current.window.reset_time - time.time()
        except self.storage.base_exceptions:
            return {}
        return {
            "RateLimit-Limit": str(current.limit.amount),
            "RateLimit-Remaining": str(max(0, current.remaining)),
            "RateLimit-Reset": str(max(0, math.ceil(seconds))),
        }


def _name_vendor() -> str:
    return f"vendor-{g.key_holder.vendor_id}"


def _make_windows() -> str:
    return format_windows(g.key_holder.allowance)
