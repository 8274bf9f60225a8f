"""The records that a row of an export names: its own, and those that it refers to.

An operator looks for a person, and an enrollment has only the id of one. A row of Clever or School Data Sync names
records by ids of the export; here they are the ids of the roster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import array

from roster_service.db.tables import CText, CTexts, demographics, enrollments
from roster_service.feeds.rejected_rows import NamedRecord
from roster_service.feeds.run_history import TYPES
from roster_service.roster.record_names import LABEL_COLUMNS
from sync_scripts.formats.cells import ID_LENGTH, to_list
from sync_scripts.formats.model import FAULT, KEY, Format, StagedFile
from sync_scripts.reading.rejections import cut_value

# A row that names more records, in a long list, names the first of them.
MOST_RECORDS = 50
# The columns of the roster by which people know a record.
_LABELS = frozenset(
    table.c[name]
    for table, names in LABEL_COLUMNS.items()
    if table not in (enrollments, demographics)
    for name in names
)


@dataclass(frozen=True)
class NamingCell:
    """A cell that names records of a type. `own`: whether it has the id of the row's own record; `ids`: selects the ids
    as a list of texts, which may have empty items and NULL."""

    type: str
    own: bool
    ids: sa.ColumnElement[Any]


def list_naming_cells(rows: StagedFile, form: Format, feed_name: str) -> Iterator[NamingCell]:
    """The cells of `rows` that name records: first the id of the row's own record."""
    own, files = rows.file, {file.name: file for file in form.files}
    if own.table is not None and own.identify is not None:
        yield NamingCell(TYPES[own.table.name], True, _select_ids(rows[KEY], partial(own.identify, feed_name)))
    for cell in sorted(own.cells, key=lambda cell: cell.many):
        # Formats that are converted have no file of the profiles that roles may name.
        named = None if cell.refers is None else files.get(cell.refers.file)
        if named is not None and named.table is not None and named.identify is not None:
            ids = _select_items if cell.many else _select_ids
            found = _unless_faulty(rows, ids(rows[cell.header], partial(named.identify, feed_name)))
            yield NamingCell(TYPES[named.table.name], False, found)


def select_label(rows: StagedFile) -> sa.ColumnElement[Any]:
    """The name or title that a row gives its own record; NULL where the file has no column of it."""
    names = [rows[cell.header] for cell in rows.file.cells if cell.column in _LABELS]
    label = sa.func.nullif(sa.func.concat_ws(" ", *names, type_=CText), "") if names else sa.literal(None, CText)
    return _unless_faulty(rows, label)


def make_records(cells: Iterable[NamingCell], ids: Sequence[Any], label: str | None) -> tuple[NamedRecord, ...]:
    """The records that a row names, each once. `ids`: of each cell, None or a list; `label`: of its own record."""
    named = dict[tuple[str, str], NamedRecord]()
    for cell, found in zip(cells, ids, strict=True):
        for name in found or ():
            # No record has a longer id.
            if name and len(name.encode()) <= ID_LENGTH:
                own_label = label and cut_value(label) if cell.own else None
                named.setdefault((cell.type, name), NamedRecord(cell.type, name, cell.own, own_label))
    return tuple(named.values())[:MOST_RECORDS]


# The key of a row -> the id of its record.
_Identify = Callable[[sa.ColumnElement[str]], sa.ColumnElement[str]]


def _select_ids(key: sa.ColumnElement[str], identify: _Identify) -> sa.ColumnElement[Any]:
    return array([identify(key)], type_=CText)


def _select_items(cell: sa.ColumnElement[str], identify: _Identify) -> sa.ColumnElement[Any]:
    items = sa.func.unnest(to_list(cell)).table_valued("item").render_derived()
    return sa.select(sa.func.array_agg(identify(items.c.item), type_=CTexts)).scalar_subquery()


def _unless_faulty(rows: StagedFile, value: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """The value, or NULL in a row with too few or too many cells: each of its cells may be that of another column."""
    if FAULT not in rows.table.c:
        return value
    return sa.type_coerce(sa.case((is_shifted(rows), sa.null()), else_=value), value.type)


def is_shifted(rows: StagedFile) -> sa.ColumnElement[bool]:
    """The condition that a row has too few or too many cells."""
    fault = rows.table.c.get(FAULT)
    return sa.false() if fault is None else fault.is_not(None)
