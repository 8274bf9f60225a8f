"""OAuth clients of vendors, as operators add, list and change them.

The functions work on a connection that the caller commits. Each change needs an actor, and is one row of the change
log.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from roster_service.accounts.vendors import END_OF_LINK, find_vendor
from roster_service.auth.credentials.secrets import (
    CLIENT_SECRET_PREFIX,
    derive_secret,
    hash_secret,
    make_client_id,
    make_salt,
    make_secret,
)
from roster_service.auth.scopes import Scope
from roster_service.change_log.actors import Actor, normalize_email, read_name
from roster_service.change_log.changes import State, Subject, Verb, recorded
from roster_service.db.tables import last_uses, oauth_clients, vendors
from roster_service.errors import CommandError
from roster_service.feeds.roster_state import begin_change_of_rights
from roster_service.roster.visible_orgs import advance_view, refresh_visible_orgs
from roster_service.schemas.versions import VERSIONS


@dataclass(frozen=True)
class Client:
    """An OAuth client of a vendor, without its secret. `vendor`: the vendor's e-mail; `scopes`: in short spelling;
    `oauth1`: whether it may sign requests."""

    client_id: str
    vendor: str
    name: str
    scopes: tuple[str, ...]
    enabled: bool
    oauth1: bool


@dataclass(frozen=True)
class Credentials:
    """A client's id and its secret in clear text, which the command shows once."""

    client_id: str
    client_secret: str
    scopes: tuple[str, ...]


def add_client(
    connection: sa.Connection,
    actor: Actor,
    email: str,
    name: str,
    scopes: Sequence[Scope],
    *,
    secret_key: str | None = None,
    expires_at: datetime | None = None,
) -> Credentials:
    """Adds an OAuth client with these scopes and returns its credentials. `secret_key`: of the service, for a client
    that may sign requests (OAuth 1.0a); its secret is derived from it. `expires_at`: the end of the secret.

    Raises CommandError for an unknown vendor, a name that is blank or too long, an empty list of scopes, and for a
    client that may sign requests and has no scope of a version that allows them.

    The order of the scopes matters: a token request that names no scope gets the scopes of the first one's version.
    """
    texts = _list_texts(scopes, signs=secret_key is not None)
    client_id = make_client_id()
    made = _make_client_secret(client_id, secret_key)
    with _recorded_client(connection, actor, Verb.CLIENT_ADD, client_id, normalize_email(email)):
        vendor = find_vendor(connection, email)
        row = {"client_id": client_id, "vendor_id": vendor.id, "name": read_name(name), "scopes": list(texts)}
        connection.execute(
            sa.insert(oauth_clients).values(
                **row, **made.stored, secret_expires_at=expires_at, floor=sa.func.next_stamp()
            )
        )
        refresh_visible_orgs(connection, vendor.id)
    return Credentials(client_id, made.secret, texts)


def _list_texts(scopes: Sequence[Scope], *, signs: bool) -> tuple[str, ...]:
    """Returns the scopes as a client has them. `signs`: whether it may sign requests. Raises CommandError if there is
    none, or none with which it may sign."""
    if not scopes:
        raise CommandError("a client needs at least one scope")
    allowing = {version.prefix: version.title for version in VERSIONS if version.allows_signatures}
    if signs and not any(scope.version in allowing for scope in scopes):
        raise CommandError(f"a client that signs its requests needs a scope of {' or '.join(allowing.values())}")
    return tuple(dict.fromkeys(scope.short for scope in scopes))


def _recorded_client(
    connection: sa.Connection, actor: Actor, verb: Verb, client_id: str, vendor: str
) -> AbstractContextManager[None]:
    """Records the change of a client that the block makes. `vendor`: the e-mail of its vendor."""

    def read_state() -> State:
        row = connection.execute(sa.select(oauth_clients).where(oauth_clients.c.client_id == client_id)).one_or_none()
        if row is None:
            return None
        return {
            "name": row.name,
            "scopes": row.scopes,
            "enabled": row.enabled,
            "oauth1": row.secret_salt is not None,
            "secret_expires_at": row.secret_expires_at and row.secret_expires_at.isoformat(),
            "previous_secret_ends_at": row.previous_secret_ends_at and row.previous_secret_ends_at.isoformat(),
        }

    return recorded(connection, actor, verb, Subject.of_client(client_id, vendor), read_state)


