"""Counts each response to an authenticated vendor, of any interface, and each refused request in the usage counters."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from flask import request
from werkzeug.datastructures import Headers

from roster_service.auth.access_log.entries import Entry
from roster_service.auth.access_log.writer import AccessLog
from roster_service.http.request_facts import RequestFacts

_KEY_PREFIX = re.compile(r"key-[0-9a-f]{8}(?=-)")
_CLIENT_ID = re.compile(r"[\w-]{1,64}", re.ASCII)
_CONSUMER = re.compile(r'\boauth_consumer_key="([^"]*)"')
_CLIENT_CLAIM = re.compile(r'"client_id"\s*:\s*"([^"]*)"')


def add_entry(access_log: AccessLog, facts: RequestFacts, status: int, size: int) -> None:
    """Adds a response to an authenticated vendor or a refusal to the usage counters. `size`: of the body, in bytes."""
    vendor = facts.vendor
    refusal = facts.refusal if 400 <= status < 500 else None
    if vendor is not None or refusal is not None:
        named = None if vendor is not None else find_named_caller(request.headers, facts.named_caller)
        access_log.add(
            Entry(
                at=datetime.now(UTC),
                vendor_id=None if vendor is None else vendor.vendor_id,
                caller=named if vendor is None else vendor.caller,
                address=facts.address,
                method=facts.method,
                path=facts.path,
                status=status,
                bytes=size,
                records=(facts.records or 0) if status == 200 else 0,
                refused_for=refusal,
            )
        )


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
