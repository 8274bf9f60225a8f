"""Adds each response to an authenticated vendor, of any interface, to the access log."""

from __future__ import annotations

from datetime import UTC, datetime

from flask import Flask, Response, request

from roster_service.access.access_log.writer import AccessLog, Entry
from roster_service.web.request_facts import (
    get_disclosure,
    get_documented_path,
    get_request_id,
    get_requesting_vendor,
)


def register_access_log(app: Flask, access_log: AccessLog) -> None:
    """Registers the hook that adds responses to `access_log`."""

    def add_entry(response: Response) -> Response:
        vendor = get_requesting_vendor()
        if vendor is not None and request.url_rule is not None:
            access_log.add(
                Entry(
                    at=datetime.now(UTC),
                    vendor_id=vendor.vendor_id,
                    caller=vendor.caller,
                    address=request.remote_addr,
                    method=request.method,
                    path=get_documented_path(),
                    status=response.status_code,
                    bytes=response.calculate_content_length() or 0,
                    request_id=get_request_id(),
                    disclosure=get_disclosure() if response.status_code == 200 else None,
                )
            )
        return response

    app.after_request(add_entry)
