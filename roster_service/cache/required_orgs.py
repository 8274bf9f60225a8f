"""The dependencies of rendered records: the orgs that a caller must be granted, and the records to render again.

The service renders a text as for a caller with every org. The text is the same for each caller to whom all required
orgs are granted: every condition of visibility behind the text (roster_service/db/visibility.py) depends on one of
these orgs, so it has the same result for both callers. The required orgs are:

- user: the orgs of all visible roles, the primary org, and for each visible agent one org of the agent's roles;
- class: its school, whose feed has the sessions (a class with a session of another feed is not rendered);
- enrollment: its school, the school of its class, and one org at which its user has a role;
- demographics: one org at which the user has a role.

Records that no caller can see are not rendered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    CompoundSelect,
    Connection,
    FromClause,
    Select,
    Table,
    and_,
    case,
    exists,
    false,
    func,
    literal,
    literal_column,
    select,
    text,
    union,
)
from sqlalchemy.dialects.postgresql import array

from roster_service.db import tables
from roster_service.db.tables import CTexts
from roster_service.db.visibility import ContentRights, has_row
from roster_service.db.vocabulary import GUARDIAN_ROLES


@dataclass(frozen=True)
class RequiredOrgs:
    """SQL expressions over the records of one table.

    `orgs`: the array of required orgs. `guardians`: whether the guardians scope is required too. `condition`: whether
    the record is rendered at all.
    """

    orgs: ColumnElement[Any]
    guardians: ColumnElement[bool]
    condition: ColumnElement[bool]


def find_required_orgs(table: Table, rights: ContentRights) -> RequiredOrgs:
    """Returns what the rendered records of a table require. Raises KeyError for a table without rendered records."""
    return _REQUIRED[table](rights)


def has_rendered_records(table: Table) -> bool:
    """Whether the service renders the records of the table; it does not for small collections."""
    return table in _REQUIRED


def select_changed_ids(table: Table, feed_id: ColumnElement[int], since: ColumnElement[Any]) -> CompoundSelect[str]:
    """Returns the SELECT of the ids of those records of a feed whose text or required orgs may have changed since the
    instant `since`.

    It compares `dateLastModified` of all records that a text depends on, except orgs and sessions: for these,
    `read_dependency_hash` detects changes. All of them are of the same feed, because no record refers to a record of
    another feed.
    """
    return union(*(found(feed_id, since) for found in _CHANGED[table]))


# Dependencies of a text that no `dateLastModified` shows: the orgs of the feed, their districts, and its sessions.
_DEPENDENCIES = text("""
    SELECT md5(concat(
        (SELECT string_agg(jsonb_build_array(sourced_id, district_id)::text, ' ' ORDER BY sourced_id)
         FROM orgs WHERE feed_id = :feed_id), ' ',
        (SELECT string_agg(to_jsonb(sourced_id)::text, ' ' ORDER BY sourced_id)
         FROM academic_sessions WHERE feed_id = :feed_id)
    ))
""")


def read_dependency_hash(connection: Connection, feed_id: int) -> str:
    """Returns the hash of those dependencies of the feed's rendered records whose changes no `dateLastModified`
    shows."""
    return str(connection.execute(_DEPENDENCIES, {"feed_id": feed_id}).scalar_one())


# --- the records -------------------------------------------------------------------------------------------------


def _org_exists(org_id: ColumnElement[Any]) -> ColumnElement[bool]:
    """Whether the org exists. No caller sees anything at an org that does not exist."""
    org = tables.orgs.alias()
    return has_row(org, org.c.sourced_id == org_id)


def _may_be_visible(role: FromClause, *, guardians: bool) -> ColumnElement[bool]:
    """Whether a caller to whom the role's org is granted sees the role. `guardians`: with the guardians scope."""
    shown = _org_exists(role.c.org_id)
    return shown if guardians else shown & role.c.role.not_in(GUARDIAN_ROLES)


def _require_for_users(rights: ContentRights) -> RequiredOrgs:
    user, guardians = tables.users.c, rights.guardians
    own, known, held, agent = (
        tables.user_roles.alias(),
        tables.user_roles.alias(),
        tables.user_roles.alias(),
        tables.user_agents.alias(),
    )
    is_own = (own.c.user_id == user.sourced_id) & _may_be_visible(own, guardians=guardians)
    beside = has_row(
        known,
        known.c.user_id == user.sourced_id,
        known.c.org_id == held.c.org_id,
        _may_be_visible(known, guardians=guardians),
    )
    of_agent = (
        select(held.c.org_id)
        .where(held.c.user_id == agent.c.agent_id, _may_be_visible(held, guardians=guardians))
        # Preferably an org that the user's own roles require anyway.
        .order_by(beside.desc(), held.c.org_id)
        .limit(1)
        .correlate(agent, tables.users)
        .scalar_subquery()
    )
    ids = union(
        select(own.c.org_id).where(is_own).correlate(tables.users),
        select(user.primary_org_id).where(_org_exists(user.primary_org_id)).correlate(tables.users),
        select(of_agent).select_from(agent).where(agent.c.user_id == user.sourced_id, of_agent.is_not(None)),
    )
    orgs = func.array(ids.scalar_subquery(), type_=CTexts)
    return RequiredOrgs(orgs, literal(guardians), has_row(own, is_own))


