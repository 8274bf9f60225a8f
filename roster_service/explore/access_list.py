"""Who sees what: the schools that each vendor sees, the roles by which it sees a person, and what opens them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from roster_service.accounts.org_list import SCHOOL, find_org
from roster_service.accounts.parts import PARTS, list_received, require_part
from roster_service.accounts.vendors import find_vendor
from roster_service.auth.scopes import Scope, ScopeName, read_scopes
from roster_service.db.tables import (
    CText,
    api_keys,
    oauth_clients,
    orgs,
    user_roles,
    users,
    vendor_grants,
    vendors,
    visible_orgs,
)
from roster_service.errors import CommandError
from roster_service.roster.vocabulary import GUARDIAN_ROLES
from roster_service.roster.withheld import read_list
from roster_service.schemas.flags import find_withheld


@dataclass(frozen=True)
class Access:
    """A school that a vendor sees, or a role by which it sees a person. `grant`: `district` or `school`; `role`: None
    without a person; `scopes`: of its enabled clients, in short spelling; `keys`: the number of its valid API keys;
    `flags`: its permission flags; `withheld_fields`: the fields of people's records that are withheld from it; `parts`
    and `withheld`: what it gets of people, and what it does not get, as names of `PARTS`; `by`: if a part is asked for,
    what gets it."""

    vendor: str
    enabled: bool
    district: str | None
    school: str
    sourcedId: str  # noqa: N815  (the name in OneRoster)
    role: str | None
    grant: str
    scopes: tuple[str, ...]
    keys: int
    flags: tuple[str, ...]
    withheld_fields: tuple[str, ...]
    parts: tuple[str, ...]
    withheld: tuple[str, ...]
    by: tuple[str, ...]


def list_access(
    connection: sa.Connection, *, vendor: str | None, school: str | None, person: str | None, part: str | None = None
) -> list[Access]:
    """Lists the schools that vendors see, by vendor and school; with `person`, the roles by which they see this user.

    `vendor` (an e-mail) and `school` (a sourcedId, identifier or unique name) leave only their own, and `part` only the
    vendors that get this part of people. A disabled vendor is listed with its grants, and sees nothing. Raises
    CommandError for an unknown vendor, school, person or part.
    """
    received = list_received(connection)
    if part is not None:
        require_part(part)
    conditions: list[sa.ColumnElement[bool]] = [visible_orgs.c.granted]
    if vendor is not None:
        conditions.append(vendors.c.email == find_vendor(connection, vendor).email)
    if school is not None:
        conditions.append(orgs.c.sourced_id == find_org(connection, school, SCHOOL, None))
    scopes = _read_scopes(connection)
    role: sa.ColumnElement[str | None] = sa.literal(None, CText)
    seen = visible_orgs.join(vendors, vendors.c.id == visible_orgs.c.vendor_id)
    seen = seen.join(orgs, orgs.c.sourced_id == visible_orgs.c.org_id)
    if person is None:
        conditions.append(orgs.c.type == SCHOOL)
    else:
        if connection.scalar(sa.select(users.c.sourced_id).where(users.c.sourced_id == person)) is None:
            raise CommandError(f"there is no person {person}; an erased or hidden one is not in the roster")
        seeing = [number for number, held in scopes.items() if ScopeName.GUARDIANS in _name_scopes(held)]
        role = user_roles.c.role
        seen = seen.join(user_roles, user_roles.c.org_id == orgs.c.sourced_id)
        conditions += [
            user_roles.c.user_id == person,
            sa.or_(role.not_in(GUARDIAN_ROLES), vendors.c.id.in_(seeing)),
        ]
    district = orgs.alias()
    whole = sa.exists().where(
        vendor_grants.c.vendor_id == vendors.c.id,
        vendor_grants.c.district_id == orgs.c.district_id,
        vendor_grants.c.school_id.is_(None),
    )
    valid = sa.or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > sa.func.now())
    keys = sa.select(sa.func.count()).where(sa.and_(api_keys.c.vendor_id == vendors.c.id, valid)).scalar_subquery()
    found = sa.select(
        vendors.c.id,
        vendors.c.email,
        vendors.c.enabled,
        vendors.c.flags,
        read_list().label("listed"),
        district.c.name.label("district"),
        orgs.c.name.label("school"),
        orgs.c.sourced_id,
        role.label("role"),
        whole.label("whole"),
        keys.label("keys"),
    ).select_from(seen.outerjoin(district, district.c.sourced_id == orgs.c.district_id))
    ordered = found.where(*conditions).distinct().order_by(vendors.c.email, "district", "school", "role")
    return [
        Access(
            vendor=row.email,
            enabled=row.enabled,
            district=row.district,
            school=row.school,
            sourcedId=row.sourced_id,
            role=row.role,
            grant="district" if row.whole else "school",
            scopes=tuple(scope.short for scope in scopes.get(row.id, ())),
            keys=row.keys,
            flags=tuple(row.flags),
            withheld_fields=tuple(sorted(find_withheld(row.listed, row.flags))),
            parts=tuple(received[row.email]),
            withheld=tuple(name for name in PARTS if name not in received[row.email]),
            by=() if part is None else received[row.email][part],
        )
        for row in connection.execute(ordered)
        if part is None or part in received[row.email]
    ]


def _read_scopes(connection: sa.Connection) -> Mapping[int, tuple[Scope, ...]]:
    """The scopes of the enabled clients of each vendor, by its number."""
    found: defaultdict[int, set[Scope]] = defaultdict(set)
    for row in connection.execute(sa.select(oauth_clients).where(oauth_clients.c.enabled)):
        found[row.vendor_id].update(read_scopes(row.scopes))
    return {number: tuple(sorted(held)) for number, held in found.items()}


def _name_scopes(held: tuple[Scope, ...]) -> set[ScopeName]:
    return {scope.name for scope in held}
