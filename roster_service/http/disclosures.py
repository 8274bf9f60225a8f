"""Records the disclosure of the current request in the access log, before its response leaves."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from roster_service.auth.access_log.entries import Disclosure, GrantedDistricts, PersonHasher
from roster_service.auth.access_log.writer import AccessLog
from roster_service.http.request_facts import RequestingVendor, get_request_facts


class Disclosures:
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
        scope: str,
        grant_version: int,
        masked_filter: str | None,
    ) -> None:
        """Records that the response discloses so many records. `people`: the ids of those whose records these are;
        `scope`, `masked_filter`: as in `Disclosure`; `grant_version`: of the vendor's grants with which the records
        were read.

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
                request_id=facts.id,
            )
        )
        facts.records = records
