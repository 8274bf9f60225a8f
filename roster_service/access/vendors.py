"""Vendors, their grants and their OAuth clients, as the `roster` command adds, lists and changes them.

The functions work on a connection that the caller commits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from roster_service.access.credentials.api_keys import Allowance
from roster_service.access.credentials.secrets import CLIENT_SECRET_PREFIX, hash_secret, make_client_id, make_secret
from roster_service.access.org_list import DISTRICT, SCHOOL, find_org
from roster_service.access.scopes import Scope, read_scopes
from roster_service.access.throttling.limits import RosteringAllowance, fill_allowance, fill_rostering_rate
from roster_service.db.tables import oauth_clients, orgs, vendor_grants, vendors, visible_orgs
from roster_service.db.visible_orgs import refresh_visible_orgs
from roster_service.errors import CommandError
from roster_service.schemas.flags import PermissionFlag


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
    """An OAuth client of a vendor, without its secret. `vendor`: the vendor's e-mail; `scopes`: in short spelling."""

    client_id: str
    vendor: str
    name: str
    scopes: tuple[str, ...]
    enabled: bool


@dataclass(frozen=True)
class Credentials:
    """A client's id and its secret in clear text, which the command shows once."""

    client_id: str
    client_secret: str
    scopes: tuple[str, ...]


def add_vendor(connection: Connection, email: str, name: str) -> Vendor:
    """Adds a vendor without grants. Raises CommandError if the e-mail is not an address, or is taken."""
    address = email.strip().lower()
    if address.count("@") != 1 or any(part == "" for part in address.split("@")):
        raise CommandError(f"{email!r} is no e-mail address")
    added = connection.execute(
        upsert(vendors).values(email=address, name=name).on_conflict_do_nothing().returning(vendors.c.id)
    ).one_or_none()
    if added is None:
        raise CommandError(f"there is a vendor {address} already")
    refresh_visible_orgs(connection, added.id)
    return find_vendor(connection, address)


def find_vendor(connection: Connection, email: str) -> Vendor:
    """Returns the vendor with this e-mail. Raises CommandError if there is none."""
    found = [vendor for vendor in list_vendors(connection) if vendor.email == email.strip().lower()]
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


def grant(connection: Connection, email: str, district: str, schools: Sequence[str]) -> Vendor:
    """Grants a vendor a district, or only the schools `schools` of it. Older tokens of the vendor end.

    `district` and `schools` are sourcedIds, identifiers or unique names. Raises CommandError for an unknown vendor,
    district or school, and for a school of another district.
    """
    vendor = find_vendor(connection, email)
    district_id = find_org(connection, district, DISTRICT, None)
    wanted: list[str | None] = [find_org(connection, school, SCHOOL, district_id) for school in schools]
    for school_id in wanted or [None]:
        row = {"vendor_id": vendor.id, "district_id": district_id, "school_id": school_id}
        connection.execute(upsert(vendor_grants).values(row).on_conflict_do_nothing())
    invalidate_tokens(connection, vendor.id)
    return find_vendor(connection, email)


def revoke(connection: Connection, email: str, district: str) -> Vendor:
    """Revokes every grant of a district and its schools. Older tokens of the vendor end.

    `district` is a sourcedId, an identifier or a unique name. Raises CommandError if the vendor has no grant of the
    district.
    """
    vendor = find_vendor(connection, email)
    known = [item.district_id for item in vendor.grants]
    # The roster may no longer have the district.
    district_id = district if district in known else find_org(connection, district, DISTRICT, None)
    if district_id not in known:
        raise CommandError(f"{vendor.email} has no grant of district {district}")
    own = vendor_grants.c.vendor_id == vendor.id
    connection.execute(delete(vendor_grants).where(own, vendor_grants.c.district_id == district_id))
    invalidate_tokens(connection, vendor.id)
    return find_vendor(connection, email)


def change_flags(
    connection: Connection, email: str, *, add: Sequence[PermissionFlag] = (), remove: Sequence[PermissionFlag] = ()
) -> Vendor:
    """Adds permission flags to a vendor and removes others. Older tokens of the vendor end."""
    vendor = find_vendor(connection, email)
    kept = {*vendor.flags, *add} - {*remove}
    connection.execute(update(vendors).where(vendors.c.id == vendor.id).values(flags=sorted(kept)))
    invalidate_tokens(connection, vendor.id)
    return find_vendor(connection, email)


def change_allowance(connection: Connection, email: str, allowance: Allowance, rostering: RosteringAllowance) -> Vendor:
    """Sets the limits of a vendor on the vendor and on the rostering interface; None means the default.

    Raises CommandError if a burst is not a multiple of the requests a second: the window of a burst is that quotient,
    in whole seconds.
    """
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


def set_vendor_enabled(connection: Connection, email: str, enabled: bool) -> Vendor:
    """Enables or disables a vendor, and with it all its clients. Older tokens of the vendor end."""
    vendor = find_vendor(connection, email)
    connection.execute(update(vendors).where(vendors.c.id == vendor.id).values(enabled=enabled))
    invalidate_tokens(connection, vendor.id)
    return find_vendor(connection, email)


