"""The schools that vendors see, and the roles by which they see a person, with what they get of the people there.

Whether a way shows a person, and which parts, is told by the verdicts of `who_sees.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from roster_service.accounts.districts import SCHOOL, find_org
from roster_service.accounts.parts import PARTS, Received, list_received, require_part
from roster_service.accounts.vendors import find_vendor, list_vendors
from roster_service.accounts.ways import list_ways
from roster_service.auth.scopes import read_scopes
from roster_service.db.tables import CText, orgs, user_roles, users, vendors, visible_orgs
from roster_service.errors import CommandError
from roster_service.explore.record_facts import OF_EVERY_VENDOR, VALID_KEYS
from roster_service.explore.who_sees import explain
from roster_service.roster.person_parts import OF_GUARDIANS
from roster_service.roster.visibility import role_is_visible
from roster_service.roster.vocabulary import GUARDIAN_ROLES
from roster_service.schemas.sharing_rules import Rules, name_rules


@dataclass(frozen=True)
class Access:
    """A school that a vendor sees, or a role by which it sees a person. `grant`: `district` or `school`; `role`: None
    without a person; `scopes`: of its clients by which something can leave, in short spelling; `keys`: the number of
    its valid API keys; `flags`: its permission flags; `only`: what the rules of its grants open there, in words, None
    for all; `withheld_fields`: the fields of people's records that are withheld from it; `parts` and `withheld`: what
    it gets of people, or of this person, and what it does not get, as names of `PARTS`; `by`: if a part is asked for,
    the ways by which it gets it."""

    vendor: str
    enabled: bool
    district: str | None
    school: str
    sourcedId: str  # noqa: N815  (the name in OneRoster)
    role: str | None
    grant: str
    only: str | None
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
    conditions: list[sa.ColumnElement[bool]] = [visible_orgs.c.shared]
    if vendor is not None:
        conditions.append(vendors.c.email == find_vendor(connection, vendor).email)
    if school is not None:
        conditions.append(orgs.c.sourced_id == find_org(connection, school, SCHOOL, None))
    role: sa.ColumnElement[str | None] = sa.literal(None, CText)
    seen = visible_orgs.join(vendors, vendors.c.id == visible_orgs.c.vendor_id)
    seen = seen.join(orgs, orgs.c.sourced_id == visible_orgs.c.org_id)
    if person is None:
        conditions.append(orgs.c.type == SCHOOL)
    else:
        if connection.scalar(sa.select(users.c.sourced_id).where(users.c.sourced_id == person)) is None:
            raise CommandError(f"there is no person {person}; an erased or hidden one is not in the roster")
        seeing = [email for email, parts in received.items() if "guardians" in parts]
        received = {
            verdict.vendor.email: {name: tuple(found.ways) for name, found in verdict.parts.items() if found.ways}
            for verdict in explain(connection, person)
        }
        role = user_roles.c.role
        seen = seen.join(user_roles, user_roles.c.org_id == orgs.c.sourced_id)
        conditions += [
            user_roles.c.user_id == person,
            sa.or_(role.not_in(GUARDIAN_ROLES), vendors.c.email.in_(seeing)),
            role_is_visible(user_roles, OF_EVERY_VENDOR[True]),
        ]
    known = {item.email: item for item in list_vendors(connection)}
    open_ways, district = list_ways(connection), orgs.alias()
    columns = (vendors.c.email, district.c.name.label("district"), orgs.c.name.label("school"), role.label("role"))
    found = sa.select(*columns, orgs.c.sourced_id, orgs.c.district_id, VALID_KEYS).where(*conditions).distinct()
    found = found.select_from(seen.outerjoin(district, district.c.sourced_id == orgs.c.district_id))
    listed = []
    for row in connection.execute(found.order_by(vendors.c.email, "district", "school", "role")):
        holder, ways = known[row.email], open_ways.get(row.email, ())
        rules = holder.list_rules(row.sourced_id, row.district_id)
        gets = _leave_out_by_rules(received[row.email], rules if person is None else ())
        if part is not None and part not in gets:
            continue
        scopes = {scope for way in ways if way.client is not None for scope in read_scopes(way.client.scopes)}
        is_whole = any(item.school_id is None for item in holder.list_grants(row.district_id))
        listed.append(
            Access(
                vendor=row.email,
                enabled=holder.enabled,
                district=row.district,
                school=row.school,
                sourcedId=row.sourced_id,
                role=row.role,
                grant="district" if is_whole else "school",
                only=name_rules(rules) or None,
                scopes=tuple(scope.short for scope in sorted(scopes)),
                keys=row.keys,
                flags=tuple(sorted(holder.open_flags)),
                withheld_fields=tuple(sorted(holder.withheld)),
                parts=tuple(gets),
                withheld=tuple(name for name in PARTS if name not in gets),
                by=() if part is None else gets[part],
            )
        )
    return listed


def _leave_out_by_rules(received: Received, rules: Sequence[Rules]) -> Received:
    """What a vendor gets at an org of what it gets of people. `rules`: all that narrow what it sees there."""
    if not rules or any(rule.guardians for rule in rules):
        return received
    return {name: by for name, by in received.items() if name not in OF_GUARDIANS}
