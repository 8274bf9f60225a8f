"""What a CSV format is: files with columns, and how their rows become rows of our tables. Plain values, no work.

A record is one row of a roster table and comes from one file, column by column. A part is a row that belongs to a
record (a role of a user, a term of a class) and comes from a SELECT over the staged files; a change of its parts is a
change of the record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import BigInteger, Column, ColumnElement, FromClause, Select, Table, cast, null, or_, true

from sync_scripts.formats.cells import Kind

METADATA_PREFIX = "metadata."
# Where a staged row stands: the number of its line in the file.
LINE = "line"
# The hash of a staged line (see `staging/line_hashes.py`).
HASH = "hash"
# The header of the ids in OneRoster; by it, the ids of any file are found.
KEY = "sourcedId"
# What the status of a row says when its record is no longer there.
GONE = ("tobedeleted", "inactive")


@dataclass(frozen=True)
class Reference:
    """A cell that names rows of `file` by their id; `types`: what their `type` must be, where it matters;
    `tree`: following it from row to row must come to an end."""

    file: str
    types: tuple[str, ...] = ()
    tree: bool = False
    # The name of the file in the export, where it is another one.
    written_as: str | None = None

    @property
    def file_name(self) -> str:
        return f"{self.written_as or self.file}.csv"


@dataclass(frozen=True)
class Cell:
    """A column of a CSV file: its header, its kind, the column of ours that it fills (None: none directly)."""

    header: str
    kind: Kind
    column: Column[Any] | None = None
    required: bool = False
    refers: Reference | None = None
    # A list names many rows; its items are checked one by one.
    many: bool = False
    # Where the items of a list are stored: a column of a table of parts, whose first column names the record.
    items: Column[Any] | None = None

    @property
    def stored_in(self) -> Column[Any] | None:
        """The column of ours that holds what the cell says; None where there is none that holds just that."""
        return self.items if self.many else self.column


@dataclass(frozen=True)
class Subject:
    """What the rows of a file that others are derived from describe: records of `table`. `identify` makes the id of
    the record from the name of the feed and the key of the row; None: it does not follow from these alone."""

    table: Table
    identify: Callable[[str, ColumnElement[str]], ColumnElement[str]] | None = None


@dataclass(frozen=True)
class CsvFile:
    """A file of an export: its columns in their order, and the roster table that its rows are records of.

    A `required` file must be in every export, with at least one row. Another one may be absent: then nothing is said
    about its records, and they stay as they are. In an `ordered` file every column stands in its place; else they
    stand in any order, and those that no row needs may be missing. Own columns of an exporter begin with
    `own_prefix` and become metadata. `key` is the header of the ids of the rows; where they are not `unique`, rows
    with the same id say the same, and each says something more. Rows that are parts of records are kept in `kept_in`,
    each under its id."""

    name: str
    cells: tuple[Cell, ...]
    table: Table | None = None
    required: bool = True
    ordered: bool = True
    own_prefix: str = METADATA_PREFIX
    key: str = KEY
    unique: bool = True
    kept_in: Table | None = None
    # The name in the export, where it is not the name among the staged files.
    written_as: str | None = None
    # Of a file that has no `table`, because others are derived from it.
    subject: Subject | None = None

    @property
    def file_name(self) -> str:
        return f"{self.written_as or self.name}.csv"

    @property
    def is_plain(self) -> bool:
        """Whether a row says a record by itself: in a tree, other rows matter too. Trees are small."""
        in_tree = any(cell.refers is not None and cell.refers.tree for cell in self.cells)
        return self.table is not None and self.unique and not in_tree

    @property
    def owner(self) -> Cell:
        """Of a file that is `kept_in` a table of parts: the column that names the record a row is part of."""
        for cell in self.cells:
            if self.kept_in is not None and cell.column is next(iter(self.kept_in.columns)):
                return cell
        raise KeyError(self.name)

    @property
    def headers(self) -> tuple[str, ...]:
        """The headers of all columns."""
        return tuple(cell.header for cell in self.cells)

    def find_cell(self, header: str) -> Cell:
        """The column with this header. KeyError: no such column."""
        for cell in self.cells:
            if cell.header == header:
                return cell
        raise KeyError(header)


@dataclass(frozen=True)
class StagedFile:
    """A file of an export in the database: a temporary table of texts, one column per CSV column, empty cells NULL,
    and the number and the hash of each line. Lines that the last export had too may have been left out."""

    file: CsvFile
    table: FromClause
    metadata_keys: tuple[str, ...]

    @property
    def columns(self) -> list[Any]:
        """All columns, but for secrets, which are gone already."""
        secrets = {cell.header for cell in self.file.cells if cell.kind.secret}
        return [column for column in self.table.c if column.name not in secrets]

    @property
    def line(self) -> ColumnElement[Any]:
        """The number of a row's line in the file."""
        return self.table.c[LINE]

    @property
    def line_hash(self) -> ColumnElement[int]:
        """The hash of a row's line; a row that was derived has none."""
        found = self.table.c.get(HASH)
        return cast(null(), BigInteger) if found is None else found

    def __getitem__(self, header: str) -> ColumnElement[Any]:
        return self.table.c[self.file.key if header == KEY else header]

    def alias(self) -> StagedFile:
        """The same rows under another name, to compare rows with rows."""
        return StagedFile(self.file, self.table.alias(), self.metadata_keys)

    @property
    def live(self) -> ColumnElement[bool]:
        """The condition that a row is of a current record. A row flagged as gone says no more than a missing one."""
        status = self.table.c.get("status")
        return true() if status is None else or_(status.is_(None), status.not_in(GONE))

    @property
    def metadata_columns(self) -> list[ColumnElement[Any]]:
        """The columns of `metadata_keys`, named by number: a key is text from outside and no identifier."""
        return [self.table.c[name_metadata_column(number)] for number in range(len(self.metadata_keys))]


