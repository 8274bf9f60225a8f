"""Formats that are not OneRoster, said as OneRoster: staged files of texts, made of the staged files of the export.

The files that the export brought are checked first, because they have the lines and columns that a person can mend,
and only rows that pass are made into others. From here on the engine knows no other format.

Several rows may say one record, and the id of one may follow from cells that are bad. So each format tells which
stored records the refused rows may have said: these keep their last good state. New ones are made of what is left.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Table,
    cast,
    exists,
    func,
    null,
    select,
)

from roster_service.db.tables import CText
from sync_scripts.formats.model import PLACE, Derived, Format, Staged, StagedFile
from sync_scripts.reading.rejections import Findings, Refusal
from sync_scripts.staging.quarantine import make_aside
from sync_scripts.staging.retained import Ground
from sync_scripts.staging.temporary import analyze_temporary, create_temporary


@dataclass(frozen=True)
class Derivation:
    """The derived files, by name, and by the same names the rows that count as refused."""

    files: Staged
    refused: Mapping[str, StagedFile]


def derive(connection: Connection, form: Format, source: Ground) -> Derivation:
    """The files that the format derives from the files of an export, these having passed their checks; `source`: the
    ground that this left."""
    possible = [it for it in form.derived if all(name in source.staged for name in it.files)]
    files = {it.file.name: _derive_file(connection, it, source) for it in possible}
    if not source.refused:
        return Derivation(files, {})
    refused = {it.file.name: _list_retained(connection, it, files, source) for it in possible}
    ground = replace(source, staged=files, refused=refused)
    for file in files.values():
        _leave_to_records(connection, file, ground)
    return Derivation(files, refused)


def _derive_file(connection: Connection, derived: Derived, source: Ground) -> StagedFile:
    file = derived.file
    columns: list[Column[Any]] = [Column(PLACE, BigInteger), *(Column(header, CText) for header in file.headers)]
    table = create_temporary(connection, f"derived_{file.name}", columns)
    rows = derived.rows(source.staged, source.feed_name).subquery()
    read: list[ColumnElement[Any]] = [
        rows.c[header] if header in rows.c else cast(null(), CText).label(header) for header in file.headers
    ]
    place = func.row_number().over()
    connection.execute(table.insert().from_select([PLACE, *file.headers], select(place, *read)))
    analyze_temporary(connection, table)
    return StagedFile(file, table, ())


def _list_retained(connection: Connection, derived: Derived, files: Staged, source: Ground) -> StagedFile:
    """As refused rows, the ids of the records that refused rows of the export may have said. They stand nowhere in the
    file, so their place is empty."""
    aside = make_aside(connection, files[derived.file.name])
    table = typing.cast(Table, aside.table)
    for rows in derived.retained(source.refused, source.feed_name):
        connection.execute(table.insert().from_select([column.name for column in rows.selected_columns], rows))
    analyze_temporary(connection, table)
    return aside


def _leave_to_records(connection: Connection, file: StagedFile, ground: Ground) -> None:
    """Removes the rows whose record keeps its last good state."""
    standing = ground.find_standing(file.file)
    if standing is not None:
        table = typing.cast(Table, file.table)
        named = exists().where(standing["sourcedId"] == table.c.sourcedId)
        connection.execute(table.delete().where(named))


def name_sources(findings: Findings, form: Format) -> Findings:
    """What is wrong with derived rows, said of the files that these are made of: a line has passed its own checks."""
    sources = {it.file.file_name: ", ".join(form.file(name).file_name for name in it.files) for it in form.derived}
    told = (
        Refusal(
            sources[it.file], f"a record that is made of its rows is refused: {it.column} {it.reason}", value=it.value
        )
        for it in findings.first
    )
    return Findings(findings.total, tuple(told))
