"""Everything that a service stores, as bytes to search: the rows of every table, and the files of a folder."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import sqlalchemy as sa


def dump_tables(engine: sa.Engine) -> dict[str, bytes]:
    """The rows of every table of the database, as COPY writes them, by the name of the table, and the samples that the
    planner has of the values of tables with rows."""
    with engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        names = connection.scalars(sa.text("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")).all()

        def read(rows: str) -> bytes:
            out = io.BytesIO()
            with driver.cursor() as cursor:
                cursor.copy_expert(f"COPY {rows} TO STDOUT", out)
            return out.getvalue()

        found = {name: read(f'"{name}"') for name in names}
        empty = ", ".join(f"'{name}'" for name, rows in found.items() if not rows)
        of_rows = f"schemaname = current_schema() AND tablename NOT IN ({empty})"
        found["pg_stats"] = read(f"(SELECT * FROM pg_stats WHERE {of_rows})")
    return found


def dump_folder(folder: Path) -> dict[str, bytes]:
    """The content of every file below a folder, by its path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def find_traces(stored: dict[str, bytes], values: Iterable[str]) -> set[tuple[str, str]]:
    """(table or file, value) for each value that is found there, or in the name of the file."""
    return {
        (place, value)
        for place, content in stored.items()
        for value in values
        if value.encode() in content or value in place
    }
