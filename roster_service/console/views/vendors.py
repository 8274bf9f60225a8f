"""All vendors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from roster_service.accounts import vendors
from roster_service.accounts.credentials import list_credentials
from roster_service.accounts.districts import list_named_districts
from roster_service.accounts.parts import PARTS, explain_nothing, list_received
from roster_service.change_log.actors import OperatorRole
from roster_service.console.list_pages import Paged, cut_page
from roster_service.console.screen import Form, Screen
from roster_service.console.vendor_words import DistrictAccess, make_district_access
from roster_service.console.visit import Visit
from roster_service.deliveries.accounts import list_deliveries


@dataclass(frozen=True)
class VendorRow:
    """A vendor in the list. `gets`: the words of the parts of people that it gets; `nothing`: why it gets none; `used`:
    its last request with a client or key that it has now, None if there was none; `files`: how many need a person."""

    id: int
    name: str
    email: str
    enabled: bool
    districts: Sequence[DistrictAccess]
    gets: Sequence[str]
    nothing: str
    used: str | None
    files: int


@dataclass(frozen=True)
class VendorList:
    """The vendors, a page of them. `count`: of all; `needing`: of those with files that need a person; `silent`: of
    those without a request as `used` has it; `disabled`."""

    vendors: Paged
    count: int
    needing: int
    silent: int
    disabled: int


def read_vendors(visit: Visit) -> VendorList:
    """Reads all vendors with their access in words."""
    connection = visit.connection
    received = list_received(connection)
    named = {item.sourcedId: item for item in list_named_districts(connection)}
    needing = Counter(delivery.vendor for delivery in list_deliveries(connection) if delivery.needs)
    used: dict[str, str] = {}
    for item in list_credentials(connection):
        if item.used_at is not None:
            used[item.vendor] = max(item.used_at, used.get(item.vendor, ""))
    rows = [
        VendorRow(
            id=vendor.id,
            name=vendor.name,
            email=vendor.email,
            enabled=vendor.enabled,
            districts=make_district_access(vendor, named),
            gets=[PARTS[name].words for name in received[vendor.email]],
            nothing=explain_nothing(vendor),
            used=used.get(vendor.email),
            files=needing[vendor.email],
        )
        for vendor in vendors.list_vendors(connection)
    ]
    return VendorList(
        vendors=cut_page(visit, rows),
        count=len(rows),
        needing=sum(row.files > 0 for row in rows),
        silent=sum(row.used is None for row in rows),
        disabled=sum(not row.enabled for row in rows),
    )


SCREENS = (
    Screen("vendors", "/vendors", "Vendors", OperatorRole.VIEWER, read_vendors, lambda it: it.vendors.rows, "Vendors"),
)
FORMS: Sequence[Form] = ()
