"""Sifts the rows that are as they were the night before from those that have to be looked at.

A record keeps the fingerprint of the row that it was made of. A row with the same fingerprint has passed the checks of
its cells, and says what is stored; it is looked at again only where something that it refers to is lost. One pass
over a file and its table finds the rows without an equal record, and the records without an equal row. Of a file whose
lines bear marks, these are the fingerprints, and nothing is staged of the lines that the last export had too.

That holds as long as every record of the feed is said in full each time: a run in which a file is absent, or a
delta, leaves the feed without trust in its fingerprints, and the next run looks at everything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
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
    union_all,
    update,
)
from sqlalchemy.types import BigInteger

from roster_service.db.tables import CText, feeds
from sync_scripts.cells import UNREAD, to_list
from sync_scripts.formats import Format, Staged, StagedFile
from sync_scripts.standing import ACTIVE, NOTHING_SIFTED, Absent, Ground
from sync_scripts.temporary import MARK, PLACE, STORED_ID, analyze_temporary, create_temporary, index_temporary, like

# Goes up when a check or a conversion changes: every row is then looked at once more.
RULES = 2
SEPARATOR = "\x1f"


@dataclass(frozen=True)
class Sifted:
    """The staged files, the sifted ones with their `fresh` rows; and of their tables, the ids of the active records
    that no row equals. `partial`: the names of files of which lines were left out that are needed after all."""

    files: Staged
    absent: Absent
    partial: frozenset[str] = frozenset()


def name_nature(form: Format, *names: str) -> str:
    """What a row is read by: its format, the checks and conversions of this version, and the `names` of its cells."""
    return "\n".join((str(RULES), form.name, *names))


def make_fingerprint(file: StagedFile, form: Format) -> ColumnElement[int]:
    """The fingerprint of a row: of every cell that is read, and of what the file is. The mark of its line is one."""
    if file.is_marked:
        return file.table.c[MARK]
    read = [cell.header for cell in file.file.cells if cell.kind is not UNREAD and not cell.kind.secret]
    nature = name_nature(form, *read, *file.metadata_keys)
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
    connection: Connection, staged: Staged, form: Format, feed_id: int, deltas: frozenset[str], *, trusted: bool
) -> Sifted:
    """Sifts the bulk files whose rows are records by themselves; the others stay whole. `trusted`: see `can_trust`;
    without trust, all of them do."""
    if not trusted:
        return Sifted(staged, NOTHING_SIFTED)
    files = dict(staged)
    absent: dict[Table, Table] = {}
    partial: set[str] = set()
    for name, file in staged.items():
        table = file.file.table
        if table is None or name in deltas or not file.file.is_plain:
            continue
        found = _sift_file(connection, file, table, form, feed_id)
        if found is not None:
            files[name], absent[table] = found
        elif file.gone is not None:
            partial.add(name)
    if not partial:
        partial.update(_return_lost(connection, files, form, absent, feed_id, deltas))
    return Sifted(files, absent, frozenset(partial))


def _sift_file(
    connection: Connection, file: StagedFile, table: Table, form: Format, feed_id: int
) -> tuple[StagedFile, Table] | None:
    """(the file with its fresh rows, the ids of the records without an equal row); None where ids come twice, which
    the checks then tell."""
    columns = file.columns
    rows = select(
        file.place.label(PLACE),
        *columns,
        file["sourcedId"].label("row_id"),
        make_fingerprint(file, form).label("fingerprint"),
    ).subquery("rows")
    own = and_(table.c.feed_id == feed_id, table.c.status == ACTIVE)
    stored = _list_stored(connection, file, table, own)
    equal = and_(rows.c.fingerprint == stored.c.fingerprint, rows.c.row_id == stored.c.sourced_id)
    unequal = select(rows.c[PLACE], *(rows.c[column.name] for column in columns), stored.c.sourced_id)
    unequal = unequal.select_from(rows.join(stored, equal, full=True))
    unequal = unequal.where(or_(rows.c[PLACE].is_(None), stored.c.sourced_id.is_(None)))
    name = file.file.name
    made = create_temporary(
        connection, f"fresh_{name}", [Column(PLACE, file.place_type), *like(columns), Column(STORED_ID, CText)]
    )
    connection.execute(made.insert().from_select([column.name for column in made.c], unequal))
    absent = create_temporary(connection, f"absent_{name}", [Column("sourced_id", CText)])
    alone = select(made.c[STORED_ID]).where(made.c[PLACE].is_(None))
    missing = connection.execute(absent.insert().from_select(["sourced_id"], alone)).rowcount
    connection.execute(made.delete().where(made.c[PLACE].is_(None)))
    analyze_temporary(connection, made)
    index_temporary(connection, absent, "sourced_id")
    analyze_temporary(connection, absent)
    fresh = StagedFile(file.file, made, file.metadata_keys)
    total = connection.scalar(select(func.count()).select_from(file.table)) or 0
    news = connection.scalar(select(func.count()).select_from(made)) or 0
    active = connection.scalar(select(func.count()).select_from(stored)) or 0
    # Two rows may equal one record, or one of them may: both are rows with an id that stands in the file twice.
    again = select(func.count()).where(
        fresh["sourcedId"] == table.c.sourced_id,
        own,
        ~exists().where(absent.c.sourced_id == table.c.sourced_id).correlate(table),
    )
    if total - news != active - missing or connection.scalar(again):
        return None
    # Where lines were left out, a row that was staged and equals a record is a line that moved: it says nothing new.
    return replace(file, fresh=fresh) if file.gone is None else replace(fresh, gone=file.gone), absent


def _list_stored(connection: Connection, file: StagedFile, table: Table, own: ColumnElement[bool]) -> FromClause:
    """(id, fingerprint) of the active records that a staged row may equal: all, unless lines were left out. Then the
    records of these stand, and what is left are those whose line is gone, and those that had none worth keeping."""
    if file.gone is None:
        return select(table.c.sourced_id, table.c.fingerprint).where(own).subquery("stored")
    without = or_(table.c.fingerprint.is_(None), table.c.fingerprint.in_(select(file.gone.c.mark)))
    columns: list[Column[Any]] = [Column("sourced_id", CText), Column("fingerprint", BigInteger)]
    stored = create_temporary(connection, f"without_line_{file.file.name}", columns)
    found = select(table.c.sourced_id, table.c.fingerprint).where(own, without)
    connection.execute(stored.insert().from_select(["sourced_id", "fingerprint"], found))
    analyze_temporary(connection, stored)
    return stored


# --- what was referred to, and is no more ------------------------------------------------------------------------


def _return_lost(
    connection: Connection,
    files: Mapping[str, StagedFile],
    form: Format,
    absent: Absent,
    feed_id: int,
    deltas: frozenset[str],
) -> Iterator[str]:
    """Adds to the fresh rows those that refer to a record that the export has lost, or that is of another type now.
    Yields the names of the files of which such a row may have been left out."""
    sifted = [file for file in files.values() if file.file.table in absent]
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
        if file.gone is not None and any(_list_left_out(connection, file, form, absent, lost)):
            yield file.file.name
        else:
            _return_rows(connection, file, lost)


def _list_left_out(
    connection: Connection, file: StagedFile, form: Format, absent: Absent, lost: Mapping[str, Table]
) -> Iterator[bool]:
    """For each reference to lost records: whether a record has it whose line was left out."""
    owner = file.file.table
    if owner is None:
        raise TypeError("lines are left out of files with records")
    for cell in file.file.cells:
        if cell.refers is None or cell.refers.file not in lost:
            continue
        stored = cell.stored_in
        if stored is None:
            yield True
            continue
        name = next(iter(stored.table.c)) if stored.table is not owner else owner.c.sourced_id
        referring = select(name.label("sourced_id")).where(stored.in_(select(lost[cell.refers.file].c.sourced_id)))
        found = referring.subquery()
        is_active = exists().where(owner.c.sourced_id == found.c.sourced_id, owner.c.status == ACTIVE)
        is_staged = exists().where(absent[owner].c.sourced_id == found.c.sourced_id)
        yield connection.scalar(select(exists(select(found.c.sourced_id).where(is_active, ~is_staged)))) is True


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
    names = [column.name for column in table.c if column.name != STORED_ID]
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


def find_unkept(connection: Connection, ground: Ground) -> dict[str, set[int]]:
    """Per file, the marks of the lines that shall be staged again the next night: of rows that were refused, and of
    rows flagged as gone, which make no record."""
    found: dict[str, set[int]] = {}
    for name, file in ground.staged.items():
        if file.is_marked:
            rows = [select(file.table.c[MARK]).where(~file.live)]
            if name in ground.refused:
                rows.append(select(ground.refused[name].table.c[MARK]))
            found[name] = set(connection.scalars(union_all(*rows)))
    return found
