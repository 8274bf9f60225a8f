"""Pulls: a consumer that reads a collection page by page reads all pages in the ordering of its first page.

A client needs to know nothing of this. Its first page (`offset=0`) begins a pull, which is remembered for the client
and the collection until some time after its last page; the URLs in `Link` name the revision besides, so that two pulls
of one client do not mix. A later page then has the records that were in the collection at the first page, as they are
now, whatever a sync has changed meanwhile. A pull whose ordering is lost, or whose records are no longer all there for
the caller, is refused: the client has to begin again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import CTE, BigInteger, ColumnElement, Interval, Text, bindparam, case, cast, func, literal, or_, select
from sqlalchemy.dialects.postgresql import insert

from roster_service.access.roster_state import RosterState
from roster_service.cache.ordering_statements import OFFSET
from roster_service.db.tables import Stamp, orderings, pulls
from roster_service.db.visibility import read_visible_set
from roster_service.errors import Problem, RefusedRequestError
from roster_service.query.request import AuthorizedRequest

CALLER = bindparam("caller", type_=Text)
QUERY = bindparam("query", type_=pulls.c.query.type)
# The cast tells PostgreSQL the type of a NULL.
REVISION = cast(bindparam("pull_revision"), BigInteger)
# A pull is prolonged when this part of its time is over, so that not every page writes.
PROLONGED_PART = 4


@dataclass(frozen=True)
class Pull:
    """A pull that goes on. `state`: of the roster at its first page; `seconds_left`: until it ends, if no further page
    is asked for."""

    state: RosterState
    seconds_left: float


def make_pull_cte() -> CTE:
    """Returns the CTE of the pull that a request belongs to: one row, or none. Without a revision in the request, it is
    the one that the caller began last."""
    is_own = (pulls.c.caller == CALLER) & (pulls.c.query == QUERY) & (pulls.c.ends_at > func.now())
    seconds_left = func.extract("epoch", pulls.c.ends_at - func.now())
    columns = (pulls.c.revision, pulls.c.as_of, pulls.c.deletions_since, seconds_left.label("seconds_left"))
    found = select(*columns).where(is_own, or_(REVISION.is_(None), pulls.c.revision == REVISION))
    return found.order_by(pulls.c.begun_at.desc()).limit(1).cte("pull")


def choose_revision(state: CTE, pull: CTE) -> Any:
    """Returns the expression of the revision whose ordering a page is read from. `state`: of the present roster."""
    return case((OFFSET > 0, func.coalesce(pull.c.revision, state.c.revision)), else_=state.c.revision)


def read_pull(columns: tuple[Any, ...], request: AuthorizedRequest, present: RosterState) -> Pull | None:
    """Returns the pull of these columns of `make_pull_cte`. Raises RefusedRequestError (PULL_ENDED) if the request
    names a revision that is neither the present one nor of a pull."""
    revision, as_of, deletions_since, seconds_left = columns
    if revision is None:
        if request.plan.revision not in (None, present.revision):
            raise refuse_ended("it has ended")
        return None
    later = None if revision == present.revision else present.revision
    return Pull(RosterState(revision, as_of, deletions_since, later), float(seconds_left))


def refuse_ended(reason: str) -> RefusedRequestError:
    """Makes the refusal of a page whose pull cannot go on. `reason`: continues "this pull cannot go on: "."""
    return RefusedRequestError(Problem.PULL_ENDED, f"this pull cannot go on: {reason}; begin again with the first page")


def make_pull_row(request: AuthorizedRequest, state: RosterState, minutes: int) -> Any:
    """Returns the statement that begins a pull of the ordering of `state`, or prolongs it. It gives no row if that
    ordering is not stored for the caller any more."""
    stored = (
        (orderings.c.query == request.query_hash)
        & (orderings.c.visible_set == read_visible_set())
        & (orderings.c.revision == state.revision)
        & (orderings.c.bytes > 0)
    )
    values: dict[str, ColumnElement[Any]] = {
        "caller": literal(request.caller, Text),
        "query": orderings.c.query,
        "revision": orderings.c.revision,
        "as_of": literal(state.as_of, Stamp),
        "deletions_since": literal(state.deletions_since, Stamp),
        "begun_at": func.now(),
        "ends_at": func.now() + literal(timedelta(minutes=minutes), Interval),
    }
    row = insert(pulls).from_select(list(values), select(*values.values()).where(stored))
    changed = {"ends_at": row.excluded.ends_at}
    if not request.plan.offset:
        changed["begun_at"] = row.excluded.begun_at
    return row.on_conflict_do_update(index_elements=list(pulls.primary_key), set_=changed).returning(pulls.c.revision)
