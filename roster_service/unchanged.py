"""Answers that the client has already: 304 for a request that was admitted before, with one look at the caller.

Whether a request is admitted, and its entity tag, follow from the address, the token, and what the database says of
the caller and the roster's revision. Of a request that was answered once, the address and the token are remembered,
so the next one with the tag of its answer needs the database's word on the caller alone: no routing, no plan, no
record. Everything else, and whatever is the least unusual, goes to the application.
"""

from __future__ import annotations

import functools
import hashlib
import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from flask import Flask, Response, request
from sqlalchemy.exc import SQLAlchemyError

from roster_service.access.callers import Caller, find_caller
from roster_service.access.journal import Entry, Journal
from roster_service.access.roster_state import RosterState, make_state_headers
from roster_service.errors import RefusedRequestError
from roster_service.journaling import show_path
from roster_service.rostering.blueprints import is_rostering
from roster_service.rostering.headers import make_etag
from roster_service.rostering.views import Surroundings

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

REMEMBERED = 4096
# Longer addresses are rare, and would make the memory large.
ADDRESS_BYTES = 1000
SCHEME = "bearer "
# What every answer carries.
COMMON_HEADERS = {"X-Content-Type-Options": "nosniff", "Vary": "Accept-Encoding"}
KEPT_STATES = 8


@dataclass(frozen=True)
class _Admitted:
    """A request that was answered: what its tag is made of, and its path as it is documented."""

    address: str
    path: str


class Unchanged:
    """The middleware, and the memory of requests that were answered."""

    def __init__(self, app: Flask, here: Surroundings, journal: Journal) -> None:
        self._app: WSGIApplication = app.wsgi_app
        self._here = here
        self._journal = journal
        self._admitted: OrderedDict[bytes, _Admitted] = OrderedDict()
        self._lock = threading.Lock()
        app.after_request(self._remember)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        known = environ.get("HTTP_IF_NONE_MATCH")
        headers = None if known is None else self._make_headers(environ, known)
        if headers is None:
            return self._app(environ, start_response)
        start_response("304 NOT MODIFIED", headers)
        return ()

    def _make_headers(self, environ: WSGIEnvironment, known: str) -> list[tuple[str, str]] | None:
        """The headers of a 304; None where this request is for the application."""
        with self._lock:
            admitted = self._admitted.get(make_key(environ))
        if admitted is None:
            return None
        caller = self._find_caller(environ)
        if caller is None:
            return None
        tag = make_etag(caller, admitted.address)
        if known.removeprefix("W/") != f'"{tag}"':
            return None
        request_id = secrets.token_hex(8)
        self._journal.note(
            Entry(
                at=datetime.now(UTC),
                vendor_id=caller.vendor_id,
                caller=caller.client_id,
                method="GET",
                path=admitted.path,
                status=304,
                bytes=0,
                request_id=request_id,
                shown=None,
            )
        )
        own = {"Cache-Control": "no-store", "ETag": f'"{tag}"', "X-Request-Id": request_id}
        return [*COMMON_HEADERS.items(), *_state_headers(caller.state), *own.items()]

    def _find_caller(self, environ: WSGIEnvironment) -> Caller | None:
        try:
            token = self._here.tokens.read(environ["HTTP_AUTHORIZATION"][len(SCHEME) :])
            with self._here.engine.connect() as connection:
                return find_caller(connection, token)
        except (RefusedRequestError, SQLAlchemyError):
            # The application says what is wrong.
            return None

    def _remember(self, response: Response) -> Response:
        """After an answer of the application to who asked for a change alone: they were admitted, and ask again."""
        environ, rule = request.environ, request.url_rule
        if (
            rule is None
            or "HTTP_IF_NONE_MATCH" not in environ
            or response.status_code not in (200, 304)
            or "ETag" not in response.headers
            or not is_rostering(request.path)
        ):
            return response
        authorization = environ.get("HTTP_AUTHORIZATION", "")
        if authorization[: len(SCHEME)].lower() == SCHEME and len(environ.get("RAW_URI", "x" * 9999)) <= ADDRESS_BYTES:
            address = self._here.tagged_address
            with self._lock:
                self._admitted[make_key(environ)] = _Admitted(address, show_path(rule.rule))
                if len(self._admitted) > REMEMBERED:
                    self._admitted.popitem(last=False)
        return response


def make_key(environ: WSGIEnvironment) -> bytes:
    """The hash of everything in a request that decides whether it is admitted, and what its address is."""
    names = ("REQUEST_METHOD", "wsgi.url_scheme", "HTTP_HOST", "SERVER_NAME", "SERVER_PORT", "SCRIPT_NAME", "RAW_URI")
    facts = [str(environ.get(name)) for name in names]
    return hashlib.sha256("\n".join((*facts, environ.get("HTTP_AUTHORIZATION", ""))).encode()).digest()


@functools.lru_cache(KEPT_STATES)
def _state_headers(state: RosterState) -> tuple[tuple[str, str], ...]:
    return tuple(make_state_headers(state).items())
