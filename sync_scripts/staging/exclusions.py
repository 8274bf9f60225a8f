"""Leaves excluded people out of an export: their rows, and the rows and the items of lists that refer to them.

It works on OneRoster files before their checks, so no check rejects a row for the lack of a person, and no rejected row
has a value of one. An export of another format is checked with all its people, because a row of another record may
need one, such as a section its teacher; then the conversion is without them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import cast

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import aggregate_order_by

from roster_service.db.tables import CText, CTexts, users
from roster_service.feeds.exclusions import ExcludedPeople
from sync_scripts.formats.cells import to_list
from sync_scripts.formats.model import Cell, Staged, StagedFile
from sync_scripts.reading.rejections import Findings


def leave_out(connection: sa.Connection, staged: Staged, excluded: ExcludedPeople | None) -> int:
    """Deletes the rows of excluded people from staged OneRoster files, and what refers to these rows. Returns the
    number of people."""
    if excluded is None or "users" not in staged:
        return 0
    return _leave_out(connection, staged, staged["users"], excluded)


def leave_out_findings(findings: Findings, excluded: ExcludedPeople | None) -> Findings:
    """Returns the findings of the files of another format without the rejected rows that name an excluded person. The
    counts stay."""
    if excluded is None:
        return findings
    people = {record.sourcedId for found in findings.first for record in found.records if record.type == users.name}
    gone = {person for person in people if excluded.includes(person)}
    return replace(
        findings,
        first=tuple(
            rejection
            for rejection in findings.first
            if not any(record.type == users.name and record.sourcedId in gone for record in rejection.records)
        ),
    )


def leave_out_shifted_values(findings: Findings, excluded: ExcludedPeople | None) -> Findings:
    """Returns the findings without the values of rows with too few or too many cells, while anybody is excluded:
    nothing tells whether such a row is one of an excluded person."""
    if excluded is None:
        return findings
    first = (
        replace(found, value=None, sourced_id=None, records=()) if found.is_shifted else found
        for found in findings.first
    )
    return replace(findings, first=tuple(first))


def _leave_out(connection: sa.Connection, staged: Staged, people: StagedFile, excluded: ExcludedPeople) -> int:
    referring = list(_list_referring(staged, people.file.name))
    own = sa.select(people["sourcedId"].label("key"))
    named = sa.union(own, *(_select_keys(file, cell) for file, cell in referring))
    keys = [key for key in connection.scalars(named) if key is not None and excluded.includes(key)]
    if keys:
        _delete_rows(connection, people, people["sourcedId"], keys)
        for file, cell in referring:
            if cell.many:
                _delete_items(connection, file, cell, keys)
            else:
                _delete_rows(connection, file, file[cell.header], keys)
    return len(keys)


def _list_referring(staged: Staged, name: str) -> Iterator[tuple[StagedFile, Cell]]:
    """The cells that refer to the rows of a file."""
    for file in staged.values():
        for cell in file.file.cells:
            if cell.refers is not None and cell.refers.file == name:
                yield file, cell


def _select_keys(file: StagedFile, cell: Cell) -> sa.Select[tuple[str]]:
    if not cell.many:
        return sa.select(file[cell.header].label("key"))
    items = sa.func.unnest(to_list(file[cell.header])).table_valued("item").render_derived()
    return sa.select(items.c.item.label("key")).select_from(file.table.join(items, sa.true()))


def _is_one(value: sa.ColumnElement[str], keys: Sequence[str]) -> sa.ColumnElement[bool]:
    return value == sa.any_(sa.literal(keys, CTexts))


def _delete_rows(connection: sa.Connection, file: StagedFile, key: sa.ColumnElement[str], keys: Sequence[str]) -> None:
    connection.execute(sa.delete(cast(sa.Table, file.table)).where(_is_one(key, keys)))


def _delete_items(connection: sa.Connection, file: StagedFile, cell: Cell, keys: Sequence[str]) -> None:
    """Deletes items of lists; a list without items is an empty cell."""
    column = file[cell.header]
    items = sa.func.unnest(to_list(column)).table_valued("item", with_ordinality="number").render_derived()
    in_order = aggregate_order_by(items.c.item, items.c.number)
    kept = sa.select(sa.func.array_agg(in_order, type_=CTexts)).where(~_is_one(items.c.item, keys)).scalar_subquery()
    text = sa.func.array_to_string(kept, ",", type_=CText)
    named = to_list(column).overlap(sa.literal(keys, CTexts))
    connection.execute(sa.update(cast(sa.Table, file.table)).where(named).values({cell.header: text}))
