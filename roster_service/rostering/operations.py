"""An operation is a path in a version: from a token and an address to a plan, and from records to the answer.

No framework here: `roster_service.web.pipeline` puts these steps in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from roster_service.access.credentials.access_token import AccessToken
from roster_service.access.roster_state import RosterState, make_state_headers
from roster_service.errors import Problem, RefusedRequestError
from roster_service.query.params import (
    COLLECTION_PARAMETERS,
    SINGLE_PARAMETERS,
    Limits,
    Parameter,
    read_params,
)
from roster_service.query.plan import Plan, make_plan
from roster_service.query.request import AuthorizedRequest
from roster_service.reads.page import Page, put_root
from roster_service.rostering.endpoints import Cardinality, Endpoint
from roster_service.rostering.headers import make_etag, make_links
from roster_service.rostering.status_info import make_warning
from roster_service.schemas.versions import Version

MAX_QUERY_FIELDS = 100

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
class PlannedRequest:
    """A request that its token allows: what is asked, by whom, and the plan of its answer. `pairs`: of its query;
    `filter`: as it was sent."""

    operation: Operation
    token: AccessToken
    plan: Plan
    pairs: Pairs
    filter: str | None
    address: Address

    @property
    def base_url(self) -> str:
        """The root that refs are built on."""
        return self.address.root_url + self.operation.version.root

    @property
    def authorized_request(self) -> AuthorizedRequest:
        """What is read from the roster."""
        return AuthorizedRequest(self.plan, self.token.vendor_id, self.token.admission, {})

    def make_tag(self, state: RosterState) -> str:
        """The entity tag of the answer, from a roster in this state."""
        return make_etag(self.token, state, self.address.tagged)

    def make_headers(self, state: RosterState) -> dict[str, str]:
        """What an answer with or without records says of itself."""
        return {**make_state_headers(state), "ETag": f'"{self.make_tag(state)}"', "Cache-Control": "no-store"}


@dataclass(frozen=True)
class AnswerBody:
    """The body of an answer, how many records it has, and the headers that come of them."""

    body: bytes
    number: int
    headers: Mapping[str, str]


class Operation:
    """A path in a version. `limits`: the bounds of its parameters."""

    def __init__(self, endpoint: Endpoint, version: Version, limits: Limits) -> None:
        self.endpoint = endpoint
        self.version = version
        self._record = version.records[endpoint.resource]
        self._parameters = list_parameters(endpoint)
        self._limits = limits

    @property
    def is_collection(self) -> bool:
        """Whether the answer is a page of records, not a single one."""
        return self.endpoint.cardinality is Cardinality.COLLECTION

    def plan(self, token: AccessToken, address: Address, path_ids: Mapping[str, str]) -> PlannedRequest:
        """What is asked, where the token allows it. Raises RefusedRequestError for the version of the token, its
        scopes, and the parameters, in this order."""
        self._require_scope(token)
        pairs = _read_query(address.query)
        params = read_params(pairs, self._parameters, self._limits)
        plan = make_plan(params, self._record, token.rights, self.endpoint.path_filter, path_ids)
        return PlannedRequest(self, token, plan, pairs, params.filter, address)

    def _require_scope(self, token: AccessToken) -> None:
        version = self.version.prefix
        if token.version != version:
            raise RefusedRequestError(
                Problem.VERSION,
                f"the token's scopes are for {token.version} and the address is for {version}; "
                "get a token for the version that you call",
            )
        if not token.scope_names.intersection(self.endpoint.access.value):
            wanted = " or ".join(f"{version}/{name}" for name in self.endpoint.access.value)
            raise RefusedRequestError(Problem.SCOPE, f"the token lacks the scope for this path: {wanted}")


def list_parameters(endpoint: Endpoint) -> tuple[Parameter, ...]:
    """The query parameters that an endpoint takes."""
    return COLLECTION_PARAMETERS if endpoint.cardinality is Cardinality.COLLECTION else SINGLE_PARAMETERS


def show_page(planned: PlannedRequest, page: Page) -> AnswerBody:
    """The answer with a page of a collection."""
    plan = planned.plan
    headers = {"X-Total-Count": str(page.total)}
    links = make_links(planned.address.plain, planned.pairs, plan.limit, plan.offset, page.total)
    if links:
        headers["Link"] = links
    head = f'{{"{planned.operation.endpoint.resource.plural}":['
    return AnswerBody(page.encode(head, "]" + _end(planned), planned.base_url), page.records, headers)


def show_record(planned: PlannedRequest, text: str | None) -> AnswerBody:
    """The answer with a single record. Raises RefusedRequestError (UNKNOWN_RECORD) where there is none."""
    key = planned.operation.endpoint.resource.singular
    if text is None:
        wanted = dict(planned.plan.path_ids)["sourcedId"][:255]
        raise RefusedRequestError(Problem.UNKNOWN_RECORD, f"there is no {key} {wanted!r}")
    return AnswerBody(f'{{"{key}":{put_root(text, planned.base_url)}{_end(planned)}'.encode(), 1, {})


def _end(planned: PlannedRequest) -> str:
    """The end of the body, with what was ignored of the request beside the records."""
    if not planned.plan.notices:
        return "}"
    request = describe_request("GET", planned.address.path, planned.address.query)
    return f",{make_warning(planned.plan.notices, request)[1:]}"


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
