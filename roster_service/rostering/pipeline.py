"""A rostering request, from its token to its response."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from flask import Response, request

from roster_service.access_log.entries import mask_filter
from roster_service.auth.credentials.tokens import AccessToken, TokenReader
from roster_service.auth.signed_requests import SentRequest, SignedRequests
from roster_service.auth.throttling.throttles import RosteringThrottle
from roster_service.errors import Problem, RefusedRequestError
from roster_service.feeds.roster_state import RosterState, make_state_headers
from roster_service.http.request_facts import find_root_url, get_request_facts
from roster_service.http.stages import Disclosed, DisclosureRecorder, count_request, make_json
from roster_service.rostering import operations
from roster_service.rostering.operations import AnswerBody, Operation, PlannedRequest, RequestAddress
from roster_service.rostering.paths import read_raw_path, read_sent_path
from roster_service.schemas.versions import Version
from roster_service.serving.params import Limits
from roster_service.serving.plan import Plan, find_asked_parts
from roster_service.serving.reader import Reader
from roster_service.serving.roster_status import RosterStatusReader


@dataclass(frozen=True)
class Services:
    """The services that a rostering request needs. `signed_requests`: None if the service takes none; `limits`: of its
    parameters; `public_url`: the address that clients use, None for the address of each request."""

    reader: Reader
    tokens: TokenReader
    signed_requests: SignedRequests | None
    throttle: RosteringThrottle
    limits: Limits
    disclosures: DisclosureRecorder
    status: RosterStatusReader
    public_url: str | None


def answer_operation(operation: Operation, services: Services, path_ids: Mapping[str, str]) -> Response:
    """Answers Flask's current request for records.

    Raises RefusedRequestError for the token or signature (401), the vendor's rate (429), the token's version (400), its
    scopes (403), the parameters (400), a vendor without a grant (403), the vendor's requests at the same time (429),
    and a record that does not exist (404), in this order; 410 where the pull of a page cannot go on; 503 where the
    disclosure cannot be recorded.
    Another method than GET was refused before. One round trip admits the client and reads, in one transaction, so a
    token that has ended reads nothing.
    """

    token = _admit(operation.version, services)
    with _refuse_token_first(services, token):
        admission = token.admit(services.throttle.find_slots(token.vendor_id))
        planned = operation.plan(token, admission, read_address(services), path_ids)
    get_request_facts().describe_shape = planned.describe_shape
    response, disclosed = _respond(services, planned)
    if disclosed is not None:
        services.disclosures.record(token, disclosed)
    return response


def answer_status(version: Version, services: Services) -> Response:
    """Answers Flask's current request for the states of the feeds. Raises RefusedRequestError as `answer_operation`,
    for the token (401), the rate (429), the version (400), a parameter (400), and a vendor without a grant (403)."""
    token = _admit(version, services)
    with _refuse_token_first(services, token):
        operations.require_version(token, version)
        operations.require_no_parameter(read_address(services), services.limits)
    state = services.reader.admit(token.admission, token.vendor_id)
    response = make_json(services.status.read(token.admission, token.vendor_id, state), 200)
    response.headers.update(make_state_headers(state))
    return response


def _admit(version: Version, services: Services) -> AccessToken:
    """The access token of the request, which is counted."""
    token = authenticate(version, services)
    count_request(token, services.throttle.count(token.vendor_id))
    return token


def authenticate(version: Version, services: Services) -> AccessToken:
    """Returns the access token of the request. A signed request gives the same value, with the scopes of its client.

    Raises RefusedRequestError for the token or the signature. Where the service takes no signatures, a signed request
    is one without a token.
    """
    authorization = request.headers.get("Authorization", "")
    if services.signed_requests is not None and version.allows_signatures:
        root, path = find_root_url(services.public_url), read_sent_path(request.environ)
        sent = SentRequest(request.method, root, path, read_query_string(), authorization, request.remote_addr)
        if sent.is_signed:
            return services.signed_requests.read(sent, version.prefix)
    return services.tokens.read(operations.read_bearer(authorization))


@contextmanager
def _refuse_token_first(services: Services, token: AccessToken) -> Iterator[None]:
    """If the block refuses the request, asks the database whether the token is still valid: a token that is not, is
    refused instead."""
    try:
        yield
    except RefusedRequestError as refusal:
        try:
            services.reader.admit(token.admission, token.vendor_id)
        except RefusedRequestError as earlier:
            if earlier.problem is not Problem.NO_GRANT:
                raise
        raise refusal from None


def read_address(services: Services) -> RequestAddress:
    """Returns the address of the request, on the public URL if there is one, else on the URL of the request."""
    return RequestAddress(find_root_url(services.public_url), read_raw_path(request.environ), read_query_string())


def read_query_string() -> str:
    """Returns the query string as the client sent it, decoded as Latin-1."""
    return request.query_string.decode("latin-1")


def _has_tag() -> bool:
    """Returns whether `If-None-Match` has an entity tag to compare. `*` matches any record, so the service has to read
    whether there is one."""
    return bool(request.if_none_match) and not request.if_none_match.star_tag


def _list_tags() -> Iterable[str]:
    """Lists the entity tags of `If-None-Match`, which RFC 9110 compares weakly."""
    # Werkzeug gives None for an empty one.
    return filter(None, request.if_none_match.as_set(include_weak=True))


def _respond(services: Services, planned: PlannedRequest) -> tuple[Response, Disclosed | None]:
    if _has_tag():
        known_state = _read_state(services, planned)
        known = None if known_state is None else planned.find_known_headers(known_state, _list_tags())
        if known is not None:
            return Response(status=304, headers=known), _disclose_match(planned.plan, ())
    state, records = _read(services, planned)
    headers = planned.make_headers(state, records.total)
    facts = get_request_facts()
    facts.finds_nothing = records.total == 0 and planned.plan.filter is not None
    facts.has_unknown_word = any(notice.problem is Problem.FILTER_WORD for notice in planned.plan.notices)
    # `*` matches any record.
    if request.if_none_match.contains_weak(headers["ETag"].strip('"')):
        is_asked = not planned.operation.is_collection or planned.plan.filter is not None
        found = tuple(records.people) if request.if_none_match.star_tag and is_asked else ()
        return Response(status=304, headers=headers), _disclose_match(planned.plan, found)
    made = Response(records.body, headers={"Content-Type": "application/json", **records.headers, **headers})
    parts = records.parts | find_asked_parts(planned.plan)
    return made, Disclosed(records.number, records.people, parts, mask_filter(planned.plan.filter))


def _disclose_match(plan: Plan, found: Sequence[str]) -> Disclosed | None:
    """What a 304 tells: that there are people, and the count of a filter; None for nothing. `found`: the people of a
    record, or of a filter, of whom no tag was known. Whoever polls a delta by its tag is told nothing of anybody."""
    asked = find_asked_parts(plan)
    return Disclosed(0, found, asked, mask_filter(plan.filter)) if asked or found else None


def _read_state(services: Services, planned: PlannedRequest) -> RosterState | None:
    """Returns the state of the roster from which the records would be read; None for a first page whose pull is not
    remembered: reading the page begins it."""
    if not planned.operation.is_collection:
        return services.reader.admit(planned.token.admission, planned.token.vendor_id)
    state = services.reader.read_collection_state(planned.authorized_request)
    is_begun = planned.plan.offset > 0 or state.is_remembered(services.reader.pull_minutes)
    return state.shown if is_begun else None


def _read(services: Services, planned: PlannedRequest) -> tuple[RosterState, AnswerBody]:
    if planned.operation.is_collection:
        page = services.reader.read_page(planned.authorized_request)
        return page.state, operations.show_page(planned, page.page)
    record = services.reader.read_record(planned.authorized_request)
    return record.state, operations.show_record(planned, record.text, record.person, record.parts)
