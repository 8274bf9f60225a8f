"""The log line of a request, and the counts that are written with it.

A line names the documented path, never the path or the query string as they were sent. The line of a slow request has
the shape of what it asked for.
"""

from __future__ import annotations

import logging
import time

from flask import Flask, Response, has_request_context, request

from roster_service.auth.access_log.writer import AccessLog
from roster_service.http.request_facts import REQUEST_ID, WATCHED_PATHS, RequestFacts, get_request_facts
from roster_service.logs import add_facts, facts
from roster_service.web.access_log_hook import add_entry
from roster_service.web.metrics_page import count_request

log = logging.getLogger(__name__)


def log_request(own: RequestFacts, status: int, size: int, seconds: float, *, is_slow: bool) -> None:
    """Logs a request that has its response. `size`: of the body, in bytes; `seconds`: that it took."""
    level = _choose_level(status, is_slow or own.failure is not None)
    if log.isEnabledFor(level):
        method, shape = own.method[:20], own.describe_shape
        log.log(
            level,
            "%s %s %d%s",
            method,
            own.path,
            status,
            f": {own.failure}" if own.failure else "",
            extra=facts(
                milliseconds=round(seconds * 1000, 1),
                method=method,
                status=status,
                records=own.records,
                bytes=size,
                slow=is_slow or None,
                shape=shape() if shape and (is_slow or own.failure) else None,
            ),
        )


def _choose_level(status: int, is_notable: bool) -> int:
    # Of an outage, the service logs the begin and the end; the lines of its requests are like others.
    if status >= 500 and status != 503:
        return logging.ERROR
    if is_notable:
        return logging.WARNING
    # The lines of these would hide the others.
    return logging.DEBUG if request.path in WATCHED_PATHS else logging.INFO


def add_request_facts(record: logging.LogRecord) -> bool:
    """Adds the facts of the current request to a log record, if there is one: its id, documented path, the address that
    it came from, vendor and client. A logging filter; it lets every record pass."""
    if has_request_context():
        own = get_request_facts()
        vendor = own.vendor
        request_facts = facts(
            request_id=own.id,
            path=own.path,
            address=own.address,
            vendor=None if vendor is None else vendor.vendor_id,
            client=None if vendor is None else vendor.caller,
        )
        add_facts(record, request_facts)
    return True


def register_request_end(app: Flask, slow_milliseconds: int, access_log: AccessLog | None = None) -> None:
    """Registers both steps. They must be registered before all other hooks: Flask then runs the former first and the
    latter last.

    `slow_milliseconds`: a request that takes as long is slow. `access_log`: None for an application without vendors.
    """

    def begin() -> None:
        get_request_facts()

    def end(response: Response) -> Response:
        facts = get_request_facts()
        seconds = time.perf_counter() - facts.began
        status, size = response.status_code, response.calculate_content_length() or 0
        response.headers[REQUEST_ID] = facts.id
        count_request(facts, status, seconds)
        if access_log is not None:
            access_log.start()
            add_entry(access_log, facts, status, size)
        log_request(facts, status, size, seconds, is_slow=seconds * 1000 >= slow_milliseconds)
        return response

    app.before_request(begin)
    app.after_request(end)
