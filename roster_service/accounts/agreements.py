"""Agreements: what a paper with a vendor allows it at most, and from when to when.

An agreement grants nothing. What a vendor gets is what is granted to it *and* agreed: `auth/agreed_rights.py` has the
flags, fields and scopes that count, `agreed_grants` the orgs, `find_agreement_refusal` the time. So no later grant,
default or restore goes beyond it. What its words open is stored with them: another version of the service, with a new
field or scope, opens nothing by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from roster_service.accounts.clients import list_clients
from roster_service.accounts.districts import DISTRICT, SCHOOL, require_org
from roster_service.accounts.parts import PARTS, list_received
from roster_service.accounts.vendors import Vendor, find_vendor, invalidate_tokens, list_vendors
from roster_service.auth.agreed_rights import has_ended
from roster_service.auth.scopes import ScopeName, shows_metadata
from roster_service.change_log.actors import Actor, normalize_email
from roster_service.change_log.changes import State, Subject, Verb, recorded
from roster_service.db.instants import begin_day, describe_instant
from roster_service.db.tables import agreements, oauth_clients, orgs, vendor_defaults, vendor_grants, vendors
from roster_service.errors import CommandError
from roster_service.feeds.roster_state import begin_change_of_rights
from roster_service.roster.person_parts import PART_OF, PersonPart
from roster_service.schemas.flags import PermissionFlag

# How long before its end somebody must know of it, in days.
NOTICE_DAYS = 30
_MOST_CHARACTERS = 2000
# A token has them.
_MOST_KEYS, _LONGEST_KEY = 30, 64
_OPTIONAL = frozenset({"address", "subcontractors", "link"})
# The time zones that the database knows: it names the days of a refusal.
_ZONES = sa.table("pg_timezone_names", sa.column("name", sa.Text))
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


@dataclass(frozen=True)
class SavedAgreement:
    """An agreement as it is saved. `ends`: what the vendor got before and gets no more, with the ways by which it got
    it, in phrases."""

    known: KnownAgreement
    ends: Sequence[str]


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


def list_always(connection: sa.Connection, vendor: Vendor) -> tuple[PersonPart, ...]:
    """Returns the elements that no right withholds from a vendor."""
    has_client = sa.exists().where(oauth_clients.c.vendor_id == vendor.id)
    return (_P.NAMES, _P.CLASSES) if connection.scalar(sa.select(has_client)) else (_P.NAMES,)


def set_agreement(connection: sa.Connection, actor: Actor, email: str, agreement: Agreement) -> Vendor:
    """Gives a vendor this agreement in place of its present one, also of one that has ended. If it gets something else
    then, its tokens end.

    Raises CommandError for an unknown vendor, district or school, an unknown element or one that is lacking, a blank or
    too long text, a time zone that the database does not know, days in the wrong order, and one that begins later while
    the present one holds.
    """
    begin_change_of_rights(connection)
    with _recorded(connection, actor, Verb.AGREEMENT_SET, email):
        vendor = find_vendor(connection, email)
        granted = _list_grants(connection, vendor)
        _check(connection, vendor, agreement)
        _require_no_gap(connection, vendor, agreement)
        row = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(agreement).items()}
        del row["first_day"], row["last_day"]
        row |= resolve_elements(agreement.elements, agreement.metadata_keys)
        row |= {"starts_at": agreement.starts_at, "ends_at": agreement.ends_at, "ended_at": None, "told_days": None}
        made = upsert(agreements).values(vendor_id=vendor.id, **row)
        # What was announced of this end is not announced again.
        announced = sa.case((agreements.c.ends_at == agreement.ends_at, agreements.c.told_days))
        saved = {**row, "told_days": announced}
        connection.execute(made.on_conflict_do_update(index_elements=[agreements.c.vendor_id], set_=saved))
        _end_tokens(connection, vendor, granted)
    return find_vendor(connection, email)


def save_agreement(connection: sa.Connection, actor: Actor, email: str, agreement: Agreement) -> SavedAgreement:
    """The same, with what ends by it: who only wants to see that rolls back."""
    former = find_vendor(connection, email)
    before = list_received(connection)[former.email]
    vendor = set_agreement(connection, actor, email, agreement)
    after, [known] = list_received(connection)[vendor.email], _list(connection, [vendor])
    lost = {name: [way for way in by if way not in after.get(name, ())] for name, by in before.items()}
    ends = [f"{PARTS[name].words}, by {', '.join(by)}" for name, by in lost.items() if by]
    keys = former.metadata_keys
    if agreement.metadata_keys and (keys is None or not {*keys} <= {*agreement.metadata_keys}):
        ends.append(f"`metadata` but for the keys {', '.join(agreement.metadata_keys)}")
    return SavedAgreement(known, ends)


def remove_agreement(connection: sa.Connection, actor: Actor, email: str) -> Vendor:
    """Takes the agreement of a vendor away. Then it gets all that is granted to it, without an end, unless agreements
    are required. Raises CommandError if it has none."""
    begin_change_of_rights(connection)
    with _recorded(connection, actor, Verb.AGREEMENT_REMOVE, email):
        vendor = find_vendor(connection, email)
        granted = _list_grants(connection, vendor)
        if not connection.execute(sa.delete(agreements).where(agreements.c.vendor_id == vendor.id)).rowcount:
            raise CommandError(f"{vendor.email} has no agreement")
        _end_tokens(connection, vendor, granted)
    return find_vendor(connection, email)


def require_agreements(connection: sa.Connection, actor: Actor, required: bool) -> list[Vendor]:
    """Sets whether a vendor without an agreement gets nothing. Returns the vendors without one."""

    def read_state() -> State:
        return {"required": is_required(connection)}

    with recorded(connection, actor, Verb.AGREEMENT_REQUIRE, Subject("service", "agreements"), read_state):
        connection.execute(sa.update(vendor_defaults).values(agreement_required=required))
    return list_lacking(connection)


def list_lacking(connection: sa.Connection) -> list[Vendor]:
    """Lists the vendors without an agreement."""
    return list_vendors(connection, ~sa.exists().where(agreements.c.vendor_id == vendors.c.id))


def is_required(connection: sa.Connection) -> bool:
    """Returns whether a vendor without an agreement gets nothing."""
    return bool(connection.scalar(sa.select(vendor_defaults.c.agreement_required)))


def find_agreement(connection: sa.Connection, vendor: Vendor) -> KnownAgreement | None:
    """Returns the agreement of a vendor; None if it has none."""
    return next(iter(_list(connection, [vendor])), None)


def list_agreements(connection: sa.Connection) -> list[KnownAgreement]:
    """Lists the agreements of all vendors, ordered by the e-mail of the vendor."""
    return _list(connection, list_vendors(connection))


def _list(connection: sa.Connection, listed: Sequence[Vendor]) -> list[KnownAgreement]:
    of_vendors = agreements.c.vendor_id.in_([vendor.id for vendor in listed])
    rows = {row.vendor_id: row for row in connection.execute(sa.select(agreements).where(of_vendors))}
    now, names = datetime.now(UTC), _read_names(connection)
    return [
        KnownAgreement(
            vendor_id=vendor.id,
            vendor=vendor.email,
            name=vendor.name,
            agreement=_read(rows[vendor.id]),
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


def _read(row: Any) -> Agreement:
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


def _list_grants(connection: sa.Connection, vendor: Vendor) -> Sequence[Any]:
    """The grants of a vendor that its agreement allows."""
    agreed = sa.func.agreed_grants(vendor.id).table_valued("id", "district_id", "school_id")
    return connection.execute(sa.select(agreed).order_by(*agreed.c)).all()


def _end_tokens(connection: sa.Connection, former: Vendor, granted: Sequence[Any]) -> None:
    """Updates what a vendor sees after a change of its agreement, and ends its tokens if it gets something else.
    `former`, `granted`: the vendor, and its grants that were agreed, before the change."""
    now = find_vendor(connection, former.email)
    clients = list_clients(connection, oauth_clients.c.vendor_id == now.id)
    rights = []
    for vendor in (former, now):
        scopes = [vendor.limit_scopes(client.scopes) for client in clients]
        keys = vendor.metadata_keys if shows_metadata(scope for held in scopes for scope in held) else None
        rights.append((vendor.open_flags, vendor.withheld, scopes, keys))
    # A vendor has deleted what it had when the agreement ended, as it promised: no delta brings that back.
    content_changed = rights[0] != rights[1] or former.not_agreed is not None
    # Of other orgs, the new visible orgs tell.
    if content_changed or granted != _list_grants(connection, now):
        invalidate_tokens(connection, now.id, content_changed=content_changed)


def _check(connection: sa.Connection, vendor: Vendor, agreement: Agreement) -> None:
    _check_texts(agreement)
    unknown = [name for name in agreement.elements if name not in PARTS]
    if unknown:
        raise CommandError(f"there is no element {unknown[0][:40]}; the elements are {', '.join(PARTS)}")
    lacking = [part.value for part in list_always(connection, vendor) if part not in agreement.elements]
    if lacking:
        raise CommandError(f"the elements lack {' and '.join(lacking)}: no right withholds that from this vendor")
    keyless = not agreement.metadata_keys and [name for name in agreement.elements if PARTS[name].is_metadata]
    if keyless:
        raise CommandError(f"the elements have {' and '.join(keyless)}: name the keys of `metadata` that are agreed")
    if not (agreement.districts or agreement.schools):
        raise CommandError("the agreement names no district and no school")
    for district_id in agreement.districts:
        require_org(connection, district_id, DISTRICT, None)
    for school_id in agreement.schools:
        require_org(connection, school_id, SCHOOL, None)
    known = sa.select(sa.exists().select_from(_ZONES).where(_ZONES.c.name == agreement.zone))
    if not connection.scalar(known):
        raise CommandError(f"the database knows no time zone {agreement.zone[:40]}")
    if agreement.last_day == date.max:
        raise CommandError(f"the last day of the agreement is at the latest {date.max - timedelta(days=1)}")
    # A time zone may have left a day out.
    if agreement.ends_at <= agreement.starts_at:
        raise CommandError("the last day of the agreement is before its first day, or there was no such day")


def _require_no_gap(connection: sa.Connection, vendor: Vendor, agreement: Agreement) -> None:
    """A vendor has one agreement, so the next one, saved ahead, would end the present one now."""
    holds = vendor.agreed_flags is not None and vendor.not_agreed is None
    now = connection.execute(sa.select(sa.func.clock_timestamp())).scalar_one()
    if holds and agreement.starts_at > now:
        raise CommandError(
            f"the present agreement of {vendor.email} holds, and until {agreement.first_day} the vendor would get "
            "nothing: save this one on that day, or, if it agrees to the same, with the first day of the present one"
        )


def _check_texts(agreement: Agreement) -> None:
    words = {name: text for name, text in asdict(agreement).items() if isinstance(text, str)}
    keys = agreement.metadata_keys
    if not all(0 < len(key) <= _LONGEST_KEY and key.isprintable() for key in keys) or len(keys) > _MOST_KEYS:
        raise CommandError(f"keys of metadata are at most {_MOST_KEYS}, of 1 to {_LONGEST_KEY} characters each")
    for name, text in words.items():
        if not text.strip() and name not in _OPTIONAL:
            raise CommandError(f"the agreement needs a {name}")
        if len(text) > _MOST_CHARACTERS or not text.isprintable():
            raise CommandError(f"the {name} is one line of at most {_MOST_CHARACTERS:,} characters")
    if agreement.link and not agreement.link.startswith("https://"):
        raise CommandError("the link to the paper begins with https://")


def _recorded(connection: sa.Connection, actor: Actor, verb: Verb, email: str) -> AbstractContextManager[None]:
    address = normalize_email(email)

    def read_state() -> State:
        rows = sa.select(agreements).join(vendors, vendors.c.id == agreements.c.vendor_id)
        row = connection.execute(rows.where(vendors.c.email == address)).one_or_none()
        return None if row is None else _read(row).list_values()

    return recorded(connection, actor, verb, Subject("agreement", address, vendor=address), read_state)
