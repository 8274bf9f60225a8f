"""One log line for each request, and the `X-Request-Id` of each response.

A line names the documented path, never the path or the query string as they were sent. The line of a slow request has
the shape of what it asked for.
"""

from __future__ import annotations

import logging
import time

from flask import Flask, Response, g, has_request_context, request

from roster_service.logs import add_facts, facts
from roster_service.web.health import LIVE_PATH, READY_PATH
from roster_service.web.request_facts import (
    REQUEST_ID,
    get_disclosure,
    get_documented_path,
    get_request_id,
    get_requesting_vendor,
    get_shape,
)

log = logging.getLogger(__name__)

# Programs ask these every few seconds; their lines would hide the others.
PROBE_PATHS = frozenset({LIVE_PATH, READY_PATH})


def register_request_log(app: Flask, slow_milliseconds: int) -> None:
    """Registers the hooks. They must be registered before all others: the clock then starts first, and stops last.

    `slow_milliseconds`: a request that takes as long is slow.
    """

    def start_clock() -> None:
        g.started = time.perf_counter()

    def log_response(response: Response) -> Response:
        response.headers[REQUEST_ID] = get_request_id()
        milliseconds = (time.perf_counter() - g.started) * 1000
        is_slow = milliseconds >= slow_milliseconds
        level = _choose_level(response.status_code, is_slow)
        if log.isEnabledFor(level):
            disclosure = get_disclosure()
            log.log(
                level,
                "%s %s %d",
                request.method[:20],
                get_documented_path(),
                response.status_code,
                extra=facts(
                    milliseconds=round(milliseconds, 1),
                    method=request.method[:20],
                    status=response.status_code,
                    records=None if disclosure is None else disclosure.records,
                    bytes=response.calculate_content_length() or 0,
                    slow=is_slow or None,
                    shape=get_shape() if is_slow else None,
                ),
            )
        return response

    app.before_request(start_clock)
    app.after_request(log_response)


def _choose_level(status: int, is_slow: bool) -> int:
    # The service has logged why it is unavailable: once, not for each request.
    if status >= 500 and status != 503:
        return logging.ERROR
    if is_slow:
        return logging.WARNING
    return logging.DEBUG if request.path in PROBE_PATHS else logging.INFO


def add_request_facts(record: logging.LogRecord) -> bool:
    """Adds the facts of the current request to a log record, if there is one: its id, documented path, the address that
    it came from, vendor and client. A logging filter; it lets every record pass."""
    if has_request_context():
        vendor = get_requesting_vendor()
        request_facts = facts(
            request_id=get_request_id(),
            path=get_documented_path(),
            address=request.remote_addr,
            vendor=None if vendor is None else vendor.vendor_id,
            client=None if vendor is None else vendor.caller,
        )
        add_facts(record, request_facts)
    return True
