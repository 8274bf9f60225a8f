"""Each answer to a known vendor leaves an entry in the journal, through whichever door it came in."""

from __future__ import annotations

import functools
import re
from datetime import UTC, datetime

from flask import Flask, Response, request

from roster_service.access.access_log.writer import AccessLog, Entry
from roster_service.web.request_facts import get_disclosure, get_request_id, get_requesting_vendor

_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")


@functools.cache
def show_path(rule: str) -> str:
    """The path of a rule as it is documented: an id in it may be a student's."""
    return _PARAMETER.sub(r"{\1}", rule)


def register_access_log(app: Flask, access_log: AccessLog) -> None:
    """Registers what notes the answers."""

    def note(response: Response) -> Response:
        vendor = get_requesting_vendor()
        if vendor is not None and request.url_rule is not None:
            response.headers["X-Request-Id"] = get_request_id()
            access_log.add(
                Entry(
                    at=datetime.now(UTC),
                    vendor_id=vendor.vendor_id,
                    caller=vendor.caller,
                    method=request.method,
                    path=show_path(request.url_rule.rule),
                    status=response.status_code,
                    bytes=response.calculate_content_length() or 0,
                    request_id=get_request_id(),
                    disclosure=get_disclosure() if response.status_code == 200 else None,
                )
            )
        return response

    app.after_request(note)
