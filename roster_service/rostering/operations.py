"""An operation is a path in a version: from a caller and an address to what is asked, and from records to the answer.

No framework here, so that whoever answers, the view or the direct way, answers the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from urllib.parse import parse_qsl

from roster_service.access.callers import Caller
from roster_service.access.roster_state import RosterState, make_state_headers
from roster_service.db.visibility import Sight
from roster_service.errors import Problem, RefusedRequestError
from roster_service.query.params import (
    COLLECTION_PARAMETERS,
    LONGEST_KEPT,
    SINGLE_PARAMETERS,
    Limits,
    Parameter,
    read_wish,
)
from roster_service.query.plan import Plan, make_plan
from roster_service.query.run import Page
from roster_service.rostering.endpoints import Endpoint, Shape
from roster_service.rostering.headers import make_etag, make_links
from roster_service.rostering.status_info import make_warning
from roster_service.schemas.versions import Version

MAX_QUERY_FIELDS = 100
# Query strings that each endpoint remembers the reading of.
KEPT_DRAFTS = 128
KEPT_STATES = 8

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Address:
    """The address of a request. `root_url`: what refs and links are built on; `path`: as it was sent."""

    root_url: str
    path: str
    query: str

    @property
    def plain(self) -> str:
        """The absolute address without its query."""
        return self.root_url + self.path

    @property
    def tagged(self) -> str:
        """The absolute address as an entity tag has it."""
        return f"{self.plain}?{self.query}"


@dataclass(frozen=True)
class Draft:
    """A query string as one endpoint reads it for one sight: its pairs, its filter, its plan without the path's ids."""

    pairs: Pairs
    filter: str | None
    plan: Plan


@dataclass(frozen=True)
class AdmittedRequest:
    """A request that was admitted: what is asked, by whom, and the plan of its answer."""

    operation: Operation
    caller: Caller
    plan: Plan
    draft: Draft
    address: Address

    @property
    def base_url(self) -> str:
        """The root that refs are built on."""
        return self.address.root_url + self.operation.version.root

    @cached_property
    def tag(self) -> str:
        """The entity tag of the answer."""
        return make_etag(self.caller, self.address.tagged)

    @property
    def headers(self) -> dict[str, str]:
        """What an answer with or without records says of itself."""
        return {**_state_headers(self.caller.state), "ETag": f'"{self.tag}"', "Cache-Control": "no-store"}


@dataclass(frozen=True)
class Records:
    """The body of an answer, how many records it has, and the headers that come of them."""

    body: bytes
    number: int
    headers: Mapping[str, str]


class Operation:
    """A path in a version. `limits`: the bounds of its parameters."""

    def __init__(self, endpoint: Endpoint, version: Version, limits: Limits) -> None:
        self.endpoint = endpoint
        self.version = version
        # As it is documented: an id in it may be a student's.
        self.path = version.root + endpoint.path
        record = version.records[endpoint.resource]
        parameters = parameters_of(endpoint)

        @lru_cache(KEPT_DRAFTS)
        def read_draft(query: str, sight: Sight) -> Draft:
            pairs = _read_query(query)
            wish = read_wish(pairs, parameters, limits)
            return Draft(pairs, wish.filter, make_plan(wish, record, sight, endpoint.selection, {}))

        self._read_draft = read_draft
        self._read_long_draft = read_draft.__wrapped__

    def admit(self, caller: Caller, address: Address, path_ids: Mapping[str, str]) -> AdmittedRequest:
        """What is asked, where the caller may ask it. Raises RefusedRequestError for the version of the token, its
        scopes, and the parameters, in this order."""
        self._require_access(caller)
        read_draft = self._read_draft if len(address.query) <= LONGEST_KEPT else self._read_long_draft
        draft = read_draft(address.query, caller.sight)
        plan = dataclasses.replace(draft.plan, path_ids=tuple(path_ids.items())) if path_ids else draft.plan
        return AdmittedRequest(self, caller, plan, draft, address)

    def _require_access(self, caller: Caller) -> None:
        version = self.version.prefix
        if caller.version != version:
            raise RefusedRequestError(
                Problem.VERSION,
                f"the token's scopes are for {caller.version} and the address is for {version}; "
                "get a token for the version that you call",
            )
        if not caller.scopes.intersection(self.endpoint.access.value):
            wanted = " or ".join(f"{version}/{name}" for name in self.endpoint.access.value)
            raise RefusedRequestError(Problem.SCOPE, f"the token lacks the scope for this path: {wanted}")


def parameters_of(endpoint: Endpoint) -> tuple[Parameter, ...]:
    """The query parameters that an endpoint takes."""
    return COLLECTION_PARAMETERS if endpoint.shape is Shape.COLLECTION else SINGLE_PARAMETERS


def show_page(asked: AdmittedRequest, page: Page) -> Records:
    """The answer with a page of a collection."""
    plan = asked.plan
    headers = {"X-Total-Count": str(page.total)}
    links = make_links(asked.address.plain, asked.draft.pairs, plan.limit, plan.offset, page.total)
    if links:
        headers["Link"] = links
    head = f'{{"{asked.operation.endpoint.resource.plural}":['
    return Records(page.encode(head, "]" + _end(asked), asked.base_url), page.records, headers)


def show_record(asked: AdmittedRequest, text: str) -> Records:
    """The answer with a single record."""
    return Records(f'{{"{asked.operation.endpoint.resource.singular}":{text}{_end(asked)}'.encode(), 1, {})


def _end(asked: AdmittedRequest) -> str:
    """The end of the body, with what was ignored of the request beside the records."""
    if not asked.plan.notices:
        return "}"
    request = describe_request("GET", asked.address.path, asked.address.query)
    return f",{make_warning(asked.plan.notices, request)[1:]}"


def describe_request(method: str, path: str, query: str) -> str:
    """The method and address of a request, for the text of an error."""
    return f"{method} {path}{'?' if query else ''}{query}"[:500]


def read_bearer(authorization: str) -> str:
    """The token of an `Authorization` header. Raises RefusedRequestError where it has none."""
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise RefusedRequestError(Problem.NO_TOKEN, "the request has no `Authorization: Bearer` header")
    return token.strip()


def _read_query(query: str) -> Pairs:
    try:
        return parse_qsl(
            query.encode("latin-1").decode("ascii"),
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


@lru_cache(KEPT_STATES)
def _state_headers(state: RosterState) -> dict[str, str]:
    return make_state_headers(state)
