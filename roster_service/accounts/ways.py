"""The ways by which records can leave for a vendor: a secret that is valid, a link that nobody has used, a delivery
that is not stopped, an API key.

Whatever says what a vendor may get, or that nobody gets anything, asks this module, mostly by way of `parts.py`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

import sqlalchemy as sa

from roster_service.accounts.clients import Client, list_clients
from roster_service.accounts.credentials import CredentialKind, list_credentials
from roster_service.accounts.secret_links import list_links
from roster_service.accounts.vendors import Vendor, list_vendors
from roster_service.auth.agreed_rights import begins_later
from roster_service.auth.scopes import ScopeName, read_scopes
from roster_service.db.tables import deliveries, delivery_runs
from roster_service.schemas.file_presets import PRESETS, Preset
from roster_service.schemas.versions import VERSIONS, Version

STUDENTS_PATH = "/v1/students"
# The method of a file in the access log.
FILE_METHOD = "SFTP"
VENDOR_INTERFACE = f"POST {STUDENTS_PATH}"


class WayKind(StrEnum):
    """The kind of a way."""

    SECRET = "secret"  # noqa: S105  (a kind)
    LINK = "link"
    DELIVERY = "delivery"
    # Its receiver has no file of this content yet, and nobody has approved the first one.
    FIRST_FILE = "delivery whose first file waits"
    API_KEY = "api key"


@dataclass(frozen=True)
class Way:
    """A way that is open. `words`: for people, of no other way of its vendor that opens something else; `client`: whose
    scopes count, None for an API key; `delivery`: its name, and `preset`: what its files have; None for other ways."""

    kind: WayKind
    words: str
    client: Client | None = None
    delivery: str | None = None
    preset: Preset | None = None

    def list_names(self) -> Mapping[Version, frozenset[ScopeName]]:
        """Returns the scopes that count together, by version: a token has one, and so has a file."""
        held = read_scopes(() if self.client is None else self.client.scopes)
        versions = VERSIONS if self.preset is None else (self.preset.version,)
        found = {
            version: frozenset(scope.name for scope in held if scope.version == version.prefix) for version in versions
        }
        return {version: names for version, names in found.items() if names}


def list_ways(connection: sa.Connection, *, ahead: bool = False) -> Mapping[str, Sequence[Way]]:
    """Returns the open ways of each vendor, by its e-mail, each client with the scopes that its agreement allows. A
    disabled vendor has none, and neither has one whose agreement does not hold now, unless it begins later and `ahead`
    asks for what it opens then. Whether a way opens anything follows from scopes, flags and grants."""
    now, found = datetime.now(UTC), defaultdict[str, list[Way]](list)
    enabled = [credential for credential in list_credentials(connection) if credential.enabled]
    may_read = {credential.name for credential in enabled if credential.kind is CredentialKind.CLIENT_SECRET}
    valid = [credential for credential in enabled if not credential.has_ended(now)]
    secrets = {credential.name for credential in valid if credential.kind is CredentialKind.CLIENT_SECRET}
    links = {link.client_id for link in list_links(connection) if not (link.has_ended or link.used_at)}
    sending = _list_sending(connection)
    holding = {
        vendor.email: vendor
        for vendor in list_vendors(connection)
        if vendor.not_agreed is None or (ahead and begins_later(vendor.not_agreed))
    }
    clients = [client for client in list_clients(connection) if client.vendor in holding]
    same = Counter((client.vendor, client.name) for client in clients)
    for given in clients:
        client = replace(given, scopes=holding[given.vendor].limit_scopes(given.scopes))
        name = client.name if same[client.vendor, client.name] == 1 else f"{client.name} ({client.client_id})"
        own = found[client.vendor]
        if client.client_id in secrets:
            own.append(Way(WayKind.SECRET, name, client))
        if client.client_id in links:
            own.append(Way(WayKind.LINK, f"{name}, by a link that nobody has used", client))
        if client.client_id in may_read:
            files = (
                Way(kind, f"the delivery {delivery}", client, delivery, preset)
                for delivery, preset, kind in sending[client.client_id]
            )
            own += [way for way in files if way.list_names()]
    for email in dict.fromkeys(credential.vendor for credential in valid if credential.kind is CredentialKind.API_KEY):
        if email in holding:
            found[email].append(Way(WayKind.API_KEY, VENDOR_INTERFACE))
    return found


def _list_sending(connection: sa.Connection) -> Mapping[str, Sequence[tuple[str, Preset, WayKind]]]:
    """The names, presets and kinds of the deliveries that are not stopped, by client id."""
    found = defaultdict[str, list[tuple[str, Preset, WayKind]]](list)
    of_delivery = delivery_runs.c.delivery_id == deliveries.c.id
    latest = sa.select(delivery_runs.c.digest).where(of_delivery).order_by(delivery_runs.c.id.desc()).limit(1)
    is_approved = latest.scalar_subquery() == deliveries.c.approved_digest
    is_let_go = sa.or_(sa.exists().where(of_delivery, delivery_runs.c.uploaded_at >= deliveries.c.since), is_approved)
    listed = sa.select(
        deliveries.c.client_id, deliveries.c.name, deliveries.c.preset, is_let_go.label("is_let_go")
    ).where(~deliveries.c.stopped)
    for row in connection.execute(listed.order_by(deliveries.c.name)):
        if row.preset in PRESETS:
            kind = WayKind.DELIVERY if row.is_let_go else WayKind.FIRST_FILE
            found[row.client_id].append((row.name, PRESETS[row.preset], kind))
    return found


def explain_closed(client: Client, vendor: Vendor) -> str:
    """Returns why a client of a vendor without an open way has none, in words."""
    if vendor.closed is not None:
        return vendor.closed
    if not client.enabled:
        return "the client is disabled"
    return "the secret of the client has ended, and it has no link that waits and no delivery that goes on"
