"""Warm-up: makes the orderings of whole collections for registered clients.

The service thus has them ready before a client sends its first request after a sync.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import sqlalchemy as sa

from roster_service.auth.agreed_rights import find_rights, read_rights
from roster_service.auth.credentials.tokens import AccessToken
from roster_service.auth.scopes import ScopeName, read_scopes
from roster_service.db.tables import WHOLE, oauth_clients, vendor_grants, vendors, visible_feeds
from roster_service.schemas.records import Record
from roster_service.serving.orderings import Made, Orderings, evict_orderings
from roster_service.serving.params import Params
from roster_service.serving.path_filters import PathFilter
from roster_service.serving.plan import make_plan
from roster_service.serving.request import AuthorizedRequest

_WHOLE_COLLECTION = Params(limit=1, offset=0, filter=None, sort=None, descending=False, fields=None)


@dataclass(frozen=True)
class Listing:
    """A collection without a parent. `version`: the prefix of its scopes; any one of `scopes` allows it."""

    version: str
    scopes: frozenset[ScopeName]
    record: type[Record]
    path_filter: PathFilter


@dataclass(frozen=True)
class WarmUp:
    """How many orderings are stored, and how many were left out because the time was up or the roster changed."""

    kept: int
    left: int


def make_orderings(
    engine: sa.Engine, ordering_engine: sa.Engine, listings: Iterable[Listing], *, megabytes: int, seconds: float
) -> WarmUp:
    """Makes the unfiltered, unsorted ordering of every listing for every enabled client.

    Clients that see the same records share one ordering. `engine`: of the tables' owner. `ordering_engine`: from
    `make_ordering_engine`. `megabytes`: the bound for all orderings together. `seconds`: no ordering is begun after
    this time.
    """
    end = time.monotonic() + seconds
    with engine.begin() as connection:
        evict_orderings(connection, megabytes * 10**6)
        # Clients with the same grants and scopes have the same requests.
        tokens = {(seen, token.version, token.scope_names): token for token, seen in _list_tokens(connection)}
        wanted = {
            (visible_set, request.query_hash): request
            for (visible_set, _, _), token in tokens.items()
            for request in _list_requests(token, listings)
        }
    orderings = Orderings(ordering_engine, megabytes)
    kept = 0
    for request in wanted.values():
        if time.monotonic() >= end or orderings.make(request) is not Made.STORED:
            break
        kept += 1
    return WarmUp(kept, len(wanted) - kept)


def _list_allowed(version: str, names: frozenset[ScopeName], listings: Iterable[Listing]) -> Iterator[Listing]:
    """Yields the listings of a version that these scopes allow."""
    return (listing for listing in listings if listing.version == version and names & listing.scopes)


def _list_tokens(connection: sa.Connection) -> list[tuple[AccessToken, str]]:
    """Returns (token, hash of its visible orgs) for each enabled client and version, with all its scopes."""
    of_vendor = (vendors.c.grant_version, vendors.c.visibility_key, vendors.c.has_rules, *read_rights())

    found = (
        sa.select(oauth_clients, *of_vendor, visible_feeds.c.visible_set)
        .select_from(oauth_clients.join(vendors).join(visible_feeds))
        .where(oauth_clients.c.enabled, vendors.c.enabled, visible_feeds.c.feed_id == WHOLE)
        # The database admits no vendor without a grant, and none whose agreement does not hold.
        .where(sa.exists().where(vendor_grants.c.vendor_id == vendors.c.id))
        .where(sa.func.find_agreement_refusal(vendors.c.id).is_(None))
        .order_by(oauth_clients.c.client_id)
    )
    tokens = []
    for client in connection.execute(found):
        rights = find_rights(client)
        scopes = rights.limit(read_scopes(client.scopes))
        for version in dict.fromkeys(scope.version for scope in scopes):
            token = AccessToken(
                client_id=client.client_id,
                vendor_id=client.vendor_id,
                grant_version=client.grant_version,
                client_version=client.version,
                visibility_key=str(client.visibility_key),
                withheld=rights.withheld,
                metadata_keys=rights.metadata_keys,
                has_rules=client.has_rules,
                scopes=tuple(scope for scope in scopes if scope.version == version),
                key_id=None,
                expires_at=0,
            )
            tokens.append((token, client.visible_set))
    return tokens


def _list_requests(token: AccessToken, listings: Iterable[Listing]) -> Iterator[AuthorizedRequest]:
    for listing in _list_allowed(token.version, token.scope_names, listings):
        plan = make_plan(_WHOLE_COLLECTION, listing.record, token.rights, listing.path_filter, {})
        yield AuthorizedRequest(plan, token.vendor_id, token.client_id, token.admission, {})
