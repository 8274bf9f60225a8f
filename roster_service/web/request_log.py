"""What is written at the end of a request: its log line, its counts, and its entry for the usage counters.

A line names the documented path, never the path or the query string as they were sent. The line of a slow request has
the shape of what it asked for. The usage counters have each response to an authenticated vendor, of any interface, and
each refused request; with the cause, also an answer whose filter found nothing.
"""

from __future__ import annotations

import base64
import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from urllib.parse import parse_qsl

from flask import Flask, Response, has_request_context, request
from werkzeug.datastructures import Headers, MultiDict

from roster_service.access_log.causes import NOTHING_FOUND
from roster_service.access_log.entries import Entry
from roster_service.access_log.writer import AccessLog
from roster_service.http.request_facts import REQUEST_ID, WATCHED_PATHS, RequestFacts, get_request_facts
from roster_service.logs import add_facts, facts
from roster_service.metrics import REQUESTS, SECONDS, VENDOR_REQUESTS
from roster_service.schemas.versions import VERSIONS
from roster_service.serving.params import FIELDS, FILTER, LISTED_FIELDS, SORT

# Such a request is logged as slow, with its parameters. No page of a large district takes as long, but for the first
# one of an order that nobody has asked for.
SLOW_SECONDS = 1.0
_KEY_PREFIX = re.compile(r"key-[0-9a-f]{8}(?=-)")
_CLIENT_ID = re.compile(r"[\w-]{1,64}", re.ASCII)
_CONSUMER = re.compile(r'\boauth_consumer_key="([^"]*)"')
# A value of a filter, what stands behind a field there, and between the fields of a list.
_QUOTED, _OPERATOR, _SEPARATOR = re.compile("'[^']*'?"), re.compile("[=!<>~]+"), re.compile("[, ]+")
_FIELD_NAMES = frozenset(
    name for version in VERSIONS for record in version.records.values() for name in record().fields
)
# What the filter of a delta names: it fits nothing in most nights.
_OF_DELTAS = frozenset({"dateLastModified", "status"})
_CLIENT_CLAIM = re.compile(r'"client_id"\s*:\s*"([^"]*)"')
# Any client may send any method; a label has only those that the service knows.
METHODS = frozenset({"GET", "HEAD", "POST", "OPTIONS"})
log = logging.getLogger(__name__)


def count_request(facts: RequestFacts, status: int, seconds: float) -> None:
    """Counts a request that has its response. `seconds`: that it took."""
    REQUESTS.labels(facts.method if facts.method in METHODS else "other", facts.path, status).inc()
    SECONDS.labels(facts.path).observe(seconds)
    if facts.vendor is not None:
        VENDOR_REQUESTS.labels(facts.vendor.vendor_id, f"{status // 100}xx").inc()


def add_entry(access_log: AccessLog, facts: RequestFacts, status: int, size: int) -> None:
    """Adds a response to an authenticated vendor or a refusal to the usage counters. `size`: of the body, in bytes."""
    vendor = facts.vendor
    refusal = facts.refusal if 400 <= status < 500 else None
    cause: str | None = None if refusal is None else refusal.value
    fields: Sequence[str] = ()
    # Without valid credentials nothing of what was sent is kept.
    if vendor is not None and (refusal is not None or facts.finds_nothing):
        given = _read_query(request.query_string)
        if refusal is None:
            given = MultiDict({FILTER.name: given.get(FILTER.name, "")})
        fields = find_named_fields(given)
        if refusal is None and (facts.has_unknown_word or not _OF_DELTAS.issuperset(fields)):
            cause = NOTHING_FOUND
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
                cause=cause,
                request_id=facts.id,
                fields=fields,
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


def find_named_fields(given: MultiDict[str, str]) -> Sequence[str]:
    """Returns the fields that the filter, the sort and the selection of a query string name, valid or not. A name that
    is not one of the wire format could be a value, and is left out."""
    *before, _ = _OPERATOR.split(_QUOTED.sub("", given.get(FILTER.name, "")))
    listed = [text for name in (SORT.name, FIELDS.name, LISTED_FIELDS) for text in given.getlist(name)]
    words = [text.split()[-1] for text in before if text.strip()] + _SEPARATOR.split(",".join(listed))
    return sorted(_FIELD_NAMES.intersection(word.partition(".")[0] for word in words))


def _read_query(raw: bytes) -> MultiDict[str, str]:
    """Returns the parameters of a query string, also of one that is not UTF-8."""
    return MultiDict(parse_qsl(raw.decode(errors="replace"), keep_blank_values=True))


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
                shape=shape() if shape and (is_slow or own.failure or log.isEnabledFor(logging.DEBUG)) else None,
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


def register_request_end(app: Flask, access_log: AccessLog | None = None) -> None:
    """Registers both steps. They must be registered before all other hooks: Flask then runs the former first and the
    latter last. `access_log`: None for an application without vendors."""

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
        log_request(facts, status, size, seconds, is_slow=seconds >= SLOW_SECONDS)
        return response

    app.before_request(begin)
    app.after_request(end)
