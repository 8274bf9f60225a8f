"""Districts whose contract ended: their grants end at once, and their feeds are removed with all records.

A reference never leads into another feed, so a district lies in one feed. Two feeds may bring the same district under
different ids; they have its identifier in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from roster_service.accounts.org_list import ACTIVE, DISTRICT
from roster_service.accounts.vendors import invalidate_tokens
from roster_service.change_log.actors import Actor
from roster_service.change_log.changes import State, Subject, Verb, recorded
from roster_service.db.tables import feeds, orgs, vendor_grants, vendors
from roster_service.errors import CommandError


@dataclass(frozen=True)
class EndedDistrict:
    """A district as `end_district` leaves it. `ids`: its sourcedIds; `feeds`: the feeds that brought it, to be removed;
    `vendors`: the e-mails of the vendors that had a grant."""

    name: str
    ids: tuple[str, ...]
    feeds: tuple[str, ...]
    vendors: tuple[str, ...]


def end_district(connection: sa.Connection, actor: Actor, district: str) -> EndedDistrict:
    """Ends all grants of a district and of its schools, so that no vendor sees it any more. Returns the feeds that the
    caller removes after the commit, with all their records: the removal is a run of the sync.

    `district` is a sourcedId, an identifier or a unique name. Raises CommandError if there is no such district, and if
    a feed also brings another one: its next export would bring the district back.
    """
    found = _find_districts(connection, district)
    ids = tuple(row.sourced_id for row in found)
    _require_own_feeds(connection, found)
    subject = Subject("district", found[0].sourced_id)
    of_district = vendor_grants.c.district_id.in_(ids)
    holding = sa.select(vendor_grants.c.vendor_id).where(of_district)
    holders = connection.execute(sa.select(vendors.c.id, vendors.c.email).where(vendors.c.id.in_(holding))).all()
    names = tuple(sorted({row.feed for row in found}))

    def read_state() -> State:
        left = sa.select(vendors.c.email).join(vendor_grants).where(of_district).distinct().order_by(vendors.c.email)
        return {"feeds": list(names), "granted_to": list(connection.scalars(left))}

    with recorded(connection, actor, Verb.DISTRICT_REMOVE, subject, read_state):
        connection.execute(sa.delete(vendor_grants).where(of_district))
        for holder in holders:
            invalidate_tokens(connection, holder.id)
    return EndedDistrict(found[0].name, ids, names, tuple(sorted(holder.email for holder in holders)))


def _find_districts(connection: sa.Connection, name: str) -> Sequence[Any]:
    """Returns the rows of a district, one for each feed that brings it."""
    named = _select(connection, sa.or_(orgs.c.sourced_id == name, orgs.c.identifier == name))
    named = named or _select(connection, orgs.c.name == name, orgs.c.status == ACTIVE)
    identifiers = {row.identifier for row in named if row.identifier}
    if not named or len(identifiers | {row.sourced_id for row in named if not row.identifier}) > 1:
        count = "no" if not named else "more than one"
        hint = "`roster district list` shows all"
        raise CommandError(f"there is {count} district with the sourcedId, identifier or name {name!r}; {hint}")
    return _select(connection, orgs.c.identifier.in_(identifiers)) if identifiers else named


def _select(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> Sequence[Any]:
    columns = (orgs.c.sourced_id, orgs.c.name, orgs.c.identifier, orgs.c.feed_id, feeds.c.name.label("feed"))
    joined = orgs.join(feeds, feeds.c.id == orgs.c.feed_id)
    wanted = sa.select(*columns).select_from(joined).where(orgs.c.type == DISTRICT, *conditions)
    return connection.execute(wanted.order_by(orgs.c.sourced_id)).all()


def _require_own_feeds(connection: sa.Connection, found: Sequence[Any]) -> None:
    own = [row.sourced_id for row in found]
    others = _select(
        connection,
        orgs.c.feed_id.in_({row.feed_id for row in found}),
        orgs.c.sourced_id.not_in(own),
        orgs.c.status == ACTIVE,
    )
    if others:
        names = ", ".join(sorted({row.name for row in others}))
        raise CommandError(
            f"the feed {others[0].feed} also brings {names}: let its export leave the district out, and load it; until "
            "then, `roster vendor revoke` ends the grants"
        )
