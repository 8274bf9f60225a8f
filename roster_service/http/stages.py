"""The stages that both interfaces share, of a caller whose credentials were verified: its request is counted, and what
the response discloses is recorded in the access log, before it leaves.

`rostering/pipeline.py` and `vendor/views.py` have the other stages. Each refuses by a RefusedRequestError, so their
order is the order of refusals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from flask import Response, jsonify

from roster_service.access_log.entries import Disclosure, GrantedDistricts, PersonHasher
from roster_service.access_log.writer import AccessLog
from roster_service.auth.throttling.limits import RateState
from roster_service.errors import BUSY_RETRY_SECONDS, ThrottledRequestError
from roster_service.http.request_facts import RequestingVendor, get_request_facts


def make_json(members: Mapping[str, object], status: int) -> Response:
    """Returns a response that caches must not store. One that says that the service is busy or away (503) says when to
    try again."""
    response = jsonify(members)
    response.status_code = status
    response.headers["Cache-Control"] = "no-store"
    if status == 503:
        response.headers["Retry-After"] = str(BUSY_RETRY_SECONDS)
    return response


class VendorCaller(Protocol):
    """The authenticated caller of an interface. `caller`: the OAuth client id, or the prefix of the API key;
    `grant_version`: of the grants with which its records are read; `short_scopes`: its scopes or permission flags."""

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
    `parts`: the number of the parts of people in them, or by which they were chosen; `masked_filter`: as in
    `Disclosure`."""

    records: int
    people: Iterable[str]
    parts: int
    masked_filter: str | None


def count_request(caller: VendorCaller, rate: RateState | None) -> None:
    """Makes the caller and the state of its rate limit known to the log, the counters and the headers; None for a state
    that is not known. Raises ThrottledRequestError if the request exceeds it."""
    facts = get_request_facts()
    facts.vendor, facts.rate = RequestingVendor(caller.vendor_id, caller.caller), rate
    if rate is not None and not rate.admitted:
        raise ThrottledRequestError("too many requests; `Retry-After` says when to go on", max(1, rate.wait))


class DisclosureRecorder:
    """Records disclosures of either interface."""

    def __init__(self, access_log: AccessLog, districts: GrantedDistricts, hasher: PersonHasher) -> None:
        self._access_log = access_log
        self._districts = districts
        self._hasher = hasher

    def record(self, caller: VendorCaller, disclosed: Disclosed) -> None:
        """Records what the response to a caller discloses.

        Raises RefusedRequestError (BUSY) if it cannot be recorded, and SQLAlchemyError if the database fails.
        """
        facts = get_request_facts()
        self._access_log.record(
            Disclosure(
                at=datetime.now(UTC),
                vendor_id=caller.vendor_id,
                caller=caller.caller,
                address=facts.address,
                method=facts.method,
                path=facts.path,
                scope=caller.short_scopes,
                districts=self._districts.find(caller.vendor_id, caller.grant_version),
                filter=disclosed.masked_filter,
                records=disclosed.records,
                people=self._hasher.hash_people(disclosed.people),
                parts=disclosed.parts,
                request_id=facts.id,
            )
        )
        facts.records = disclosed.records
