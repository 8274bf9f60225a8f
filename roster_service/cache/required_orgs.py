"""What a rendered record depends on: which orgs a caller must have been granted for the text of a record to be what the
caller would get of it, and which records have to be made anew when others changed.

A text is made as for a caller who was granted every org. It is the same for each caller who was granted all the orgs
that it requires: every condition of visibility behind the text (roster_service/db/visibility.py) holds for both, or for
neither, because it asks for one of these orgs.

- A user: the orgs of all roles that are shown, the primary org, and for each agent who is shown one org of theirs.
- A class: its school, whose feed brings the sessions; a class with a session of another feed is not rendered.
- An enrollment: its school, its class's school, and one org at which its user has a role.
- Demographics: one org at which the user has a role.

What nobody can see is not rendered.
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
    """Of the rendered records of one table: the list of orgs, whether the right to see guardians is required too, and
    which records are rendered."""

    orgs: ColumnElement[Any]
    guardians: ColumnElement[bool]
    condition: ColumnElement[bool]


def find_required_orgs(table: Table, rights: ContentRights) -> RequiredOrgs:
    """What the rendered records of a table require. KeyError for a table that has none."""
    return _REQUIRED[table](rights)


def has_rendered_records(table: Table) -> bool:
    """Whether records of the table are rendered: those of small collections are not."""
    return table in _REQUIRED


def select_changed_ids(table: Table, since: ColumnElement[Any]) -> CompoundSelect[str]:
    """The ids of the records whose text or required orgs may be others than at the instant `since`, by the stamps of
    all that they depend on. Orgs and sessions are looked at by `read_dependency_hash`."""
    return union(*(found(since) for found in _CHANGED[table]))


# What a text depends on beside stamps: which orgs there are and in which district each lies, which feed brings which
# session.
_DEPENDENCIES = text("""
    SELECT md5(concat(
        (SELECT string_agg(jsonb_build_array(sourced_id, feed_id, district_id)::text, ' ' ORDER BY sourced_id)
         FROM orgs), ' ',
        (SELECT string_agg(jsonb_build_array(sourced_id, feed_id)::text, ' ' ORDER BY sourced_id)
         FROM academic_sessions)
    ))
""")


def read_dependency_hash(connection: Connection) -> str:
    """The hash of what rendered records depend on without a stamp of their own saying so."""
    return str(connection.execute(_DEPENDENCIES).scalar_one())


# --- the records -------------------------------------------------------------------------------------------------


def _org(org_id: ColumnElement[Any]) -> ColumnElement[bool]:
    """Whether there is such an org: at one that there is not, nobody sees anything."""
    org = tables.orgs.alias()
    return has_row(org, org.c.sourced_id == org_id)


def _may_be_visible(role: FromClause, *, guardians: bool) -> ColumnElement[bool]:
    """Whether a role is shown to callers who were granted its org."""
    shown = _org(role.c.org_id)
    return shown if guardians else shown & role.c.role.not_in(GUARDIAN_ROLES)


def _users(rights: ContentRights) -> RequiredOrgs:
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
        # One that is required anyway, if there is any.
        .order_by(beside.desc(), held.c.org_id)
        .limit(1)
        .correlate(agent, tables.users)
        .scalar_subquery()
    )
    ids = union(
        select(own.c.org_id).where(is_own).correlate(tables.users),
        select(user.primary_org_id).where(_org(user.primary_org_id)).correlate(tables.users),
        select(of_agent).select_from(agent).where(agent.c.user_id == user.sourced_id, of_agent.is_not(None)),
    )
    orgs = func.array(ids.scalar_subquery(), type_=CTexts)
    return RequiredOrgs(orgs, literal(guardians), has_row(own, is_own))


def _classes(_rights: ContentRights) -> RequiredOrgs:
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


def _of_user(user_id: ColumnElement[str], *near: ColumnElement[Any]) -> tuple[ColumnElement[str], ColumnElement[bool]]:
    """(an org at which the user has a role, whether it takes the right to see guardians): one that does not if there is
    any, and then one of `near`."""
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


def _enrollments(_rights: ContentRights) -> RequiredOrgs:
    enrolled, taught = tables.enrollments.c, tables.classes.alias()
    school_of_class = (
        select(taught.c.school_id)
        .where(taught.c.sourced_id == enrolled.class_id)
        .correlate_except(taught)
        .scalar_subquery()
    )
    org_id, guardians = _of_user(enrolled.user_id, enrolled.school_id, school_of_class)
    return RequiredOrgs(
        array([enrolled.school_id, school_of_class, org_id], type_=tables.CText),
        guardians,
        and_(_org(enrolled.school_id), _org(school_of_class), org_id.is_not(None)),
    )


def _demographics(_rights: ContentRights) -> RequiredOrgs:
    org_id, guardians = _of_user(tables.demographics.c.sourced_id)
    return RequiredOrgs(array([org_id], type_=tables.CText), guardians, org_id.is_not(None))


_REQUIRED: Mapping[Table, Callable[[ContentRights], RequiredOrgs]] = {
    tables.users: _users,
    tables.classes: _classes,
    tables.enrollments: _enrollments,
    tables.demographics: _demographics,
}


# --- what changed ------------------------------------------------------------------------------------------------

_Changed = Callable[[ColumnElement[Any]], Select[str]]


def _own(table: Table) -> _Changed:
    """The records that changed themselves; a change of the parts of a record is one of the record."""
    return lambda since: select(table.c.sourced_id).where(table.c.date_last_modified > since)


def _through(named: Column[str], other: Table) -> _Changed:
    """The records that name, in the column `named`, another one that changed; a part names for its owner."""
    table = named.table
    owner = next(iter(table.c))
    return lambda since: select(owner).join_from(
        table, other, (other.c.sourced_id == named) & (other.c.date_last_modified > since)
    )


_CHANGED: Mapping[Table, tuple[_Changed, ...]] = {
    tables.users: (_own(tables.users), _through(tables.user_agents.c.agent_id, tables.users)),
    tables.classes: (_own(tables.classes),),
    tables.enrollments: (
        _own(tables.enrollments),
        _through(tables.enrollments.c.user_id, tables.users),
        _through(tables.enrollments.c.class_id, tables.classes),
    ),
    tables.demographics: (
        _own(tables.demographics),
        _through(tables.demographics.c.sourced_id, tables.users),
    ),
}


def select_common_district(orgs: ColumnElement[Any]) -> ColumnElement[str]:
    """The district that all orgs of the list lie in; NULL where there is no such one."""
    org = tables.orgs.alias()
    district = org.c.district_id
    first, last = func.min(district, type_=tables.CText), func.max(district, type_=tables.CText)
    whole = (first == last) & (func.count(district) == func.count())
    return (
        select(case((whole, first))).where(org.c.sourced_id == func.any(orgs)).correlate_except(org).scalar_subquery()
    )
