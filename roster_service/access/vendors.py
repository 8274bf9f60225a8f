"""Vendors, their grants and their OAuth clients, as operators add, list and change them.

The functions work on a connection that the caller commits. Each change needs an actor, and is one row of the change
log.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from roster_service.access.credentials.api_keys import Allowance, IssuedKey, issue_key, rotate_key
from roster_service.access.credentials.passwords import set_password
from roster_service.access.credentials.secrets import (
    CLIENT_SECRET_PREFIX,
    derive_secret,
    hash_secret,
    make_client_id,
    make_password,
    make_salt,
    make_secret,
)
from roster_service.access.email_address import normalize_email, read_email
from roster_service.access.org_list import DISTRICT, SCHOOL, find_org
from roster_service.access.scopes import Scope, read_scopes
from roster_service.access.throttling.limits import RosteringAllowance, fill_allowance, fill_rostering_rate
from roster_service.db.actors import Actor
from roster_service.db.changes import State, Subject, Verb, recorded
from roster_service.db.tables import api_keys, last_uses, oauth_clients, orgs, vendor_grants, vendors, visible_orgs
from roster_service.db.visible_orgs import refresh_visible_orgs
from roster_service.errors import CommandError
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.versions import VERSIONS


@dataclass(frozen=True)
class Grant:
    """A whole district, or one school of it."""

    district_id: str
    school_id: str | None = None
    # The names, for people; None for an org that the roster no longer has.
    district_name: str | None = field(default=None, compare=False)
    school_name: str | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Vendor:
    """A vendor's account."""

    id: int
    name: str
    email: str
    enabled: bool
    grant_version: int
    grants: tuple[Grant, ...]
    flags: tuple[str, ...]
    allowance: Allowance
    rostering: RosteringAllowance


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


@dataclass(frozen=True)
class Login:
    """A new API key, its prefix, and the password that was made; None if the operator has given the password."""

    prefix: str
    api_key: str
    password: str | None


def _recorded(connection: Connection, actor: Actor, verb: Verb, email: str) -> AbstractContextManager[None]:
    """Records the change of a vendor that the block makes."""
    address = normalize_email(email)
    return recorded(connection, actor, verb, Subject.of_vendor(address), lambda: _read_state(connection, address))


def _read_state(connection: Connection, email: str) -> State:
    """Reads what the change log may tell of a vendor."""
    found = next((vendor for vendor in list_vendors(connection) if vendor.email == email), None)
    if found is None:
        return None
    keys = select(api_keys.c.prefix, api_keys.c.expires_at).where(api_keys.c.vendor_id == found.id)
    return {
        "name": found.name,
        "enabled": found.enabled,
        "grants": [[item.district_id, item.school_id] for item in found.grants],
        "flags": list(found.flags),
        "limits": asdict(found.allowance) | {f"rostering_{key}": it for key, it in asdict(found.rostering).items()},
        "keys": {row.prefix: row.expires_at and row.expires_at.isoformat() for row in connection.execute(keys)},
    }


def add_vendor(
    connection: Connection,
    actor: Actor,
    email: str,
    name: str,
    password: str | None = None,
    *,
    expires_at: datetime | None = None,
) -> Login:
    """Adds a vendor without grants, with an API key and a password. `password`: None to make one; `expires_at`: the end
    of the API key.

    Raises CommandError if the e-mail is not an address, or is taken, or the password is too short or too long.
    """
    address = read_email(email)
    with _recorded(connection, actor, Verb.VENDOR_ADD, address):
        added = connection.execute(
            upsert(vendors).values(email=address, name=name).on_conflict_do_nothing().returning(vendors.c.id)
        ).one_or_none()
        if added is None:
            raise CommandError(f"there is a vendor {address} already")
        refresh_visible_orgs(connection, added.id)
        made = make_password()
        set_password(connection, added.id, made if password is None else password)
        key = issue_key(connection, added.id, expires_at)
    return Login(key.prefix, key.api_key, made if password is None else None)


