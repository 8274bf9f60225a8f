"""The link with which a vendor makes the secret of its client itself, so that no secret goes by mail.

An operator sends the link. The database has a hash of its random part, and no secret of the client exists before the
vendor presses the button of the page. The page is served by the service, and the function
`use_secret_link` is all that its role may change of a client.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from roster_service.accounts.clients import change_link
from roster_service.auth.agreed_rights import find_refusal, has_ended
from roster_service.auth.credentials.secrets import CLIENT_SECRET_PREFIX, hash_secret, make_secret
from roster_service.change_log.actors import Actor
from roster_service.db.tables import oauth_clients, vendors

# The path at which the service takes the link; the console has no such route.
LINK_PATH = "/client-secrets"
DAYS = 7
_PREFIX = "link-"


@dataclass(frozen=True)
class SecretLink:
    """A link as its client has it. `used_at`: None while nobody has used it; `has_ended`: whether nobody can use it any
    more."""

    client_id: str
    client: str
    vendor: str
    scopes: tuple[str, ...]
    ends_at: str
    used_at: str | None
    used_from: str | None
    has_ended: bool


def make_link(connection: sa.Connection, actor: Actor, client_id: str) -> str:
    """Returns the token of a new link of a client; a former link ends. The present secret stays valid until somebody
    uses the link. Raises CommandError for an unknown client, one that signs requests, one that is disabled, and one
    whose agreement has ended."""
    token = make_secret(_PREFIX)
    ends_at = datetime.now(UTC) + timedelta(days=DAYS)
    change_link(connection, actor, client_id, hash_secret(token), ends_at)
    return token


def list_links(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> list[SecretLink]:
    """Lists the links of the clients for which all conditions hold."""
    now = datetime.now(UTC)
    of_vendor = (vendors.c.name.label("vendor"), vendors.c.enabled.label("vendor_enabled"))
    rows = sa.select(oauth_clients, *of_vendor, find_refusal(vendors.c.id).label("not_agreed"))
    rows = rows.join(vendors, vendors.c.id == oauth_clients.c.vendor_id)
    found = connection.execute(rows.where(oauth_clients.c.link_hash.is_not(None), *conditions))
    return [
        SecretLink(
            client_id=row.client_id,
            client=row.name,
            vendor=row.vendor,
            scopes=tuple(row.scopes),
            ends_at=row.link_ends_at.isoformat(timespec="seconds"),
            used_at=row.link_used_at and row.link_used_at.isoformat(timespec="seconds"),
            used_from=row.link_used_from,
            has_ended=row.link_ends_at <= now or not (row.enabled and row.vendor_enabled) or has_ended(row.not_agreed),
        )
        for row in found
    ]


def find_link(connection: sa.Connection, token: str) -> SecretLink | None:
    """Returns the link with a token; None if there is none."""
    return next(iter(list_links(connection, oauth_clients.c.link_hash == hash_secret(token))), None)


def describe_ended_links(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> str:
    """Returns which links have ended before anybody used them, of the clients for which all conditions hold; blank for
    none."""
    ended = [link.client for link in list_links(connection, *conditions) if link.has_ended and not link.used_at]
    if not ended:
        return ""
    if len(ended) == 1:
        return f"The link of {ended[0]}, which nobody has used, has ended; the vendor needs a new one."
    return f"The links of {', '.join(ended)}, which nobody has used, have ended; the vendor needs new ones."


def use_link(connection: sa.Connection, token: str, address: str | None) -> str | None:
    """Makes the secret of the client, and returns it; None, and makes none, if the link is unknown, was used or has
    ended. `address`: the network address of the vendor. The change log has the use."""
    secret = make_secret(CLIENT_SECRET_PREFIX)
    used = sa.func.use_secret_link(hash_secret(token), hash_secret(secret), address, type_=sa.Text)
    return None if connection.scalar(sa.select(used)) is None else secret
