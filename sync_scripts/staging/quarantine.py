"""The quarantine of a staged file: its rejected rows, with their lines, in a table of their own."""

from __future__ import annotations

from typing import Any, cast

import sqlalchemy as sa

from sync_scripts.formats.model import StagedFile
from sync_scripts.staging.temporary import analyze_temporary, copy_columns, create_temporary


def quarantine_rows(
    connection: sa.Connection, file: StagedFile, failing: sa.Select[Any], quarantine: StagedFile | None
) -> tuple[StagedFile, int]:
    """Copies the rows of the lines that `failing` selects into the quarantine (None: a new one). The rows stay in their
    file until `delete_quarantined`, because the checks of other files still read them.

    Returns the quarantine, and how many rows it gained.
    """
    columns = file.columns
    if quarantine is None:
        quarantine = make_quarantine(connection, file)
    rows = sa.select(*columns).where(file.line.in_(failing))
    rejected = cast(sa.Table, quarantine.table)
    added = connection.execute(sa.insert(rejected).from_select([column.name for column in columns], rows)).rowcount
    analyze_temporary(connection, rejected)
    return quarantine, added


def make_quarantine(connection: sa.Connection, file: StagedFile) -> StagedFile:
    """An empty quarantine for a file."""
    made = create_temporary(connection, f"rejected_{file.file.name}", copy_columns(file.columns))
    return StagedFile(file.file, made, file.metadata_keys)


def delete_quarantined(connection: sa.Connection, file: StagedFile, quarantine: StagedFile) -> None:
    """Deletes the quarantined rows from their file."""
    connection.execute(sa.delete(cast(sa.Table, file.table)).where(file.line.in_(sa.select(quarantine.line))))
