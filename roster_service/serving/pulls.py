"""Pulls: a consumer that reads a collection page by page reads all pages in the ordering of its first page.

A client needs to know nothing of this. Its first page (`offset=0`) begins a pull, which is remembered for the client
and the collection, with the orderings that it reads, until some time after its last page; the URLs in `Link` name the
revision besides, so that two pulls of one client do not mix. A later page then has the records that were in the
collection at the first page, as they are now, whatever a sync has changed meanwhile. A pull whose ordering is lost, or
whose records are no longer all there for the caller, is refused: the client has to begin again.

A pull belongs to one view, which is what the caller could see at its first page, and to one revision of it. After any
change of what the caller sees, its pages are refused: a pull is found by what the caller asks for, and not by its
rights. Each view has revisions of its own (`begin_change_of_rights`), so the revision in `Link` tells also a pull of
before such a change from one of after it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import array, insert

from roster_service.db.tables import WHOLE, CText, Stamp, orderings, pulls, visible_feeds
from roster_service.errors import Problem, RefusedRequestError
from roster_service.feeds.roster_state import RosterState
from roster_service.roster.visibility import VENDOR, name_view
from roster_service.serving.ordering_statements import OFFSET, QUERY, join_orderings, select_changed, select_parts
from roster_service.serving.request import AuthorizedRequest

# Between two pages of a pull, while syncs commit. A consumer that works on a page for longer has stopped: the orders of
# its pulls are kept in the database until then.
PULL_MINUTES = 60
CALLER = sa.bindparam("caller", type_=sa.Text)
# The cast tells PostgreSQL the type of a NULL.
REVISION = sa.cast(sa.bindparam("pull_revision"), sa.BigInteger)
_ASKED = sa.bindparam("asked", type_=pulls.c.asked.type)
_CONTENT_RIGHTS = sa.bindparam("content_rights", type_=CText)
_SHOWN_REVISION = sa.bindparam("shown_revision", type_=sa.BigInteger)
_END = sa.func.now() + sa.func.make_interval(
    0, 0, 0, 0, 0, sa.bindparam("pull_minutes", type_=sa.Integer), type_=sa.Interval
)
# Why a pull cannot go on.
TIME_IS_OVER = (
    "the caller has no pull of this query with this revision, or its time is over: too long has passed since its last "
    "page"
)
VIEW_IS_ANOTHER = (
    "what you may see has changed since its first page: your grants or their schools, your scopes or the token's, the "
    "fields that are withheld from you, or a person who is kept from you"
)
ORDER_IS_GONE = (
    "its list of records is deleted, because a person of it was erased, the roster was restored from a backup, or its "
    "first page was more than a day ago"
)
RECORD_IS_GONE = "records of this page were deleted for good, or you may not see them any more"
# A pull is prolonged when this part of its time is over, so that not every page writes.
PROLONGED_PART = 4


@dataclass(frozen=True)
class Pull:
    """A pull. `state`: of the roster at its first page; `is_of_view`: whether the caller sees what it saw then;
    `seconds_left`: until it ends, if no further page is asked for; negative where it has ended."""

    state: RosterState
    is_of_view: bool
    seconds_left: float


def make_pull_cte() -> sa.CTE:
    """Returns the CTE of the pull that a request belongs to: one row, or none. Without a revision in the request, it is
    the one that the caller began last; one of the same content rights is meant before any other, because tokens of
    several scopes may pull beside each other. Not one of the present view: what is seen now may have been seen before
    the last pull began, too. A pull that has ended goes on while its orderings are stored; afterwards its pages are
    refused, because those of the present revision would lack records without a word."""
    seen = visible_feeds.alias()
    is_of_view = sa.func.coalesce(pulls.c.view == _name_view(seen), sa.false()).label("is_of_view")
    seconds_left = sa.func.extract("epoch", pulls.c.ends_at - sa.func.now()).label("seconds_left")
    state = (pulls.c.revision, pulls.c.as_of, pulls.c.deletions_since, is_of_view, seconds_left)
    found = (
        sa.select(*state, pulls.c.feed_ids, pulls.c.visible_sets, pulls.c.feed_revisions)
        .select_from(pulls.outerjoin(seen, _is_whole(seen)))
        .where(_is_own(), sa.or_(REVISION.is_(None), pulls.c.revision == REVISION))
    )
    of_rights = sa.func.right(pulls.c.view, sa.func.length(_CONTENT_RIGHTS)) == _CONTENT_RIGHTS
    return found.order_by(of_rights.desc(), pulls.c.begun_at.desc()).limit(1).cte("pull")


def list_pull_columns(pull: sa.CTE) -> tuple[Any, ...]:
    """Returns the columns that `read_pull` takes."""
    names = ("revision", "as_of", "deletions_since", "is_of_view", "seconds_left")
    return tuple(pull.c[name].label(f"pull_{name}") for name in names)


def select_asked_parts(pull: sa.CTE) -> sa.CompoundSelect[Any]:
    """Returns the SELECT of (feed, visible set, revision) of each ordering that the page is read from: those of the
    pull that goes on, else the present ones."""
    goes_on = (OFFSET > 0) & sa.exists(sa.select(sa.literal_column("1")).select_from(pull))
    part = (
        sa.func.unnest(pull.c.feed_ids, pull.c.visible_sets, pull.c.feed_revisions)
        .table_valued(
            sa.column("feed_id", sa.Integer), sa.column("visible_set", CText), sa.column("revision", sa.BigInteger)
        )
        .render_derived(name="part")
    )
    of_pull = sa.select(part.c.feed_id, part.c.visible_set, part.c.revision).select_from(pull.join(part, sa.true()))
    return sa.union_all(select_parts().where(~goes_on), of_pull.where(OFFSET > 0))


def read_pull(row: Any, request: AuthorizedRequest, present: RosterState) -> Pull | None:
    """Returns the pull of a row with the columns of `list_pull_columns`. Raises RefusedRequestError (PULL_ENDED) if the
    request names a revision that is neither the present one nor of a pull, and for a later page of a pull of another
    view."""
    if row.pull_revision is None:
        if request.plan.revision not in (None, present.revision):
            raise refuse_ended(TIME_IS_OVER)
        return None
    if request.plan.offset and not row.pull_is_of_view:
        raise refuse_ended(VIEW_IS_ANOTHER)
    later = None if row.pull_revision == present.revision else present.revision
    state = RosterState(row.pull_revision, row.pull_as_of, row.pull_deletions_since, later)
    return Pull(state, bool(row.pull_is_of_view), float(row.pull_seconds_left))


def refuse_ended(reason: str) -> RefusedRequestError:
    """Makes the refusal of a page whose pull cannot go on. `reason`: continues "this pull cannot go on: "."""
    return RefusedRequestError(Problem.PULL_ENDED, f"this pull cannot go on: {reason}; begin again with the first page")


@functools.cache
def make_pull_row() -> sa.Select[Any]:
    """Returns the statement that begins a pull of the orderings of the state that `bind_pull` gives. It gives no row if
    the caller sees another revision now, or if one of the orderings is not stored any more."""
    part = select_parts().subquery("part")
    stored = sa.select(
        _collect(part.c.feed_id, pulls.c.feed_ids),
        _collect(part.c.visible_set, pulls.c.visible_sets),
        _collect(part.c.revision, pulls.c.feed_revisions),
        sa.func.coalesce(sa.func.bool_and(orderings.c.bytes.is_not(None)), sa.true()).label("is_stored"),
    ).select_from(join_orderings(part))
    found, seen = stored.subquery("stored"), visible_feeds.alias()
    is_present = sa.and_(_is_whole(seen), seen.c.revision == _SHOWN_REVISION)
    values: dict[str, sa.ColumnElement[Any]] = {
        "caller": CALLER,
        "asked": _ASKED,
        "revision": seen.c.revision,
        "view": _name_view(seen),
        "as_of": sa.bindparam("shown_as_of", type_=Stamp),
        "deletions_since": sa.bindparam("shown_deletions_since", type_=Stamp),
        "query": QUERY,
        "feed_ids": found.c.feed_ids,
        "visible_sets": found.c.visible_sets,
        "feed_revisions": found.c.feed_revisions,
        "begun_at": sa.func.now(),
        "ends_at": _END,
    }
    begun = sa.select(*values.values()).select_from(seen.join(found, sa.true())).where(is_present, found.c.is_stored)
    row = insert(pulls).from_select(list(values), begun)
    key = list(pulls.primary_key)
    replaced = {name: row.excluded[name] for name in values if pulls.c[name] not in key}
    begins = row.on_conflict_do_update(index_elements=key, set_=replaced)
    return select_changed(begins.returning(pulls.c.revision))


@functools.cache
def prolong_pull() -> sa.Select[Any]:
    """Returns the statement that prolongs the pull of the orderings of the state that `bind_pull` gives. It gives no
    row if the pull has ended. While it has not, its orderings are not evicted."""
    seen = visible_feeds.alias()
    is_of_view = sa.and_(_is_whole(seen), pulls.c.view == _name_view(seen))
    own = sa.update(pulls).where(_is_own(), pulls.c.revision == _SHOWN_REVISION, is_of_view)
    return select_changed(own.values(ends_at=_END).returning(pulls.c.revision))


def bind_pull(state: RosterState, minutes: int) -> dict[str, Any]:
    """Returns the values of the two statements beside those of the request. `minutes`: until the pull ends."""
    return {
        "shown_revision": state.revision,
        "shown_as_of": state.as_of,
        "shown_deletions_since": state.deletions_since,
        "pull_minutes": minutes,
    }


def _is_own() -> sa.ColumnElement[bool]:
    return (pulls.c.caller == CALLER) & (pulls.c.asked == _ASKED)


def _is_whole(seen: sa.FromClause) -> sa.ColumnElement[bool]:
    return (seen.c.vendor_id == VENDOR) & (seen.c.feed_id == WHOLE)


def _name_view(seen: sa.FromClause) -> sa.ColumnElement[str]:
    """Returns the view of the caller: which records it sees, and what of them."""
    return name_view(seen.c) + sa.literal_column("' '", CText) + _CONTENT_RIGHTS


def _collect(column: sa.ColumnElement[Any], of_pull: sa.Column[Any]) -> sa.ColumnElement[Any]:
    return sa.func.coalesce(sa.func.array_agg(column), sa.cast(array([]), of_pull.type)).label(of_pull.name)
