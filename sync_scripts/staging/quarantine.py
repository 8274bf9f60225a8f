"""The refused rows of a staged file: taken out of it, and kept aside with the place where they stood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from sqlalchemy import Connection, Select, Table, delete, insert, select, union_all

from sync_scripts.formats.model import StagedFile
from sync_scripts.staging.temporary import analyze_temporary, copy_columns, create_temporary


def quarantine_rows(
    connection: Connection, file: StagedFile, failing: Sequence[Select[Any]], quarantine: StagedFile | None
) -> tuple[StagedFile, int]:
    """Copies the rows with the places that `failing` selects to those that were set aside before;
    `delete_quarantined` then
    removes them, once no check of any file looks at them any more.

    Returns the rows set aside, and how many of them are new.
    """
    columns = file.columns
    if quarantine is None:
        quarantine = make_quarantine(connection, file)
    bad = union_all(*(select(found.subquery().c.line) for found in failing)).subquery()
    rows = select(*columns).where(file.line.in_(select(bad.c.line)))
    rejected = cast(Table, quarantine.table)
    added = connection.execute(insert(rejected).from_select([column.name for column in columns], rows)).rowcount
    analyze_temporary(connection, rejected)
    return quarantine, added


def make_quarantine(connection: Connection, file: StagedFile) -> StagedFile:
    """An empty table for the refused rows of a file."""
    made = create_temporary(connection, f"rejected_{file.file.name}", copy_columns(file.columns))
    return StagedFile(file.file, made, file.metadata_keys)


def delete_quarantined(connection: Connection, file: StagedFile, quarantine: StagedFile) -> None:
    """Removes the rows that were set aside from their file."""
    connection.execute(delete(cast(Table, file.table)).where(file.line.in_(select(quarantine.line))))