def find_vendor(connection: Connection, email: str) -> Vendor:
    """Returns the vendor with this e-mail. Raises CommandError if there is none."""
    found = [vendor for vendor in list_vendors(connection) if vendor.email == normalize_email(email)]
    if not found:
        raise CommandError(f"there is no vendor {email}; `roster vendor list` shows all")
    return found[0]


def list_vendors(connection: Connection) -> list[Vendor]:
    """Lists all vendors with their grants, ordered by e-mail."""
    grants: dict[int, list[Grant]] = {}
    district, school = orgs.alias(), orgs.alias()
    named = (
        select(vendor_grants, district.c.name.label("district_name"), school.c.name.label("school_name"))
        .outerjoin(district, district.c.sourced_id == vendor_grants.c.district_id)
        .outerjoin(school, school.c.sourced_id == vendor_grants.c.school_id)
    )
    for row in connection.execute(named.order_by(vendor_grants.c.district_id, vendor_grants.c.school_id)):
        grant = Grant(row.district_id, row.school_id, row.district_name, row.school_name)
        grants.setdefault(row.vendor_id, []).append(grant)
    return [
        Vendor(
            id=row.id,
            name=row.name,
            email=row.email,
            enabled=row.enabled,
            grant_version=row.grant_version,
            grants=tuple(grants.get(row.id, ())),
            flags=tuple(row.flags),
            allowance=Allowance(row.requests_per_second, row.burst, row.requests_per_day),
            rostering=RosteringAllowance(row.rostering_per_second, row.rostering_burst, row.rostering_at_once),
        )
        for row in connection.execute(select(vendors).order_by(vendors.c.email))
    ]


def grant(
    connection: Connection,
    actor: Actor,
    email: str,
    district: str | None,
    schools: Sequence[str],
    flags: Sequence[PermissionFlag] = (),
) -> Vendor:
    """Grants a vendor a district, or only the schools `schools` of it, and permission flags. `district`: None to grant
    flags alone. Older tokens of the vendor end.

    `district` and `schools` are sourcedIds, identifiers or unique names. Raises CommandError for an unknown vendor,
    district or school, and for a school of another district.
    """
    with _recorded(connection, actor, Verb.VENDOR_GRANT, email):
        vendor = find_vendor(connection, email)
        if district is not None:
            district_id = find_org(connection, district, DISTRICT, None)
            wanted: list[str | None] = [find_org(connection, school, SCHOOL, district_id) for school in schools]
            for school_id in wanted or [None]:
                row = {"vendor_id": vendor.id, "district_id": district_id, "school_id": school_id}
                connection.execute(upsert(vendor_grants).values(row).on_conflict_do_nothing())
        _set_flags(connection, vendor, {*vendor.flags, *flags})
        invalidate_tokens(connection, vendor.id)
    return find_vendor(connection, email)


def revoke(
    connection: Connection, actor: Actor, email: str, district: str | None, flags: Sequence[PermissionFlag] = ()
) -> Vendor:
    """Revokes every grant of a district and its schools, and permission flags. `district`: None to revoke flags alone.
    Older tokens of the vendor end.

    `district` is a sourcedId, an identifier or a unique name. Raises CommandError if the vendor has no grant of the
    district.
    """
    with _recorded(connection, actor, Verb.VENDOR_REVOKE, email):
        vendor = find_vendor(connection, email)
        if district is not None:
            _revoke_district(connection, vendor, district)
        _set_flags(connection, vendor, {*vendor.flags} - {*flags})
        invalidate_tokens(connection, vendor.id)
    return find_vendor(connection, email)


def _revoke_district(connection: Connection, vendor: Vendor, district: str) -> None:
    known = [item.district_id for item in vendor.grants]
    # The roster may no longer have the district.
    district_id = district if district in known else find_org(connection, district, DISTRICT, None)
    if district_id not in known:
        raise CommandError(f"{vendor.email} has no grant of district {district}")
    own = vendor_grants.c.vendor_id == vendor.id
    connection.execute(delete(vendor_grants).where(own, vendor_grants.c.district_id == district_id))


