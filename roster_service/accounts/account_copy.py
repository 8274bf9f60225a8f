"""The copy of a vendor's account: another district's paper with the same company is an account of its own."""

from __future__ import annotations

from dataclasses import astuple
from datetime import UTC, datetime

import sqlalchemy as sa

from roster_service.accounts.clients import add_client, list_clients
from roster_service.accounts.vendor_rights import change_withheld, set_flags
from roster_service.accounts.vendors import Vendor, add_vendor, change_allowance, end_keys, find_vendor
from roster_service.auth.scopes import read_scopes
from roster_service.change_log.actors import Actor
from roster_service.db.tables import oauth_clients
from roster_service.roster.withheld import WithheldField
from roster_service.schemas.flags import PermissionFlag


def copy_vendor(
    connection: sa.Connection, actor: Actor, email: str, new_email: str, name: str | None, secret_key: str
) -> Vendor:
    """Adds a vendor with the flags, the own list of withheld fields, the limits and the enabled clients of another one;
    their secrets have ended, so nobody gets anything before each has a new one. It has no grant, key, delivery and
    agreement. `name`: None for that of the other one; `secret_key`: of the service. Raises CommandError as
    `add_vendor`, and for an unknown vendor."""
    former = find_vendor(connection, email)
    add_vendor(connection, actor, new_email, name or former.name)
    made = find_vendor(connection, new_email)
    # Nobody is shown this one.
    end_keys(connection, made.id)
    if former.flags:
        set_flags(connection, actor, made.email, list(map(PermissionFlag, former.flags)))
    if former.own_withheld is not None:
        change_withheld(connection, actor, made.email, list(map(WithheldField, former.own_withheld)))
    if any(value is not None for value in (*astuple(former.allowance), *astuple(former.rostering))):
        change_allowance(connection, actor, made.email, former.allowance, former.rostering)
    for client in list_clients(connection, oauth_clients.c.vendor_id == former.id, oauth_clients.c.enabled):
        given = (connection, actor, made.email, client.name, read_scopes(client.scopes))
        add_client(*given, secret_key=secret_key if client.oauth1 else None, expires_at=datetime.now(UTC))
    return find_vendor(connection, new_email)
