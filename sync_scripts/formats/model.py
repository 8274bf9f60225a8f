"""The declaration of a CSV format: its files with their columns, and how their rows become rows of the roster.

The classes here are plain values; no function here reads a file or the database.

A record is one row of a roster table and comes from one row of a file, column by column. A part is a row that belongs
to a record (a role of a user, a term of a class) and comes from a SELECT over the staged files. A change of a part
counts as a change of its record.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, array

from roster_service.db.tables import CText
from roster_service.roster.references import OWNERS, RECORDS
from sync_scripts.formats.cells import CellKind
from sync_scripts.formats.tolerated import Deviation

METADATA_PREFIX = "metadata."
# The column of a converted file with the metadata of its records.
METADATA = "metadata"
# In front of the number of a staged column that the sync does not read. It drops the column after COPY.
EXTRA_PREFIX = "extra."
# The staged column with the number of the row's line in its file.
LINE = "line"
# The staged column with the hash of the row's line (see `staging/line_hashes.py`).
HASH = "hash"
# The staged column with the fault of a row that has too few or too many cells; NULL for every other row.
FAULT = "fault"
# OneRoster's header of the ids. `StagedFile` finds the ids of a file of any format under it.
KEY = "sourcedId"
# The statuses of a row whose record no longer exists.
GONE = ("tobedeleted", "inactive")


@dataclass(frozen=True)
class CellReference:
    """The reference of a cell that names rows of `file` by their id. `types`: the allowed values of their `type`
    (empty: any); `tree`: the references from row to row must not form a circle; `same`: the header of the cell that a
    row has in common with the row that it names."""

    file: str
    types: tuple[str, ...] = ()
    tree: bool = False
    same: str | None = None

    @property
    def file_name(self) -> str:
        return f"{self.file}.csv"


@dataclass(frozen=True)
class Cell:
    """A column of a CSV file: its header, its kind, and the roster column that it fills (None: none directly). `many`:
    whether the cell is a list of ids, whose items the checks look at one by one; `items`: the column of a parts table
    that stores the items of a list; `stands`: a reference that leads nowhere is neither emptied nor a fault, because
    something else takes its place later."""

    header: str
    kind: CellKind
    column: sa.Column[Any] | None = None
    required: bool = False
    refers: CellReference | None = None
    many: bool = False
    items: sa.Column[Any] | None = None
    stands: bool = False

    @property
    def stored_in(self) -> sa.Column[Any] | None:
        """The roster column that holds the cell's value, or the items of its list; None where no column does."""
        return self.items if self.many else self.column

    @property
    def is_dropped(self) -> bool:
        """Whether a reference that leads nowhere is left out or replaced, instead of the row."""
        return self.refers is not None and (not self.required or self.stands)

    @property
    def may_lose(self) -> bool:
        """Whether references that lead nowhere are left out: all, or in a list those beside others."""
        return self.is_dropped or self.many

    @property
    def is_needed(self) -> bool:
        """Whether the record of the row ends with the record that the cell names."""
        return self.refers is not None and not self.is_dropped and not self.many and self.column is not None


# (name of the feed, key of a row) -> the id of the record that the row describes
Identify = Callable[[str, sa.ColumnElement[str]], sa.ColumnElement[str]]


