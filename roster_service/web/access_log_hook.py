"""Counts each response to an authenticated vendor, of any interface, and each refused request in the usage counters."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from flask import Flask, Response, request
from werkzeug.datastructures import Headers

from roster_service.access.access_log.entries import Entry
from roster_service.access.access_log.writer import AccessLog
from roster_service.web.request_facts import (
    get_disclosed_records,
    get_documented_path,
    get_named_caller,
    get_refusal,
    get_requesting_vendor,
)

_KEY_PREFIX = re.compile(r"key-[0-9a-f]{8}(?=-)")
_CLIENT_ID = re.compile(r"[\w-]{1,64}", re.ASCII)
_CONSUMER = re.compile(r'\boauth_consumer_key="([^"]*)"')
_CLIENT_CLAIM = re.compile(r'"client_id"\s*:\s*"([^"]*)"')


def register_access_log(app: Flask, access_log: AccessLog) -> None:
    """Registers the hooks that start `access_log` and add responses to it."""

    def add_entry(response: Response) -> Response:
        vendor = get_requesting_vendor()
        refusal = get_refusal() if 400 <= response.status_code < 500 else None
        if vendor is not None or refusal is not None:
            named = None if vendor is not None else find_named_caller(request.headers, get_named_caller())
            access_log.add(
                Entry(
                    at=datetime.now(UTC),
                    vendor_id=None if vendor is None else vendor.vendor_id,
                    caller=named if vendor is None else vendor.caller,
                    address=request.remote_addr,
                    method=request.method,
                    path=get_documented_path(),
                    status=response.status_code,
                    bytes=response.calculate_content_length() or 0,
                    records=(get_disclosed_records() or 0) if response.status_code == 200 else 0,
                    refused_for=refusal,
                )
            )
        return response

    app.before_request(access_log.start)
    app.after_request(add_entry)


def find_named_caller(headers: Headers, in_body: str | None) -> str | None:
    """Returns the client id or the prefix of the API key that a request names, whether or not its credentials are valid
    and the service knows the caller; None if it names none. `in_body`: the client id of its form."""
    key = _KEY_PREFIX.match(headers.get("x-api-key", ""))
    if key is not None:
        return key[0]
    scheme, _, credentials = headers.get("Authorization", "").partition(" ")
    find = _FINDERS.get(scheme.lower())
    named = in_body if find is None else find(credentials)
    return named if named is not None and _CLIENT_ID.fullmatch(named) else None


def _find_user(credentials: str) -> str:
    return _decode(credentials).partition(":")[0]


def _find_consumer(credentials: str) -> str | None:
    consumer = _CONSUMER.search(credentials)
    return None if consumer is None else consumer[1]


def _find_client_claim(token: str) -> str | None:
    """Returns the client id of an access token, without a look at its signature."""
    _, _, rest = token.partition(".")
    claim = _CLIENT_CLAIM.search(_decode(rest.partition(".")[0]))
    return None if claim is None else claim[1]


def _decode(coded: str) -> str:
    """Returns the text of base64, with or without its padding; '' if it is none."""
    try:
        return base64.urlsafe_b64decode(coded.strip() + "==").decode("latin-1")
    except ValueError:
        return ""


# By the scheme of the `Authorization` header: the client id that it names.
_FINDERS: Mapping[str, Callable[[str], str | None]] = {
    "basic": _find_user,
    "bearer": _find_client_claim,
    "oauth": _find_consumer,
}
