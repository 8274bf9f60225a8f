"""Authorized requests: a plan, the vendor that sends it, and the values that are bound to its statements."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from roster_service.db.round_trip import Call
from roster_service.roster.visibility import ContentRights, MetadataOf, Viewer
from roster_service.serving import statements
from roster_service.serving.departures import EVERY_DEPARTURE, has_departures, join_departures
from roster_service.serving.plan import Plan, QueryShape, make_resource_view
from roster_service.serving.statements import HREF_ROOT, STATEMENT_CACHE_SIZE, Driver

# The path values that the service has found for the caller; all others are in the request.
FOUND_VALUES = frozenset({"requested_districts"})
_ALL_RIGHTS = ContentRights(
    Viewer.RULED_VENDOR, guardians=True, metadata=frozenset(MetadataOf), metadata_keys=None, withheld=frozenset()
)


@dataclass(frozen=True)
class AuthorizedRequest:
    """A plan together with the vendor on whose behalf it is read.

    `caller`: the id of the vendor's client, or the prefix of its API key: each has pulls of its own. `admission`: the
    call that admits the vendor in the transaction of the read. `path_values`: bound values of the plan's path filter,
    beside the ids of the path.
    """

    plan: Plan
    vendor_id: int
    caller: str
    admission: Call
    path_values: Mapping[str, Any]

    @cached_property
    def values(self) -> dict[str, Any]:
        """The values bound to the statements of the plan, by parameter name."""
        return {
            "vendor_id": self.vendor_id,
            "base_url": HREF_ROOT,
            # No text in PostgreSQL contains a NUL, so no record has such an id; NULL equals none.
            **{f"path_{name}": None if "\x00" in value else value for name, value in self.plan.path_ids},
            **self.path_values,
            "page_limit": self.plan.limit,
            "page_offset": self.plan.offset,
            "query": self.query_hash,
            "caller": self.caller,
            "asked": self.asked_hash,
            "content_rights": _hash_rights(self.plan.shape.view.rights),
            "pull_revision": self.plan.revision,
            "by_feed": self.by_feed,
        }

    @property
    def by_feed(self) -> bool:
        """Whether the collection has an ordering for each feed: it is a whole one, in the order without a sort. Then
        the records of a feed are together, so a sync of one feed leaves the order of all others. (A filter or a parent
        leaves so few records of a feed that one ordering for all feeds costs less.)"""
        plan = self.plan
        is_whole = plan.filter is None and not plan.path_ids and not self.path_values
        return is_whole and plan.shape.sort is None and plan.limit > 0

    @cached_property
    def query_hash(self) -> bytes:
        """The hash that identifies the ordering of the plan's collection, so that all pages of a query share it.

        It covers everything that decides the records and their order, except the revision and the vendor's visible
        orgs: these are columns of their own in the key of an ordering.
        """
        plan, shape = self.plan, make_ordering_shape(self.plan)
        # Without a sort, the records of a whole collection are ordered by feed first; `sort=sourcedId` compiles to the
        # same text, and has one ordering of all feeds.
        return _hash(
            *(self.by_feed, _hash_shape(shape), _describe_filter(plan)),
            *(sorted(plan.path_ids), _sort_values(self.path_values)),
        )

    @cached_property
    def asked_hash(self) -> bytes:
        """The hash of what the caller asks for, whatever its rights: path, filter and sort, in the version that it
        asks. A pull is found by it, also after a change of rights."""
        plan, view = self.plan, self.plan.shape.view
        asked = {name: value for name, value in self.path_values.items() if name not in FOUND_VALUES}
        list_of = QueryShape(
            make_resource_view(view.record, _ALL_RIGHTS), plan.shape.path_filter, None, descending=False, fields=()
        )
        return _hash(
            *(view.record.__module__, view.record.__qualname__, _hash_shape(list_of), plan.filter),
            *(plan.asked_sort, sorted(plan.path_ids), _sort_values(asked)),
        )


def _hash(*facts: object) -> bytes:
    return hashlib.sha256(repr(facts).encode()).digest()


def _sort_values(path_values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return sorted((name, sorted(value) if isinstance(value, list) else value) for name, value in path_values.items())


@functools.lru_cache(STATEMENT_CACHE_SIZE)
def _hash_rights(rights: ContentRights) -> str:
    """Returns a hash of what content rights show of a record. Whether there are rules is in the visible set."""
    return _hash(rights.shown).hex()[:32]


def make_ordering_shape(plan: Plan) -> QueryShape:
    """Returns the query shape of a plan's ordering: without direction and fields, which do not change the ordering."""
    shape = plan.shape
    # A request with limit 0 only counts, so the sort does not matter.
    return QueryShape(shape.view, shape.path_filter, shape.sort if plan.limit else None, descending=False, fields=())


@functools.lru_cache(STATEMENT_CACHE_SIZE)
def _hash_shape(shape: QueryShape) -> bytes:
    """Returns a hash of the compiled statement for the shape, without the filter.

    The compiled text contains everything that a shape changes, so no part of the shape can be missing from the hash.
    Whether the vendor has groups and kept people is in the visible set of an ordering.
    """
    # A vendor from which somebody is kept for the first time goes on with the same query.
    rights = dataclasses.replace(shape.view.rights, viewer=Viewer.RULED_VENDOR)
    shape = dataclasses.replace(shape, view=make_resource_view(shape.view.record, rights))
    keys = [key.element for key in statements.make_sort_keys(shape)]
    condition = statements.make_collection_condition(shape, Driver.VISIBILITY)
    ids = join_departures(shape, (condition,), (sa.true(), EVERY_DEPARTURE if has_departures(shape) else None), keys)
    compiled = ids.compile(dialect=postgresql.dialect())  # type: ignore[no-untyped-call]
    return _hash(str(compiled), sorted(compiled.params.items()))


def _describe_filter(plan: Plan) -> object:
    """Returns everything that the filter's SQL depends on: the typed filter, the record type, the content rights."""
    if plan.filter is None:
        return None
    view = plan.shape.view
    return plan.filter, view.record.__module__, view.record.__qualname__, _hash_rights(view.rights)
