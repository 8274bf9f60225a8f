"""The view of an operation, and the order in which a request is refused.

Method (400), token (401), version prefix (400), scope (403), parameters (400), record (404). The method is refused
before routing, by the gate of the blueprint; the rest happens here, top to bottom.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from flask import Response, request
from sqlalchemy import Connection, Engine

from roster_service.access.callers import find_caller
from roster_service.access.journal import mask_filter
from roster_service.access.known_callers import KnownCallers
from roster_service.access.token_cache import TokenReader
from roster_service.db.prepared import again_with_fresh_plans
from roster_service.errors import Problem, RefusedRequestError
from roster_service.query.params import Limits
from roster_service.query.run import run_collection, run_single
from roster_service.query.walks import Walks
from roster_service.request_facts import note_asker, note_shown
from roster_service.rostering import operations
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
from roster_service.rostering.paths import raw_path


@dataclass(frozen=True)
class Surroundings:
    """What the views need from outside: connections, walks, tokens, callers, limits, and how the service is reached."""

    engine: Engine
    walks: Walks
    tokens: TokenReader
    callers: KnownCallers
    limits: Limits
    public_url: str | None

    def root_url(self, host_url: str) -> str:
        """The address that refs and links are built on: the public one, else `host_url`, which the request came to."""
        return self.public_url or host_url.rstrip("/")


def make_view(operation: Operation, here: Surroundings) -> Callable[..., Response]:
    """The view function of an operation; it takes the ids of the path by name."""
    answer = _answer_collection if operation.endpoint.shape is Shape.COLLECTION else _answer_single

    def view(**path_ids: str) -> Response:
        token = here.tokens.read(read_bearer(request.headers.get("Authorization", "")))
        address = Address(here.root_url(request.host_url), raw_path(request.environ), _read_query())
        with here.engine.connect() as connection:
            caller = find_caller(connection, token)
            here.callers.remember(token, caller)
            note_asker(caller.vendor_id, caller.client_id)
            asked = operation.admit(caller, address, path_ids)
            known = request.if_none_match
            # Weakly, as RFC 9110 has it: a proxy that compresses makes the tag weak. `*` asks for any answer at all,
            # so whether there is one has to be found out.
            if known.contains_weak(asked.tag) and not known.star_tag:
                response = Response(status=304)
            else:
                records = answer(connection, asked, here.walks)
                note_shown(records.number, partial(mask_filter, asked.draft.filter))
                response = Response(status=304) if known.star_tag else _make_response(records)
        response.headers.update(asked.headers)
        return response

    def view_again(**path_ids: str) -> Response:
        return again_with_fresh_plans(here.engine, lambda: view(**path_ids))

    view_again.__doc__ = operation.endpoint.summary
    return view_again


def _read_query() -> str:
    return request.query_string.decode("latin-1")


def _make_response(records: Records) -> Response:
    response = Response(records.body, mimetype="application/json")
    response.headers.update(records.headers)
    return response


def _answer_collection(connection: Connection, asked: AdmittedRequest, walks: Walks) -> Records:
    return show_page(asked, run_collection(connection, asked.plan, asked.caller, walks))


def _answer_single(connection: Connection, asked: AdmittedRequest, _walks: Walks) -> Records:
    text = run_single(connection, asked.plan, asked.caller, asked.base_url)
    if text is None:
        key = asked.operation.endpoint.resource.singular
        wanted = dict(asked.plan.path_ids)["sourcedId"][:255]
        raise RefusedRequestError(Problem.UNKNOWN_RECORD, f"there is no {key} {wanted!r}")
    return show_record(asked, text)


def describe_request() -> str:
    """The method and address of the request, for the text of an error."""
    return operations.describe_request(request.method, raw_path(request.environ), _read_query())