def _set_flags(connection: Connection, vendor: Vendor, flags: set[str]) -> None:
    connection.execute(update(vendors).where(vendors.c.id == vendor.id).values(flags=sorted(flags)))


def change_allowance(
    connection: Connection, actor: Actor, email: str, allowance: Allowance, rostering: RosteringAllowance
) -> Vendor:
    """Sets the limits of a vendor on the vendor and on the rostering interface; None means the default.

    Raises CommandError if a burst is not a multiple of the requests a second: the window of a burst is that quotient,
    in whole seconds.
    """
    with _recorded(connection, actor, Verb.VENDOR_LIMITS, email):
        vendor = find_vendor(connection, email)
        for rate, burst in (fill_allowance(allowance)[:2], fill_rostering_rate(rostering)):
            if burst % rate:
                raise CommandError(
                    f"the burst must be a multiple of the requests a second; {burst} is no multiple of {rate}"
                )
        values = {
            **asdict(allowance),
            "rostering_per_second": rostering.requests_per_second,
            "rostering_burst": rostering.burst,
            "rostering_at_once": rostering.at_once,
        }
        connection.execute(update(vendors).where(vendors.c.id == vendor.id).values(values))
    return find_vendor(connection, email)


def set_vendor_enabled(connection: Connection, actor: Actor, email: str, enabled: bool) -> Vendor:
    """Enables or disables a vendor, and with it all its clients. Older tokens of the vendor end."""
    with _recorded(connection, actor, Verb.VENDOR_ENABLE if enabled else Verb.VENDOR_DISABLE, email):
        vendor = find_vendor(connection, email)
        connection.execute(update(vendors).where(vendors.c.id == vendor.id).values(enabled=enabled))
        invalidate_tokens(connection, vendor.id)
    return find_vendor(connection, email)


def change_password(connection: Connection, actor: Actor, email: str, password: str | None) -> str | None:
    """Replaces the password of a vendor, and ends its tokens. `password`: None to make one, which is returned.

    Raises CommandError for an unknown vendor, and for a password that is too short or too long.
    """
    made = make_password()
    with _recorded(connection, actor, Verb.VENDOR_SET_PASSWORD, email):
        vendor = find_vendor(connection, email)
        set_password(connection, vendor.id, made if password is None else password)
        invalidate_tokens(connection, vendor.id)
    return made if password is None else None


def replace_key(
    connection: Connection, actor: Actor, email: str, grace: timedelta, *, expires_at: datetime | None = None
) -> IssuedKey:
    """Gives a vendor a new API key, with the end `expires_at`; its other keys end after `grace`. Raises CommandError
    for an unknown vendor."""
    with _recorded(connection, actor, Verb.VENDOR_ROTATE_KEY, email):
        return rotate_key(connection, find_vendor(connection, email).id, grace, expires_at)


def remove_vendor(connection: Connection, actor: Actor, email: str) -> None:
    """Deletes a vendor with its grants, clients and API keys, and so ends its tokens. The access log stays. Raises
    CommandError for an unknown vendor."""
    with _recorded(connection, actor, Verb.VENDOR_REMOVE, email):
        vendor = find_vendor(connection, email)
        connection.execute(delete(visible_orgs).where(visible_orgs.c.vendor_id == vendor.id))
        connection.execute(delete(last_uses).where(last_uses.c.vendor_id == vendor.id))
        connection.execute(delete(vendors).where(vendors.c.id == vendor.id))


def invalidate_tokens(connection: Connection, vendor_id: int) -> None:
    """Ends every token of the vendor, of both interfaces, and updates the vendor's visible orgs."""
    renewed = {"grant_version": vendors.c.grant_version + 1, "visibility_key": func.gen_random_uuid()}
    connection.execute(update(vendors).where(vendors.c.id == vendor_id).values(renewed))
    refresh_visible_orgs(connection, vendor_id)


