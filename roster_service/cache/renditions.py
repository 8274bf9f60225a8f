"""Updates renditions in the transaction that changes the roster.

A reader therefore never sees a rendered record of another revision than the roster that it reads. These functions need
the owner of the tables: the serving role can neither write rendered records nor read the records of all vendors.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Delete,
    Insert,
    Integer,
    Row,
    Select,
    and_,
    any_,
    bindparam,
    delete,
    func,
    insert,
    literal,
    select,
    text,
    type_coerce,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from roster_service.cache.rendered_records import (
    has_rendition,
    make_full_json,
    make_rendition_id,
    make_stored_person,
)
from roster_service.cache.required_orgs import (
    find_required_orgs,
    read_dependency_hash,
    select_changed_ids,
    select_common_district,
)
from roster_service.db.tables import CText, CTexts, Stamp, feeds, rendered_records, renditions
from roster_service.db.visibility import RENDERER
from roster_service.query.plan import ResourceView
from roster_service.query.statements import HREF_ROOT, STATEMENT_CACHE_SIZE

CHUNK_RECORDS = 5000
# Bytes of a rendered record beside its text, as measured: row header, the id twice, required orgs, index.
ROW_BYTES = 300
_RENDITION = bindparam("rendition", type_=BigInteger)
_FEED = bindparam("feed", type_=Integer)
# SKIP_LOCKED, because a load that has analyzed the table keeps its lock until it ends.
_ANALYZE = text(f"ANALYZE (SKIP_LOCKED) {rendered_records.name}")


def refresh_renditions(
    connection: Connection,
    views: Iterable[ResourceView],
    feed_ids: Iterable[int],
    most_bytes: int,
    as_of: datetime | None = None,
) -> None:
    """Renders the changed records of these feeds for the views, and all of their records for new views. Removes the
    feeds' parts of the renditions of other views.

    `most_bytes`: the bound for all renditions together. Within a feed, earlier views have precedence; the service does
    not store a part that does not fit beside those of the other feeds, and makes its records live. `as_of`: the stamp
    of the changes; None if they have none. The connection has the transaction that changes the feeds,
    no other transaction changes them meanwhile, and the visible orgs of the renderer are already those of the feeds.
    """
    wanted = _find_ids(views) if most_bytes else {}
    for feed_id in sorted(feed_ids):
        own = and_(renditions.c.feed_id == feed_id, renditions.c.id.not_in(list(wanted)))
        for other in connection.scalars(delete(renditions).where(own).returning(renditions.c.id)).all():
            _empty(connection, other, feed_id)
        _Feed(connection, feed_id, as_of or _read_stamp(connection, feed_id)).refresh(wanted, most_bytes)


def add_renditions(connection: Connection, views: Iterable[ResourceView], most_bytes: int) -> None:
    """Renders the views that a feed has no rendition of, as `refresh_renditions` does. Existing parts stay as they are.
    No other transaction changes the roster meanwhile."""
    wanted = _find_ids(views) if most_bytes else {}
    known: defaultdict[int, set[int]] = defaultdict(set)
    for feed_id, number in connection.execute(select(renditions.c.feed_id, renditions.c.id)):
        known[feed_id].add(number)
    for feed_id, stamp in connection.execute(select(feeds.c.id, feeds.c.as_of).order_by(feeds.c.id)).all():
        new = {number: view for number, view in wanted.items() if number not in known[feed_id]}
        _Feed(connection, feed_id, stamp).refresh(new, most_bytes)


def _read_stamp(connection: Connection, feed_id: int) -> datetime:
    stamp: datetime = connection.execute(select(feeds.c.as_of).where(feeds.c.id == feed_id)).scalar_one()
    return stamp


def _find_ids(views: Iterable[ResourceView]) -> dict[int, ResourceView]:
    """Returns the views whose records are rendered, by the id of their rendition, in the given order."""
    return {make_rendition_id(view): view for view in views if has_rendition(view)}


@dataclass(frozen=True)
class _Feed:
    """A feed whose parts of renditions are refreshed. `as_of`: its newest stamp."""

    connection: Connection
    feed_id: int
    as_of: datetime

    def refresh(self, views: Mapping[int, ResourceView], most_bytes: int) -> None:
        """Updates the parts of these renditions, as far as they fit beside all other parts."""
        if not views:
            return
        dependency_hash = read_dependency_hash(self.connection, self.feed_id)
        is_own = and_(renditions.c.feed_id == self.feed_id, renditions.c.id.in_(list(views)))
        others = select(func.coalesce(func.sum(renditions.c.bytes), 0)).where(renditions.c.is_kept, ~is_own)
        room = most_bytes - int(self.connection.execute(others).scalar_one())
        for number, view in views.items():
            room -= self._refresh_part(number, view, dependency_hash, room)

    def _refresh_part(self, number: int, view: ResourceView, dependency_hash: str, room: int) -> int:
        """Updates the feed's part of one rendition; returns its bytes, 0 where it does not fit into `room` bytes."""
        own = and_(renditions.c.id == number, renditions.c.feed_id == self.feed_id)
        known = self.connection.execute(select(renditions).where(own)).one_or_none()
        if known is None:
            size = _render_all(self.connection, view, number, self.feed_id, room)
        elif known.is_kept and known.dependency_hash == dependency_hash and known.as_of <= self.as_of:
            size = known.bytes + _render_changed(self.connection, view, known)
        elif known.is_kept or known.bytes <= room:
            _empty(self.connection, number, self.feed_id)
            size = _render_all(self.connection, view, number, self.feed_id, room)
        else:
            return 0
        fits = size <= room
        if not fits:
            _empty(self.connection, number, self.feed_id)
        values = {"as_of": self.as_of, "dependency_hash": dependency_hash, "is_kept": fits, "bytes": size}
        added = upsert(renditions).values(id=number, feed_id=self.feed_id, **values)
        self.connection.execute(added.on_conflict_do_update(constraint=renditions.primary_key, set_=values))
        return size if fits else 0