def keep_key(_feed_name: str, key: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    """The id of a record that has the key of its row."""
    return key


@dataclass(frozen=True)
class CsvFile:
    """A file of an export: its columns in their order, and the roster table of the records that its rows describe.
    Every export must have a `required` file, with at least one row. Where an optional file is absent, the sync retains
    its records as they are. The headers of an exporter's own columns begin with `own_prefix`; these columns become
    metadata. `key` is the header of the ids of the rows. Where the ids are not `unique`, several rows may describe the
    same record, and each of them adds something. The table `kept_in` stores the rows of a file whose rows are parts of
    records, each with its id. `identify` makes the id of a row's record; None: feed and key do not determine it;
    `makes_ids`: whether the records have other ids in the roster than in the file, or none there; `is_source`: the sync
    converts the rows into rows of other files."""

    name: str
    cells: tuple[Cell, ...]
    table: sa.Table | None = None
    required: bool = True
    own_prefix: str = METADATA_PREFIX
    key: str = KEY
    unique: bool = True
    kept_in: sa.Table | None = None
    identify: Identify | None = keep_key
    makes_ids: bool = False
    is_source: bool = False

    @property
    def file_name(self) -> str:
        return f"{self.name}.csv"

    @property
    def is_plain(self) -> bool:
        """Whether each row describes a record without the other rows. In a tree the other rows matter too, so its file
        is not plain; that costs little, because trees are small."""
        in_tree = any(cell.refers is not None and cell.refers.tree for cell in self.cells)
        return self.table is not None and self.unique and not in_tree

    @property
    def owner(self) -> Cell:
        """The column that names the record which a row is part of. Raises KeyError for a file that no table of parts
        stores."""
        for cell in self.cells:
            if self.kept_in is not None and cell.column is OWNERS[self.kept_in]:
                return cell
        raise KeyError(self.name)

    @property
    def headers(self) -> tuple[str, ...]:
        """The headers of all columns."""
        return tuple(cell.header for cell in self.cells)

    def find_cell(self, header: str) -> Cell:
        """The column with this header. Raises KeyError where there is none."""
        for cell in self.cells:
            if cell.header == header:
                return cell
        raise KeyError(header)


def list_cells(kind: CellKind, *headers: str) -> tuple[Cell, ...]:
    """Optional cells of one kind that fill no column directly."""
    return tuple(Cell(header, kind) for header in headers)


def declare_source(name: str, table: sa.Table, *cells: Cell, **fields: Any) -> CsvFile:
    """A file that the sync converts into others, with the other `fields` of `CsvFile`."""
    return CsvFile(name, cells, table, is_source=True, **fields)


# The bound of the statements of files that are made once in a process. To make those that look for deviations and for
# bad cells takes a third of the processor time of a load of 14 people.
STATEMENT_CACHE_SIZE = 128


@dataclass(frozen=True)
class StagedFile:
    """A file of an export in the database: a temporary table of texts with one column per CSV column, where an empty
    cell is NULL, and with the number and the hash of each line. Lines that the last export also had may be left out.
    `has_faults`: whether any row has a fault; `is_known`: whether all lines are left out, so that there is none to look
    at."""

    file: CsvFile
    table: sa.FromClause
    metadata_keys: tuple[str, ...]
    has_faults: bool = False
    is_known: bool = False

    @property
    def columns(self) -> list[Any]:
        """All columns except secrets and extra columns, which staging has dropped."""
        secrets = {cell.header for cell in self.file.cells if cell.kind.secret}
        kept = (column for column in self.table.c if column.name not in secrets)
        return [column for column in kept if not column.name.startswith(EXTRA_PREFIX)]

    @property
    def line(self) -> sa.ColumnElement[Any]:
        """The number of a row's line in the file; the header is line 1."""
        return self.table.c[LINE]

    @property
    def line_hash(self) -> sa.ColumnElement[int]:
        """The hash of a row's line; NULL for a converted row."""
        found = self.table.c.get(HASH)
        return sa.cast(sa.null(), sa.BigInteger) if found is None else found

    def __getitem__(self, header: str) -> sa.ColumnElement[Any]:
        return self.table.c[self.file.key if header == KEY else header]

    def alias(self) -> StagedFile:
        """The same rows under another SQL name, for a join of the file with itself."""
        return StagedFile(self.file, self.table.alias(), self.metadata_keys)

    def look_up(self) -> StagedFile:
        """The same rows under the name of `name_once`, for a sub-select that looks for a row of the file."""
        return StagedFile(self.file, name_once(self.table), self.metadata_keys)

    @property
    def live(self) -> sa.ColumnElement[bool]:
        """The condition that a row describes a current record. A row with a status of `GONE` counts as missing."""
        status = self.table.c.get("status")
        return sa.true() if status is None else sa.or_(status.is_(None), sa.and_(*(status != gone for gone in GONE)))

    @property
    def metadata_columns(self) -> list[sa.ColumnElement[Any]]:
        """The columns of `metadata_keys`. Their names are numbers, because a key is untrusted text and must not become
        an identifier."""
        return [self.table.c[name_metadata_column(number)] for number in range(len(self.metadata_keys))]

    @property
    def metadata(self) -> sa.ColumnElement[Any]:
        """The metadata of a row as JSON; NULL for a row without any."""
        if METADATA in self.table.c:
            return self.table.c[METADATA]
        if not self.metadata_keys:
            return sa.cast(sa.null(), JSONB)
        keys = sa.literal(list(self.metadata_keys), ARRAY(CText))
        values: sa.ColumnElement[Any] = array(self.metadata_columns, type_=CText)
        filled = sa.func.jsonb_strip_nulls(sa.func.jsonb_object(sa.cast(keys, ARRAY(CText)), values), type_=JSONB)
        return sa.func.nullif(filled, sa.cast(sa.literal({}, JSONB), JSONB), type_=JSONB)


@functools.lru_cache(STATEMENT_CACHE_SIZE)
def name_once(table: sa.FromClause) -> sa.FromClause:
    """The table under another SQL name that is always the same, for a sub-select that stands in no other one with this
    name. Each new name describes all columns anew, which took a tenth of the time in Python of a load of 14 people."""
    return table.alias()


Staged = Mapping[str, StagedFile]


def name_extra_column(number: int) -> str:
    """The name of the staged column for the column of a file with this number, from 1, that the sync does not read."""
    return f"{EXTRA_PREFIX}{number}"


def name_metadata_column(number: int) -> str:
    """The name of the staged column that holds the metadata column with this number."""
    return f"{METADATA_PREFIX}{number}"


@dataclass(frozen=True)
class Part:
    """Rows that belong to records. `rows` selects them from the staged files named in `files`; where one of these files
    is absent, the stored parts stay as they are. Where `table` stores the rows of a file, the sync adds the retained
    parts to the `rows`, and `number` then gives each row its ordinal (None: the parts have no ordinals)."""

    table: sa.Table
    files: tuple[str, ...]
    rows: Callable[[Staged], sa.Select[Any]]
    number: Callable[[sa.FromClause, Staged], sa.Select[Any]] | None = None

    @property
    def owner(self) -> sa.Table:
        """The table of the records."""
        return RECORDS[self.table]


@dataclass(frozen=True)
class Rule:
    """A condition that rejects a row of `file`, beyond the checks of its cells and references. `breaks` makes it from
    the staged rows and the retained ones (None: there are none)."""

    file: str
    header: str
    reason: str
    breaks: Callable[[StagedFile, StagedFile | None], sa.ColumnElement[bool]]


@dataclass(frozen=True)
class Remark:
    """Something that the conversion of a file makes up or leaves out. `rows` selects one row for each row of the staged
    `file` of which it does."""

    file: str
    header: str
    deviation: Deviation
    rows: Callable[[StagedFile], sa.Select[Any]]


def remark_rows(
    file: str, header: str, deviation: Deviation, holds: Callable[[StagedFile], sa.ColumnElement[bool]]
) -> Remark:
    """A remark on the rows of a file of which `holds` is true."""
    return Remark(file, header, deviation, lambda staged: sa.select(staged.line).where(holds(staged)))


# In front of the name of a file: its rejected rows, among the files that rows are converted from.
REJECTED = "rejected "
ConvertedRows = Callable[[Staged, str], sa.Select[Any]]
RetainedRows = Callable[[Staged, str], Iterable[sa.Select[Any]]]


@dataclass(frozen=True)
class ConvertedFile:
    """A OneRoster file that the sync makes from the staged `files` of another format, as the texts of OneRoster CSV.

    `rows` takes these files, with the rejected rows of each under `REJECTED` and its name, and the name of the feed,
    and selects the rows; columns that it leaves out are empty.
    `retained` takes the rejected rows of those files that have some, and the name of the feed. It selects, under the
    headers of `file`, the stored records that the rejected rows may have described. `left` takes what `rows` takes, and
    selects the stored records that stay because the export lacks the file that describes them."""

    file: CsvFile
    files: tuple[str, ...]
    rows: ConvertedRows
    retained: RetainedRows
    left: RetainedRows = lambda _staged, _feed: ()


@dataclass(frozen=True)
class Format:
    """A CSV format. `converted`: what the sync makes of the files, if they are not those of OneRoster; `parts`: of the
    records of its `roster`; `skipped`: the names of files that exports of this format may contain and that hold no
    roster; `made`: the names of required files that the sync makes of the others where they are missing; `remarks`:
    what a report says of the conversion; `makes_district`: the feed itself is the district of its orgs."""

    name: str
    files: tuple[CsvFile, ...]
    converted: tuple[ConvertedFile, ...] = field(default=(), kw_only=True)
    parts: tuple[Part, ...] = ()
    rules: tuple[Rule, ...] = ()
    skipped: frozenset[str] = frozenset()
    made: frozenset[str] = frozenset()
    remarks: tuple[Remark, ...] = ()
    makes_district: bool = False

    @functools.cached_property
    def roster(self) -> Format:
        """The format of the OneRoster files that an export has, or that the sync converts its files into."""
        files = tuple(converted.file for converted in self.converted)
        return Format(self.name, files, parts=self.parts) if files else self

    @property
    def tables(self) -> frozenset[sa.Table]:
        """The roster tables that an export of this format fills."""
        return frozenset(file.table for file in self.roster.files if file.table is not None)

    def find_file(self, name: str) -> CsvFile:
        """The file with this name. Raises KeyError where the format has none."""
        for file in self.files:
            if file.name == name:
                return file
        raise KeyError(name)
