"""Vendors and their grants, as operators add, list and change them.

The functions work on a connection that the caller commits. Each change needs an actor, and is one row of the change
log.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from roster_service.auth.agreed_rights import find_rights, has_ended, read_rights
from roster_service.auth.credentials.api_keys import Allowance, IssuedKey, issue_key, rotate_key
from roster_service.auth.credentials.secrets import make_password, set_password
from roster_service.auth.throttling.limits import RosteringAllowance, fill_allowance, fill_rostering_rate
from roster_service.change_log.actors import Actor, normalize_email, read_email, read_name
from roster_service.change_log.changes import State, Subject, Verb, recorded
from roster_service.db.tables import api_keys, last_uses, oauth_clients, orgs, vendor_grants, vendors, visible_orgs
from roster_service.errors import CommandError
from roster_service.feeds.sharing_groups import lock_groups
from roster_service.roster.visible_orgs import refresh_visible_orgs
from roster_service.roster.withheld import WithheldField
from roster_service.schemas.sharing_rules import Rules, Staff

# The end of a link that nobody may use any more, as a column of the client. One that was used says when that was.
END_OF_LINK = sa.case(
    (
        sa.and_(oauth_clients.c.link_hash.is_not(None), oauth_clients.c.link_used_at.is_(None)),
        # The column would round it up.
        sa.func.least(oauth_clients.c.link_ends_at, sa.func.date_trunc("milliseconds", sa.func.now())),
    ),
    else_=oauth_clients.c.link_ends_at,
)


@dataclass(frozen=True)
class Grant:
    """A whole district, or one school of it. `district_name`, `school_name`: for people, None for an org that the
    roster no longer has; `rules`: None for all records of these orgs."""

    district_id: str
    school_id: str | None = None
    district_name: str | None = field(default=None, compare=False)
    school_name: str | None = field(default=None, compare=False)
    rules: Rules | None = None


@dataclass(frozen=True)
class Vendor:
    """A vendor's account. `flags`: those that it was given; `withheld`: the words of all fields that are withheld from
    it; `own_withheld`: those of its own list, None where the default applies; `agreed_flags`, `agreed_scopes` by name
    and `metadata_keys`: those that its agreement allows, None for all; `not_agreed`: why that lets it read nothing now,
    None for nothing."""

    id: int
    name: str
    email: str
    enabled: bool
    grant_version: int
    grants: tuple[Grant, ...]
    flags: tuple[str, ...]
    own_withheld: tuple[str, ...] | None
    withheld: tuple[str, ...]
    agreed_flags: tuple[str, ...] | None
    agreed_scopes: tuple[str, ...] | None
    metadata_keys: tuple[str, ...] | None
    not_agreed: str | None
    allowance: Allowance
    rostering: RosteringAllowance

    @property
    def open_flags(self) -> tuple[str, ...]:
        """Returns the flags that count: given, and allowed by its agreement."""
        return tuple(flag for flag in self.flags if self.agreed_flags is None or flag in self.agreed_flags)

    @property
    def shown_within(self) -> tuple[frozenset[WithheldField], frozenset[str] | None]:
        """Returns (the fields that are withheld from the vendor, the keys of metadata that it may see or None for
        all), as content rights have them."""
        keys = None if self.metadata_keys is None else frozenset(self.metadata_keys)
        return frozenset(map(WithheldField, self.withheld)), keys

    @property
    def closed(self) -> str | None:
        """Why the vendor gets nothing now, whatever is granted to it, in words; None if nothing closes it."""
        if not self.enabled:
            return "the vendor is disabled"
        return None if self.not_agreed is None else f"the agreement of the vendor {self.not_agreed}"

    @property
    def takes_links(self) -> bool:
        """Whether a link to make a secret would work now."""
        return self.enabled and not has_ended(self.not_agreed)

    def limit_scopes(self, scopes: Iterable[str]) -> tuple[str, ...]:
        """Returns the scopes of a client, in short spelling, that its agreement allows."""
        agreed = self.agreed_scopes
        return tuple(scope for scope in scopes if agreed is None or scope.rpartition("/")[2] in agreed)

    def explain_flag(self, flag: str) -> str:
        """Returns why a flag does not count, in words."""
        if flag in self.flags:
            return f"the agreement of the vendor does not allow the permission flag {flag}"
        return f"the vendor lacks the permission flag {flag}"

    def list_grants(self, district_id: str) -> list[Grant]:
        """Returns the grants of a district and of its schools."""
        return [item for item in self.grants if item.district_id == district_id]

    def list_rules(self, org_id: str, district_id: str | None) -> list[Rules]:
        """Returns the rules of the grants that open an org of a district; none if one opens all of it."""
        granted = [] if district_id is None else self.list_grants(district_id)
        # The grant of a school holds, whatever its district is now.
        found = [item.rules for item in granted if item.school_id is None]
        found += [item.rules for item in self.grants if item.school_id == org_id]
        return [] if None in found else [rules for rules in found if rules is not None]


@dataclass(frozen=True)
class VendorLogin:
    """A new API key, its prefix, and the password that was made; None if the operator has given the password."""

    prefix: str
    api_key: str
    password: str | None


def recorded_vendor(connection: sa.Connection, actor: Actor, verb: Verb, email: str) -> AbstractContextManager[None]:
    """Records the change of a vendor that the block makes. Raises CommandError as `recorded`."""
    address = normalize_email(email)
    return recorded(connection, actor, verb, Subject.of_vendor(address), lambda: _read_state(connection, address))


def _read_state(connection: sa.Connection, email: str) -> State:
    """Reads what the change log may tell of a vendor."""
    found = next(iter(list_vendors(connection, vendors.c.email == email)), None)
    if found is None:
        return None
    keys = sa.select(api_keys.c.prefix, api_keys.c.expires_at).where(api_keys.c.vendor_id == found.id)
    return {
        # The access log has no other name of a vendor; of one that was removed, the change log tells whose it was.
        "number": found.id,
        "name": found.name,
        "enabled": found.enabled,
        "grants": [
            [item.district_id, item.school_id]
            + ([] if item.rules is None else [{"only": item.rules.words, **asdict(item.rules)}])
            for item in found.grants
        ],
        "flags": list(found.flags),
        "withheld": None if found.own_withheld is None else list(found.own_withheld),
        "limits": asdict(found.allowance)
        | {f"rostering_{key}": value for key, value in asdict(found.rostering).items()},
        "keys": {row.prefix: row.expires_at and row.expires_at.isoformat() for row in connection.execute(keys)},
    }


def add_vendor(
    connection: sa.Connection,
    actor: Actor,
    email: str,
    name: str,
    password: str | None = None,
    *,
    expires_at: datetime | None = None,
) -> VendorLogin:
    """Adds a vendor without grants, with an API key and a password. `password`: None to make one; `expires_at`: the end
    of the API key.

    Raises CommandError if the e-mail is not an address, or is taken, or the name or password too short or too long.
    """
    address = read_email(email)
    with recorded_vendor(connection, actor, Verb.VENDOR_ADD, address):
        added = connection.execute(
            upsert(vendors).values(email=address, name=read_name(name)).on_conflict_do_nothing().returning(vendors.c.id)
        ).one_or_none()
        if added is None:
            raise CommandError(f"there is a vendor {address} already")
        refresh_visible_orgs(connection, added.id)
        made = make_password()
        set_password(connection, added.id, made if password is None else password)
        key = issue_key(connection, added.id, expires_at)
    return VendorLogin(key.prefix, key.api_key, made if password is None else None)


def find_vendor(connection: sa.Connection, email: str) -> Vendor:
    """Returns the vendor with this e-mail. Raises CommandError if there is none."""
    found = list_vendors(connection, vendors.c.email == normalize_email(email))
    if not found:
        raise CommandError(f"there is no vendor {email}; `roster vendor list` shows all")
    return found[0]


def find_vendor_by_id(connection: sa.Connection, vendor_id: int) -> Vendor:
    """Returns the vendor with this number. Raises CommandError if there is none."""
    found = list_vendors(connection, vendors.c.id == vendor_id)
    if not found:
        raise CommandError("there is no such vendor; it may have been removed")
    return found[0]


def read_vendor_names(connection: sa.Connection) -> dict[str, str]:
    """Reads the names of all vendors, by e-mail."""
    return {row.email: row.name for row in connection.execute(sa.select(vendors.c.email, vendors.c.name))}


def list_vendors(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> list[Vendor]:
    """Lists the vendors for which all conditions hold, with their grants, ordered by e-mail."""
    grants: dict[int, list[Grant]] = {}
    for row in connection.execute(_GRANTS.where(*conditions)):
        grant = Grant(row.district_id, row.school_id, row.district_name, row.school_name, read_rules(row))
        grants.setdefault(row.vendor_id, []).append(grant)
    return [_make_vendor(row, grants.get(row.id, ())) for row in connection.execute(_LISTED.where(*conditions))]


def _select_grants() -> sa.Select[Any]:
    district, school = orgs.alias("district"), orgs.alias("school")
    return (
        sa.select(vendor_grants, district.c.name.label("district_name"), school.c.name.label("school_name"))
        .outerjoin(district, district.c.sourced_id == vendor_grants.c.district_id)
        .outerjoin(school, school.c.sourced_id == vendor_grants.c.school_id)
        .join(vendors, vendors.c.id == vendor_grants.c.vendor_id)
        .order_by(vendor_grants.c.district_id, vendor_grants.c.school_id, vendor_grants.c.id)
    )


# Nearly every page of the console lists vendors.
_GRANTS = _select_grants()
# The flags are among the columns of the table.
_LISTED = sa.select(vendors, *read_rights()[1:]).order_by(vendors.c.email)


def read_rules(row: Any) -> Rules | None:
    """Returns the rules of a row of `vendor_grants`; None without rules."""
    return None if row.staff is None else Rules(row.students, row.classes, Staff(row.staff), row.guardians)


def _make_vendor(row: Any, grants: Sequence[Grant]) -> Vendor:
    rights = find_rights(row)
    return Vendor(
        id=row.id,
        name=row.name,
        email=row.email,
        enabled=row.enabled,
        grant_version=row.grant_version,
        grants=tuple(grants),
        flags=tuple(row.flags),
        own_withheld=None if row.withheld is None else tuple(row.withheld),
        withheld=tuple(sorted(rights.withheld)),
        agreed_flags=None if row.agreed_flags is None else tuple(row.agreed_flags),
        agreed_scopes=None if rights.scopes is None else tuple(sorted(rights.scopes)),
        metadata_keys=None if rights.metadata_keys is None else tuple(sorted(rights.metadata_keys)),
        not_agreed=row.not_agreed,
        allowance=Allowance(row.requests_per_second, row.burst, row.requests_per_day),
        rostering=RosteringAllowance(row.rostering_per_second, row.rostering_burst, row.rostering_at_once),
    )


def change_allowance(
    connection: sa.Connection, actor: Actor, email: str, allowance: Allowance, rostering: RosteringAllowance
) -> Vendor:
    """Sets the limits of a vendor on the vendor and on the rostering interface; None means the default.

    Raises CommandError if a burst is not a multiple of the requests a second: the window of a burst is that quotient,
    in whole seconds.
    """
    with recorded_vendor(connection, actor, Verb.VENDOR_LIMITS, email):
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
        connection.execute(sa.update(vendors).where(vendors.c.id == vendor.id).values(values))
    return find_vendor(connection, email)


def set_vendor_enabled(connection: sa.Connection, actor: Actor, email: str, enabled: bool) -> Vendor:
    """Enables or disables a vendor, and with it all its clients. Older tokens of the vendor end, and links that nobody
    has used: one that is disabled must not find them open again."""
    with recorded_vendor(connection, actor, Verb.VENDOR_ENABLE if enabled else Verb.VENDOR_DISABLE, email):
        vendor = find_vendor(connection, email)
        connection.execute(sa.update(vendors).where(vendors.c.id == vendor.id).values(enabled=enabled))
        if not enabled:
            own = sa.update(oauth_clients).where(oauth_clients.c.vendor_id == vendor.id)
            connection.execute(own.values(link_ends_at=END_OF_LINK))
        invalidate_tokens(connection, vendor.id)
    return find_vendor(connection, email)


def change_password(connection: sa.Connection, actor: Actor, email: str, password: str | None) -> str | None:
    """Replaces the password of a vendor, and ends its tokens. `password`: None to make one, which is returned.

    Raises CommandError for an unknown vendor, and for a password that is too short or too long.
    """
    made = make_password()
    with recorded_vendor(connection, actor, Verb.VENDOR_SET_PASSWORD, email):
        vendor = find_vendor(connection, email)
        set_password(connection, vendor.id, made if password is None else password)
        invalidate_tokens(connection, vendor.id)
    return made if password is None else None


def replace_key(
    connection: sa.Connection, actor: Actor, email: str, grace: timedelta, *, expires_at: datetime | None = None
) -> IssuedKey:
    """Gives a vendor a new API key, with the end `expires_at`; its other keys end after `grace`. Raises CommandError
    for an unknown vendor."""
    with recorded_vendor(connection, actor, Verb.VENDOR_ROTATE_KEY, email):
        return rotate_key(connection, find_vendor(connection, email).id, grace, expires_at)


def end_keys(connection: sa.Connection, vendor_id: int) -> None:
    """Deletes the API keys of a vendor that was added right now, and that nobody was shown."""
    connection.execute(sa.delete(api_keys).where(api_keys.c.vendor_id == vendor_id))


def remove_vendor(connection: sa.Connection, actor: Actor, email: str) -> None:
    """Deletes a vendor with its grants, clients and API keys, and so ends its tokens. The access log stays. Raises
    CommandError for an unknown vendor."""
    with recorded_vendor(connection, actor, Verb.VENDOR_REMOVE, email):
        vendor = find_vendor(connection, email)
        end_vendor_grants(connection, vendor_grants.c.vendor_id == vendor.id)
        connection.execute(sa.delete(visible_orgs).where(visible_orgs.c.vendor_id == vendor.id))
        connection.execute(sa.delete(last_uses).where(last_uses.c.vendor_id == vendor.id))
        connection.execute(sa.delete(vendors).where(vendors.c.id == vendor.id))


def end_vendor_grants(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> None:
    """Deletes the grants for which all conditions hold, with their groups. Call it before the row of a vendor is
    changed."""
    # A run that adds members to a group which ends meanwhile would fail.
    if connection.scalar(sa.select(sa.exists().where(vendor_grants.c.staff.is_not(None), *conditions))):
        lock_groups(connection)
    connection.execute(sa.delete(vendor_grants).where(*conditions))


def lock_vendor(connection: sa.Connection, vendor_id: int) -> None:
    """Waits for the end of other changes that lock the vendor; those that begin later wait for this one."""
    connection.execute(sa.select(vendors.c.id).where(vendors.c.id == vendor_id).with_for_update(key_share=True))


def invalidate_tokens(connection: sa.Connection, vendor_id: int, *, content_changed: bool = False) -> None:
    """Ends every token of the vendor, of both interfaces, and updates the vendor's visible orgs. `content_changed`:
    whether it may see more or less of the records of the same orgs: then its copies are not kept right by deltas any
    more."""
    renewed = {"grant_version": vendors.c.grant_version + 1, "visibility_key": sa.func.gen_random_uuid()}
    if content_changed:
        renewed["floor"] = sa.func.next_stamp()
    connection.execute(sa.update(vendors).where(vendors.c.id == vendor_id).values(renewed))
    refresh_visible_orgs(connection, vendor_id)