def _empty(connection: Connection, number: int, feed_id: int) -> None:
    own = and_(rendered_records.c.rendition_id == number, rendered_records.c.feed_id == feed_id)
    connection.execute(delete(rendered_records).where(own))


def _render_changed(connection: Connection, view: ResourceView, part: Row[Any]) -> int:
    """Renders again the records that may have changed since the part was rendered; returns by how many bytes it
    grew."""
    values = {"rendition": part.id, "feed": part.feed_id, "since": part.as_of}
    removed_bytes = sum(connection.scalar(statement, values) or 0 for statement in _make_removal_statements(view))
    return _render(connection, view, _select_unrendered_ids, values) - removed_bytes


@functools.lru_cache(STATEMENT_CACHE_SIZE)
def _make_removal_statements(view: ResourceView) -> tuple[Select[int], ...]:
    """Returns the statements that remove rendered records of a feed: those that may have changed since the instant
    `since`, and those whose record does not exist any more. Each statement gives the bytes that it has freed."""
    record = view.record.table.alias()
    changed = select_changed_ids(view.record.table, _FEED, bindparam("since", type_=Stamp))
    is_there = select(record.c.sourced_id).where(record.c.sourced_id == rendered_records.c.sourced_id).exists()
    own = delete(rendered_records).where(
        rendered_records.c.rendition_id == _RENDITION, rendered_records.c.feed_id == _FEED
    )
    return (
        _return_bytes(own.where(rendered_records.c.sourced_id.in_(changed))),
        _return_bytes(own.where(~is_there)),
    )


def _select_unrendered_ids(view: ResourceView) -> Select[str]:
    """Returns the SELECT of the ids of the feed's records that have no rendered record."""
    record = view.record.table.alias()
    own = select(rendered_records.c.sourced_id).where(
        rendered_records.c.rendition_id == _RENDITION,
        rendered_records.c.feed_id == _FEED,
        rendered_records.c.sourced_id == record.c.sourced_id,
    )
    return select(record.c.sourced_id).where(record.c.feed_id == _FEED, ~own.exists())


def _render_all(connection: Connection, view: ResourceView, number: int, feed_id: int, room: int) -> int:
    """Renders every record of a feed in chunks, and stops when more than `room` bytes are used; returns the bytes."""
    record = view.record.table.alias()
    listed = select(record.c.sourced_id).where(record.c.feed_id == feed_id).order_by(record.c.sourced_id)
    size = 0
    with connection.scalars(listed, execution_options={"yield_per": CHUNK_RECORDS}) as found:
        for ids in found.partitions():
            values = {"rendition": number, "feed": feed_id, "ids": list(ids)}
            size += _render(connection, view, _select_listed_ids, values)
            if size > room:
                break
    # Without fresh statistics, plans from when the table was empty would go on reading the whole table.
    connection.execute(_ANALYZE)
    return size


def _select_listed_ids(_view: ResourceView) -> Select[str]:
    """Returns the SELECT of the ids that the value `ids` lists."""
    return select(func.unnest(bindparam("ids", type_=CTexts), type_=CText))


_SelectIds = Callable[[ResourceView], Select[str]]


def _render(connection: Connection, view: ResourceView, select_ids: _SelectIds, values: dict[str, Any]) -> int:
    """Renders the records with the selected ids; returns their bytes. `values`: the bound values of the SELECT of the
    ids, and `rendition` and `feed`."""
    bound = {**values, "vendor_id": RENDERER, "base_url": HREF_ROOT}
    return connection.scalar(_make_render_statement(view, select_ids), bound) or 0


# All chunks of a rendition have the same statement.
@functools.lru_cache(STATEMENT_CACHE_SIZE)
def _make_render_statement(view: ResourceView, select_ids: _SelectIds) -> Select[int]:
    """Returns the statement that renders records and gives their bytes."""
    table = view.record.table
    ids = select_ids(view)
    required = find_required_orgs(table, view.rights)
    made = (
        select(
            table.c.sourced_id,
            required.orgs.label("required_orgs"),
            required.guardians.label("requires_guardians"),
            make_full_json(view).label("body"),
            type_coerce(make_stored_person(view), CText).label("person_id"),
        )
        .where(table.c.sourced_id == any_(func.array(ids.correlate(None).scalar_subquery())), required.condition)
        .order_by(table.c.sourced_id)
        # OFFSET 0 keeps this subquery separate, so that PostgreSQL computes the array of orgs once.
        .offset(literal(0))
        .subquery("made")
    )
    district = select_common_district(made.c.required_orgs)
    rendered = insert(rendered_records).from_select(
        [
            *("rendition_id", "sourced_id", "feed_id", "required_orgs", "district_id", "requires_guardians", "body"),
            "person_id",
        ],
        select(
            _RENDITION,
            made.c.sourced_id,
            _FEED,
            made.c.required_orgs,
            district,
            made.c.requires_guardians,
            made.c.body,
            made.c.person_id,
        ),
    )
    return _return_bytes(rendered)


def _return_bytes(change: Insert | Delete) -> Select[int]:
    """Returns the statement that makes the change and gives the bytes of the changed rendered records."""
    done = change.returning((func.octet_length(rendered_records.c.body) + ROW_BYTES).label("size")).cte("done")
    total: ColumnElement[int] = func.sum(done.c.size)
    return select(func.coalesce(total, 0))
