"""Row fingerprints: which records a run has to look at, given the lines of an export that are gone or new.

A record has the hash of its line as its fingerprint. A line with the same hash has passed the checks of its cells and
describes the stored record. The run looks at it again only if another line has its id, or if a record that it refers to
is no longer in the export or needs a record that is not. A rejected row leaves no fingerprint, so the next runs check
and reject it again.

Fingerprints are valid only if each export describes every record of the feed. After a run with an absent file or a
delta, the sync does not trust the fingerprints of the feed, and the next run looks at every line.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import BigInteger

from roster_service.db.tables import ROSTER_TABLES, CText, feeds
from roster_service.roster.references import OWNERS, is_list
from sync_scripts.formats.model import Cell, Format, Staged, StagedFile
from sync_scripts.staging.retained import Absent, Retention, is_active
from sync_scripts.staging.temporary import store_ids

# Replaces a missing fingerprint in comparisons; hashes are never negative.
NO_HASH = -1


def are_fingerprints_trusted(connection: sa.Connection, feed_id: int) -> bool:
    """Whether the fingerprints of a feed are the hashes of the lines of its last export."""
    return connection.scalar(sa.select(feeds.c.fingerprinted).where(feeds.c.id == feed_id)) is True


def covers_feed(connection: sa.Connection, staged: Staged, form: Format, feed_id: int, deltas: frozenset[str]) -> bool:
    """Whether an export describes every record of the feed: no delta, and no absent file with active records."""
    if deltas:
        return False
    silent = form.tables - {file.file.table for file in staged.values()}
    return not any(connection.scalar(sa.select(sa.exists().where(is_active(table, feed_id)))) for table in silent)


def find_absent(connection: sa.Connection, feed_id: int, gone: Mapping[sa.Table, Collection[int]]) -> Absent:
    """Per table, a temporary table of the ids of the active records whose lines are gone or that have no fingerprint.
    `gone`: the hashes of these lines."""
    return {table: _find_absent(connection, table, feed_id, hashes) for table, hashes in gone.items()}


def _find_absent(connection: sa.Connection, table: sa.Table, feed_id: int, hashes: Collection[int]) -> sa.Table:
    # One text instead of parameters: there may be as many hashes as lines.
    spelt = sa.literal(f"{{{','.join(map(str, (NO_HASH, *hashes)))}}}", CText)
    gone = sa.func.unnest(sa.cast(spelt, ARRAY(BigInteger))).column_valued("hash")
    without_line = sa.func.coalesce(table.c.fingerprint, NO_HASH).in_(sa.select(gone))
    ids = sa.select(table.c.sourced_id).where(is_active(table, feed_id), without_line)
    return store_ids(connection, f"absent_{table.name}", ids)


# --- unchanged lines that a run stages nevertheless -----------------------------------------------------------------


def find_lines_to_restage(
    connection: sa.Connection, staged: Staged, absent: Absent, feed_id: int, whole: Collection[str]
) -> dict[sa.Table, set[int]]:
    """Per table, the hashes of lines that staging left out and that the run has to stage: lines whose id is also in a
    staged line, lines that refer to one of the records of `_find_lost`, and all lines of the `whole` files."""
    lost = _find_lost(connection, staged, absent, feed_id)
    found: dict[sa.Table, set[int]] = {}
    for file in staged.values():
        table = file.file.table
        if table is None or table not in absent:
            continue
        left_out = sa.and_(
            is_active(table, feed_id), ~sa.exists().where(absent[table].c.sourced_id == table.c.sourced_id)
        )
        looked_at = (sa.select(file["sourcedId"]), *_list_referring(file.file.cells, table, lost))
        chosen = [table.c.sourced_id.in_(ids) for ids in looked_at]
        for condition in [sa.true()] if file.file.name in whole else chosen:
            hashes = sa.select(table.c.fingerprint).where(left_out, condition)
            found.setdefault(table, set()).update(connection.scalars(hashes))
    return {table: hashes for table, hashes in found.items() if hashes}


def _find_lost(connection: sa.Connection, staged: Staged, absent: Absent, feed_id: int) -> dict[str, sa.Table]:
    """For the files that the left-out lines may refer to, by name: a temporary table of the ids of records that the run
    may mark as deleted or give another type. The lines of the file no longer describe them, or describe them with
    another type, or they need such a record of another file."""
    sources = [file for file in staged.values() if file.file.table in absent]
    names = {cell.refers.file for file in sources for cell in file.file.cells if cell.refers is not None}
    targets = {staged[name].file.table: staged[name] for name in names}
    lost: dict[str, sa.Table] = {}
    # A record may need one that needs a lost one: the tables come in the order of their references.
    for table in ROSTER_TABLES:
        if (file := targets.get(table)) is None:
            continue
        needed = [cell for cell in file.file.cells if cell.is_needed]
        ids = sa.union(_select_old(file.look_up(), table, absent, feed_id), *_list_referring(needed, table, lost))
        found = store_ids(connection, f"lost_{file.file.name}", ids)
        if connection.scalar(sa.select(sa.exists().select_from(found))):
            lost[file.file.name] = found
    return lost


def _select_old(file: StagedFile, table: sa.Table, absent: Absent, feed_id: int) -> sa.Select[tuple[str]]:
    """The ids of the stored records that no line of a file describes any longer, or one with another type."""
    described = [file["sourcedId"] == table.c.sourced_id, file.live]
    is_old: sa.ColumnElement[bool] = is_active(table, feed_id)
    if table in absent:
        is_old = table.c.sourced_id.in_(sa.select(absent[table].c.sourced_id))
    elif "type" in table.c:
        described.append(file["type"] == table.c.type)
    return sa.select(table.c.sourced_id).where(is_old, ~sa.exists().where(*described))


def _list_referring(
    cells: Iterable[Cell], table: sa.Table, lost: Mapping[str, sa.Table]
) -> Iterator[sa.Select[tuple[str]]]:
    """The ids of the records of a table that refer to lost ones with these cells of their file."""
    for cell in cells:
        if cell.refers is None or cell.refers.file not in lost:
            continue
        stored = cell.stored_in
        if stored is None:
            raise TypeError("lines are left out only of files whose references are stored")
        ids = sa.select(lost[cell.refers.file].c.sourced_id)
        is_named = stored.overlap(sa.func.array(ids.scalar_subquery())) if is_list(stored) else stored.in_(ids)
        yield sa.select(OWNERS.get(stored.table, table.c.sourced_id)).where(is_named)


# --- the fingerprints for the next run ------------------------------------------------------------------------------


def renew_fingerprints(
    connection: sa.Connection, records: Mapping[sa.Table, sa.FromClause], retention: Retention, *, trusted: bool
) -> None:
    """Stores the fingerprints of the feed's records, after the run has written them. `records`: the desired records of
    each table. Deletes the fingerprints of the records of rejected rows. `trusted`: whether the next run may trust the
    fingerprints."""
    for table, new in records.items():
        other = table.c.fingerprint.is_distinct_from(new.c.fingerprint)
        same = sa.and_(table.c.sourced_id == new.c.sourced_id, is_active(table, retention.feed_id), other)
        connection.execute(sa.update(table).where(same).values(fingerprint=new.c.fingerprint))
    for file in retention.rejected.values():
        stored = file.file.table
        if stored is not None:
            named = stored.c.sourced_id.in_(sa.select(file["sourcedId"]))
            own = sa.and_(stored.c.feed_id == retention.feed_id, stored.c.fingerprint.is_not(None))
            connection.execute(sa.update(stored).where(own, named).values(fingerprint=None))
    connection.execute(sa.update(feeds).where(feeds.c.id == retention.feed_id).values(fingerprinted=trusted))