# --- OAuth clients -----------------------------------------------------------------------------------------------


def add_client(
    connection: Connection,
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

    Raises CommandError for an unknown vendor, an empty list of scopes, and for a client that may sign requests and has
    no scope of a version that allows them.

    The order of the scopes matters: a token request that names no scope gets the scopes of the first one's version.
    """
    texts = _list_texts(scopes, signs=secret_key is not None)
    client_id = make_client_id()
    made = _make_client_secret(client_id, secret_key)
    with _recorded_client(connection, actor, Verb.CLIENT_ADD, client_id, normalize_email(email)):
        vendor = find_vendor(connection, email)
        row = {"client_id": client_id, "vendor_id": vendor.id, "name": name, "scopes": list(texts), **made.stored}
        connection.execute(insert(oauth_clients).values(**row, secret_expires_at=expires_at))
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
    connection: Connection, actor: Actor, verb: Verb, client_id: str, vendor: str
) -> AbstractContextManager[None]:
    """Records the change of a client that the block makes. `vendor`: the e-mail of its vendor."""

    def read_state() -> State:
        row = connection.execute(select(oauth_clients).where(oauth_clients.c.client_id == client_id)).one_or_none()
        return (
            None
            if row is None
            else {
                "name": row.name,
                "scopes": row.scopes,
                "enabled": row.enabled,
                "oauth1": row.secret_salt is not None,
                "secret_expires_at": row.secret_expires_at and row.secret_expires_at.isoformat(),
                "previous_secret_ends_at": row.previous_secret_ends_at and row.previous_secret_ends_at.isoformat(),
            }
        )

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


def list_clients(connection: Connection) -> list[Client]:
    """Lists all clients, ordered by vendor and name."""
    columns = (vendors.c.email, oauth_clients)
    order = (vendors.c.email, oauth_clients.c.name, oauth_clients.c.client_id)
    rows = connection.execute(select(*columns).select_from(oauth_clients.join(vendors)).order_by(*order))
    return [
        Client(row.client_id, row.email, row.name, tuple(row.scopes), row.enabled, row.secret_salt is not None)
        for row in rows
    ]


def find_listed_client(connection: Connection, client_id: str) -> Client:
    """Returns the client with this id, also a disabled one. Raises CommandError if there is none."""
    found = next((client for client in list_clients(connection) if client.client_id == client_id), None)
    if found is None:
        raise CommandError(f"there is no client {client_id}; `roster client list` shows all")
    return found


def may_sign(connection: Connection, client_id: str) -> bool:
    """Returns whether a client may sign requests; False for an unknown one."""
    found = select(oauth_clients.c.secret_salt).where(oauth_clients.c.client_id == client_id)
    return connection.scalar(found) is not None


def rotate_secret(
    connection: Connection,
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
    the old secret and its tokens end at once. A secret that an earlier call has replaced ends in any case.
    """
    if secret_key is None and may_sign(connection, client_id):
        raise ValueError("the secret of a client that may sign requests is derived from the secret key")
    made = _make_client_secret(client_id, secret_key)
    old: dict[str, Any] = {
        "previous_secret_hash": None,
        "previous_secret_salt": None,
        "previous_secret_ends_at": None,
        **_NEXT_VERSION,
    }
    if grace:
        old = {
            "previous_secret_hash": oauth_clients.c.secret_hash,
            "previous_secret_salt": oauth_clients.c.secret_salt,
            # LEAST leaves out NULL.
            "previous_secret_ends_at": func.least(func.now() + grace, oauth_clients.c.secret_expires_at),
        }
    old["secret_expires_at"] = expires_at
    scopes = _change_client(connection, actor, Verb.CLIENT_ROTATE_SECRET, client_id, {**made.stored, **old})
    return Credentials(client_id, made.secret, scopes)


def disable_client(connection: Connection, actor: Actor, client_id: str) -> None:
    """Disables a client and ends its tokens. Raises CommandError for an unknown client."""
    _change_client(connection, actor, Verb.CLIENT_DISABLE, client_id, {"enabled": False, **_NEXT_VERSION})


def enable_client(connection: Connection, actor: Actor, client_id: str) -> None:
    """Enables a disabled client. Its older tokens stay ended. Raises CommandError for an unknown client."""
    _change_client(connection, actor, Verb.CLIENT_ENABLE, client_id, {"enabled": True, **_NEXT_VERSION})


def change_scopes(connection: Connection, actor: Actor, client_id: str, scopes: Sequence[Scope]) -> None:
    """Replaces the scopes of a client and ends its tokens; their order matters, as for `add_client`. Raises
    CommandError for an unknown client or an empty list of scopes."""
    texts = _list_texts(scopes, signs=may_sign(connection, client_id))
    _change_client(connection, actor, Verb.CLIENT_SET_SCOPES, client_id, {"scopes": list(texts), **_NEXT_VERSION})


def remove_client(connection: Connection, actor: Actor, client_id: str) -> None:
    """Deletes a client, and so ends its tokens. The access log stays. Raises CommandError for an unknown client."""
    found = find_listed_client(connection, client_id)
    with _recorded_client(connection, actor, Verb.CLIENT_REMOVE, client_id, found.vendor):
        connection.execute(delete(oauth_clients).where(oauth_clients.c.client_id == client_id))
        connection.execute(delete(last_uses).where(last_uses.c.caller == client_id))


# Tokens carry the client's version: a new version ends all of them.
_NEXT_VERSION = {"version": oauth_clients.c.version + 1}


def _change_client(
    connection: Connection, actor: Actor, verb: Verb, client_id: str, values: dict[str, Any]
) -> tuple[str, ...]:
    """Changes columns of a client. Returns its scopes. Raises CommandError for an unknown client."""
    found = find_listed_client(connection, client_id)
    with _recorded_client(connection, actor, verb, client_id, found.vendor):
        connection.execute(update(oauth_clients).where(oauth_clients.c.client_id == client_id).values(values))
    return found.scopes


@dataclass(frozen=True)
class RegisteredClient:
    """A client with all that the check of its credentials needs of it and of its vendor."""

    client_id: str
    # The hash of its secret, and of the previous secret during its grace.
    secret_hashes: tuple[bytes, ...]
    # What the same secrets are derived from; none for a client that may not sign requests.
    salts: tuple[bytes, ...]
    scopes: tuple[Scope, ...]
    client_version: int
    vendor_id: int
    grant_version: int
    visibility_key: str


def find_client(connection: Connection, client_id: str) -> RegisteredClient | None:
    """Returns the client with this id, or None if it is unknown, its secrets have ended, or it or its vendor is
    disabled."""
    has_ended = (oauth_clients.c.secret_expires_at <= func.now()).label("has_ended")
    in_grace = (oauth_clients.c.previous_secret_ends_at > func.now()).label("in_grace")
    row = connection.execute(
        select(oauth_clients, has_ended, in_grace, vendors.c.grant_version, vendors.c.visibility_key)
        .select_from(oauth_clients.join(vendors))
        .where(oauth_clients.c.client_id == client_id, oauth_clients.c.enabled, vendors.c.enabled)
    ).one_or_none()
    if row is None:
        return None
    secrets = [] if row.has_ended else [(row.secret_hash, row.secret_salt)]
    if row.in_grace:
        secrets.append((row.previous_secret_hash, row.previous_secret_salt))
    if not secrets:
        return None
    return RegisteredClient(
        client_id=row.client_id,
        secret_hashes=tuple(bytes(hashed) for hashed, _ in secrets),
        salts=tuple(bytes(salt) for _, salt in secrets if salt is not None),
        scopes=read_scopes(row.scopes),
        client_version=row.version,
        vendor_id=row.vendor_id,
        grant_version=row.grant_version,
        visibility_key=str(row.visibility_key),
    )
