"""Throttling by Flask-Limiter: one window a second or so and one a day, per vendor, over both paths together.

A vendor whose key is being rotated has two keys for a while, and still one allowance. Where the counters cannot be
reached, requests pass: an outage of Redis shall not become one of the roster.
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

from roster_service.access.throttles.limits import format_windows
from roster_service.access.throttles.storage import URI
from roster_service.errors import SettingError, ThrottledRequestError

log = logging.getLogger(__name__)

PAUSE_SECONDS = 60.0


class OutageNotice(logging.Filter):
    """On Flask-Limiter's logger: says once in a while that the counters are away, without the driver's words.

    That logger has a handler which writes nothing, so its errors are said again by ours.
    """

    def __init__(self, pause: float = PAUSE_SECONDS) -> None:
        super().__init__()
        self._pause = pause
        self._said_at = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        """Passes what is no error."""
        if record.levelno < logging.ERROR:
            return True
        now = time.monotonic()
        if now - self._said_at >= self._pause:
            self._said_at = now
            kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else "unknown"
            log.warning("throttle: the counters are away (%s); requests pass", kind)
        return False


class Throttle:
    """Admits the vendor of this request, or refuses it, and says in headers what is left."""

    def __init__(self, app: Flask, engine: Engine, storage_url: str | None) -> None:
        """`engine`: where the counters are kept, unless `storage_url` names a Redis server.

        Raises SettingError where that cannot be used for want of its package.
        """
        options: dict[str, Any] = {"engine": engine} if storage_url is None else {}
        try:
            self._limiter = Limiter(
                _vendor_name,
                storage_uri=storage_url or URI,
                storage_options=options,
                strategy="moving-window",
                # A storage that is away is logged, and the request passes.
                swallow_errors=True,
            )
            # By itself it would look at every request of every door; one that is known to be there adds no hooks.
            app.extensions.setdefault("limiter", set()).add(self._limiter)
            self._limiter.init_app(app)
        except ConfigurationError:
            raise SettingError(
                "ROSTER_RATE_STORAGE_URL needs the package `redis`: pip install 'roster-service[redis]'"
            ) from None
        self._limiter.logger.addFilter(OutageNotice())
        # One function for both paths, because each limited function counts by itself.
        self._admit = self._limiter.shared_limit(_windows, scope="vendor")(lambda: None)

    @property
    def storage(self) -> Storage:
        """Where hits are counted."""
        return self._limiter.storage

    def admit(self) -> None:
        """Counts this request. Raises ThrottledRequestError where it is one too many."""
        try:
            self._admit()
        except RateLimitExceeded:
            seconds = int(self._read_headers().get("RateLimit-Reset", "1"))
            raise ThrottledRequestError(
                "too many requests; `Retry-After` says when to go on", max(1, seconds)
            ) from None

    def add_headers(self, response: Response) -> Response:
        """Says what is left of the allowance."""
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


def _vendor_name() -> str:
    return f"vendor-{g.key_holder.vendor_id}"


def _windows() -> str:
    return format_windows(g.key_holder.allowance)