def _require_for_classes(_rights: ContentRights) -> RequiredOrgs:
    taught = tables.classes.c
    school, link, session = tables.orgs.alias(), tables.class_terms.alias(), tables.academic_sessions.alias()
    foreign = exists(
        select(literal_column("1"))
        .select_from(link.join(session, session.c.sourced_id == link.c.session_id))
        .where(link.c.class_id == taught.sourced_id, session.c.feed_id != school.c.feed_id)
        .correlate(tables.classes, school)
    )
    return RequiredOrgs(
        array([taught.school_id], type_=tables.CText),
        false(),
        has_row(school, school.c.sourced_id == taught.school_id, ~foreign),
    )


def _pick_role_org(
    user_id: ColumnElement[str], *near: ColumnElement[Any]
) -> tuple[ColumnElement[str], ColumnElement[bool]]:
    """Returns (an org at which the user has a role, whether that role needs the guardians scope).

    Prefers a role that does not need the scope, and then an org that is one of `near`.
    """
    held, plain = tables.user_roles.alias(), tables.user_roles.alias()
    is_guardian = held.c.role.in_(GUARDIAN_ROLES)
    order = [is_guardian, *(() if not near else (held.c.org_id.not_in(near),)), held.c.org_id]
    org_id = (
        select(held.c.org_id)
        .where(held.c.user_id == user_id, _may_be_visible(held, guardians=True))
        .order_by(*order)
        .limit(1)
        .correlate_except(held)
        .scalar_subquery()
    )
    return org_id, ~has_row(plain, plain.c.user_id == user_id, _may_be_visible(plain, guardians=False))


def _require_for_enrollments(_rights: ContentRights) -> RequiredOrgs:
    enrolled, taught = tables.enrollments.c, tables.classes.alias()
    school_of_class = (
        select(taught.c.school_id)
        .where(taught.c.sourced_id == enrolled.class_id)
        .correlate_except(taught)
        .scalar_subquery()
    )
    org_id, guardians = _pick_role_org(enrolled.user_id, enrolled.school_id, school_of_class)
    return RequiredOrgs(
        array([enrolled.school_id, school_of_class, org_id], type_=tables.CText),
        guardians,
        and_(_org_exists(enrolled.school_id), _org_exists(school_of_class), org_id.is_not(None)),
    )


def _require_for_demographics(_rights: ContentRights) -> RequiredOrgs:
    org_id, guardians = _pick_role_org(tables.demographics.c.sourced_id)
    return RequiredOrgs(array([org_id], type_=tables.CText), guardians, org_id.is_not(None))


_REQUIRED: Mapping[Table, Callable[[ContentRights], RequiredOrgs]] = {
    tables.users: _require_for_users,
    tables.classes: _require_for_classes,
    tables.enrollments: _require_for_enrollments,
    tables.demographics: _require_for_demographics,
}


# --- what changed ------------------------------------------------------------------------------------------------

# Takes (id of the feed, instant).
_Changed = Callable[[ColumnElement[int], ColumnElement[Any]], Select[str]]


def _select_changed(table: Table) -> _Changed:
    """Selects the records that changed themselves. A change of a record's parts also changes the record's stamp."""
    return lambda feed_id, since: select(table.c.sourced_id).where(
        table.c.feed_id == feed_id, table.c.date_last_modified > since
    )


def _select_referring_to_changed(named: Column[str], other: Table) -> _Changed:
    """Selects the records whose column `named` refers to a changed record of `other`.

    In a table of parts, such as agents, the first column is the id of the owner, which is selected.
    """
    table = named.table
    owner = next(iter(table.c))
    return lambda feed_id, since: select(owner).join_from(
        table,
        other,
        and_(other.c.sourced_id == named, other.c.feed_id == feed_id, other.c.date_last_modified > since),
    )


_CHANGED: Mapping[Table, tuple[_Changed, ...]] = {
    tables.users: (
        _select_changed(tables.users),
        _select_referring_to_changed(tables.user_agents.c.agent_id, tables.users),
    ),
    tables.classes: (_select_changed(tables.classes),),
    tables.enrollments: (
        _select_changed(tables.enrollments),
        _select_referring_to_changed(tables.enrollments.c.user_id, tables.users),
        _select_referring_to_changed(tables.enrollments.c.class_id, tables.classes),
    ),
    tables.demographics: (
        _select_changed(tables.demographics),
        _select_referring_to_changed(tables.demographics.c.sourced_id, tables.users),
    ),
}


def select_common_district(orgs: ColumnElement[Any]) -> ColumnElement[str]:
    """Returns the district that all orgs of the array belong to; NULL where they have no common district."""
    org = tables.orgs.alias()
    district = org.c.district_id
    first, last = func.min(district, type_=tables.CText), func.max(district, type_=tables.CText)
    whole = (first == last) & (func.count(district) == func.count())
    return (
        select(case((whole, first))).where(org.c.sourced_id == func.any(orgs)).correlate_except(org).scalar_subquery()
    )
