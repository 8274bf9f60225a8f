"""The direct way: ordinary requests answered with one message to the database, without the framework.

Ordinary is a GET of a path of the rostering interface with a token that was verified before, of a caller whom this
worker knows, for a record, or for a page of a walk that it knows. What is known of the caller and of the walk is held
against the database in the message that fetches the records. Everything else, whatever is refused, and whatever was
known wrongly, goes to the application, which finds everything anew.
"""

from __future__ import annotations

import functools
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from flask import Flask, request
from werkzeug.datastructures import Accept
from werkzeug.http import parse_accept_header
from werkzeug.sansio.utils import get_current_url, get_host

from roster_service.access.callers import Caller
from roster_service.access.journal import Entry, Journal, Shown, mask_filter
from roster_service.access.known_callers import KnownCaller
from roster_service.compressing import CODINGS, choose_coding
from roster_service.errors import RefusedRequestError
from roster_service.query.params import LONGEST_KEPT
from roster_service.query.recalling import Recaller
from roster_service.request_facts import note_asker
from roster_service.rostering.endpoints import Shape
from roster_service.rostering.operations import (
    Address,
    AdmittedRequest,
    Operation,
    Records,
    read_bearer,
    show_page,
    show_record,
)
from roster_service.rostering.paths import show_raw
from roster_service.rostering.views import Surroundings

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

# What every answer carries.
COMMON_HEADERS = {"X-Content-Type-Options": "nosniff", "Vary": "Accept-Encoding"}
FAILURE = "roster.failure"
# One tag, as an answer had it.
TAG = re.compile(r'(?:W/)?"([^"]*)"')
KEPT_HEADERS = 64

# The status, the headers, the body.
Answer = tuple[str, list[tuple[str, str]], bytes]
# The segments of a path below the root of a version; None for an id.
Pattern = tuple[str | None, ...]


@dataclass(frozen=True)
class Failure:
    """What failed, and whose request it was, as far as that was known."""

    error: Exception
    caller: Caller | None


