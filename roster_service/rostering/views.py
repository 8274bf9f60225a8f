"""The two views, a collection and a single record, and the order in which a request is refused.

Method (400), token (401), version prefix (400), scope (403), parameters (400), record (404). The method is refused
before routing, by the gate of the blueprint; the rest happens here, top to bottom.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from urllib.parse import parse_qsl

from flask import Response, request
from sqlalchemy import Connection, Engine

from roster_service.access.callers import Caller, find_caller
from roster_service.access.journal import mask_filter
from roster_service.access.roster_state import make_state_headers
from roster_service.access.token_cache import TokenReader
from roster_service.db.visibility import Sight
from roster_service.errors import Problem, RefusedRequestError
from roster_service.query.params import COLLECTION_PARAMETERS, SINGLE_PARAMETERS, Limits, Parameter, read_wish
from roster_service.query.plan import Plan, make_plan
from roster_service.query.run import run_collection, run_single
from roster_service.query.walks import Walks
from roster_service.request_facts import note_asker, note_shown
from roster_service.rostering.endpoints import Endpoint, Shape
from roster_service.rostering.headers import make_etag, make_links
from roster_service.rostering.paths import raw_path
from roster_service.rostering.status_info import make_warning
from roster_service.schemas.versions import Version

MAX_QUERY_FIELDS = 100
# Query strings that each endpoint remembers the reading of.
KEPT_DRAFTS = 128

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Surroundings:
    """What the views need from outside: connections, walks, tokens, limits, and how the service is reached."""

    engine: Engine
    walks: Walks
    tokens: TokenReader
    limits: Limits
    public_url: str | None

    @property
    def root_url(self) -> str:
        """The address that refs and links are built on: the public one, else the one that this request came to."""
        return self.public_url or request.host_url.rstrip("/")

    @property
    def address(self) -> str:
        """The absolute address of this request, without its query."""
        return self.root_url + raw_path(request.environ)

    @property
    def tagged_address(self) -> str:
        """The absolute address of this request, as its entity tag has it."""
        return f"{self.address}?{request.query_string.decode('latin-1')}"


@dataclass(frozen=True)
class AdmittedRequest:
    """A request that was admitted: what is asked, by whom, and the plan of its answer."""

    endpoint: Endpoint
    caller: Caller
    plan: Plan
    query: Pairs
    # The root that refs are built on.
    base_url: str
    # Its own absolute address, without the query.
    address: str


@dataclass(frozen=True)
class Draft:
    """A query string as one endpoint reads it for one sight: its pairs, its filter, its plan without the path's ids."""

    pairs: Pairs
    filter: str | None
    plan: Plan


def parameters_of(endpoint: Endpoint) -> tuple[Parameter, ...]:
    """The query parameters that an endpoint takes."""
    return COLLECTION_PARAMETERS if endpoint.shape is Shape.COLLECTION else SINGLE_PARAMETERS


def make_view(endpoint: Endpoint, version: Version, here: Surroundings) -> Callable[..., Response]:
    """The view function of an endpoint in a version; it takes the ids of the path by name."""
    answer = _answer_collection if endpoint.shape is Shape.COLLECTION else _answer_single
    parameters = parameters_of(endpoint)
    record = version.records[endpoint.resource]

    @lru_cache(KEPT_DRAFTS)
    def read_draft(query: bytes, sight: Sight) -> Draft:
        pairs = _read_query(query)
        wish = read_wish(pairs, parameters, here.limits)
        return Draft(pairs, wish.filter, make_plan(wish, record, sight, endpoint.selection, {}))

    def view(**path_ids: str) -> Response:
        token = here.tokens.read(_read_bearer())
        with here.engine.connect() as connection:
            caller = find_caller(connection, token)
            note_asker(caller.vendor_id, caller.client_id)
            _require_access(caller, endpoint, version)
            draft = read_draft(request.query_string, caller.sight)
            plan = dataclasses.replace(draft.plan, path_ids=tuple(path_ids.items()))
            tag = make_etag(caller, here.tagged_address)
            known = request.if_none_match
            # Weakly, as RFC 9110 has it: a proxy that compresses makes the tag weak. `*` asks for any answer at all,
            # so whether there is one has to be found out.
            if known.contains_weak(tag) and not known.star_tag:
                response = Response(status=304)
            else:
                base_url = here.root_url + version.root
                asked = AdmittedRequest(endpoint, caller, plan, draft.pairs, base_url, here.address)
                response, records = answer(connection, asked, here.walks)
                note_shown(records, partial(mask_filter, draft.filter))
                response = Response(status=304) if known.star_tag else response
        response.headers.update(make_state_headers(caller.state))
        response.set_etag(tag)
        response.headers["Cache-Control"] = "no-store"
        return response

    view.__doc__ = endpoint.summary
    return view


def _read_bearer() -> str:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise RefusedRequestError(Problem.NO_TOKEN, "the request has no `Authorization: Bearer` header")
    return token.strip()


def _require_access(caller: Caller, endpoint: Endpoint, version: Version) -> None:
    if caller.version != version.prefix:
        raise RefusedRequestError(
            Problem.VERSION,
            f"the token's scopes are for {caller.version} and the address is for {version.prefix}; "
            "get a token for the version that you call",
        )
    if not caller.scopes.intersection(endpoint.access.value):
        wanted = " or ".join(f"{version.prefix}/{name}" for name in endpoint.access.value)
        raise RefusedRequestError(Problem.SCOPE, f"the token lacks the scope for this path: {wanted}")


def _read_query(query: bytes) -> Pairs:
    try:
        return parse_qsl(
            query.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_QUERY_FIELDS,
        )
    except UnicodeDecodeError:
        raise RefusedRequestError(Problem.PARAMETER, "the query string is not percent-encoded UTF-8") from None
    except ValueError:
        raise RefusedRequestError(
            Problem.PARAMETER, f"the query string has more than {MAX_QUERY_FIELDS} parameters"
        ) from None


def _answer_collection(connection: Connection, asked: AdmittedRequest, walks: Walks) -> tuple[Response, int]:
    """The page, and how many records it has."""
    plan = asked.plan
    page = run_collection(connection, plan, asked.caller, walks)
    head = f'{{"{asked.endpoint.resource.plural}":['
    response = Response(page.encode(head, "]" + _end(plan), asked.base_url), mimetype="application/json")
    response.headers["X-Total-Count"] = str(page.total)
    links = make_links(asked.address, asked.query, plan.limit, plan.offset, page.total)
    if links:
        response.headers["Link"] = links
    return response, page.records


def _answer_single(connection: Connection, asked: AdmittedRequest, _walks: Walks) -> tuple[Response, int]:
    key = asked.endpoint.resource.singular
    text = run_single(connection, asked.plan, asked.caller, asked.base_url)
    if text is None:
        wanted = dict(asked.plan.path_ids)["sourcedId"][:255]
        raise RefusedRequestError(Problem.UNKNOWN_RECORD, f"there is no {key} {wanted!r}")
    return Response(f'{{"{key}":{text}{_end(asked.plan)}', mimetype="application/json"), 1


def _end(plan: Plan) -> str:
    """The end of an answer, with what was ignored of the request beside the records."""
    return f",{make_warning(plan.notices, describe_request())[1:]}" if plan.notices else "}"


def describe_request() -> str:
    """The method and address of the request, for the text of an error."""
    query = request.query_string.decode("latin-1")
    return f"{request.method} {raw_path(request.environ)}{'?' if query else ''}{query}"[:500]
