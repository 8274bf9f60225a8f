"""An authorized request: a plan, who asks, and what its statements are bound to."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlalchemy.dialects import postgresql

from roster_service.db.round_trip import Call
from roster_service.query.plan import Plan, QueryShape
from roster_service.query.statements import (
    HREF_ROOT,
    STATEMENT_CACHE_SIZE,
    Driver,
    make_collection_condition,
    make_sort_keys,
    select_ids,
)


@dataclass(frozen=True)
class AuthorizedRequest:
    """A plan of a vendor's request.

    `admission` admits the vendor in the transaction of the read. `path_values`: the values that the plan's path filter
    is bound to, beside the ids of the path.
    """

    plan: Plan
    vendor_id: int
    admission: Call
    path_values: Mapping[str, Any]

    @cached_property
    def values(self) -> dict[str, Any]:
        """What the statements of the plan are bound to."""
        return {
            "vendor_id": self.vendor_id,
            "base_url": HREF_ROOT,
            # No text in PostgreSQL has a NUL, so no record has such an id.
            **{f"path_{name}": None if "\x00" in value else value for name, value in self.plan.path_ids},
            **self.path_values,
            "page_limit": self.plan.limit,
            "page_offset": self.plan.offset,
            "query": self.query_hash,
        }

    @cached_property
    def query_hash(self) -> bytes:
        """A hash of all that decides which records the collection has, and in which order, but for the revision and
        the orgs that the vendor sees: pages of one query share an ordering."""
        plan, shape = self.plan, make_ordering_shape(self.plan)
        path_values = {
            name: sorted(value) if isinstance(value, list) else value for name, value in self.path_values.items()
        }
        facts = (_hash_shape(shape), _describe_filter(plan), sorted(plan.path_ids), sorted(path_values.items()))
        return hashlib.sha256(repr(facts).encode()).digest()


def make_ordering_shape(plan: Plan) -> QueryShape:
    """The part of a plan's outline that decides its ordering: neither the direction nor the fields."""
    shape = dataclasses.replace(plan.shape, descending=False, fields=())
    # Who only counts asks for no order.
    return shape if plan.limit else dataclasses.replace(shape, sort=None)


@functools.lru_cache(STATEMENT_CACHE_SIZE)
def _hash_shape(shape: QueryShape) -> bytes:
    """A hash of the statement without a filter, which says everything of an outline: nothing that changes it can be
    forgotten."""
    ids = select_ids(shape, make_collection_condition(shape, Driver.VISIBILITY)).order_by(*make_sort_keys(shape))
    compiled = ids.compile(dialect=postgresql.dialect())  # type: ignore[no-untyped-call]
    return hashlib.sha256(repr((str(compiled), sorted(compiled.params.items()))).encode()).digest()


def _describe_filter(plan: Plan) -> object:
    """The filter as it was typed, and what decides which values it is held against: its SQL follows from these."""
    if plan.filter is None:
        return None
    view = plan.shape.view
    metadata = sorted(kind.value for kind in view.rights.metadata)
    return plan.filter, view.record.__module__, view.record.__qualname__, view.rights.guardians, metadata
