"""Counts each response to an authenticated vendor, of any interface, in the usage counters."""

from __future__ import annotations

from datetime import UTC, datetime

from flask import Flask, Response, request

from roster_service.access.access_log.entries import Entry
from roster_service.access.access_log.writer import AccessLog
from roster_service.web.request_facts import get_disclosed_records, get_documented_path, get_requesting_vendor


def register_access_log(app: Flask, access_log: AccessLog) -> None:
    """Registers the hooks that start `access_log` and add responses to it."""

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
                    records=(get_disclosed_records() or 0) if response.status_code == 200 else 0,
                )
            )
        return response

    app.before_request(access_log.start)
    app.after_request(add_entry)
