"""All vendors, and the form that adds one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from roster_service.accounts import vendors
from roster_service.accounts.credentials import list_credentials
from roster_service.accounts.districts import count_schools
from roster_service.accounts.parts import PARTS, explain_nothing, list_received
from roster_service.change_log.actors import OperatorRole
from roster_service.change_log.changes import Verb
from roster_service.console.list_pages import Paged, cut_page
from roster_service.console.screen import Form, Screen
from roster_service.console.vendor_forms import show_key
from roster_service.console.vendor_words import DistrictAccess, list_district_access
from roster_service.console.visit import Outcome, Submission, Visit
from roster_service.errors import CommandError


@dataclass(frozen=True)
class VendorRow:
    """A vendor in the list. `gets`: the words of the parts of people that it gets; `nothing`: why it gets none; `used`:
    its last request with any credential, None if there was none."""

    id: int
    name: str
    email: str
    enabled: bool
    districts: Sequence[DistrictAccess]
    gets: Sequence[str]
    nothing: str
    used: str | None


@dataclass(frozen=True)
class VendorList:
    """The vendors, a page of them."""

    vendors: Paged


def read_vendors(visit: Visit) -> VendorList:
    """Reads all vendors with their access in words."""
    connection = visit.connection
    numbers, received = count_schools(connection), list_received(connection)
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
            districts=list_district_access(vendor, numbers),
            gets=[PARTS[name].words for name in received[vendor.email]],
            nothing=explain_nothing(vendor),
            used=used.get(vendor.email),
        )
        for vendor in vendors.list_vendors(connection)
    ]
    return VendorList(cut_page(visit, rows))


def add_vendor(sent: Submission) -> Outcome:
    """Adds a vendor, and shows its API key and password."""
    email, name = sent.get("email"), sent.get("name")
    if email is None or name is None:
        raise CommandError("a vendor needs a name and an e-mail")
    with sent.change() as connection:
        login = vendors.add_vendor(connection, sent.actor, email, name)
        added = vendors.find_vendor(connection, email)
    return show_key(sent, added, f"Credentials of {added.name}", login.api_key, login.password)


SCREENS = (
    Screen("vendors", "/vendors", "Vendors", OperatorRole.VIEWER, read_vendors, lambda it: it.vendors.rows, "Vendors"),
)
FORMS = (Form("vendors", "add", Verb.VENDOR_ADD, add_vendor, None),)
