"""Who sees what: the schools that each vendor sees, the roles by which it sees a person, and what opens them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, and_, exists, func, literal, or_, select

from roster_service.access.org_list import SCHOOL, find_org
from roster_service.access.scopes import Scope, ScopeName, read_scopes
from roster_service.access.vendors import find_vendor
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
from roster_service.db.vocabulary import GUARDIAN_ROLES
from roster_service.db.withheld import read_list
from roster_service.errors import CommandError
from roster_service.schemas.flags import PermissionFlag, find_withheld


@dataclass(frozen=True)
class Access:
    """A school that a vendor sees, or a role by which it sees a person. `grant`: `district` or `school`; `role`: None
    without a person; `scopes`: of its enabled clients, in short spelling; `keys`: the number of its valid API keys;
    `flags`: its permission flags; `withheld`: the flags and scopes that it lacks; `withheld_fields`: the fields of
    people's records that are withheld from it."""

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
    withheld: tuple[str, ...]
    withheld_fields: tuple[str, ...]


def list_access(connection: Connection, *, vendor: str | None, school: str | None, person: str | None) -> list[Access]:
    """Lists the schools that vendors see, by vendor and school; with `person`, the roles by which they see this user.

    `vendor` (an e-mail) and `school` (a sourcedId, identifier or unique name) leave only their own. A disabled vendor
    is listed with its grants, and sees nothing. Raises CommandError for an unknown vendor, school or person.
    """
    conditions: list[ColumnElement[bool]] = [visible_orgs.c.granted]
    if vendor is not None:
        conditions.append(vendors.c.email == find_vendor(connection, vendor).email)
    if school is not None:
        conditions.append(orgs.c.sourced_id == find_org(connection, school, SCHOOL, None))
    scopes = _read_scopes(connection)
    role: ColumnElement[str | None] = literal(None, CText)
    seen = visible_orgs.join(vendors, vendors.c.id == visible_orgs.c.vendor_id)
    seen = seen.join(orgs, orgs.c.sourced_id == visible_orgs.c.org_id)
    if person is None:
        conditions.append(orgs.c.type == SCHOOL)
    else:
        if connection.scalar(select(users.c.sourced_id).where(users.c.sourced_id == person)) is None:
            raise CommandError(f"there is no person {person}; an erased or hidden one is not in the roster")
        seeing = [number for number, held in scopes.items() if ScopeName.GUARDIANS in _name_scopes(held)]
        role = user_roles.c.role
        seen = seen.join(user_roles, user_roles.c.org_id == orgs.c.sourced_id)
        conditions += [
            user_roles.c.user_id == person,
            or_(role.not_in(GUARDIAN_ROLES), vendors.c.id.in_(seeing)),
        ]
    district = orgs.alias()
    whole = exists().where(
        vendor_grants.c.vendor_id == vendors.c.id,
        vendor_grants.c.district_id == orgs.c.district_id,
        vendor_grants.c.school_id.is_(None),
    )
    valid = or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > func.now())
    keys = select(func.count()).where(and_(api_keys.c.vendor_id == vendors.c.id, valid)).scalar_subquery()
    found = select(
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
            withheld=_list_withheld(row.flags, scopes.get(row.id, ())),
            withheld_fields=tuple(sorted(find_withheld(row.listed, row.flags))),
        )
        for row in connection.execute(ordered)
    ]


def _read_scopes(connection: Connection) -> Mapping[int, tuple[Scope, ...]]:
    """The scopes of the enabled clients of each vendor, by its number."""
    found: defaultdict[int, set[Scope]] = defaultdict(set)
    for row in connection.execute(select(oauth_clients).where(oauth_clients.c.enabled)):
        found[row.vendor_id].update(read_scopes(row.scopes))
    return {number: tuple(sorted(held)) for number, held in found.items()}


def _name_scopes(held: tuple[Scope, ...]) -> set[ScopeName]:
    return {scope.name for scope in held}


def _list_withheld(flags: list[str], held: tuple[Scope, ...]) -> tuple[str, ...]:
    names = _name_scopes(held)
    # The full scope opens what the core scope opens.
    names |= {ScopeName.CORE} if ScopeName.FULL in names else set()
    missing = [flag.value for flag in PermissionFlag if flag.value not in flags]
    return (*missing, *(name.value for name in ScopeName if name not in names))
