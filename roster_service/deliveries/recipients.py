"""Who was sent a file: it cannot be called back, so an operator who takes something back writes to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from roster_service.access_log.entries import PersonHasher
from roster_service.access_log.reports import AccessLogFilter, read_access_log
from roster_service.accounts.ways import FILE_METHOD
from roster_service.deliveries.accounts import list_deliveries

# What was sent, in `Recipient.describe`.
WITH_PERSON, FILES = "a file with this person", "files"


@dataclass(frozen=True)
class Recipient:
    """A vendor who was sent files. `last_at`: ISO 8601, of the last file; `contacts`: to whom to write."""

    vendor: str
    last_at: str
    contacts: Sequence[str]

    def describe(self, what: str) -> str:
        """Returns the recipient in words. `what`: what was sent."""
        return f"{self.vendor} was sent {what}, last at {self.last_at}: write to {' and '.join(self.contacts)}"


def list_recipients(connection: sa.Connection, sourced_id: str, secret_key: str) -> list[Recipient]:
    """Lists the vendors who were sent a file with this person, who may be gone by now. `secret_key`: of the service."""
    return _list_sent(
        connection, AccessLogFilter(method=FILE_METHOD, person=PersonHasher(secret_key).hash_id(sourced_id))
    )


def find_recipient(connection: sa.Connection, vendor_id: int) -> Recipient | None:
    """Returns a vendor as the recipient of its files; None if none was sent."""
    return next(iter(_list_sent(connection, AccessLogFilter(method=FILE_METHOD, vendor_id=vendor_id))), None)


def _list_sent(connection: sa.Connection, wanted: AccessLogFilter) -> list[Recipient]:
    """Lists the recipients of the files of which the access log has such rows."""
    last: dict[str, str] = {}
    for row in read_access_log(connection, wanted):
        last[row.vendor] = max(row.last_at, last.get(row.vendor, ""))
    contacts = {
        vendor: {one.contact for one in list_deliveries(connection, vendor=vendor)} or {vendor} for vendor in last
    }
    return [Recipient(vendor, at, sorted(contacts[vendor])) for vendor, at in sorted(last.items())]
