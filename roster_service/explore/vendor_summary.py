"""What a vendor is, in one sentence: what it sees of the roster, what it does not get, and what it did today."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import sqlalchemy as sa

from roster_service.access_log.reports import count_refused
from roster_service.accounts.credentials import list_credentials
from roster_service.accounts.districts import ACTIVE, SCHOOL
from roster_service.accounts.parts import PARTS, explain_nothing, list_received
from roster_service.accounts.vendors import Vendor
from roster_service.auth.scopes import make_content_rights
from roster_service.db.tables import orgs, users, visible_orgs
from roster_service.roster.visibility import VENDOR, Opened, record_is_open

# The parts whose lack a person asks for first.
_ASKED_FOR = ("names", "email", "guardians", "birthDate")


@dataclass(frozen=True)
class VendorSummary:
    """What a vendor sees and did. `schools`: active, and `ended`: those that are marked as deleted, which it sees until
    they are purged; `pupils`: active, whom its grants open; `lacks`: words for the parts that it does not
    get; `nothing`: why it gets nothing of people, None if it gets something; `used`: its last request with any
    credential, ISO 8601; `refused`: its requests of today, in UTC, that were refused."""

    schools: int
    ended: int
    pupils: int
    lacks: Sequence[str]
    nothing: str | None
    used: str | None
    refused: int


def summarize_vendor(connection: sa.Connection, vendor: Vendor) -> VendorSummary:
    """Returns the summary of a vendor."""
    seen = sa.select(sa.func.count()).select_from(visible_orgs.join(orgs, orgs.c.sourced_id == visible_orgs.c.org_id))
    schools = seen.where(visible_orgs.c.vendor_id == vendor.id, visible_orgs.c.shared, orgs.c.type == SCHOOL)
    rights = make_content_rights(frozenset(), frozenset(), None, has_rules=True)
    is_pupil = record_is_open(users, rights, Opened.STUDENT)
    pupils = sa.select(sa.func.count()).select_from(users).where(users.c.status == ACTIVE, is_pupil)
    received = list_received(connection)[vendor.email]
    used = [item.used_at for item in list_credentials(connection) if item.vendor == vendor.email and item.used_at]
    today = datetime.now(UTC).date()
    return VendorSummary(
        schools=connection.scalar(schools.where(orgs.c.status == ACTIVE)) or 0,
        ended=connection.scalar(schools.where(orgs.c.status != ACTIVE)) or 0,
        pupils=connection.scalar(pupils, {VENDOR.key: vendor.id}) or 0,
        lacks=[PARTS[name].lack for name in _ASKED_FOR if name not in received] if received else [],
        nothing=None if received else explain_nothing(vendor),
        used=max(used, default=None),
        refused=count_refused(connection, vendor.id, today),
    )
