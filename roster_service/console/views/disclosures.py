"""Disclosures: which records were shown to whom, and how much each vendor asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection

from roster_service.access.access_log.people import PersonHasher
from roster_service.access.access_log.reports import (
    AccessLogFilter,
    Unsearchable,
    UsageRow,
    count_unsearchable,
    read_access_log,
    read_usage,
)
from roster_service.access.vendors import list_vendors
from roster_service.console.list_pages import Paged, find_window, make_page
from roster_service.console.screen import Form, Screen
from roster_service.console.visit import Visit
from roster_service.db.actors import OperatorRole

# The days of the charts.
CHARTED_DAYS = 30


@dataclass(frozen=True)
class Disclosures:
    """The access log, newest row first. `vendors`: to choose from; `unsearchable`: with a person, the rows that do not
    tell whether they have the person."""

    vendors: Sequence[str]
    rows: Paged
    unsearchable: Unsearchable | None


@dataclass(frozen=True)
class VendorUsage:
    """The requests of a vendor. `by_day`: of each of the last days, the oldest first; `records`: in all these days;
    `statuses`: requests by class of status."""

    vendor: str
    by_day: Sequence[int]
    records: int
    statuses: Mapping[str, int]


@dataclass(frozen=True)
class Usage:
    """The usage of the last days: by vendor, and each counter. `since`: the first day."""

    since: str
    vendors: Sequence[VendorUsage]
    rows: Sequence[UsageRow]


def read_disclosures(visit: Visit) -> Disclosures:
    """Reads the page of the access log that the query string wants."""
    connection = visit.connection
    known = {it.email: it.id for it in list_vendors(connection)}
    vendor, person = visit.get("vendor"), visit.get("person")
    hasher = PersonHasher(visit.settings.read_secret_key())
    wanted = AccessLogFilter(
        # The number 0 is no vendor's: a name that is not known finds nothing.
        vendor_id=None if vendor is None else known.get(vendor, 0),
        since=visit.get_day("since"),
        caller=visit.get("caller"),
        address=visit.get("address"),
        scope=visit.get("scope"),
        district=visit.get("district"),
        person=None if person is None else hasher.hash_id(person),
    )
    found = read_access_log(connection, wanted, find_window(visit))
    unsearchable = None if person is None else count_unsearchable(connection, wanted, hasher.check)
    return Disclosures(list(known), make_page(visit, found), unsearchable)


def read_usage_page(visit: Visit) -> Usage:
    """Reads the usage counters of the last days."""
    return make_usage(visit.connection, datetime.now(UTC))


def make_usage(connection: Connection, now: datetime) -> Usage:
    """Returns the usage of the days that end with that of `now`, in UTC."""
    days = [(now - timedelta(days=back)).date() for back in reversed(range(CHARTED_DAYS))]
    rows = read_usage(connection, None, days[0])
    found = []
    for vendor in sorted({row.vendor for row in rows}):
        own = [row for row in rows if row.vendor == vendor]
        statuses: dict[str, int] = {}
        for row in own:
            statuses[row.status] = statuses.get(row.status, 0) + row.requests
        by_day = [sum(row.requests for row in own if row.day == day.isoformat()) for day in days]
        found.append(VendorUsage(vendor, by_day, sum(row.records for row in own), statuses))
    return Usage(days[0].isoformat(), found, rows)


_VIEWER = OperatorRole.VIEWER
SCREENS = (
    Screen(
        "disclosures", "/disclosures", "Disclosures", _VIEWER, read_disclosures, lambda it: it.rows.rows, "Disclosures"
    ),
    Screen("usage", "/disclosures/usage", "Usage", _VIEWER, read_usage_page, lambda it: it.rows, None),
)
FORMS: Sequence[Form] = ()
