"""The parts of OneRoster's records: roles, agents and profiles of users, as SELECTs.

The roster stores roles in the vocabulary of 1.2. The content of the roles determines their order, and with it their
identity from run to run; their position in the file does not.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from roster_service.db import tables
from roster_service.db.tables import CText
from sync_scripts.formats.cells import DAY, TEXT, to_list
from sync_scripts.formats.model import Part, Rule, Staged, StagedFile


def select_items(staged: StagedFile, header: str) -> sa.Subquery:
    """The items of a list cell, one row each: (owner, ordinal from 1, item). A repeated item counts once."""
    items = sa.func.unnest(to_list(staged[header])).table_valued("item", with_ordinality="number").render_derived()
    owner, filled = staged["sourcedId"], (staged.live, staged[header].is_not(None))
    ordinal = sa.func.row_number().over(partition_by=owner, order_by=sa.func.min(items.c.number))
    # Nearly every list has one item, and ordering the items of long lists is the expensive part.
    alone = ~staged[header].contains(",") if staged.file.unique else sa.false()
    several = (
        sa.select(owner.label("owner"), ordinal.label("ordinal"), items.c.item)
        .select_from(staged.table.join(items, sa.true()))
        .where(*filled, ~alone)
        .group_by(owner, items.c.item)
    )
    single = sa.func.btrim(staged[header], type_=CText).label("item")
    one = sa.select(owner.label("owner"), sa.literal(1).label("ordinal"), single).where(*filled, alone)
    return sa.union_all(one, several).subquery()


def select_agents(staged: Staged) -> sa.Select[Any]:
    """The rows of user_agents, from the list in users.csv."""
    items = select_items(staged["users"], "agentSourcedIds")
    return sa.select(items.c.owner.label("user_id"), items.c.ordinal, items.c.item.label("agent_id"))


def select_roles_1_1(staged: Staged) -> sa.Select[Any]:
    """The rows of user_roles, from the one role and the list of orgs in users.csv. The role is primary at each org,
    because 1.2 requires a primary role there.

    1.2 has no `administrator`: it becomes `siteAdministrator` at a school and `districtAdministrator` elsewhere.
    """
    users, orgs = staged["users"], staged["orgs"]
    items = select_items(users, "orgSourcedIds")
    administrator = sa.case((orgs["type"] == "school", "siteAdministrator"), else_="districtAdministrator")
    return sa.select(
        items.c.owner.label("user_id"),
        items.c.ordinal,
        items.c.item.label("org_id"),
        sa.case((users["role"] == "administrator", administrator), else_=users["role"]).label("role"),
        sa.literal("primary", CText).label("role_type"),
        sa.cast(sa.null(), sa.Date).label("begin_date"),
        sa.cast(sa.null(), sa.Date).label("end_date"),
        sa.cast(sa.null(), CText).label("profile_id"),
        sa.literal("export", CText).label("origin"),
    ).select_from(
        users.table.join(items, items.c.owner == users["sourcedId"]).join(orgs.table, orgs["sourcedId"] == items.c.item)
    )


def select_roles_1_2(staged: Staged) -> sa.Select[Any]:
    """The rows of user_roles, from roles.csv; their ordinals are NULL until `number_roles`."""
    roles = staged["roles"]
    return sa.select(
        roles["userSourcedId"].label("user_id"),
        sa.cast(sa.null(), sa.SmallInteger).label("ordinal"),
        roles["orgSourcedId"].label("org_id"),
        roles["role"].label("role"),
        roles["roleType"].label("role_type"),
        DAY.convert(roles["beginDate"]).label("begin_date"),
        DAY.convert(roles["endDate"]).label("end_date"),
        roles["userProfileSourcedId"].label("profile_id"),
        sa.literal("export", CText).label("origin"),
        roles["sourcedId"].label("row_id"),
    ).where(roles.live)


def number_roles(rows: sa.FromClause, staged: Staged) -> sa.Select[Any]:
    """The rows with their ordinals: primary roles before secondary ones, and among both, the roles at the user's
    primary org first. Roles that already have an ordinal keep their order."""
    users = staged["users"]
    ordinal = sa.func.row_number().over(
        partition_by=rows.c.user_id,
        order_by=(
            rows.c.ordinal,
            rows.c.role_type,
            rows.c.org_id.is_distinct_from(users["primaryOrgSourcedId"]),
            rows.c.org_id,
            rows.c.role,
            rows.c.begin_date,
            rows.c.end_date,
            rows.c.profile_id,
            rows.c.row_id,
        ),
    )
    columns = (ordinal.label("ordinal") if column.name == "ordinal" else column for column in rows.c)
    return sa.select(*columns).select_from(rows.join(users.table, users["sourcedId"] == rows.c.user_id))


def select_profiles(staged: Staged) -> sa.Select[Any]:
    """The rows of user_profiles, from userProfiles.csv. Each row is a profile with one credential, without its
    password."""
    profiles = staged["userProfiles"]
    credential = sa.func.jsonb_build_object(
        "type", TEXT.convert(profiles["credentialType"]), "username", TEXT.convert(profiles["username"])
    )
    return sa.select(
        profiles["userSourcedId"].label("user_id"),
        profiles["sourcedId"].label("profile_id"),
        TEXT.convert(profiles["profileType"]).label("profile_type"),
        TEXT.convert(profiles["vendorId"]).label("vendor_id"),
        TEXT.convert(profiles["applicationId"]).label("application_id"),
        TEXT.convert(profiles["description"]).label("description"),
        sa.cast(sa.func.jsonb_build_array(credential), JSONB).label("credentials"),
    ).where(profiles.live)


def select_no_profiles(staged: Staged) -> sa.Select[Any]:
    """No row of user_profiles, for 1.1: a feed that goes back from 1.2 to 1.1 loses its profiles."""
    nothing = (sa.cast(sa.null(), column.type).label(column.name) for column in tables.user_profiles.columns)
    return sa.select(*nothing).where(sa.false())


def breaks_single_primary(roles: StagedFile, retained: StagedFile | None) -> Any:
    """The condition that a row is a second primary role of one user at one org; the standard allows one. The first is
    the stored one, else the least, whatever the order of the rows."""
    other = roles.alias()
    found: sa.ColumnElement[bool] = sa.exists().where(
        _is_same_primary(other, roles),
        other.line != roles.line,
        _rank_primary(other) < _rank_primary(roles),
        other.live,
    )
    if retained is not None:
        kept = retained.alias()
        # A stored role without an id, or with the id of the row, belongs to a user whose stored roles are retained.
        found = sa.or_(found, sa.exists().where(_is_same_primary(kept, roles), kept["sourcedId"] != roles["sourcedId"]))
    return sa.and_(roles["roleType"] == "primary", found)


def _rank_primary(roles: StagedFile) -> Any:
    stored = tables.user_roles.alias()
    same = ((stored.c.user_id, "userSourcedId"), (stored.c.org_id, "orgSourcedId"), (stored.c.role, "role"))
    is_stored = sa.select(stored.c.role).where(
        *(column == roles[header] for column, header in same),
        stored.c.role_type == "primary",
        stored.c.origin == "export",
        stored.c.taken_back.is_not(True),
    )
    is_new = ~is_stored.correlate(roles.table).exists()
    # Of two rows that say the same, the one with the stored id is the stored one.
    is_renamed = ~is_stored.where(stored.c.row_id == roles["sourcedId"]).correlate(roles.table).exists()
    return sa.tuple_(
        is_new, is_renamed, roles["role"], sa.func.coalesce(roles["sourcedId"], "", type_=CText), roles.line
    )


def _is_same_primary(one: StagedFile, other: StagedFile) -> Any:
    same = (one[header] == other[header] for header in ("userSourcedId", "orgSourcedId"))
    return sa.and_(one["roleType"] == "primary", *same)


AGENTS = Part(tables.user_agents, ("users",), select_agents)

PARTS_1_1 = (
    Part(tables.user_roles, ("users", "orgs"), select_roles_1_1),
    AGENTS,
    Part(tables.user_profiles, ("users",), select_no_profiles),
)
ROLES = Part(tables.user_roles, ("users", "roles"), select_roles_1_2, number_roles)
# The parts of formats that convert to OneRoster 1.2 and have no profiles.
PARTS_WITHOUT_PROFILES = (ROLES, AGENTS)
# Profiles come before the roles that name them.
PARTS_1_2 = (
    Part(tables.user_profiles, ("users", "userProfiles"), select_profiles),
    *PARTS_WITHOUT_PROFILES,
)

RULES_1_2 = (Rule("roles", "roleType", "is a second primary role of the user at this org", breaks_single_primary),)
