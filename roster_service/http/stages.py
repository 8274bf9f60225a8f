"""The stages of a request, in this order in both interfaces: authenticate, throttle, plan, read and respond, record.

A stage refuses the request by a RefusedRequestError, so their order is the order of refusals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from flask import Response

from roster_service.auth.throttling.limits import RateState
from roster_service.http.disclosures import Disclosures
from roster_service.http.request_facts import RequestingVendor, get_request_facts, require_rate


class Caller(Protocol):
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
    `masked_filter`: as in `Disclosure`."""

    records: int
    people: Iterable[str]
    masked_filter: str | None


@dataclass(frozen=True)
class Planned:
    """A request that its interface has checked. `respond`: reads, and makes the response with the records that it
    discloses, None where the access log has no line of it. `describe_shape`: as in `RequestFacts`."""

    respond: Callable[[], tuple[Response, Disclosed | None]]
    describe_shape: Callable[[], str] | None = None


AnyCaller = TypeVar("AnyCaller", bound=Caller)


def answer(
    authenticate: Callable[[], AnyCaller],
    throttle: Callable[[AnyCaller], RateState | None],
    plan: Callable[[AnyCaller], Planned],
    disclosures: Disclosures,
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
            scope=caller.short_scopes,
            grant_version=caller.grant_version,
            masked_filter=disclosed.masked_filter,
        )
    return response
