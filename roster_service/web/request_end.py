"""The first and the last step of each request. The last one gives the response its `X-Request-Id`, and counts and logs
the request: metrics, usage counters, log line.
"""

from __future__ import annotations

import time

from flask import Flask, Response

from roster_service.auth.access_log.writer import AccessLog
from roster_service.http.request_facts import REQUEST_ID, get_request_facts
from roster_service.web.access_log_hook import add_entry
from roster_service.web.metrics_page import count_request
from roster_service.web.request_log import log_request


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
