"""One log line for each request, and the `X-Request-Id` of each response.

A line names the documented path, never the path or the query string as they were sent. The line of a slow request has
the shape of what it asked for.
"""

from __future__ import annotations

import logging

from flask import Flask, Response, has_request_context, request

from roster_service.logs import add_facts, facts
from roster_service.web.request_facts import (
    REQUEST_ID,
    WATCHED_PATHS,
    get_disclosed_records,
    get_documented_path,
    get_failure,
    get_request_id,
    get_requesting_vendor,
    get_shape,
    read_clock,
    start_clock,
)

log = logging.getLogger(__name__)


def register_request_log(app: Flask, slow_milliseconds: int) -> None:
    """Registers the hooks. They must be registered before all others: the clock then starts first, and stops last.

    `slow_milliseconds`: a request that takes as long is slow.
    """

    def log_response(response: Response) -> Response:
        response.headers[REQUEST_ID] = get_request_id()
        milliseconds = read_clock() * 1000
        is_slow = milliseconds >= slow_milliseconds
        failure = get_failure()
        level = _choose_level(response.status_code, is_slow or failure is not None)
        if log.isEnabledFor(level):
            log.log(
                level,
                "%s %s %d%s",
                request.method[:20],
                get_documented_path(),
                response.status_code,
                f": {failure}" if failure else "",
                extra=facts(
                    milliseconds=round(milliseconds, 1),
                    method=request.method[:20],
                    status=response.status_code,
                    records=get_disclosed_records(),
                    bytes=response.calculate_content_length() or 0,
                    slow=is_slow or None,
                    shape=get_shape() if is_slow or failure else None,
                ),
            )
        return response

    app.before_request(start_clock)
    app.after_request(log_response)


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
