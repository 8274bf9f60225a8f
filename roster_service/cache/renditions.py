"""Updates renditions in the transaction that changes the roster.

A reader therefore never sees a rendered record of another revision than the roster that it reads. These functions need
the owner of the tables: the serving role can neither write rendered records nor read the records of all vendors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
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
# Bytes of a rendered record beside its text, as measured: row header, the id twice, required orgs, index.
ROW_BYTES = 300
_RENDITION = bindparam("rendition", type_=Integer)
_ANALYZE = text(f"ANALYZE {rendered_records.name}")


def refresh_renditions(connection: Connection, views: Iterable[ResourceView], most_bytes: int) -> None:
    """Renders the changed records of the views, and all records of new views. Removes the renditions of other views.

    `most_bytes`: the bound for all renditions together. Earlier views have precedence; the service does not store a
    rendition that does not fit, and makes its records live. The connection has the transaction that changes the roster,
    no other transaction changes it meanwhile, and the visible orgs of the renderer are already those of the new roster.
    """
    wanted = _find_keys(views) if most_bytes else {}
    for other in connection.scalars(select(renditions.c.id).where(renditions.c.key.not_in(list(wanted)))).all():
        _empty(connection, other)
        connection.execute(delete(renditions).where(renditions.c.id == other))
    _refresh_all(connection, wanted, most_bytes)


def add_renditions(connection: Connection, views: Iterable[ResourceView], most_bytes: int) -> None:
    """Renders the views that have no rendition, as `refresh_renditions` does. Existing renditions stay as they are."""
    known = dict(connection.execute(select(renditions.c.key, renditions.c.bytes)).all())
    new = {key: view for key, view in _find_keys(views).items() if key not in known} if most_bytes else {}
    _refresh_all(connection, new, most_bytes - sum(known.values()))


def _find_keys(views: Iterable[ResourceView]) -> dict[str, ResourceView]:
    """Returns the views whose records are rendered, by the key of their rendition, in the given order."""
    return {make_rendition_key(view): view for view in views if has_rendition(view)}


def _refresh_all(connection: Connection, views: Mapping[str, ResourceView], room: int) -> None:
    if not views:
        return
    state = {"as_of": read_state(connection).as_of, "dependency_hash": read_dependency_hash(connection)}
    for key, view in views.items():
        room -= _refresh(connection, key, view, state, room)


def _refresh(connection: Connection, key: str, view: ResourceView, state: Mapping[str, Any], room: int) -> int:
    """Updates one rendition; returns its bytes, 0 where it does not fit into `room` bytes.

    `state`: the columns of the rendition that identify its roster (`as_of`, `dependency_hash`).
    """
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
    """Renders again the records that may have changed since the rendition; returns by how many bytes it grew."""
    values = {"rendition": rendition.id, "since": rendition.as_of}
    removed_bytes = sum(connection.scalar(statement, values) or 0 for statement in _make_removal_statements(view))
    return _render(connection, view, _select_unrendered_ids, values) - removed_bytes


@functools.lru_cache(STATEMENT_CACHE_SIZE)
def _make_removal_statements(view: ResourceView) -> tuple[Select[int], ...]:
    """Returns the statements that remove rendered records: those that may have changed since the instant `since`, and
    those whose record does not exist any more. Each statement gives the bytes that it has freed."""
    record = view.record.table.alias()
    changed = select_changed_ids(view.record.table, bindparam("since", type_=Stamp))
    is_there = select(record.c.sourced_id).where(record.c.sourced_id == rendered_records.c.sourced_id).exists()
    own = delete(rendered_records).where(rendered_records.c.rendition_id == _RENDITION)
    return (
        _return_bytes(own.where(rendered_records.c.sourced_id.in_(changed))),
        _return_bytes(own.where(~is_there)),
    )


def _select_unrendered_ids(view: ResourceView) -> Select[str]:
    """Returns the SELECT of the ids of records that have no rendered record."""
    key = view.record.table.alias().c.sourced_id
    own = select(rendered_records.c.sourced_id).where(
        rendered_records.c.rendition_id == _RENDITION, rendered_records.c.sourced_id == key
    )
    return select(key).where(~own.exists())


def _render_all(connection: Connection, view: ResourceView, number: int, room: int) -> int:
    """Renders every record in chunks, and stops when more than `room` bytes are used; returns the bytes."""
    key = view.record.table.alias().c.sourced_id
    after = bindparam("after", type_=CText)
    chunk = select(key).where(key > after).order_by(key).limit(CHUNK_RECORDS)
    values: dict[str, Any] = {"rendition": number, "after": ""}
    size = 0
    while size <= room:
        ids = connection.scalars(chunk, values).all()
        if not ids:
            break
        size += _render(connection, view, _select_listed_ids, {**values, "ids": list(ids)})
        values["after"] = ids[-1]
    # Without fresh statistics, plans from when the table was empty would go on reading the whole table.
    connection.execute(_ANALYZE)
    return size


def _select_listed_ids(_view: ResourceView) -> Select[str]:
    """Returns the SELECT of the ids that the value `ids` lists."""
    return select(func.unnest(bindparam("ids", type_=CTexts), type_=CText))


_SelectIds = Callable[[ResourceView], Select[str]]


def _render(connection: Connection, view: ResourceView, select_ids: _SelectIds, values: dict[str, Any]) -> int:
    """Renders the records with the selected ids; returns their bytes. `values`: the bound values of the SELECT of the
    ids, and `rendition`."""
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
        )
        .where(table.c.sourced_id == any_(func.array(ids.correlate(None).scalar_subquery())), required.condition)
        .order_by(table.c.sourced_id)
        # OFFSET 0 keeps this subquery separate, so that PostgreSQL computes the array of orgs once.
        .offset(literal(0))
        .subquery("made")
    )
    district = select_common_district(made.c.required_orgs)
    rendered = insert(rendered_records).from_select(
        ["rendition_id", "sourced_id", "required_orgs", "district_id", "requires_guardians", "body"],
        select(_RENDITION, made.c.sourced_id, made.c.required_orgs, district, made.c.requires_guardians, made.c.body),
    )
    return _return_bytes(rendered)


def _return_bytes(change: Insert | Delete) -> Select[int]:
    """Returns the statement that makes the change and gives the bytes of the changed rendered records."""
    done = change.returning((func.octet_length(rendered_records.c.body) + ROW_BYTES).label("size")).cte("done")
    total: ColumnElement[int] = func.sum(done.c.size)
    return select(func.coalesce(total, 0))
