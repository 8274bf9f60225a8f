"""Where an export of a format can have each tolerated deviation, by the declaration of the format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from roster_service.db.tables import classes, enrollments, orgs
from sync_scripts.formats import tolerated
from sync_scripts.formats.cells import UNREAD
from sync_scripts.formats.model import Cell, CsvFile, Format
from sync_scripts.formats.tolerated import Deviation
from sync_scripts.staging.convert import MADE_OF_SECTIONS

# A file, and the column where the deviation is one of a column.
Place = tuple[CsvFile, Cell | None]
# Of names, bytes and headers, which are read in one way.
OF_ANY_FILE = (
    *(tolerated.HEADER_CASE, tolerated.HEADER_SPACES, tolerated.EXTRA_COLUMN, tolerated.BYTE_ORDER_MARK),
    *(tolerated.UTF_16, tolerated.WINDOWS_1252, tolerated.MAC_LINES, tolerated.BLANK_LINE, tolerated.QUOTED_NEWLINE),
    *(tolerated.EXTRA_CELLS, tolerated.FILE_NAME_CASE, tolerated.LIKE_FILE, tolerated.OTHER_FILE, tolerated.FOLDER),
    *(tolerated.BACKSLASHES, tolerated.MAPPED_WORD),
)
# Of a manifest, of deltas, and of columns that have an order.
OF_ONEROSTER = (
    *(tolerated.COLUMN_ORDER, tolerated.MISSING_COLUMN, tolerated.SAME_DAY_FIRST, tolerated.NO_MANIFEST),
    *(tolerated.MANIFEST_VERSION, tolerated.MODE_CASE, tolerated.PROPERTY_CASE, tolerated.OTHER_PROPERTY),
    *(tolerated.MISSING_PROPERTY, tolerated.BLANK_MODE, tolerated.UNDECLARED_FILE, tolerated.MISSING_FILE),
)


def list_places(form: Format) -> Mapping[Deviation, list[Place]]:
    """The places of each deviation that an export of the format can have."""
    places: dict[Deviation, list[Place]] = {}
    for deviation, file, cell in _list_shown(form):
        places.setdefault(deviation, []).append((file, cell))
    return places


def _list_shown(form: Format) -> Iterator[tuple[Deviation, CsvFile, Cell | None]]:
    for file in form.files:
        yield from ((deviation, file, cell) for cell in file.cells for deviation in _list_of_cell(file, cell))
        yield from ((deviation, file, None) for deviation in _list_of_file(form, file))
    for remark in form.remarks:
        file = form.find_file(remark.file)
        yield remark.deviation, file, file.find_cell(remark.header)


def _list_of_cell(file: CsvFile, cell: Cell) -> Iterator[Deviation]:
    yield from (tolerance.deviation for tolerance in cell.kind.tolerates if not tolerance.usual)
    found = {
        tolerated.HEADER_SPELLING: cell.header in tolerated.HEADER_SPELLINGS.values(),
        tolerated.STATUS_IN_BULK: cell.header == "status",
        tolerated.GONE_STATUS: cell.header == "status",
        tolerated.NO_TARGET: cell.is_dropped and not cell.required,
        tolerated.OTHER_SCHOOL: file.table is enrollments and cell.header in ("schoolSourcedId", "School_id"),
        tolerated.NO_PARENT: file.table is orgs and cell.header == "parentSourcedId",
        tolerated.NO_PLACE: file.is_source and cell.kind is UNREAD,
    }
    yield from (deviation for deviation, is_shown in found.items() if is_shown)


def _list_of_file(form: Format, file: CsvFile) -> Iterator[Deviation]:
    yield from OF_ANY_FILE if file.is_source else (*OF_ANY_FILE, *OF_ONEROSTER)
    listed = {other.table for other in form.files}
    needed = {name for it in form.converted if it.file.table is file.table for name in it.files if name != file.name}
    found = {
        tolerated.DUPLICATE_ROW: file.unique,
        tolerated.MADE_IDS: file.makes_ids,
        tolerated.NO_DISTRICT: file.table is orgs,
        tolerated.NO_COURSES: file.name in form.made,
        tolerated.KEPT_COURSE: bool(form.made) and file.table is classes,
        tolerated.MADE_RECORDS: file.is_source and file.table is classes and not listed >= MADE_OF_SECTIONS,
        # Of files that share their table, another one says something.
        tolerated.UNREAD_FILE: not file.required and any(not form.find_file(name).required for name in needed),
    }
    yield from (deviation for deviation, is_shown in found.items() if is_shown)
