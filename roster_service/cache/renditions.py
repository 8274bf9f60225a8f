"""Brings renditions up to the roster that a transaction is about to commit. What changed is rendered in that
transaction, so a rendered record is never of another roster than the one that it is read with.

This is for the owner of the tables: the role that serves can neither write rendered records nor read the records of all
vendors.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Delete,
    Insert,
    Integer,
    Row,
    Select,
    any_,
    bindparam,
    delete,
    func,
    insert,
    literal,
    select,
    text,
    update,
)

from roster_service.access.roster_state import read_state
from roster_service.cache.rendered_records import has_rendition, make_full_json, make_rendition_key
from roster_service.cache.required_orgs import (
    find_required_orgs,
    read_dependency_hash,
    select_changed_ids,
    select_common_district,
)
from roster_service.db.tables import CText, CTexts, Stamp, rendered_records, renditions
from roster_service.db.visibility import RENDERER
from roster_service.query.plan import ResourceView
from roster_service.query.statements import HREF_ROOT, STATEMENT_CACHE_SIZE

CHUNK_RECORDS = 5000
# Beside the text itself, by measurement: the row's head, its id twice, what it requires, the index.
ROW_BYTES = 300
_RENDITION = bindparam("rendition", type_=Integer)
_ANALYZE = text(f"ANALYZE {rendered_records.name}")


def refresh_renditions(connection: Connection, views: Iterable[ResourceView], most_bytes: int) -> None:
    """Renders what has changed of the views, and all of those that are new; other renditions are removed.

    All renditions together take `most_bytes` at most: the first ones come first, and one that does not fit is not kept,
    so its records are made live. The connection is the transaction that changes the roster, and no other one does so
    meanwhile; the rows of visible orgs that are rendered with are those of the new roster.
    """
    wanted = _find_keys(views) if most_bytes else {}
    for other in connection.scalars(select(renditions.c.id).where(renditions.c.key.not_in(list(wanted)))).all():
        _empty(connection, other)
        connection.execute(delete(renditions).where(renditions.c.id == other))
    _refresh_all(connection, wanted, most_bytes)


def add_renditions(connection: Connection, views: Iterable[ResourceView], most_bytes: int) -> None:
    """Renders the views that are new, as `refresh_renditions`; the others stay as they are."""
    known = dict(connection.execute(select(renditions.c.key, renditions.c.bytes)).all())
    new = {key: view for key, view in _find_keys(views).items() if key not in known} if most_bytes else {}
    _refresh_all(connection, new, most_bytes - sum(known.values()))


def _find_keys(views: Iterable[ResourceView]) -> dict[str, ResourceView]:
    """The views that have renditions, by the key of the rendition, in their order."""
    return {make_rendition_key(view): view for view in views if has_rendition(view)}


def _refresh_all(connection: Connection, views: Mapping[str, ResourceView], room: int) -> None:
    if not views:
        return
    state = {"as_of": read_state(connection).as_of, "dependency_hash": read_dependency_hash(connection)}
    for key, view in views.items():
        room -= _refresh(connection, key, view, state, room)


def _refresh(connection: Connection, key: str, view: ResourceView, state: Mapping[str, Any], room: int) -> int:
    """Brings one rendition up to the roster; returns the bytes that it takes. `state`: what the rendition says of the
    roster that it is of."""
    known = connection.execute(select(renditions).where(renditions.c.key == key)).one_or_none()
    if known is None:
        added = insert(renditions).values(key=key, is_kept=True, bytes=0, **state)
        number = connection.execute(added.returning(renditions.c.id)).scalar_one()
        size = _render_all(connection, view, number, room)
    elif known.is_kept and known.dependency_hash == state["dependency_hash"] and known.as_of <= state["as_of"]:
        number, size = known.id, known.bytes + _render_changed(connection, view, known)
    elif known.is_kept or known.bytes <= room:
        _empty(connection, known.id)
        number, size = known.id, _render_all(connection, view, known.id, room)
    else:
        return 0
    fits = size <= room
    if not fits:
        _empty(connection, number)
    connection.execute(update(renditions).where(renditions.c.id == number).values(**state, is_kept=fits, bytes=size))
    return size if fits else 0


def _empty(connection: Connection, number: int) -> None:
    connection.execute(delete(rendered_records).where(rendered_records.c.rendition_id == number))


def _render_changed(connection: Connection, view: ResourceView, rendition: Row[Any]) -> int:
    """Renders the records that may be others since the rendition was refreshed; returns by how many bytes it grew."""
    asked = {"rendition": rendition.id, "since": rendition.as_of}
    gone = sum(connection.scalar(statement, asked) or 0 for statement in _make_removal_statements(view))
    return _render(connection, view, _select_unrendered_ids(view), asked) - gone


@functools.lru_cache(STATEMENT_CACHE_SIZE)
def _make_removal_statements(view: ResourceView) -> tuple[Select[int], ...]:
    """What removes the rendered records that may be others since the instant `since`, or whose record is gone; each
    gives the bytes that it has freed."""
    record = view.record.table.alias()
    changed = select_changed_ids(view.record.table, bindparam("since", type_=Stamp))
    is_there = select(record.c.sourced_id).where(record.c.sourced_id == rendered_records.c.sourced_id).exists()
    own = delete(rendered_records).where(rendered_records.c.rendition_id == _RENDITION)
    return (
        _return_bytes(own.where(rendered_records.c.sourced_id.in_(changed))),
        _return_bytes(own.where(~is_there)),
    )


def _select_unrendered_ids(view: ResourceView) -> Select[str]:
    """The ids of the records that are not rendered."""
    key = view.record.table.alias().c.sourced_id
    own = select(rendered_records.c.sourced_id).where(
        rendered_records.c.rendition_id == _RENDITION, rendered_records.c.sourced_id == key
    )
    return select(key).where(~own.exists())


def _render_all(connection: Connection, view: ResourceView, number: int, room: int) -> int:
    """Renders every record, chunk by chunk until the room is full; returns the bytes."""
    key = view.record.table.alias().c.sourced_id
    after = bindparam("after", type_=CText)
    chunk = select(key).where(key > after).order_by(key).limit(CHUNK_RECORDS)
    asked: dict[str, Any] = {"rendition": number, "after": ""}
    size = 0
    while size <= room:
        ids = connection.scalars(chunk, asked).all()
        if not ids:
            break
        size += _render(connection, view, _LISTED, {**asked, "ids": list(ids)})
        asked["after"] = ids[-1]
    # Statements that were planned while there were none would go on reading all of them.
    connection.execute(_ANALYZE)
    return size


_LISTED = select(func.unnest(bindparam("ids", type_=CTexts), type_=CText))


def _render(connection: Connection, view: ResourceView, chosen: Select[str], asked: dict[str, Any]) -> int:
    """Renders the chosen records; returns their bytes."""
    values = {**asked, "vendor_id": RENDERER, "base_url": HREF_ROOT}
    return connection.scalar(_return_bytes(_make_render_statement(view, chosen)), values) or 0


def _make_render_statement(view: ResourceView, chosen: Select[str]) -> Insert:
    table = view.record.table
    required = find_required_orgs(table, view.rights)
    made = (
        select(
            table.c.sourced_id,
            required.orgs.label("required_orgs"),
            required.guardians.label("requires_guardians"),
            make_full_json(view).label("body"),
        )
        .where(table.c.sourced_id == any_(func.array(chosen.correlate(None).scalar_subquery())), required.condition)
        .order_by(table.c.sourced_id)
        # Of its own: the list of orgs is made once.
        .offset(literal(0))
        .subquery("made")
    )
    district = select_common_district(made.c.required_orgs)
    return insert(rendered_records).from_select(
        ["rendition_id", "sourced_id", "required_orgs", "district_id", "requires_guardians", "body"],
        select(_RENDITION, made.c.sourced_id, made.c.required_orgs, district, made.c.requires_guardians, made.c.body),
    )


def _return_bytes(change: Insert | Delete) -> Select[int]:
    """The change, and the bytes of the rendered records that it is about."""
    done = change.returning((func.octet_length(rendered_records.c.body) + ROW_BYTES).label("size")).cte("done")
    total: ColumnElement[int] = func.sum(done.c.size)
    return select(func.coalesce(total, 0))
