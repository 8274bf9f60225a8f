"""Formats that are not OneRoster, said as OneRoster: staged files of texts, made of the staged files of the export.

From here on the engine knows no other format. The files that the export brought are still checked, because they have
the lines and columns that a person can mend.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, cast, func, literal, null, select
from sqlalchemy.types import NullType

from roster_service.db.tables import CText
from sync_scripts.formats import Derived, Format, Staged, StagedFile
from sync_scripts.temporary import analyze_temporary, create_temporary


def derive(connection: Connection, staged: Staged, form: Format, feed_name: str) -> Staged:
    """The staged files, and those that the format derives from them."""
    made = {
        it.file.name: _derive_file(connection, it, staged, feed_name)
        for it in form.derived
        if all(name in staged for name in it.files)
    }
    return {**staged, **made}


def _derive_file(connection: Connection, derived: Derived, staged: Staged, feed_name: str) -> StagedFile:
    file = derived.file
    place: Column[object] = Column("ctid", NullType(), system=True)
    columns: list[Column[Any]] = [place, *(Column(header, CText) for header in file.headers)]
    table = create_temporary(connection, f"derived_{file.name}", columns)
    rows = derived.rows(staged, feed_name).subquery()
    read: list[ColumnElement[Any]] = [
        rows.c[header] if header in rows.c else cast(null(), CText).label(header) for header in file.headers
    ]
    connection.execute(table.insert().from_select(list(file.headers), select(*read)))
    analyze_temporary(connection, table)
    return StagedFile(file, table, ())


def make_id(feed_name: str, kind: str, *cells: ColumnElement[str]) -> ColumnElement[str]:
    """An id that is unique among all feeds and types, from ids that are unique in one file of one export. Empty where
    one of these is."""
    made: ColumnElement[str] = literal(f"{feed_name}:{kind}", CText)
    for cell in cells:
        # A colon inside an id is not one between two.
        escaped = func.replace(func.replace(cell, "%", "%25", type_=CText), ":", "%3A", type_=CText)
        made = made.concat(":").concat(escaped)
    return made
