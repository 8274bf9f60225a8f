"""Operations: an endpoint in a version makes a plan from a token and an address, and a response from records: its body,
its entity tag, and the links between pages.

This module knows no web framework: `roster_service.rostering.pipeline` calls these steps in order.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from urllib.parse import parse_qsl, quote, urlencode

from roster_service import __version__
from roster_service.access_log.entries import mask_filter
from roster_service.auth.credentials.tokens import AccessToken
from roster_service.auth.scopes import TOKEN_PATH, ScopeName
from roster_service.db.round_trip import Call
from roster_service.errors import ErrorProfile, Problem, RefusedRequestError
from roster_service.feeds.roster_state import RosterState, make_state_headers
from roster_service.rostering.endpoints import Cardinality, Endpoint
from roster_service.rostering.status_info import WARNING_HEADER, make_warning, make_warning_header
from roster_service.schemas.versions import Version
from roster_service.serving.page import Page, put_root
from roster_service.serving.params import COLLECTION_PARAMETERS, SINGLE_PARAMETERS, Limits, Parameter, read_params
from roster_service.serving.plan import Notice, Plan, make_plan
from roster_service.serving.request import AuthorizedRequest

# In bytes: what fits into the header buffers of common proxies beside the other headers.
LINK_BYTES = 4000
MAX_QUERY_FIELDS = 100
COUNT = "X-Total-Count"
# The ends of parameters with which clients put secrets into a URL. The texts of errors end up in logs. Nothing is
# looked for before them: a pattern for a whole name begins anew at each word, and its time grows with the square of
# the length.
_SECRET = re.compile("(?i)(token|secret|password|passwd|api[_-]?key|authorization|bearer)=[^&]*")
# No encoder writes it, so its sender forgot to encode: what follows may be read as something else.
_BARE_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
# The response has it only if no record is found.
_PLUS = Notice(
    Problem.FILTER_WORD,
    "the filter finds no record: a value of it has a `+`, which is a blank in a URL; write a plus sign as `%2B`",
)
Pairs = Sequence[tuple[str, str]]


def make_etag(token: AccessToken, state: RosterState, address: str, total: int, form: str) -> str:
    """Returns an entity tag that changes whenever the response can change, without reading the records. `total`: the
    number of records on all pages; the tag ends with it, so that a 304 can tell it without counting. `form`: what the
    settings make of the response.

    The response depends on the address, the state of the roster, the caller's rights, and the settings. A database
    restored from a backup gives no revision twice (`advance_state`), except for the one of the backup, with the same
    records.
    """
    # Another version of the service may represent the same record differently.
    facts = (
        __version__,
        *make_state_headers(state).values(),
        str(state.later_revision),
        token.tag_facts,
        address,
        form,
    )
    digest = hashlib.sha256("\n".join((*facts, str(total))).encode()).hexdigest()[:32]
    return f"{digest}-{total}"


def read_total(tag: str) -> int | None:
    """Returns the `total` of an entity tag; None for a text that `make_etag` did not make."""
    _, _, digits = tag.rpartition("-")
    return int(digits) if re.fullmatch("[0-9]{1,18}", digits) else None


def make_links(
    address: str, pairs: Sequence[tuple[str, str]], limit: int, offset: int, total: int, revision: int
) -> str:
    """Returns the `Link` header (RFC 8288): next, last, first, prev, as absolute URLs with all other parameters.

    `address`: the absolute URL without its query. `pairs`: the query of the request. `revision`: of the pull; the links
    name it, so that pulls of one client at the same time do not mix; the first page begins a new pull. Commas inside a
    URL are percent-encoded, because real clients split the header on commas. The result is empty where `limit` is 0.
    Where the query is long, it has only the next one: proxies answer 502 to headers larger than their buffers, and a
    client that follows the links must not end before the last record.
    """
    if limit == 0:
        return ""
    last = max(0, (total - 1) // limit * limit)
    # `next` and `prev` keep an offset that is no multiple of the limit; `last` is always a multiple. Past the end,
    # `prev` is the last page that has records.
    previous = last if offset >= total else max(0, offset - limit)
    offsets = {"next": offset + limit, "last": last, "first": 0, "prev": previous}
    if offset + limit >= total:
        del offsets["next"]
    if offset == 0:
        del offsets["prev"]
    kept = [(name, text) for name, text in pairs if name not in ("limit", "offset", "revision")]
    others = urlencode(kept, quote_via=quote, safe="") + "&" if kept else ""
    pull = {start: f"&revision={revision}" if start else "" for start in offsets.values()}
    links = [
        f'<{address}?{others}limit={limit}&offset={start}{pull[start]}>; rel="{rel}"' for rel, start in offsets.items()
    ]
    every, following = ", ".join(links), links[:1] if "next" in offsets else []
    return every if len(every) <= LINK_BYTES else "".join(following)


@dataclass(frozen=True)
class RequestAddress:
    """The address of a request. `root_url`: the root of hrefs and links. `path`, `query`: as the client sent them."""

    root_url: str
    path: str
    query: str

    @property
    def plain(self) -> str:
        """Returns the absolute URL without its query."""
        return self.root_url + self.path

    @property
    def tagged(self) -> str:
        """Returns the absolute URL with its query, from which the entity tag is made."""
        return f"{self.plain}?{self.query}"


@dataclass(frozen=True)
class PlannedRequest:
    """A request that its token allows, with its plan.

    `admission`: the call that admits the client in the transaction of the read. `pairs`: the decoded query.
    """

    operation: Operation
    token: AccessToken
    admission: Call
    plan: Plan
    pairs: Pairs
    address: RequestAddress

    @property
    def base_url(self) -> str:
        """Returns the root of the hrefs in the response."""
        return self.address.root_url + self.operation.version.root

    @cached_property
    def authorized_request(self) -> AuthorizedRequest:
        """Returns the authorized request that the reader takes."""
        return AuthorizedRequest(self.plan, self.token.vendor_id, self.token.client_id, self.admission, {})

    def find_known_headers(self, state: RosterState, tags: Iterable[str]) -> Mapping[str, str] | None:
        """Returns the headers of the response for a roster in this state, if one of the tags is that of this response;
        else None."""
        for tag in tags:
            total = read_total(tag)
            headers = {} if total is None else self.make_headers(state, total)
            if headers.get("ETag") == f'"{tag}"':
                return headers
        return None

    def make_headers(self, state: RosterState, total: int) -> dict[str, str]:
        """Returns the headers of a 200 or 304 response for a roster in this state. `total`: its `X-Total-Count`."""
        # The page size of a request that names none is a setting.
        form = f"{self.plan.limit} {self.operation.profile}"
        tag = make_etag(self.token, state, self.address.tagged, total, form)
        made = {**make_state_headers(state), COUNT: str(total), "ETag": f'"{tag}"', "Cache-Control": "no-store"}
        links = ""
        if self.operation.is_collection:
            plan = self.plan
            links = make_links(self.address.plain, self.pairs, plan.limit, plan.offset, total, state.revision)
        return made | ({"Link": links} if links else {})

    def describe_shape(self) -> str:
        """Returns the parameters of the request for the log, with every value of the filter masked."""
        shape = self.plan.shape
        named = {
            "filter": mask_filter(self.plan.filter),
            "sort": shape.sort,
            "orderBy": "desc" if shape.descending else None,
            "fields": None if len(shape.fields) == len(shape.view.fields) else ",".join(shape.fields),
            "limit": self.plan.limit,
            "offset": self.plan.offset,
        }
        return " ".join(f"{name}={text}" for name, text in named.items() if text)


@dataclass(frozen=True)
class AnswerBody:
    """The body of a response, the number of its records, the ids of the people whose records these are, the number of
    the parts of people in them, and the headers that depend on them."""

    body: bytes
    total: int
    number: int
    people: Sequence[str]
    parts: int
    headers: Mapping[str, str]


class Operation:
    """An endpoint in a version. `limits`: the bounds of its parameters; `profile`: the form of its warnings."""

    def __init__(self, endpoint: Endpoint, version: Version, limits: Limits, profile: ErrorProfile) -> None:
        self.endpoint = endpoint
        self.version = version
        self._record = version.records[endpoint.resource]
        self._parameters = list_parameters(endpoint)
        self._limits = limits
        self.profile = profile

    @property
    def is_collection(self) -> bool:
        """Whether the response has a page of records, not a single one."""
        return self.endpoint.cardinality is Cardinality.COLLECTION

    def plan(
        self, token: AccessToken, admission: Call, address: RequestAddress, path_ids: Mapping[str, str]
    ) -> PlannedRequest:
        """Checks the token and the query, and returns the planned request. `admission`: of the token.

        Raises RefusedRequestError for the version of the token, its scopes, and the parameters, in this order.
        """
        self._require_scope(token)
        pairs = _read_query(address.query)
        params = read_params(pairs, self._parameters, self._limits)
        plan = make_plan(params, self._record, token.rights, self.endpoint.path_filter, path_ids)
        if _has_plus_in_value(address.query):
            # As a notice of the filter, before those of other parameters.
            plan = replace(plan, notices=(_PLUS, *plan.notices))
        return PlannedRequest(self, token, admission, plan, pairs, address)

    def _require_scope(self, token: AccessToken) -> None:
        version = self.version.prefix
        require_version(token, self.version)
        if not token.scope_names.intersection(self.endpoint.access.value):
            wanted = " or ".join(f"{version}/{name}" for name in self.endpoint.access.value)
            raise RefusedRequestError(Problem.SCOPE, f"the token lacks the scope for this path: {wanted}")


def require_version(token: AccessToken, version: Version) -> None:
    """Raises RefusedRequestError (VERSION) if the scopes of the token are of the other version."""
    wanted = version.prefix
    if token.version != wanted:
        raise RefusedRequestError(
            Problem.VERSION,
            f"the token's scopes are for {token.version} and the path is for {wanted}; "
            f"request a token with scopes for {wanted}. A token request without `scope` gets the version that the "
            f"client was registered with first; to register a client for one version, the operator runs "
            f"`roster client add` with scopes of that version alone, as `--scope {wanted}/{ScopeName.FULL}`",
        )


def list_parameters(endpoint: Endpoint) -> tuple[Parameter, ...]:
    """Returns the query parameters that an endpoint accepts."""
    return COLLECTION_PARAMETERS if endpoint.cardinality is Cardinality.COLLECTION else SINGLE_PARAMETERS


def require_no_parameter(address: RequestAddress, limits: Limits) -> None:
    """Raises RefusedRequestError for any parameter but those that libraries send with every request; for a path that
    takes none."""
    read_params(_read_query(address.query), (), limits)


def show_page(planned: PlannedRequest, page: Page) -> AnswerBody:
    """Returns the body and headers for a page of a collection."""
    notices = [notice for notice in planned.plan.notices if notice.problem is not Problem.FILTER_WORD or not page.total]
    head = f'{{"{planned.operation.endpoint.resource.plural}":['
    body = page.encode(head, "]" + _make_end(planned, notices), planned.base_url)
    headers = _make_warning_headers(planned, notices)
    return AnswerBody(body, page.total, page.records, page.people, page.parts, headers)


def show_record(planned: PlannedRequest, text: str | None, person: str | None, parts: int) -> AnswerBody:
    """Returns the body and headers for a single record. `person`: whose record it is, None for a record of no person;
    `parts`: as in `Page`.

    Raises RefusedRequestError (UNKNOWN_RECORD) where `text` is None.
    """
    key = planned.operation.endpoint.resource.singular
    if text is None:
        wanted = dict(planned.plan.path_ids)["sourcedId"][:255]
        kind = planned.operation.endpoint.kind
        raise RefusedRequestError(
            Problem.UNKNOWN_RECORD, f"there is no {kind} with the sourcedId {wanted!r}, or you may not see it"
        )
    body = f'{{"{key}":{put_root(text, planned.base_url)}{_make_end(planned, planned.plan.notices)}'
    people = () if person is None else (person,)
    return AnswerBody(body.encode(), 1, 1, people, parts, _make_warning_headers(planned, planned.plan.notices))


def _make_end(planned: PlannedRequest, notices: Sequence[Notice]) -> str:
    """Returns the end of the body, with a `statusInfoSet` if there are notices."""
    if not notices or planned.operation.profile is ErrorProfile.OFFICIAL:
        return "}"
    request = describe_request("GET", planned.address.path, planned.address.query)
    return f",{make_warning(notices, request)[1:]}"


def _make_warning_headers(planned: PlannedRequest, notices: Sequence[Notice]) -> Mapping[str, str]:
    if not notices or planned.operation.profile is ErrorProfile.SPECIFICATION:
        return {}
    return {WARNING_HEADER: make_warning_header(notices)}


def describe_request(method: str, path: str, query: str) -> str:
    """Returns the method and address of a request for the text of an error, without its secrets, cut to 500
    characters."""
    masked = _SECRET.sub(r"\1=***", query)
    return f"{method} {path}{'?' if query else ''}{masked}"[:500]


def read_bearer(authorization: str) -> str:
    """Returns the token of an `Authorization` header. Raises RefusedRequestError (NO_TOKEN) where it has none."""
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise RefusedRequestError(
            Problem.NO_TOKEN,
            f"the request has no `Authorization: Bearer TOKEN` header, with a token of {TOKEN_PATH}; a token in the "
            "URL does not count",
        )
    return token.strip()


def _has_plus_in_value(query: str) -> bool:
    """Whether a text in quotes of the filter has a plus sign that is not encoded. Blanks between clauses are often sent
    as one, and are none of it."""
    sent = next((text.partition("=")[2] for text in query.split("&") if text.startswith("filter=")), "")
    return any("+" in text for text in sent.replace("%27", "'").split("'")[1::2])


def _read_query(query: str) -> Pairs:
    if _BARE_PERCENT.search(query):
        raise RefusedRequestError(
            Problem.PARAMETER, "the query string has a `%` without two hexadecimal digits; write `%25` for a `%`"
        )
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
