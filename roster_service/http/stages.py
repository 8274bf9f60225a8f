"""The stages of a request, in this order in both interfaces: authenticate, throttle, plan, read and respond, record.

A stage refuses the request by a RefusedRequestError, so their order is the order of refusals. The last stage records a
disclosure in the access log, before the response leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol, TypeVar

from flask import Response, jsonify

from roster_service.access_log.entries import Disclosure, GrantedDistricts, PersonHasher
from roster_service.access_log.writer import AccessLog
from roster_service.auth.throttling.limits import RateState
from roster_service.errors import BUSY_RETRY_SECONDS
from roster_service.http.request_facts import RequestingVendor, get_request_facts, require_rate


def make_json(members: Mapping[str, object], status: int) -> Response:
    """Returns a response that caches must not store. One that says that the service is busy or away (503) says when to
    try again."""
    response = jsonify(members)
    response.status_code = status
    response.headers["Cache-Control"] = "no-store"
    if status == 503:
        response.headers["Retry-After"] = str(BUSY_RETRY_SECONDS)
    return response


class DisclosureRecorder:
    """Records disclosures of either interface."""

    def __init__(self, access_log: AccessLog, districts: GrantedDistricts, hasher: PersonHasher) -> None:
        self._access_log = access_log
        self._districts = districts
        self._hasher = hasher

    def record(
        self,
        vendor: RequestingVendor,
        *,
        records: int,
        people: Iterable[str],
        parts: int,
        scope: str,
        grant_version: int,
        masked_filter: str | None,
    ) -> None:
        """Records that the response discloses so many records. `people`: the ids of those whose records these are;
        `parts`, `scope`, `masked_filter`: as in `Disclosure`; `grant_version`: of the vendor's grants with which the
        records were read.

        Raises RefusedRequestError (BUSY) if the disclosure cannot be recorded, and SQLAlchemyError if the database
        fails.
        """
        facts = get_request_facts()
        self._access_log.record(
            Disclosure(
                at=datetime.now(UTC),
                vendor_id=vendor.vendor_id,
                caller=vendor.caller,
                address=facts.address,
                method=facts.method,
                path=facts.path,
                scope=scope,
                districts=self._districts.find(vendor.vendor_id, grant_version),
                filter=masked_filter,
                records=records,
                people=self._hasher.hash_people(people),
                parts=parts,
                request_id=facts.id,
            )
        )
        facts.records = records


class VendorCaller(Protocol):
    """The authenticated caller of an interface. `caller`: the OAuth client id, or the prefix of the API key;
    `short_scopes`: its scopes or permission flags, for the access log."""

    @property
    def vendor_id(self) -> int: ...
    @property
    def caller(self) -> str: ...
    @property
    def grant_version(self) -> int: ...
    @property
    def short_scopes(self) -> str: ...


@dataclass(frozen=True)
class Disclosed:
    """The records that a response discloses: their number, and the ids of the people whose records they are.
    `parts`: the number of the parts of people in them; `masked_filter`: as in `Disclosure`."""

    records: int
    people: Iterable[str]
    parts: int
    masked_filter: str | None


@dataclass(frozen=True)
class Planned:
    """A request that its interface has checked. `respond`: reads, and makes the response with the records that it
    discloses, None where the access log has no line of it. `describe_shape`: as in `RequestFacts`."""

    respond: Callable[[], tuple[Response, Disclosed | None]]
    describe_shape: Callable[[], str] | None = None


AnyCaller = TypeVar("AnyCaller", bound=VendorCaller)


def answer(
    authenticate: Callable[[], AnyCaller],
    throttle: Callable[[AnyCaller], RateState | None],
    plan: Callable[[AnyCaller], Planned],
    disclosures: DisclosureRecorder,
) -> Response:
    """Answers Flask's current request by the stages of an interface.

    `throttle` counts the request, and returns the state of the vendor's rate limit. Raises what the stages raise,
    ThrottledRequestError for the rate, and RefusedRequestError (BUSY) where the disclosure cannot be recorded.
    """
    caller = authenticate()
    facts = get_request_facts()
    facts.vendor = vendor = RequestingVendor(caller.vendor_id, caller.caller)
    require_rate(throttle(caller))
    planned = plan(caller)
    facts.describe_shape = planned.describe_shape
    response, disclosed = planned.respond()
    if disclosed is not None:
        disclosures.record(
            vendor,
            records=disclosed.records,
            people=disclosed.people,
            parts=disclosed.parts,
            scope=caller.short_scopes,
            grant_version=caller.grant_version,
            masked_filter=disclosed.masked_filter,
        )
    return response
