"""What an operator chooses for a file: the client whose rights it has, and its preset.

Apart from what makes files, so that a command which makes none does not import that.
"""

from __future__ import annotations

import sqlalchemy as sa

from roster_service.accounts.clients import Client, list_clients
from roster_service.accounts.vendors import find_vendor
from roster_service.db.tables import oauth_clients
from roster_service.errors import CommandError
from roster_service.schemas.file_presets import PRESETS, Preset
from roster_service.schemas.versions import Version


def require_preset(name: str) -> Preset:
    """Returns the preset with a name. Raises CommandError if there is none."""
    if name not in PRESETS:
        raise CommandError(f"there is no preset {name[:40]}; the presets are {', '.join(PRESETS)}")
    return PRESETS[name]


def choose_client(connection: sa.Connection, email: str, version: Version, client_id: str | None) -> Client:
    """Returns the client of a vendor with whose scopes a file is made: the one with this id, or the only one that has
    scopes of the version. Raises CommandError if there is none, or several and none is named."""
    vendor = find_vendor(connection, email)
    own = list_clients(connection, oauth_clients.c.vendor_id == vendor.id)
    able = [client for client in own if any(scope.startswith(f"{version.prefix}/") for scope in client.scopes)]
    found = [client for client in able if client_id in (None, client.client_id)]
    if not found:
        raise CommandError(
            f"{vendor.email} has no such client with scopes of {version.title}; `roster client add` adds one: "
            "a file has what its scopes open"
        )
    if len(found) > 1:
        named = ", ".join(f"{client.client_id} ({client.name})" for client in found)
        raise CommandError(f"{vendor.email} has several clients with scopes of {version.title}; name one: {named}")
    return found[0]