@dataclass(frozen=True)
class _ClientSecret:
    """A new secret in clear text, and the columns that the database stores of it."""

    secret: str
    stored: dict[str, Any]


def _make_client_secret(client_id: str, secret_key: str | None) -> _ClientSecret:
    if secret_key is None:
        secret = make_secret(CLIENT_SECRET_PREFIX)
        return _ClientSecret(secret, {"secret_hash": hash_secret(secret)})
    salt = make_salt()
    secret = derive_secret(secret_key, client_id, salt)
    return _ClientSecret(secret, {"secret_hash": hash_secret(secret), "secret_salt": salt})


def list_clients(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> list[Client]:
    """Lists the clients for which all conditions hold, ordered by vendor and name."""
    columns = (vendors.c.email, oauth_clients)
    order = (vendors.c.email, oauth_clients.c.name, oauth_clients.c.client_id)
    listed = sa.select(*columns).select_from(oauth_clients.join(vendors)).where(*conditions).order_by(*order)
    return [
        Client(row.client_id, row.email, row.name, tuple(row.scopes), row.enabled, row.secret_salt is not None)
        for row in connection.execute(listed)
    ]


def find_listed_client(connection: sa.Connection, client_id: str) -> Client:
    """Returns the client with this id, also a disabled one. Raises CommandError if there is none."""
    found = list_clients(connection, oauth_clients.c.client_id == client_id)
    if not found:
        raise CommandError(f"there is no client {client_id}; `roster client list` shows all")
    return found[0]


def may_sign(connection: sa.Connection, client_id: str) -> bool:
    """Returns whether a client may sign requests; False for an unknown one."""
    found = sa.select(oauth_clients.c.secret_salt).where(oauth_clients.c.client_id == client_id)
    return connection.scalar(found) is not None


def rotate_secret(
    connection: sa.Connection,
    actor: Actor,
    client_id: str,
    grace: timedelta,
    *,
    secret_key: str | None = None,
    expires_at: datetime | None = None,
) -> Credentials:
    """Replaces a client's secret and returns the new one. `secret_key`: of the service; a client that may sign requests
    needs it. `expires_at`: the end of the new secret. Raises CommandError for an unknown client.

    The old secret stays valid for `grace`, but not beyond its own end, and its tokens stay valid. With a grace of zero,
    the old secret and its tokens end at once, and so does a link that nobody has used. A secret that an earlier call
    has replaced ends in any case.
    """
    if secret_key is None and may_sign(connection, client_id):
        raise ValueError("the secret of a client that may sign requests is derived from the secret key")
    made = _make_client_secret(client_id, secret_key)
    old: dict[str, Any] = {**_NO_OLD_SECRET, **_NEXT_VERSION, "link_ends_at": END_OF_LINK}
    if grace:
        old = {
            "previous_secret_hash": oauth_clients.c.secret_hash,
            "previous_secret_salt": oauth_clients.c.secret_salt,
            # LEAST leaves out NULL.
            "previous_secret_ends_at": sa.func.least(sa.func.now() + grace, oauth_clients.c.secret_expires_at),
        }
    old["secret_expires_at"] = expires_at
    scopes = _change_client(connection, actor, Verb.CLIENT_ROTATE_SECRET, client_id, {**made.stored, **old})
    return Credentials(client_id, made.secret, scopes)


def end_old_secret(connection: sa.Connection, actor: Actor, client_id: str) -> None:
    """Ends the secret that a newer one has replaced, with the tokens of the client. Raises CommandError for an unknown
    client, and for one without such a secret."""
    find_listed_client(connection, client_id)
    is_valid = sa.select(oauth_clients.c.previous_secret_ends_at > sa.func.now())
    if not connection.scalar(is_valid.where(oauth_clients.c.client_id == client_id)):
        raise CommandError(f"{client_id} has no secret beside its present one")
    _change_client(connection, actor, Verb.CLIENT_END_OLD_SECRET, client_id, {**_NO_OLD_SECRET, **_NEXT_VERSION})


def change_link(connection: sa.Connection, actor: Actor, client_id: str, link_hash: bytes, ends_at: datetime) -> None:
    """Replaces the link with which the vendor makes the secret of a client (`secret_links.py`). Raises CommandError for
    an unknown client, for one that signs requests, whose secret is derived from the secret key, and for one that is
    disabled, or its vendor, and for one whose vendor's agreement has ended."""
    client = find_listed_client(connection, client_id)
    if not client.enabled:
        raise CommandError(f"{client.name} is disabled, so nobody could use the link; enable it first")
    vendor = find_vendor(connection, client.vendor)
    if not vendor.enabled:
        raise CommandError(f"{vendor.email} is disabled, so nobody could use the link; enable it first")
    if not vendor.takes_links:
        raise CommandError(f"{vendor.closed}, so nobody could use the link; save its next agreement first")
    if may_sign(connection, client_id):
        raise CommandError("no link makes the secret of a client that signs requests; make a new secret here")
    values = {"link_hash": link_hash, "link_ends_at": ends_at, "link_used_at": None, "link_used_from": None}
    _change_client(connection, actor, Verb.CLIENT_SEND_LINK, client_id, values)


def disable_client(connection: sa.Connection, actor: Actor, client_id: str) -> None:
    """Disables a client, and ends its tokens and a link that nobody has used. Raises CommandError for an unknown
    client."""
    changed = {"enabled": False, "link_ends_at": END_OF_LINK, **_NEXT_VERSION}
    _change_client(connection, actor, Verb.CLIENT_DISABLE, client_id, changed)


def enable_client(connection: sa.Connection, actor: Actor, client_id: str) -> None:
    """Enables a disabled client. Its older tokens, and a link of before, stay ended. Raises CommandError for an
    unknown client."""
    _change_client(connection, actor, Verb.CLIENT_ENABLE, client_id, {"enabled": True, **_NEXT_VERSION})


def change_scopes(connection: sa.Connection, actor: Actor, client_id: str, scopes: Sequence[Scope]) -> None:
    """Replaces the scopes of a client and ends its tokens; their order matters, as for `add_client`. Raises
    CommandError for an unknown client or an empty list of scopes."""
    texts = _list_texts(scopes, signs=may_sign(connection, client_id))
    client = find_listed_client(connection, client_id)
    begin_change_of_rights(connection)
    vendor = find_vendor(connection, client.vendor)
    changed: dict[str, Any] = {"scopes": list(texts), **_NEXT_VERSION}
    # A scope that is not agreed opens nothing.
    if {*vendor.limit_scopes(texts)} != {*vendor.limit_scopes(client.scopes)}:
        # Its copies are not kept right by deltas any more.
        changed["floor"] = sa.func.next_stamp()
    _change_client(connection, actor, Verb.CLIENT_SET_SCOPES, client_id, changed)
    refresh_visible_orgs(connection, vendor.id)
    # A client has no revision of its own.
    advance_view(connection, vendor.id)


def remove_client(connection: sa.Connection, actor: Actor, client_id: str) -> None:
    """Deletes a client, and so ends its tokens. The access log stays. Raises CommandError for an unknown client."""
    found = find_listed_client(connection, client_id)
    with _recorded_client(connection, actor, Verb.CLIENT_REMOVE, client_id, found.vendor):
        connection.execute(sa.delete(oauth_clients).where(oauth_clients.c.client_id == client_id))
        connection.execute(sa.delete(last_uses).where(last_uses.c.caller == client_id))


_NO_OLD_SECRET = {"previous_secret_hash": None, "previous_secret_salt": None, "previous_secret_ends_at": None}
# Tokens carry the client's version: a new version ends all of them.
_NEXT_VERSION = {"version": oauth_clients.c.version + 1}


def _change_client(
    connection: sa.Connection, actor: Actor, verb: Verb, client_id: str, values: dict[str, Any]
) -> tuple[str, ...]:
    """Changes columns of a client. Returns its scopes. Raises CommandError for an unknown client."""
    found = find_listed_client(connection, client_id)
    with _recorded_client(connection, actor, verb, client_id, found.vendor):
        connection.execute(sa.update(oauth_clients).where(oauth_clients.c.client_id == client_id).values(values))
    return found.scopes
