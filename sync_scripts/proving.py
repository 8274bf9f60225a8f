"""What the keys of the first load prove: that no id stands in a file twice.

Looking for such ids costs as much as making the key that cannot be made of them. So where a key is still to be made, of
every row of a file, nobody looks before.
"""

from __future__ import annotations

from typing import cast

from sqlalchemy import Connection, Table, func, select
from sqlalchemy.exc import IntegrityError

from sync_scripts.changes import Difference
from sync_scripts.checks import Verdict, refuse_duplicates
from sync_scripts.formats import StagedFile
from sync_scripts.indexes import make_missing_indexes
from sync_scripts.standing import Ground


def find_unproved(connection: Connection, verdict: Verdict, differences: list[Difference]) -> tuple[StagedFile, ...]:
    """The files whose ids the key of their table will prove to be different, because every row of them is written.

    Raises RefusedExportError for ids that stand in another one of the unproved files twice."""
    written = {it.table: it.counts.added for it in differences if it.all_new}
    rows = ((file, connection.scalar(select(func.count()).select_from(file.table))) for file in verdict.unproved)
    later = tuple(file for file, count in rows if written.get(cast(Table, file.file.table)) == count)
    refuse_duplicates(connection, (file for file in verdict.unproved if file not in later), verdict.ground)
    return later


def make_indexes(connection: Connection, tables: list[Table], unproved: tuple[StagedFile, ...], ground: Ground) -> None:
    """Makes the indexes that tables lack. Raises RefusedExportError where a key cannot be made because an id stands in
    one of the unproved files twice."""
    attempt = connection.begin_nested()
    try:
        make_missing_indexes(connection, tables)
    except IntegrityError:
        attempt.rollback()
        refuse_duplicates(connection, unproved, ground)
        raise
    attempt.commit()
