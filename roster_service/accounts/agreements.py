"""Changes of agreements: what a paper with a vendor allows it at most, and from when to when.

An agreement grants nothing. What a vendor gets is what is granted to it *and* agreed: `auth/agreed_rights.py` has the
flags, fields and scopes that count, `agreed_grants` the orgs, `find_agreement_refusal` the time. So no later grant,
default or restore goes beyond it. What its words open is stored with them: another version of the service, with a new
field or scope, opens nothing by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from roster_service.accounts.clients import list_clients
from roster_service.accounts.districts import DISTRICT, SCHOOL, require_org
from roster_service.accounts.known_agreements import (
    Agreement,
    KnownAgreement,
    find_agreement,
    is_required,
    list_agreements,
    list_lacking,
    read_agreement,
    resolve_elements,
)
from roster_service.accounts.parts import PARTS, list_received
from roster_service.accounts.vendors import Vendor, find_vendor, invalidate_tokens
from roster_service.auth.scopes import shows_metadata
from roster_service.change_log.actors import Actor, normalize_email
from roster_service.change_log.changes import State, Subject, Verb, recorded
from roster_service.db.tables import agreements, oauth_clients, vendor_defaults, vendors
from roster_service.errors import CommandError
from roster_service.feeds.roster_state import begin_change_of_rights
from roster_service.roster.person_parts import PersonPart

_MOST_CHARACTERS = 2000
# A token has them.
_MOST_KEYS, _LONGEST_KEY = 30, 64
_OPTIONAL = frozenset({"address", "subcontractors", "link"})
# The time zones that the database knows: it names the days of a refusal.
_ZONES = sa.table("pg_timezone_names", sa.column("name", sa.Text))


@dataclass(frozen=True)
class SavedAgreement:
    """An agreement as it is saved. `ends`: what the vendor got before and gets no more, with the ways by which it got
    it, in phrases."""

    known: KnownAgreement
    ends: Sequence[str]


def list_always(connection: sa.Connection, vendor: Vendor) -> tuple[PersonPart, ...]:
    """Returns the elements that no right withholds from a vendor."""
    has_client = sa.exists().where(oauth_clients.c.vendor_id == vendor.id)
    return (PersonPart.NAMES, PersonPart.CLASSES) if connection.scalar(sa.select(has_client)) else (PersonPart.NAMES,)


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


def save_agreement(
    connection: sa.Connection, actor: Actor, email: str, agreement: Agreement, *, shown_version: str | None = None
) -> SavedAgreement:
    """The same, with what ends by it: who only wants to see that rolls back. `shown_version`: of the agreement that the
    operator was shown, empty for none; None: it is saved whatever there is. Raises CommandError for another one."""
    begin_change_of_rights(connection)
    former = find_vendor(connection, email)
    present = find_agreement(connection, former)
    if shown_version not in (None, "" if present is None else present.agreement.version):
        raise CommandError("nothing was saved: the agreement has changed since this page was shown; look at it again")
    before = list_received(connection)[former.email]
    vendor = set_agreement(connection, actor, email, agreement)
    after, [known] = list_received(connection)[vendor.email], list_agreements(connection, [vendor])
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
        return None if row is None else read_agreement(row).list_values()

    return recorded(connection, actor, verb, Subject("agreement", address, vendor=address), read_state)
