"""What is made before anybody asks: the orders of the whole collections and the documents of their records, for
everyone who may ask for them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import Column, Connection, Engine, Row, Select, func, select

from roster_service.access.roster_state import RosterState, read_state
from roster_service.access.scopes import ScopeName, make_sight, read_scopes
from roster_service.db.tables import CTexts, oauth_clients, vendor_grants, vendors
from roster_service.db.visibility import Sight, keep_sight, open_roster
from roster_service.query.documents import has_shelf, key_of
from roster_service.query.params import Wish
from roster_service.query.plan import make_plan, make_view
from roster_service.query.selections import Selection
from roster_service.query.shelves import Means, drop_shelves, fill
from roster_service.query.walk_eviction import Bounds, evict
from roster_service.query.walks import Walk, Walks, make_walk
from roster_service.schemas.records import Record


@dataclass(frozen=True)
class Listing:
    """A collection without a parent: the version of its scopes, any one of which opens it, and its records."""

    version: str
    scopes: frozenset[ScopeName]
    record: type[Record]
    selection: Selection


@dataclass(frozen=True)
class Warmth:
    """How many walks or shelves are kept, and how many were left because the time or the room was up or the roster
    changed."""

    kept: int
    left: int


def warm_documents(engine: Engine, listings: Iterable[Listing], means: Means) -> Warmth:
    """Brings the shelves that enabled clients can ask for to the roster that is; others of older rosters go.

    `engine`: of the tables' owner.
    """
    with engine.connect() as connection:
        clients = connection.execute(_clients()).all()
    views = (make_view(listing.record, sight) for client in clients for listing, sight in _openings(client, listings))
    # Two scopes often show the same records in the same way.
    wanted = {key_of(view): view for view in views if means.most_bytes and has_shelf(view)}
    kept = sum([fill(engine, view, means) for view in wanted.values()])
    drop_shelves(engine, but=() if time.monotonic() < means.end else wanted)
    return Warmth(kept, len(wanted) - kept)


def warm(engine: Engine, walking: Engine, listings: Iterable[Listing], *, megabytes: int, seconds: float) -> Warmth:
    """Keeps the plain order of every listing for every enabled client, once for those who see the same.

    Walks of older rosters go first. `engine`: it reads the accounts. `walking`: of `make_walking_engine`.
    `megabytes`: what all walks may take; `seconds`: after this time no further walk is begun.
    """
    end = time.monotonic() + seconds
    with engine.begin() as connection:
        state = read_state(connection)
        evict(connection, state.revision, Bounds.of(megabytes))
        for vendor in connection.execute(_grants()):
            keep_sight(connection, vendor.districts, vendor.schools)
        wanted = {
            walk.key: (client, walk)
            for client in connection.execute(_clients()).all()
            for walk in _walks_of(connection, client, listings, state)
        }
    walks = Walks(walking, megabytes)
    kept = 0
    for client, walk in wanted.values():
        sight = walk.plan.outline.view.sight
        opening = partial(open_roster, districts=client.districts, schools=client.schools, sight=sight)
        if time.monotonic() >= end or walks.keep(walk, opening) is None:
            break
        kept += 1
    return Warmth(kept, len(wanted) - kept)


def _grants(*columns: Column[Any]) -> Select[*tuple[Any, ...]]:
    """What every enabled vendor was granted, after other `columns`."""
    own = vendor_grants.c.vendor_id == vendors.c.id
    single = vendor_grants.c.school_id.is_not(None)
    districts = select(vendor_grants.c.district_id).where(own, ~single).scalar_subquery()
    schools = select(vendor_grants.c.school_id).where(own, single).scalar_subquery()
    granted = (
        func.array(districts, type_=CTexts).label("districts"),
        func.array(schools, type_=CTexts).label("schools"),
    )
    return select(*columns, *granted).where(vendors.c.enabled)


def _clients() -> Select[*tuple[Any, ...]]:
    """Every enabled client: its scopes, and what its vendor was granted."""
    return (
        _grants(oauth_clients.c.scopes)
        .select_from(oauth_clients.join(vendors))
        .where(oauth_clients.c.enabled)
        .order_by(oauth_clients.c.client_id)
    )


def _openings(client: Row[Any], listings: Iterable[Listing]) -> Iterator[tuple[Listing, Sight]]:
    """The listings that a client's scopes open, and what they show there."""
    for listing in listings:
        names = frozenset(scope.name for scope in read_scopes(client.scopes) if scope.version == listing.version)
        if names & listing.scopes:
            yield listing, make_sight(names)


def _walks_of(
    connection: Connection, client: Row[Any], listings: Iterable[Listing], state: RosterState
) -> Iterator[Walk]:
    wish = Wish(limit=1, offset=0, filter=None, sort=None, descending=False, fields=None)
    values = {"caller_districts": list(client.districts), "caller_schools": list(client.schools)}
    for listing, sight in _openings(client, listings):
        plan = make_plan(wish, listing.record, sight, listing.selection, {})
        opening = open_roster(connection, client.districts, client.schools, sight)
        yield make_walk(plan, values, state, opening, everyone=False)
