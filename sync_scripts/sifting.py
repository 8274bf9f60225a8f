"""Sifts the rows that are as they were the night before from those that have to be looked at.

A record keeps the fingerprint of the row that it was made of. A row with the same fingerprint has passed the checks of
its cells, and says what is stored; it is looked at again only where something that it refers to is lost. One pass
over a file and its table finds the rows without an equal record, and the records without an equal row.

That holds as long as every record of the feed is said in full each time: a run in which a file is absent, or a
delta, leaves the feed without trust in its fingerprints, and the next run looks at everything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    FromClause,
    Select,
    Table,
    and_,
    exists,
    func,
    literal,
    or_,
    select,
    true,
    union,
    update,
)
from sqlalchemy.types import BigInteger

from roster_service.db.tables import CText, feeds
from sync_scripts.cells import UNREAD, to_list
from sync_scripts.formats import Format, Staged, StagedFile
from sync_scripts.standing import ACTIVE, NOTHING_SIFTED, Absent, Ground
from sync_scripts.temporary import PLACE, TupleId, analyze_temporary, create_temporary, like

# Goes up when a check or a conversion changes: every row is then looked at once more.
RULES = 1
SEPARATOR = "\x1f"


@dataclass(frozen=True)
class Sifted:
    """The staged files, the sifted ones with their `fresh` rows; and of their tables, the ids of the active records
    that no row equals."""

    files: Staged
    absent: Absent


def make_fingerprint(file: StagedFile, form: Format) -> ColumnElement[int]:
    """The fingerprint of a row: of every cell that is read, and of what the file is."""
    read = [cell.header for cell in file.file.cells if cell.kind is not UNREAD and not cell.kind.secret]
    nature = "\n".join((str(RULES), form.name, *read, *file.metadata_keys))
    seed = int.from_bytes(hashlib.sha256(nature.encode()).digest()[:8], "big", signed=True)
    cells = [func.coalesce(column, "") for column in (*(file[header] for header in read), *file.metadata_columns)]
    return func.hashtextextended(func.concat_ws(SEPARATOR, *cells), literal(seed, BigInteger), type_=BigInteger)


def can_trust(connection: Connection, feed_id: int) -> bool:
    """Whether the fingerprints of a feed tell what its last run saw."""
    return connection.scalar(select(feeds.c.fingerprinted).where(feeds.c.id == feed_id)) is True


def says_everything(connection: Connection, staged: Staged, form: Format, feed_id: int, deltas: frozenset[str]) -> bool:
    """Whether an export says every record of the feed in full."""
    if deltas:
        return False
    silent = form.tables - {file.file.table for file in staged.values()}
    return not any(_has_records(connection, table, feed_id) for table in silent)


def _has_records(connection: Connection, table: Table, feed_id: int) -> bool:
    return connection.scalar(select(exists().where(table.c.feed_id == feed_id, table.c.status == ACTIVE))) is True


def sift(
    connection: Connection, staged: Staged, form: Format, feed_id: int, deltas: frozenset[str] = frozenset()
) -> Sifted:
    """Sifts the bulk files whose rows are records by themselves; the others stay whole."""
    if not can_trust(connection, feed_id):
        return Sifted(staged, NOTHING_SIFTED)
    files = dict(staged)
    absent: dict[Table, Table] = {}
    for name, file in staged.items():
        table = file.file.table
        if table is not None and name not in deltas and _is_plain(file) and _has_records(connection, table, feed_id):
            found = _sift_file(connection, file, table, form, feed_id)
            if found is not None:
                files[name], absent[table] = found
    _return_lost(connection, files, absent, feed_id, deltas)
    return Sifted(files, absent)


def _is_plain(file: StagedFile) -> bool:
    """Whether a row says its record by itself: in a tree, other rows matter too. Trees are small."""
    return file.file.unique and not any(cell.refers is not None and cell.refers.tree for cell in file.file.cells)


def _sift_file(
    connection: Connection, file: StagedFile, table: Table, form: Format, feed_id: int
) -> tuple[StagedFile, Table] | None:
    """(the file with its fresh rows, the ids of the records without an equal row); None where ids come twice, which
    the checks then tell."""
    columns = [column for column in file.table.c if column.name != "ctid" and not _is_secret(file, column.name)]
    rows = select(
        file.place.label(PLACE), *columns, file["sourcedId"].label("row_id"), make_fingerprint(file, form).label("mark")
    ).subquery("rows")
    own = and_(table.c.feed_id == feed_id, table.c.status == ACTIVE)
    stored = select(table.c.sourced_id, table.c.fingerprint).where(own).subquery("stored")
    equal = and_(rows.c.mark == stored.c.fingerprint, rows.c.row_id == stored.c.sourced_id)
    unequal = select(rows.c[PLACE], *(rows.c[column.name] for column in columns), stored.c.sourced_id)
    unequal = unequal.select_from(rows.join(stored, equal, full=True))
    unequal = unequal.where(or_(rows.c[PLACE].is_(None), stored.c.sourced_id.is_(None)))
    name = file.file.name
    made = create_temporary(
        connection, f"fresh_{name}", [Column(PLACE, TupleId()), *like(columns), Column("stored_id", CText)]
    )
    connection.execute(made.insert().from_select([column.name for column in made.c], unequal))
    absent = create_temporary(connection, f"absent_{name}", [Column("sourced_id", CText)])
    alone = select(made.c.stored_id).where(made.c[PLACE].is_(None))
    missing = connection.execute(absent.insert().from_select(["sourced_id"], alone)).rowcount
    connection.execute(made.delete().where(made.c[PLACE].is_(None)))
    analyze_temporary(connection, made)
    analyze_temporary(connection, absent)
    fresh = StagedFile(file.file, made, file.metadata_keys)
    total = connection.scalar(select(func.count()).select_from(file.table)) or 0
    news = connection.scalar(select(func.count()).select_from(made)) or 0
    active = connection.scalar(select(func.count()).select_from(table).where(own)) or 0
    # Two rows may equal one record, or one of them may: both are rows with an id that stands in the file twice.
    again = exists().where(
        fresh["sourcedId"] == table.c.sourced_id,
        own,
        ~exists().where(absent.c.sourced_id == table.c.sourced_id).correlate(table),
    )
    if total - news != active - missing or connection.scalar(select(again)):
        return None
    return replace(file, fresh=fresh), absent


def _is_secret(file: StagedFile, name: str) -> bool:
    return any(cell.header == name and cell.kind.secret for cell in file.file.cells)


# --- what was referred to, and is no more ------------------------------------------------------------------------


def _return_lost(
    connection: Connection,
    files: Mapping[str, StagedFile],
    absent: Absent,
    feed_id: int,
    deltas: frozenset[str],
) -> None:
    """Adds to the fresh rows those that refer to a record that the export has lost, or that is of another type now."""
    sifted = [file for file in files.values() if file.fresh is not None]
    lost: dict[str, Table] = {}
    for target in {it.refers.file for file in sifted for it in file.file.cells if it.refers is not None}:
        table = files[target].file.table if target in files else None
        if table is not None:
            found = _select_lost(files[target], table, absent.get(table), feed_id, in_delta=target in deltas)
            made = create_temporary(connection, f"lost_{target}", [Column("sourced_id", CText)])
            if connection.execute(made.insert().from_select(["sourced_id"], found)).rowcount:
                analyze_temporary(connection, made)
                lost[target] = made
    for file in sifted:
        _return_rows(connection, file, lost)


def _select_lost(
    target: StagedFile, table: Table, absent: Table | None, feed_id: int, *, in_delta: bool
) -> Select[Any]:
    if absent is not None:
        rows = target.suspects.alias()
        live = exists().where(rows["sourcedId"] == absent.c.sourced_id, rows.live)
        return select(absent.c.sourced_id).where(~live)
    rows = target.alias()
    named = rows["sourcedId"] == table.c.sourced_id
    same = and_(named, rows.live, rows["type"] == table.c.type) if "type" in table.c else and_(named, rows.live)
    gone = [~exists().where(same)]
    if in_delta:
        gone.append(exists().where(named))
    return select(table.c.sourced_id).where(table.c.feed_id == feed_id, table.c.status == ACTIVE, *gone)


def _return_rows(connection: Connection, file: StagedFile, lost: Mapping[str, Table]) -> None:
    fresh = file.suspects
    places = [
        _select_referring(file, cell.header, cell.many, lost[cell.refers.file])
        for cell in file.file.cells
        if cell.refers is not None and cell.refers.file in lost
    ]
    if not places:
        return
    table = fresh.table
    if not isinstance(table, Table):
        raise TypeError("fresh rows lie in a table of their own")
    names = [column.name for column in table.c if column.name != "stored_id"]
    columns = [file.place if name == PLACE else file.table.c[name] for name in names]
    found = union(*places).subquery()
    rows = select(*columns).where(
        file.place.in_(select(found.c[PLACE])), file.place.not_in(select(fresh.alias().place))
    )
    connection.execute(table.insert().from_select(names, rows))
    analyze_temporary(connection, table)


def _select_referring(file: StagedFile, header: str, many: bool, lost: Table) -> Select[Any]:
    source: FromClause = file.table
    name: ColumnElement[str] = file[header]
    if many:
        items = func.unnest(to_list(file[header])).table_valued("item").render_derived()
        source, name = file.table.join(items, true()), items.c.item
    referring = select(file.place.label(PLACE)).select_from(source).where(file[header].is_not(None))
    return referring.where(name.in_(select(lost.c.sourced_id)))


# --- what the next night can rely on -----------------------------------------------------------------------------


def renew_fingerprints(
    connection: Connection, records: Mapping[Table, FromClause], ground: Ground, *, trusted: bool
) -> None:
    """Gives the records of the feed the fingerprints of the rows that they equal, now that all is written. `records`:
    the incoming records of each table. A row that was refused takes the fingerprint of its record away: it shall be
    refused again as long as it is there. `trusted`: whether the next run may rely on all that."""
    for table, new in records.items():
        other = table.c.fingerprint.is_distinct_from(new.c.fingerprint)
        same = and_(table.c.sourced_id == new.c.sourced_id, table.c.status == ACTIVE, other)
        connection.execute(update(table).where(same).values(fingerprint=new.c.fingerprint))
    for file in ground.refused.values():
        stored = file.file.table
        if stored is not None:
            named = stored.c.sourced_id.in_(select(file["sourcedId"]))
            own = and_(stored.c.feed_id == ground.feed_id, stored.c.fingerprint.is_not(None))
            connection.execute(update(stored).where(own, named).values(fingerprint=None))
    connection.execute(update(feeds).where(feeds.c.id == ground.feed_id).values(fingerprinted=trusted))
