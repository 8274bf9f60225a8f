"""The public list of vendors: who gets what of a district's people, for what, and until when.

It is a table of its own, which whoever changes rights writes anew in the same transaction, and each night: the process
that shows the page reads this table and nothing else. It has no number of anything: one of yesterday and one of today
would tell of a single pupil.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import sqlalchemy as sa

from roster_service.accounts.districts import ACTIVE, DISTRICT, SCHOOL
from roster_service.accounts.known_agreements import KnownAgreement, list_agreements
from roster_service.accounts.parts import NO_PART, PARTS, list_received
from roster_service.accounts.vendors import Vendor, list_vendors
from roster_service.change_log.actors import Actor
from roster_service.change_log.changes import State, Subject, Verb, recorded
from roster_service.db.instants import format_instant
from roster_service.db.tables import orgs, published_vendors, vendor_defaults, visible_orgs

# The member of a row's body that nobody is shown: the instant from which the agreement holds; null or absent for none.
_BEGIN = "starts_at"
_LOCK = sa.text(f"LOCK TABLE {published_vendors.name} IN EXCLUSIVE MODE")


@dataclass(frozen=True)
class PublishedVendor:
    """What the page says of a vendor of a district. `elements`: in plain words; `metadata`: the keys that the
    agreement names; `schools`: their names, empty for all of the district; the rest is of the agreement, blank without
    one; days are ISO 8601."""

    name: str
    elements: Sequence[str]
    metadata: Sequence[str]
    schools: Sequence[str]
    purpose: str
    since: str
    until: str
    contact: str
    address: str
    subcontractors: str
    deletion: str
    link: str


@dataclass(frozen=True)
class PublishedDistrict:
    """The page of a district."""

    id: str
    name: str
    vendors: Sequence[Mapping[str, Any]]


def set_published(connection: sa.Connection, actor: Actor, published: bool) -> None:
    """Sets whether there is such a page."""

    def read_state() -> State:
        return {"published": is_published(connection)}

    with recorded(connection, actor, Verb.AGREEMENT_PUBLISH, Subject("service", "transparency"), read_state):
        connection.execute(sa.update(vendor_defaults).values(published=published))
    publish(connection)


def is_published(connection: sa.Connection) -> bool:
    """Returns whether there is such a page."""
    return bool(connection.scalar(sa.select(vendor_defaults.c.published)))


def publish(connection: sa.Connection) -> None:
    """Writes the list as the rights are now, and as agreements that begin later will open them; none while there is no
    page. Call it as the last step of a transaction that changes rights."""
    wanted: Sequence[dict[str, Any]] = ()
    if is_published(connection):
        # Two changes at once: the second one writes what both have changed.
        connection.execute(_LOCK)
        wanted = _list_rows(connection)
    connection.execute(sa.delete(published_vendors))
    if wanted:
        connection.execute(sa.insert(published_vendors), [*wanted])


def _list_rows(connection: sa.Connection) -> Sequence[dict[str, Any]]:
    received = list_received(connection, ahead=True)
    agreed = {known.vendor: known for known in list_agreements(connection)}
    schools = _read_schools(connection)
    return [
        {
            "district_id": district_id,
            "vendor_id": vendor.id,
            "district": district,
            "body": {
                **asdict(_describe(vendor, names, [*received[vendor.email]], known)),
                _BEGIN: None if known is None else format_instant(known.agreement.starts_at),
            },
            "ends_at": None if known is None else known.agreement.ends_at,
        }
        for vendor in list_vendors(connection)
        if received[vendor.email]
        for known in (agreed.get(vendor.email),)
        for (district_id, district), names in schools.get(vendor.id, {}).items()
    ]


def _describe(
    vendor: Vendor, schools: Sequence[str], parts: Sequence[str], known: KnownAgreement | None
) -> PublishedVendor:
    said = None if known is None else known.agreement
    return PublishedVendor(
        name=vendor.name,
        elements=[PARTS[name].words for name in PARTS if name in parts] or [NO_PART],
        metadata=[] if said is None else said.metadata_keys,
        schools=schools,
        purpose="" if said is None else said.purpose,
        since="" if said is None else str(said.first_day),
        until="" if said is None else str(said.last_day),
        contact="" if said is None else said.contact,
        address="" if said is None else said.address,
        subcontractors="" if said is None else said.subcontractors,
        deletion="" if said is None else said.deletion,
        link="" if said is None else said.link,
    )


def _read_schools(connection: sa.Connection) -> Mapping[int, Mapping[tuple[str, str], Sequence[str]]]:
    """The districts that each vendor sees, by its number, each with the names of its schools; none for all of them, and
    for a district without an active school, which has people of its own."""
    district = orgs.alias()
    listed = sa.select(orgs.c.name, district.c.sourced_id, district.c.name.label("district"))
    listed = listed.join(district, district.c.sourced_id == orgs.c.district_id)
    listed = listed.where(orgs.c.type == SCHOOL, orgs.c.status == ACTIVE).order_by(district.c.name, orgs.c.name)
    seen = listed.add_columns(visible_orgs.c.vendor_id).where(
        visible_orgs.c.org_id == orgs.c.sourced_id, visible_orgs.c.shared
    )
    every: dict[str, list[str]] = {}
    for row in connection.execute(listed):
        every.setdefault(row.sourced_id, []).append(row.name)
    found: dict[int, dict[tuple[str, str], list[str]]] = {}
    for row in connection.execute(seen):
        found.setdefault(row.vendor_id, {}).setdefault((row.sourced_id, row.district), []).append(row.name)
    whole = sa.select(visible_orgs.c.vendor_id, orgs.c.sourced_id, orgs.c.name).where(
        visible_orgs.c.org_id == orgs.c.sourced_id,
        visible_orgs.c.shared,
        orgs.c.type == DISTRICT,
        orgs.c.status == ACTIVE,
    )
    for vendor_id, *district_of_vendor in connection.execute(whole):
        found.setdefault(vendor_id, {}).setdefault(tuple(district_of_vendor), [])
    return {
        vendor_id: {
            key: () if len(names) == len(every.get(key[0], ())) else names for key, names in of_districts.items()
        }
        for vendor_id, of_districts in found.items()
    }


def list_published(connection: sa.Connection) -> list[PublishedDistrict] | None:
    """Returns the page of each district, by name; None if there is no page. What has ended since it was written is left
    out, and so is what has not begun. `connection`: of a role that may read this table."""
    if not is_published(connection):
        return None
    now, begin = sa.func.clock_timestamp(), published_vendors.c.body[_BEGIN].astext.cast(sa.DateTime(timezone=True))
    holds = sa.func.coalesce(begin <= now, True) & sa.func.coalesce(published_vendors.c.ends_at > now, True)
    rows = connection.execute(sa.select(published_vendors, holds.label("holds"))).all()
    names = {row.district_id: row.district for row in rows}
    return [
        PublishedDistrict(
            district_id,
            name,
            sorted((_show(row.body) for row in rows if row.holds and row.district_id == district_id), key=_find_name),
        )
        for district_id, name in sorted(names.items(), key=lambda item: (item[1], item[0]))
    ]


def _show(body: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in body.items() if name != _BEGIN}


def _find_name(body: Mapping[str, Any]) -> str:
    return str(body["name"])
