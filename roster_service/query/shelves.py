"""Filling shelves: the documents of a view, made in chunks, carried over from one roster to the next, and evicted.

A shelf belongs to one roster. When the roster has changed, those documents are made anew that may be others now, and
then the shelf is of the new roster, all in one transaction; until then nobody reads it. This is for the tables' owner:
who serves can neither write documents nor read the records of all callers.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from psycopg2.errors import SerializationFailure
from sqlalchemy import (
    ColumnElement,
    Connection,
    Delete,
    Engine,
    Insert,
    Integer,
    Row,
    Select,
    any_,
    bindparam,
    cast,
    delete,
    func,
    insert,
    literal,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import INTERVAL
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.exc import OperationalError

from roster_service.access.roster_state import RosterState, read_state
from roster_service.db.document_tables import documents, shelves
from roster_service.db.needs import changed_since, district_of, needs_of, read_ground
from roster_service.db.tables import CText, CTexts, Stamp, orgs, roster_state
from roster_service.query.documents import BASE, key_of, whole_json
from roster_service.query.plan import View
from roster_service.query.statements import KEPT

CHUNK_RECORDS = 5000
# Beside the text itself, by measurement: the row's head, its id twice, what it needs, the index.
ROW_BYTES = 300
# What was used in the last hour makes no room for others: two that do not fit beside each other would take turns.
IDLE = "1 hour"
_SHELF = bindparam("shelf", type_=Integer)
_ANALYZE = text(f"ANALYZE {documents.name}")


@dataclass(frozen=True)
class Means:
    """What may be spent: the bytes of all shelves together, and until when (`time.monotonic`) a chunk is begun."""

    most_bytes: int
    end: float

    @classmethod
    def of(cls, megabytes: int, seconds: float) -> Means:
        """The means of a service that was given so much."""
        return cls(megabytes * 10**6, time.monotonic() + seconds)


def fill(engine: Engine, view: View, means: Means) -> bool:
    """Brings the shelf of a view to the roster that is, a transaction for each step; whether all of it is there.

    Not all is there where another process is at it, and where the means or the roster came to their end. `engine`: of
    the tables' owner.
    """
    # One step sees one roster.
    stepping = engine.execution_options(isolation_level="REPEATABLE READ")
    is_whole: bool | None = None
    while is_whole is None and time.monotonic() < means.end:
        try:
            with stepping.begin() as connection:
                is_whole = _step(connection, view, means)
        except OperationalError as error:
            # Another process was done with the shelf just now: this step saw it as it was before.
            if not isinstance(error.orig, SerializationFailure):
                raise
    return is_whole or False


def _step(connection: Connection, view: View, means: Means) -> bool | None:
    """Does the next step; whether the shelf is whole, None where there is more to do."""
    state = read_state(connection)
    shelf = _take(connection, view, state)
    if shelf is None:
        return False
    if shelf.revision != state.revision:
        _carry_over(connection, view, shelf, state)
    elif shelf.reached is None:
        return True
    elif not _make_room(connection, shelf.id, means.most_bytes):
        return False
    else:
        _add_chunk(connection, view, shelf)
    return None


def drop_shelves(engine: Engine, *, but: Collection[str]) -> None:
    """Removes the shelves of older rosters, other than those with the keys `but`."""
    with engine.begin() as connection:
        older = shelves.c.revision < select(roster_state.c.revision).scalar_subquery()
        doomed = select(shelves.c.id).where(older, shelves.c.key.not_in(list(but))).with_for_update(skip_locked=True)
        for shelf in connection.scalars(doomed).all():
            _remove(connection, shelf)


def _take(connection: Connection, view: View, state: RosterState) -> Row[Any] | None:
    """The shelf, for this transaction alone; None where another one has it. It counts as used."""
    key = key_of(view)
    if not connection.scalar(select(func.pg_try_advisory_xact_lock(int(key[:15], 16)))):
        return None
    row = {
        "key": key,
        "revision": state.revision,
        "as_of": state.as_of,
        "ground": read_ground(connection),
        "reached": "",
        "bytes": 0,
        "used_at": func.now(),
    }
    taken = upsert(shelves).values(row).on_conflict_do_update(index_elements=["key"], set_={"used_at": func.now()})
    return connection.execute(taken.returning(*shelves.c)).one()


def _carry_over(connection: Connection, view: View, shelf: Row[Any], state: RosterState) -> None:
    """Makes the shelf one of the roster that this transaction sees."""
    ground = read_ground(connection)
    values = {"revision": state.revision, "as_of": state.as_of, "ground": ground}
    if ground != shelf.ground or shelf.reached is not None or state.as_of < shelf.as_of:
        # What was not all there is not worth the look at what changed.
        connection.execute(delete(documents).where(documents.c.shelf == shelf.id))
        connection.execute(update(shelves).where(shelves.c.id == shelf.id).values(**values, reached="", bytes=0))
        return
    asked = {"shelf": shelf.id, "since": shelf.as_of}
    gone = sum(connection.scalar(statement, asked) or 0 for statement in _outdated_statements(view))
    made = _insert(connection, view, _absent(view), asked)
    size = shelf.bytes - gone + made
    connection.execute(update(shelves).where(shelves.c.id == shelf.id).values(**values, bytes=size))


@functools.lru_cache(KEPT)
def _outdated_statements(view: View) -> tuple[Select[int], ...]:
    """What removes the documents on the shelf `shelf` that may be others since the instant `since`, or whose record is
    gone; each gives the bytes that it has freed."""
    record = view.record.table.alias()
    changed = changed_since(view.record.table, bindparam("since", type_=Stamp))
    standing = select(record.c.sourced_id).where(record.c.sourced_id == documents.c.sourced_id).exists()
    mine = delete(documents).where(documents.c.shelf == _SHELF)
    return (
        _size_of(mine.where(documents.c.sourced_id.in_(changed))),
        _size_of(mine.where(~standing)),
    )


def _absent(view: View) -> Select[str]:
    """The ids of the records that have no document on the shelf `shelf`."""
    key = view.record.table.alias().c.sourced_id
    has_one = select(documents.c.sourced_id).where(documents.c.shelf == _SHELF, documents.c.sourced_id == key).exists()
    return select(key).where(~has_one)


def _add_chunk(connection: Connection, view: View, shelf: Row[Any]) -> None:
    """Adds the documents of the next records."""
    key = view.record.table.alias().c.sourced_id
    chosen = select(key).where(key > bindparam("reached", type_=CText)).order_by(key).limit(CHUNK_RECORDS)
    asked = {"shelf": shelf.id, "reached": shelf.reached}
    ids = connection.scalars(chosen, asked).all()
    size = _insert(connection, view, _LISTED, {**asked, "ids": list(ids)})
    reached = ids[-1] if len(ids) == CHUNK_RECORDS else None
    connection.execute(
        update(shelves).where(shelves.c.id == shelf.id).values(reached=reached, bytes=shelf.bytes + size)
    )
    if reached is None or not shelf.reached:
        # Statements that were planned while there were none would go on reading all of them.
        connection.execute(_ANALYZE)


_LISTED = select(func.unnest(bindparam("ids", type_=CTexts), type_=CText))


def _insert(connection: Connection, view: View, chosen: Select[str], asked: dict[str, Any]) -> int:
    """Makes the documents of the chosen records; returns their bytes."""
    every_org = list(connection.scalars(select(orgs.c.sourced_id)))
    values = {**asked, "caller_districts": [], "caller_schools": every_org, "base_url": BASE}
    return connection.scalar(_size_of(_insert_statement(view, chosen)), values) or 0


def _insert_statement(view: View, chosen: Select[str]) -> Insert:
    table = view.record.table
    needs = needs_of(table, view.sight)
    made = (
        select(
            table.c.sourced_id,
            needs.orgs.label("needs"),
            needs.guardians.label("guardians"),
            whole_json(view).label("body"),
        )
        .where(table.c.sourced_id == any_(func.array(chosen.correlate(None).scalar_subquery())), needs.condition)
        .order_by(table.c.sourced_id)
        # Of its own: the list of orgs is made once.
        .offset(literal(0))
        .subquery("made")
    )
    return insert(documents).from_select(
        ["shelf", "sourced_id", "needs", "district_id", "needs_guardians", "body"],
        select(_SHELF, made.c.sourced_id, made.c.needs, district_of(made.c.needs), made.c.guardians, made.c.body),
    )


def _size_of(change: Insert | Delete) -> Select[int]:
    """The change, and the bytes of the documents that it is about."""
    done = change.returning((func.octet_length(documents.c.body) + ROW_BYTES).label("size")).cte("done")
    total: ColumnElement[int] = func.sum(done.c.size)
    return select(func.coalesce(total, 0))


def _make_room(connection: Connection, own: int, most_bytes: int) -> bool:
    """Removes shelves that were not used for long, where all together take too much; whether there is room now."""
    used = connection.scalar(select(func.coalesce(func.sum(shelves.c.bytes), 0))) or 0
    idle = (shelves.c.id != own) & (shelves.c.used_at < func.now() - cast(literal(IDLE), INTERVAL))
    others = select(shelves.c.id, shelves.c.bytes).where(idle).order_by(shelves.c.used_at)
    for other in connection.execute(others.with_for_update(skip_locked=True)).all() if used >= most_bytes else ():
        _remove(connection, other.id)
        used -= other.bytes
        if used < most_bytes:
            break
    return used < most_bytes


def _remove(connection: Connection, shelf: int) -> None:
    connection.execute(delete(documents).where(documents.c.shelf == shelf))
    connection.execute(delete(shelves).where(shelves.c.id == shelf))
