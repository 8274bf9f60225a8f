"""Each answer to a known vendor leaves an entry in the journal, through whichever door it came in."""

from __future__ import annotations

import functools
import re
from datetime import UTC, datetime

from flask import Flask, Response, request

from roster_service.access.access_log.writer import Entry, Journal
from roster_service.web.request_facts import find_asker, find_shown, request_id

_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")


@functools.cache
def show_path(rule: str) -> str:
    """The path of a rule as it is documented: an id in it may be a student's."""
    return _PARAMETER.sub(r"{\1}", rule)


def register_journal(app: Flask, journal: Journal) -> None:
    """Registers what notes the answers."""

    def note(response: Response) -> Response:
        asker = find_asker()
        if asker is not None and request.url_rule is not None:
            response.headers["X-Request-Id"] = request_id()
            journal.note(
                Entry(
                    at=datetime.now(UTC),
                    vendor_id=asker.vendor_id,
                    caller=asker.caller,
                    method=request.method,
                    path=show_path(request.url_rule.rule),
                    status=response.status_code,
                    bytes=response.calculate_content_length() or 0,
                    request_id=request_id(),
                    shown=find_shown() if response.status_code == 200 else None,
                )
            )
        return response

    app.after_request(note)