Staged = Mapping[str, StagedFile]


def name_metadata_column(number: int) -> str:
    """The name of the staged column that holds the metadata column with this number."""
    return f"{METADATA_PREFIX}{number}"


@dataclass(frozen=True)
class Part:
    """Rows that belong to records of `owner`: the first column of `table` names the record. They are made from the
    staged files named in `files`, and stay as they are where one of these is absent. Where the parts are rows of a
    file that is kept in `table`, those of them that stand are added to the `rows`; then `number` gives each its
    ordinal, if they have any."""

    table: Table
    owner: Table
    files: tuple[str, ...]
    rows: Callable[[Staged], Select[Any]]
    number: Callable[[FromClause, Staged], Select[Any]] | None = None


@dataclass(frozen=True)
class Rule:
    """A condition under which a row of `file` is refused, beyond its cells and references; `needs`: the files that
    the condition looks at. It is made of the staged files, and of the stored rows that stand beside them."""

    file: str
    header: str
    reason: str
    breaks: Callable[[Staged, Staged], ColumnElement[bool]]
    needs: tuple[str, ...] = ()


ConvertedRows = Callable[[Staged, str], Select[Any]]
RetainedRows = Callable[[Staged, str], Iterable[Select[Any]]]


@dataclass(frozen=True)
class ConvertedFile:
    """A file that no export brings: its rows are made of the staged `files`, as the same texts that OneRoster has.
    `rows` gets these files, and the name of the feed; columns that it leaves out are empty. `retained` gets the refused
    rows instead, of the files that have some, and selects under the headers of `file` which stored records they may
    have said."""

    file: CsvFile
    files: tuple[str, ...]
    rows: ConvertedRows
    retained: RetainedRows


@dataclass(frozen=True)
class Format:
    """A CSV format. `skipped`: files that exports of this format may bring and that hold no roster."""

    name: str
    files: tuple[CsvFile, ...]
    converted: tuple[ConvertedFile, ...] = field(default=(), kw_only=True)
    parts: tuple[Part, ...] = ()
    rules: tuple[Rule, ...] = ()
    skipped: frozenset[str] = frozenset()

    @property
    def all_files(self) -> tuple[CsvFile, ...]:
        """The files that exports bring, and those that are derived from them."""
        return (*self.files, *(it.file for it in self.converted))

    @property
    def tables(self) -> frozenset[Table]:
        """The roster tables that an export of this format fills."""
        return frozenset(file.table for file in self.all_files if file.table is not None)

    def find_file(self, name: str) -> CsvFile:
        """The file with this name. KeyError: the format has none."""
        for file in self.all_files:
            if file.name == name:
                return file
        raise KeyError(name)


def loosen(file: CsvFile, *headers: str) -> CsvFile:
    """The file, with cells under these headers that may be empty."""
    cells = (replace(cell, required=cell.required and cell.header not in headers) for cell in file.cells)
    return replace(file, cells=tuple(cells))
