"""What agreements say, whether they hold, and what is granted beyond them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from typing import Any
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from roster_service.accounts.clients import list_clients
from roster_service.accounts.districts import DISTRICT, SCHOOL
from roster_service.accounts.parts import PARTS
from roster_service.accounts.vendors import Vendor, list_vendors
from roster_service.auth.agreed_rights import has_ended
from roster_service.auth.scopes import ScopeName
from roster_service.db.instants import begin_day, describe_instant
from roster_service.db.tables import agreements, oauth_clients, orgs, vendor_defaults, vendor_grants, vendors
from roster_service.roster.person_parts import PART_OF, PersonPart
from roster_service.schemas.flags import PermissionFlag

# How long before its end somebody must know of it, in days.
NOTICE_DAYS = 30
_P, _S, _F = PersonPart, ScopeName, PermissionFlag
_DEMOGRAPHICS = (_P.BIRTH_DATE, _P.SEX, _P.RACE, _P.BIRTH_PLACE, _P.RESIDENCE)
# A right -> what it shows and no withheld field hides: all of it must be agreed.
_NEEDED: Mapping[ScopeName | PermissionFlag, tuple[PersonPart, ...]] = {
    _S.CORE: (_P.NAMES, _P.CLASSES),
    _S.FULL: (_P.NAMES, _P.CLASSES),
    _S.ORGS_METADATA: (),
    _S.GUARDIANS: (_P.GUARDIANS,),
    _S.GUARDIANS_METADATA: (_P.GUARDIANS, _P.GUARDIAN_METADATA),
    _S.STUDENTS_METADATA: (_P.STUDENT_METADATA,),
    _S.DEMOGRAPHIC_METADATA: (_P.DEMOGRAPHIC_METADATA,),
    # Phone and sms of pupils, and their guardians with these.
    _F.CONTACTS: (_P.PHONE, _P.GUARDIANS),
    _F.ENROLLMENTS: (_P.CLASSES,),
}
# A right -> what withheld fields hide of it: some of it must be agreed.
_NEEDED_IN_PART: Mapping[ScopeName | PermissionFlag, tuple[PersonPart, ...]] = {
    _S.DEMOGRAPHICS: (*_DEMOGRAPHICS, _P.DEMOGRAPHIC_METADATA),
    _F.DEMOGRAPHICS: _DEMOGRAPHICS,
}


@dataclass(frozen=True)
class Agreement:
    """What a paper says. `elements`: names of `PARTS`; `districts`, `schools`: sourcedIds; `zone`: an IANA name, where
    its days begin and end; `first_day` and `last_day` are of it; `address`, `subcontractors`, `link`: blank for none;
    `metadata_keys`: those that the vendor may see of `metadata`."""

    title: str
    purpose: str
    elements: tuple[str, ...]
    districts: tuple[str, ...]
    schools: tuple[str, ...]
    zone: str
    first_day: date
    last_day: date
    contact: str
    deletion: str
    address: str = ""
    subcontractors: str = ""
    link: str = ""
    metadata_keys: tuple[str, ...] = ()

    def list_values(self) -> dict[str, Any]:
        """Returns the values by name, as JSON has them."""
        return {name: str(value) if isinstance(value, date) else value for name, value in asdict(self).items()}

    @property
    def version(self) -> str:
        """A word that no other agreement has."""
        return sha256(repr(self).encode()).hexdigest()

    @property
    def starts_at(self) -> datetime:
        """The instant from which it holds."""
        return begin_day(self.first_day, ZoneInfo(self.zone))

    @property
    def ends_at(self) -> datetime:
        """The instant from which it holds no more."""
        return begin_day(self.last_day + timedelta(days=1), ZoneInfo(self.zone))


@dataclass(frozen=True)
class KnownAgreement:
    """The agreement of a vendor. `refusal`: why it does not hold now, None while it does; `days_left`: whole days until
    its end, None if it has ended; `beyond`: what is granted to the vendor and not agreed, in phrases; `unsaved`: the
    rights that this version counts to the same elements, and that were not saved with it; `outlived`: those that were
    saved and count to none of them any more, but stay open; `places`: the districts and schools, by name and id."""

    vendor_id: int
    vendor: str
    name: str
    agreement: Agreement
    refusal: str | None
    days_left: int | None
    beyond: Sequence[str]
    unsaved: Sequence[str]
    outlived: Sequence[str]
    places: Sequence[str]

    @property
    def state(self) -> str:
        """Whether it holds, in words."""
        if self.refusal is not None:
            return f"it {self.refusal}: the vendor gets nothing"
        if not self.days_left:
            return "it holds, and this is its last day"
        return f"it holds, for {self.days_left:,} more {'day' if self.days_left == 1 else 'days'}"

    @property
    def review(self) -> str | None:
        """What to save again, because this version counts other rights to the elements; None for nothing."""
        changed = {"agree to": self.unsaved, "end": self.outlived}
        again = [f"to {what} {', '.join(rights)}" for what, rights in changed.items() if rights]
        return f"save it again {' and '.join(again)}" if again else None

    def list_facts(self) -> Mapping[str, str]:
        """Returns what it says, by a word for each."""
        said = self.agreement
        days = f"{said.first_day} to {said.last_day}, as days of {said.zone}"
        instants = " to ".join(describe_instant(at, UTC) for at in (said.starts_at, said.ends_at))
        return {
            "title": said.title,
            "purpose": said.purpose,
            "holds": f"{days} ({instants} UTC)",
            "state": self.state,
            "elements": ", ".join(PARTS[name].words for name in said.elements),
            **({"keys": ", ".join(said.metadata_keys)} if said.metadata_keys else {}),
            "places": ", ".join(self.places) or "nothing any more",
            "contact": said.contact,
            "deletion": said.deletion,
            "address": said.address or "none",
            "subcontractors": said.subcontractors or "none",
            "link": said.link or "none",
            "beyond": "; ".join(self.beyond) or "nothing is granted beyond it",
            **({"review": self.review} if self.review else {}),
        }


def resolve_elements(elements: Collection[str], metadata_keys: Collection[str]) -> dict[str, list[str]]:
    """Returns what elements and keys of metadata open: `fields`, `scopes` and `flags`, as the columns of the table."""
    rights = [right for right, needed in _NEEDED.items() if set(needed) <= set(elements)]
    rights = [right for right in rights if metadata_keys or right is not _S.ORGS_METADATA]
    rights += [right for right, needed in _NEEDED_IN_PART.items() if not set(needed).isdisjoint(elements)]
    return {
        "fields": [field.value for field, part in PART_OF.items() if part in elements],
        "scopes": [scope.value for scope in ScopeName if scope in rights],
        "flags": [flag.value for flag in PermissionFlag if flag in rights],
    }


def list_lacking(connection: sa.Connection) -> list[Vendor]:
    """Lists the vendors without an agreement."""
    return list_vendors(connection, ~sa.exists().where(agreements.c.vendor_id == vendors.c.id))


def is_required(connection: sa.Connection) -> bool:
    """Returns whether a vendor without an agreement gets nothing."""
    return bool(connection.scalar(sa.select(vendor_defaults.c.agreement_required)))


def find_agreement(connection: sa.Connection, vendor: Vendor) -> KnownAgreement | None:
    """Returns the agreement of a vendor; None if it has none."""
    return next(iter(list_agreements(connection, [vendor])), None)


def list_agreements(connection: sa.Connection, listed: Sequence[Vendor] | None = None) -> list[KnownAgreement]:
    """Lists the agreements of some vendors in their order; None: of all, ordered by e-mail."""
    listed = list_vendors(connection) if listed is None else listed
    of_vendors = agreements.c.vendor_id.in_([vendor.id for vendor in listed])
    rows = {row.vendor_id: row for row in connection.execute(sa.select(agreements).where(of_vendors))}
    now, names = datetime.now(UTC), _read_names(connection)
    return [
        KnownAgreement(
            vendor_id=vendor.id,
            vendor=vendor.email,
            name=vendor.name,
            agreement=read_agreement(rows[vendor.id]),
            refusal=vendor.not_agreed,
            days_left=None if has_ended(vendor.not_agreed) else (rows[vendor.id].ends_at - now).days,
            beyond=_list_beyond(connection, vendor, names),
            **_compare_rights(rows[vendor.id]),
            places=[
                *(f"all of {_name(names, place)}" for place in rows[vendor.id].districts),
                *(_name(names, place) for place in rows[vendor.id].schools),
            ],
        )
        for vendor in listed
        if vendor.id in rows
    ]


def _read_names(connection: sa.Connection) -> Mapping[str, str]:
    """The names of the districts and schools, by id."""
    named = sa.select(orgs.c.sourced_id, orgs.c.name).where(orgs.c.type.in_((DISTRICT, SCHOOL)))
    return {row.sourced_id: row.name for row in connection.execute(named)}


def _name(names: Mapping[str, str], org_id: str) -> str:
    return f"{names[org_id]} ({org_id})" if org_id in names else org_id


def read_agreement(row: Any) -> Agreement:
    """Returns what the row of an agreement says."""
    zone = ZoneInfo(row.zone)
    names = {field.name for field in fields(Agreement)}
    stored: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in row._asdict().items()
        if name in names
    }
    last_day = (row.ends_at - timedelta(milliseconds=1)).astimezone(zone).date()
    return Agreement(**stored, first_day=row.starts_at.astimezone(zone).date(), last_day=last_day)


def _compare_rights(row: Any) -> dict[str, list[str]]:
    """The rights that were saved beside those that this version counts to the same elements."""
    saved = [*row.fields, *row.scopes, *row.flags]
    counted = [right for rights in resolve_elements(row.elements, row.metadata_keys).values() for right in rights]
    return {
        "unsaved": [right for right in counted if right not in saved],
        "outlived": [right for right in saved if right not in counted],
    }


def _list_beyond(connection: sa.Connection, vendor: Vendor, names: Mapping[str, str]) -> list[str]:
    """What is granted to a vendor and not agreed, in phrases."""
    agreed = sa.func.agreed_grants(vendor.id).table_valued("id", "school_id")
    counted = sa.select(agreed.c.id, sa.func.count(agreed.c.school_id).label("schools")).group_by(agreed.c.id)
    opened: dict[int, int] = {row.id: row.schools for row in connection.execute(counted)}
    found = []
    given = sa.select(vendor_grants).where(vendor_grants.c.vendor_id == vendor.id).order_by(vendor_grants.c.id)
    for row in connection.execute(given):
        if row.id not in opened:
            found.append(f"the grant of {_name(names, row.school_id or row.district_id)} opens nothing")
        elif row.school_id is None and opened[row.id]:
            found.append(f"the grant of {_name(names, row.district_id)} opens only the schools that are agreed")
    found += [f"the flag {flag} does not count" for flag in vendor.flags if flag not in vendor.open_flags]
    for client in list_clients(connection, oauth_clients.c.vendor_id == vendor.id):
        lost = [scope for scope in client.scopes if scope not in vendor.limit_scopes(client.scopes)]
        if lost:
            found.append(f"the client {client.name} does not get {', '.join(lost)}")
    return found