class Direct:
    """The middleware. `least_bytes`: answers of so many bytes are compressed; 0: none."""

    def __init__(
        self,
        app: Flask,
        operations: Iterable[Operation],
        here: Surroundings,
        recaller: Recaller,
        journal: Journal,
        least_bytes: int,
    ) -> None:
        self._app: WSGIApplication = app.wsgi_app
        self._here = here
        self._recaller = recaller
        self._journal = journal
        self._least_bytes = least_bytes
        self._operations: Mapping[str, Mapping[Pattern, Operation]] = _index(operations)
        app.before_request(_raise_failure)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        asked = answered = None
        try:
            admitted = self._admit(environ)
            if admitted is not None:
                asked, known = admitted
                answered = self._answer(asked, known, environ)
        except Exception as error:  # noqa: BLE001  (whatever it is, the application answers it)
            environ[FAILURE] = Failure(error, None if asked is None else asked.caller)
        if answered is None:
            return self._app(environ, start_response)
        status, headers, body = answered
        start_response(status, headers)
        return (body,) if body else ()

    def _admit(self, environ: WSGIEnvironment) -> tuple[AdmittedRequest, KnownCaller] | None:
        """What is asked, and by whom; None where the request is for the application."""
        sent = environ.get("RAW_URI", "").partition("?")[0].removesuffix("/")
        found = self._find(sent) if environ["REQUEST_METHOD"] == "GET" and not environ.get("SCRIPT_NAME") else None
        host = environ.get("HTTP_HOST")
        if found is None or host is None:
            return None
        if len(host) + len(environ.get("HTTP_ACCEPT_ENCODING", "")) > LONGEST_KEPT:
            # What is worked out of these two is remembered.
            return None
        operation, path_ids = found
        root_url = self._here.root_url(_host_url(environ["wsgi.url_scheme"], host))
        address = Address(root_url, show_raw(sent), environ.get("QUERY_STRING", ""))
        try:
            token = self._here.tokens.recall(read_bearer(environ.get("HTTP_AUTHORIZATION", "")))
            known = None if token is None else self._here.callers.recall(token)
            if known is None:
                return None
            return operation.admit(known.caller, address, path_ids), known
        except RefusedRequestError:
            return None

    def _answer(self, asked: AdmittedRequest, known: KnownCaller, environ: WSGIEnvironment) -> Answer | None:
        """The answer; None where the request is for the application all the same."""
        tag = environ.get("HTTP_IF_NONE_MATCH")
        if tag is not None:
            read = TAG.fullmatch(tag)
            if read is None:
                return None
            if read[1] == asked.tag:
                return self._show_unchanged(asked) if self._recaller.stands(known) else None
        records = self._recall(asked, known)
        return None if records is None else self._show(asked, records, environ.get("HTTP_ACCEPT_ENCODING", ""))

    def _find(self, sent: str) -> tuple[Operation, dict[str, str]] | None:
        """The operation of a path that is written as it is documented, and the ids in it."""
        for root, patterns in self._operations.items():
            if sent.startswith(root):
                segments = sent[len(root) :].split("/")
                pattern = tuple(None if number % 2 else segment for number, segment in enumerate(segments))
                operation = patterns.get(pattern)
                if operation is None or "" in segments:
                    return None
                ids = (unquote_to_bytes(segment).decode(errors="replace") for segment in segments[1::2])
                return operation, dict(zip(operation.endpoint.ids, ids, strict=True))
        return None

    def _recall(self, asked: AdmittedRequest, known: KnownCaller) -> Records | None:
        if asked.operation.endpoint.shape is Shape.SINGLE:
            text = self._recaller.single(asked.plan, known, asked.base_url)
            return None if text is None else show_record(asked, text)
        page = self._recaller.page(asked.plan, known)
        return None if page is None else show_page(asked, page)

    def _show_unchanged(self, asked: AdmittedRequest) -> Answer:
        own = self._note(asked, 304, 0, None)
        return "304 NOT MODIFIED", [*asked.headers.items(), *own], b""

    def _show(self, asked: AdmittedRequest, records: Records, accepted: str) -> Answer:
        headers = {"Content-Type": "application/json", **records.headers, **asked.headers}
        body = records.body
        coding = _choose_coding(accepted) if self._least_bytes and len(body) >= self._least_bytes else None
        if coding is not None:
            body = CODINGS[coding](body)
            headers |= {"Content-Encoding": coding, "ETag": f"W/{headers['ETag']}"}
        shown = Shown(records.number, functools.partial(mask_filter, asked.draft.filter))
        own = self._note(asked, 200, len(body), shown)
        return "200 OK", [*headers.items(), ("Content-Length", str(len(body))), *own], body

    def _note(self, asked: AdmittedRequest, status: int, size: int, shown: Shown | None) -> list[tuple[str, str]]:
        """Leaves an entry in the journal; the headers that have nothing to do with the records."""
        request_id = secrets.token_hex(8)
        self._journal.note(
            Entry(
                at=datetime.now(UTC),
                vendor_id=asked.caller.vendor_id,
                caller=asked.caller.client_id,
                method="GET",
                path=asked.operation.path,
                status=status,
                bytes=size,
                request_id=request_id,
                shown=shown,
            )
        )
        return [*COMMON_HEADERS.items(), ("X-Request-Id", request_id)]


def _index(operations: Iterable[Operation]) -> dict[str, dict[Pattern, Operation]]:
    """The operations by the root of their version, which a slash ends, and their path below it."""
    found: dict[str, dict[Pattern, Operation]] = {}
    for operation in operations:
        segments = operation.endpoint.path.removeprefix("/").split("/")
        pattern = tuple(None if segment.startswith("{") else segment for segment in segments)
        found.setdefault(f"{operation.version.root}/", {})[pattern] = operation
    return found


def _raise_failure() -> None:
    """Before a request of the application: what failed on the direct way is answered as any failure is."""
    failure: Failure | None = request.environ.get(FAILURE)
    if failure is not None:
        if failure.caller is not None:
            note_asker(failure.caller.vendor_id, failure.caller.client_id)
        raise failure.error


@functools.lru_cache(KEPT_HEADERS)
def _host_url(scheme: str, host: str) -> str:
    return get_current_url(scheme, get_host(scheme, host))


@functools.lru_cache(KEPT_HEADERS)
def _choose_coding(accepted: str) -> str | None:
    return choose_coding(parse_accept_header(accepted, Accept))
