"""Who was sent a person in a file: a file cannot be called back, so an operator writes to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from roster_service.auth.access_log.people import PersonHasher
from roster_service.auth.access_log.reports import AccessLogFilter, read_access_log
from roster_service.deliveries.accounts import list_deliveries
from roster_service.deliveries.sender import METHOD


@dataclass(frozen=True)
class Recipient:
    """A vendor who was sent a person. `last_at`: ISO 8601, of the last file; `contacts`: to whom to write."""

    vendor: str
    last_at: str
    contacts: Sequence[str]

    @property
    def sentence(self) -> str:
        """The recipient in words."""
        who = " and ".join(self.contacts)
        return f"{self.vendor} was sent a file with this person, last at {self.last_at}: write to {who}"


def list_recipients(connection: sa.Connection, sourced_id: str, secret_key: str) -> list[Recipient]:
    """Lists the vendors who were sent a file with this person, who may be gone by now, as the access log has them.
    `secret_key`: of the service."""
    person = PersonHasher(secret_key).hash_id(sourced_id)
    last: dict[str, str] = {}
    for row in read_access_log(connection, AccessLogFilter(person=person)):
        if row.method == METHOD:
            last[row.vendor] = max(row.last_at, last.get(row.vendor, ""))
    contacts = {
        vendor: {one.contact for one in list_deliveries(connection, vendor=vendor)} or {vendor} for vendor in last
    }
    return [Recipient(vendor, at, sorted(contacts[vendor])) for vendor, at in sorted(last.items())]
