"""The people who are kept from a vendor, as by a restraining order: it sees no record and no reference of theirs.

Nobody else's records change. The vendor loses the person by departures for it alone, and gets the person back with a
stamp for it alone. Only where the person teaches does it read everything anew: the stamps of the students of a class do
not tell who taught it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from roster_service.accounts.vendors import invalidate_tokens, lock_vendor
from roster_service.auth.agreed_rights import find_rights, read_rights
from roster_service.auth.scopes import ScopeName, read_scopes
from roster_service.db.tables import (
    CText,
    CTexts,
    demographics,
    departures,
    enrollments,
    group_members,
    kept_people,
    oauth_clients,
    user_agents,
    users,
    vendor_grants,
    vendors,
)
from roster_service.feeds.roster_state import begin_change_of_rights
from roster_service.feeds.sharing_groups import find_departure, store_departures
from roster_service.roster.references import PERSONS
from roster_service.roster.stamps import make_next_stamp
from roster_service.roster.visibility import VENDOR, ContentRights, Viewer, user_is_visible
from roster_service.roster.visible_orgs import refresh_visible_orgs
from roster_service.schemas.flags import PermissionFlag


@dataclass(frozen=True)
class KeptPerson:
    """A person who is kept from a vendor. `vendor`: its e-mail."""

    sourced_id: str
    vendor: str
    vendor_id: int
    since: datetime


def list_kept(
    connection: sa.Connection, *, sourced_id: str | None = None, vendor_id: int | None = None
) -> list[KeptPerson]:
    """Lists the people who are kept from vendors, by id and e-mail. `sourced_id`, `vendor_id`: only of this person,
    only from this vendor."""
    found = sa.select(kept_people.c.user_id, vendors.c.email, vendors.c.id, kept_people.c.since)
    found = found.join(vendors, vendors.c.id == kept_people.c.vendor_id).where(kept_people.c.until.is_(None))
    if sourced_id is not None:
        found = found.where(kept_people.c.user_id == sourced_id)
    if vendor_id is not None:
        found = found.where(kept_people.c.vendor_id == vendor_id)
    return [KeptPerson(*row) for row in connection.execute(found.order_by(kept_people.c.user_id, vendors.c.email))]


def keep_from_vendor(connection: sa.Connection, vendor_id: int, sourced_id: str) -> None:
    """Keeps a person from a vendor, from the next request on. Older tokens of the vendor end."""
    stamp = _begin(connection, vendor_id, sourced_id)
    key = sa.select(vendors.c.visibility_key).where(vendors.c.id == vendor_id).scalar_subquery()
    named_by = _find_naming(connection, vendor_id, sourced_id)
    row = {"vendor_id": vendor_id, "user_id": sourced_id, "since": stamp, "named_by": named_by, "key": key}
    connection.execute(sa.insert(kept_people).values(row))
    _write_departures(connection, vendor_id, sourced_id, stamp)
    invalidate_tokens(connection, vendor_id)


def return_to_vendor(connection: sa.Connection, vendor_id: int, sourced_id: str) -> None:
    """Shows a vendor a person again, as its grants open the person."""
    stamp = _begin(connection, vendor_id, sourced_id)
    kept = (kept_people.c.vendor_id == vendor_id, kept_people.c.user_id == sourced_id, kept_people.c.until.is_(None))
    connection.execute(sa.update(kept_people).where(*kept).values(until=stamp))
    returned = (*kept[:2], kept_people.c.until == stamp)
    named_by = {"named_by": _find_naming(connection, vendor_id, sourced_id)}
    connection.execute(sa.update(kept_people).where(*returned).values(named_by))
    refresh_visible_orgs(connection, vendor_id)


def forget_kept(connection: sa.Connection, sourced_id: str) -> None:
    """Forgets from whom a person is and was kept, because the person is erased."""
    left = sa.func.array_remove(kept_people.c.named_by, sourced_id, type_=CTexts)
    connection.execute(
        sa.update(kept_people)
        .where(sa.literal(sourced_id, CText) == sa.any_(kept_people.c.named_by))
        .values(named_by=left)
    )
    gone = sa.delete(kept_people).where(kept_people.c.user_id == sourced_id).returning(kept_people.c.vendor_id)
    found = set(connection.scalars(gone))
    if found:
        begin_change_of_rights(connection)
        refresh_visible_orgs(connection, *found)


def _begin(connection: sa.Connection, vendor_id: int, sourced_id: str) -> datetime:
    """Waits for the end of the changes of the roster and of the vendor that are about to commit. Returns the stamp of
    the change."""
    # What a run that commits meanwhile shows the vendor would have no departure.
    begin_change_of_rights(connection)
    lock_vendor(connection, vendor_id)
    teaches = sa.exists().where(enrollments.c.user_id == sourced_id, enrollments.c.role == "teacher")
    moved = sa.update(vendors).where(vendors.c.id == vendor_id, teaches).values(floor=sa.func.next_stamp())
    connection.execute(moved)
    return make_next_stamp(connection)


def _find_naming(connection: sa.Connection, vendor_id: int, sourced_id: str) -> list[str]:
    """Returns the ids of the users who name a person as an agent, if the vendor may see the person; else the stamps of
    these users would tell of somebody whom they never showed."""
    clients = connection.scalars(sa.select(oauth_clients.c.scopes).where(oauth_clients.c.vendor_id == vendor_id))
    agreed = find_rights(connection.execute(sa.select(*read_rights()).where(vendors.c.id == vendor_id)).one())
    scopes = [scope.name for held in clients for scope in agreed.limit(read_scopes(held))]
    guardians = ScopeName.GUARDIANS in scopes or PermissionFlag.CONTACTS in agreed.flags
    rights = ContentRights(
        Viewer.RULED_VENDOR, guardians=guardians, metadata=frozenset(), metadata_keys=None, withheld=frozenset()
    )
    naming = sa.select(user_agents.c.user_id).where(
        user_agents.c.agent_id == sourced_id, user_is_visible(user_agents.c.agent_id, rights)
    )
    return list(connection.scalars(naming.distinct(), {VENDOR.key: vendor_id}))


def _write_departures(connection: sa.Connection, vendor_id: int, sourced_id: str, stamp: datetime) -> None:
    """Writes the departures of the records of a person, for the vendor alone; those for all have it in their own time,
    so what the vendor has not read yet is copied."""
    own_groups = sa.select(vendor_grants.c.id).where(vendor_grants.c.vendor_id == vendor_id)
    for table, person in PERSONS.items():
        values: dict[str, Any] = {
            "type": sa.literal(table.name, CText),
            "sourced_id": table.c.sourced_id,
            "feed_id": table.c.feed_id,
            "person_id": person,
            "departed_at": find_departure(table, stamp),
            "vendor_id": sa.literal(vendor_id),
        }
        kind = users if table is demographics else table
        by_label = sa.select(*values.values(), table.c.label_id).where(
            person == sourced_id, table.c.label_id.is_not(None)
        )
        by_group = sa.select(
            *values.values(), sa.literal(0), group_members.c.group_id, group_members.c.org_id, group_members.c.role
        ).where(
            person == sourced_id,
            group_members.c.type == kind.name,
            group_members.c.sourced_id == table.c.sourced_id,
            group_members.c.group_id.in_(own_groups),
        )
        store_departures(connection, [*values, "label_id"], by_label)
        store_departures(connection, [*values, "label_id", "group_id", "org_id", "role"], by_group)
    copied = [column for column in departures.c if column is not departures.c.vendor_id]
    former = sa.select(*copied, sa.literal(vendor_id)).where(
        departures.c.person_id == sourced_id, departures.c.vendor_id == 0
    )
    added = upsert(departures).from_select([*(column.name for column in copied), "vendor_id"], former)
    connection.execute(added.on_conflict_do_nothing())
