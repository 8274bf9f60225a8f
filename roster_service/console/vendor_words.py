"""What the screens of vendors share: what a vendor may see, in words, and what stands above each page of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, timedelta

import sqlalchemy as sa

from roster_service.access_log.causes import NOTHING_FOUND
from roster_service.access_log.reports import RefusedRow, read_refused
from roster_service.accounts.clients import Client, list_clients
from roster_service.accounts.districts import DistrictName, list_named_districts
from roster_service.accounts.vendors import Vendor, find_vendor_by_id
from roster_service.console.filters import to_counted
from roster_service.console.visit import Visit
from roster_service.db.instants import find_today
from roster_service.db.tables import REFUSED_DAYS, oauth_clients
from roster_service.deliveries.accounts import CLOSED, FAILED, WAITING, Delivery, list_deliveries
from roster_service.explore.refusals import explain_refused

# The most names in a sentence.
MOST_NAMES = 3


@dataclass(frozen=True)
class VendorHead:
    """What stands above each page of a vendor. `files`: the sentence on its files that need a person, blank if none
    does."""

    vendor: Vendor
    files: str


@dataclass(frozen=True)
class DistrictAccess:
    """A district of which a vendor sees something. `granted`: the number of its granted schools, None for the whole
    district, 0 for none without rules; `schools`: how many it has; `ruled`: what grants with rules open, in words."""

    district_id: str
    name: str
    granted: int | None
    schools: int
    ruled: Sequence[str]

    @property
    def words(self) -> str:
        """The access, for people."""
        if self.granted is None:
            plain = [f"all of {self.name}"]
        elif self.granted or not self.ruled:
            plain = [f"{self.granted} of {to_counted(self.schools, 'school')} of {self.name}"]
        else:
            plain = []
        return "; ".join([*plain, *self.ruled])


def read_head(visit: Visit) -> VendorHead:
    """Reads the vendor of a page, and what stands above it. Raises CommandError if it is removed."""
    vendor = find_vendor_by_id(visit.connection, visit.place["vendor"])
    return VendorHead(vendor, describe_files(list_deliveries(visit.connection, vendor=vendor.email)))


def list_own_clients(visit: Visit, vendor: Vendor) -> Sequence[Client]:
    """Returns the clients of a vendor."""
    return list_clients(visit.connection, oauth_clients.c.vendor_id == vendor.id)


def read_own_refused(visit: Visit, vendor: Vendor) -> Sequence[RefusedRow]:
    """Returns the requests of a vendor that were refused in the last days, by cause, the latest first."""
    return explain_refused(visit.connection, [row for row in _read_own(visit, vendor) if row.cause != NOTHING_FOUND])


def read_own_requests(visit: Visit, vendor: Vendor) -> tuple[Sequence[RefusedRow], Sequence[RefusedRow]]:
    """Returns the same, and the requests in these days whose filter found nothing."""
    rows = explain_refused(visit.connection, _read_own(visit, vendor))
    return [row for row in rows if row.cause != NOTHING_FOUND], [row for row in rows if row.cause == NOTHING_FOUND]


def _read_own(visit: Visit, vendor: Vendor) -> Sequence[RefusedRow]:
    return read_refused(visit.connection, vendor.id, find_today(UTC) - timedelta(days=REFUSED_DAYS - 1))


def describe_files(deliveries: Iterable[Delivery]) -> str:
    """Returns what is to be said of the files that need a person: those that wait, and those that were not sent; blank
    if there is none."""
    needing = [delivery for delivery in deliveries if delivery.needs]
    said = (
        (WAITING, "waits for approval", "wait for approval"),
        (FAILED, "could not be sent", "could not be sent"),
        (CLOSED, "of a disabled vendor or client cannot be sent", "of disabled vendors or clients cannot be sent"),
    )
    return " ".join(
        f"{to_counted(len(names), 'file')}{_name_few(names)} {one if len(names) == 1 else many}."
        for word, one, many in said
        if (names := [delivery.name for delivery in needing if delivery.word == word])
    )


def _name_few(names: Sequence[str]) -> str:
    """Returns names in brackets behind a blank, as long as a sentence has room for them; blank for more."""
    return f" ({', '.join(names)})" if len(names) <= MOST_NAMES else ""


def list_district_access(connection: sa.Connection, vendor: Vendor) -> Sequence[DistrictAccess]:
    """Returns the districts of which a vendor sees something."""
    return make_district_access(vendor, {item.sourcedId: item for item in list_named_districts(connection)})


def make_district_access(vendor: Vendor, named: Mapping[str, DistrictName]) -> Sequence[DistrictAccess]:
    """As `list_district_access`. `named`: the districts of the roster."""
    found: dict[str, DistrictAccess] = {}
    for item in vendor.grants:
        district = named.get(item.district_id)
        name = district.words if district else item.district_name or item.district_id
        before = found.get(item.district_id) or DistrictAccess(
            item.district_id, name, 0, district.schools if district else 0, ()
        )
        if item.rules is not None:
            ruled = f"of {item.school_name or item.school_id or name} only {item.rules.describe()}"
            found[item.district_id] = replace(before, ruled=(*before.ruled, ruled))
        else:
            is_whole = item.school_id is None or before.granted is None
            found[item.district_id] = replace(before, granted=None if is_whole else 1 + (before.granted or 0))
    return list(found.values())