def remove_vendor(connection: Connection, email: str) -> None:
    """Deletes a vendor with its grants, clients and API keys, and so ends its tokens. The access log stays. Raises
    CommandError for an unknown vendor."""
    vendor = find_vendor(connection, email)
    connection.execute(delete(visible_orgs).where(visible_orgs.c.vendor_id == vendor.id))
    connection.execute(delete(vendors).where(vendors.c.id == vendor.id))


def invalidate_tokens(connection: Connection, vendor_id: int) -> None:
    """Ends every token of the vendor, of both interfaces, and updates the vendor's visible orgs."""
    renewed = {"grant_version": vendors.c.grant_version + 1, "visibility_key": func.gen_random_uuid()}
    connection.execute(update(vendors).where(vendors.c.id == vendor_id).values(renewed))
    refresh_visible_orgs(connection, vendor_id)


# --- OAuth clients -----------------------------------------------------------------------------------------------


def add_client(connection: Connection, email: str, name: str, scopes: Sequence[Scope]) -> Credentials:
    """Adds an OAuth client with these scopes and returns its credentials. Raises CommandError for an unknown vendor or
    an empty list of scopes.

    The order of the scopes matters: a token request that names no scope gets the scopes of the first one's version.
    """
    if not scopes:
        raise CommandError("a client needs at least one scope")
    vendor = find_vendor(connection, email)
    secret = make_secret(CLIENT_SECRET_PREFIX)
    texts = tuple(dict.fromkeys(scope.short for scope in scopes))
    row = {
        "client_id": make_client_id(),
        "vendor_id": vendor.id,
        "name": name,
        "secret_hash": hash_secret(secret),
        "scopes": list(texts),
    }
    connection.execute(insert(oauth_clients).values(row))
    return Credentials(str(row["client_id"]), secret, texts)


def list_clients(connection: Connection) -> list[Client]:
    """Lists all clients, ordered by vendor and name."""
    columns = (vendors.c.email, oauth_clients)
    order = (vendors.c.email, oauth_clients.c.name, oauth_clients.c.client_id)
    rows = connection.execute(select(*columns).select_from(oauth_clients.join(vendors)).order_by(*order))
    return [Client(row.client_id, row.email, row.name, tuple(row.scopes), row.enabled) for row in rows]


def rotate_secret(connection: Connection, client_id: str, grace: timedelta) -> Credentials:
    """Replaces a client's secret and returns the new one. Raises CommandError for an unknown client.

    The old secret stays valid for `grace`, and its tokens stay valid. With a grace of zero, the old secret and its
    tokens end at once. A secret that an earlier call has replaced ends in any case.
    """
    secret = make_secret(CLIENT_SECRET_PREFIX)
    old: dict[str, Any] = {"previous_secret_hash": None, "previous_secret_ends_at": None, **_NEXT_VERSION}
    if grace:
        old = {"previous_secret_hash": oauth_clients.c.secret_hash, "previous_secret_ends_at": func.now() + grace}
    scopes = _change_client(connection, client_id, {"secret_hash": hash_secret(secret), **old})
    return Credentials(client_id, secret, scopes)


def disable_client(connection: Connection, client_id: str) -> None:
    """Disables a client and ends its tokens. Raises CommandError for an unknown client."""
    _change_client(connection, client_id, {"enabled": False, **_NEXT_VERSION})


# Tokens carry the client's version: a new version ends all of them.
_NEXT_VERSION = {"version": oauth_clients.c.version + 1}


def _change_client(connection: Connection, client_id: str, values: dict[str, Any]) -> tuple[str, ...]:
    changed = connection.execute(
        update(oauth_clients)
        .where(oauth_clients.c.client_id == client_id)
        .values(values)
        .returning(oauth_clients.c.scopes)
    ).one_or_none()
    if changed is None:
        raise CommandError(f"there is no client {client_id}; `roster client list` shows all")
    return tuple(changed.scopes)


@dataclass(frozen=True)
class RegisteredClient:
    """A client with all that the token endpoint needs of it and of its vendor."""

    client_id: str
    # The hash of its secret, and of the previous secret during its grace.
    secret_hashes: tuple[bytes, ...]
    scopes: tuple[Scope, ...]
    client_version: int
    vendor_id: int
    grant_version: int
    visibility_key: str


def find_client(connection: Connection, client_id: str) -> RegisteredClient | None:
    """Returns the client with this id, or None if it is unknown, or it or its vendor is disabled."""
    in_grace = (oauth_clients.c.previous_secret_ends_at > func.now()).label("in_grace")
    row = connection.execute(
        select(oauth_clients, in_grace, vendors.c.grant_version, vendors.c.visibility_key)
        .select_from(oauth_clients.join(vendors))
        .where(oauth_clients.c.client_id == client_id, oauth_clients.c.enabled, vendors.c.enabled)
    ).one_or_none()
    if row is None:
        return None
    stored = (row.secret_hash, row.previous_secret_hash) if row.in_grace else (row.secret_hash,)
    return RegisteredClient(
        client_id=row.client_id,
        secret_hashes=tuple(map(bytes, stored)),
        scopes=read_scopes(row.scopes),
        client_version=row.version,
        vendor_id=row.vendor_id,
        grant_version=row.grant_version,
        visibility_key=str(row.visibility_key),
    )
