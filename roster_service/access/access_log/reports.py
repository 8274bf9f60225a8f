"""Reads the usage counters and the access log, for the command line."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import Connection, select

from roster_service.db.tables import audit, usage, vendors


@dataclass(frozen=True)
class UsageRow:
    """The requests of a vendor to an endpoint on one day, with one class of status (`2xx`)."""

    day: str
    vendor: str
    endpoint: str
    status: str
    requests: int
    records: int
    bytes: int


@dataclass(frozen=True)
class AccessLogRow:
    """A response that disclosed records. `vendor`: its e-mail; `at`: ISO 8601."""

    at: str
    vendor: str
    caller: str
    method: str
    path: str
    filter: str | None
    records: int
    request_id: str


def read_usage(connection: Connection, vendor_id: int | None, since: date | None) -> list[UsageRow]:
    """Lists the usage counters by day. `vendor_id`: None means all vendors; `since`: None means all days."""
    rows = select(usage, vendors.c.email).join(vendors, vendors.c.id == usage.c.vendor_id, isouter=True)
    if vendor_id is not None:
        rows = rows.where(usage.c.vendor_id == vendor_id)
    if since is not None:
        rows = rows.where(usage.c.day >= since)
    rows = rows.order_by(usage.c.day, vendors.c.email, usage.c.endpoint, usage.c.status_class)
    return [
        UsageRow(
            day=row.day.isoformat(),
            vendor=row.email or str(row.vendor_id),
            endpoint=row.endpoint,
            status=row.status_class,
            requests=row.requests,
            records=row.records,
            bytes=row.bytes,
        )
        for row in connection.execute(rows)
    ]


def read_access_log(connection: Connection, vendor_id: int | None, since: datetime | None) -> list[AccessLogRow]:
    """Lists the access log, oldest row first. `vendor_id`: None means all vendors; `since`: None means all rows."""
    rows = select(audit, vendors.c.email).join(vendors, vendors.c.id == audit.c.vendor_id, isouter=True)
    if vendor_id is not None:
        rows = rows.where(audit.c.vendor_id == vendor_id)
    if since is not None:
        rows = rows.where(audit.c.at >= since)
    return [
        AccessLogRow(
            at=row.at.isoformat(timespec="milliseconds"),
            vendor=row.email or str(row.vendor_id),
            caller=row.caller,
            method=row.method,
            path=row.path,
            filter=row.filter,
            records=row.records,
            request_id=row.request_id,
        )
        for row in connection.execute(rows.order_by(audit.c.at, audit.c.id))
    ]
