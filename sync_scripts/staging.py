"""CSV files into temporary tables of texts, with COPY: PostgreSQL takes the rows apart, Python only passes bytes on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

import psycopg2
from sqlalchemy import Column, Connection
from sqlalchemy.types import NullType

from roster_service.db.tables import CText
from sync_scripts.faults import MendedLines, find_faults
from sync_scripts.formats import METADATA_PREFIX, CsvFile, Staged, StagedFile, name_metadata_column
from sync_scripts.headers import read_header
from sync_scripts.lines import LONGEST_LINE, CleanLines, SuspectBytesError
from sync_scripts.package import UNREADABLE, Package
from sync_scripts.refusals import Findings, Refusal, RefusedExportError, refuse_if
from sync_scripts.temporary import analyze_temporary, create_temporary

# No line is longer than half of it.
BLOCK = 2 * LONGEST_LINE
# SQLSTATE class of data that cannot be read: wrong numbers of cells, bytes that are not UTF-8.
DATA_EXCEPTION = "22"


class DamagedFileError(Exception):
    """A file cannot be staged; `reason` in case that no slower reading finds a better one."""

    def __init__(self, file_name: str, reason: str) -> None:
        super().__init__(reason)
        self.file_name = file_name
        self.reason = reason


@dataclass(frozen=True)
class Stage:
    """The staged files, by name, and what was put up with on the way."""

    files: Staged
    notices: tuple[str, ...]


def stage_files(connection: Connection, package: Package, files: Iterable[CsvFile]) -> Stage:
    """Copies the files into temporary tables.

    Raises RefusedExportError for headers that are not the declared ones and for files without the rows they need;
    DamagedFileError for rows that cannot be taken apart, after which `find_damage` says more.
    """
    files = tuple(files)
    metadata_keys = _read_headers(package, files)
    findings = Findings()
    staged: dict[str, StagedFile] = {}
    notices: list[str] = []
    for file in files:
        source = _Source(package, file, metadata_keys[file.name])
        staged[file.name], rows, mended = _stage_file(connection, source)
        if mended:
            notices.append(f"{file.file_name}: in {mended} rows, empty cells beyond the last column are ignored")
        if file.required and not rows:
            findings += Findings.of([Refusal(file.file_name, "has no rows")])
    refuse_if(findings)
    return Stage(staged, tuple(notices))


def find_damage(package: Package, files: Iterable[CsvFile], error: DamagedFileError) -> RefusedExportError:
    """What is wrong with the rows of the files, found by reading all of them line by line; else what `error` says."""
    findings = Findings()
    for file in files:
        try:
            with _open(package, file) as stream:
                keys, _ = read_header(CleanLines(stream).header, file)
            findings += _find_faults(_Source(package, file, keys))
        except DamagedFileError as damage:
            findings += Findings.of([Refusal(damage.file_name, damage.reason)])
    return RefusedExportError(findings or Findings.of([Refusal(error.file_name, error.reason)]))


def _read_headers(package: Package, files: Iterable[CsvFile]) -> dict[str, tuple[str, ...]]:
    """The keys of the metadata columns of each file."""
    keys = {}
    findings = Findings()
    for file in files:
        with _open(package, file) as stream:
            keys[file.name], found = read_header(CleanLines(stream).header, file)
            findings += found
    refuse_if(findings)
    return keys


@dataclass(frozen=True)
class _Source:
    """A file with a good header."""

    package: Package
    file: CsvFile
    metadata_keys: tuple[str, ...]

    def open(self) -> contextlib.AbstractContextManager[BinaryIO]:
        return _open(self.package, self.file)

    @property
    def headers(self) -> list[str]:
        return [*(cell.header for cell in self.file.cells), *(METADATA_PREFIX + key for key in self.metadata_keys)]


@contextlib.contextmanager
def _open(package: Package, file: CsvFile) -> Iterator[BinaryIO]:
    try:
        with package.open(file.file_name) as stream:
            yield stream
    except UNREADABLE:
        raise DamagedFileError(file.file_name, "is truncated or damaged") from None


def _find_faults(source: _Source) -> Findings:
    with source.open() as stream:
        return Findings.of(find_faults(stream, source.file.file_name, source.headers))


def _stage_file(connection: Connection, source: _Source) -> tuple[StagedFile, int, int]:
    """(the staged file, its rows, how many of them were mended)."""
    try:
        with connection.begin_nested(), source.open() as stream:
            lines = CleanLines(stream)
            return _copy(connection, source, lines), lines.rows, 0
    except DamagedFileError:
        if _find_faults(source):
            raise
    # Nothing that cannot be mended: once more, line by line.
    with source.open() as stream:
        mended = MendedLines(stream, len(source.headers))
        return _copy(connection, source, mended), mended.rows, mended.mended


def _copy(connection: Connection, source: _Source, lines: CleanLines | MendedLines) -> StagedFile:
    file = source.file
    names = [cell.header for cell in file.cells]
    names += [name_metadata_column(number) for number in range(len(source.metadata_keys))]
    # ctid: where a row lies is its place in the file, because COPY into an empty table keeps the order.
    place: Column[object] = Column("ctid", NullType(), system=True)
    table = create_temporary(connection, f"staged_{file.name}", [place, *(Column(name, CText) for name in names)])
    quote = connection.dialect.identifier_preparer.quote_identifier
    target, columns = f"pg_temp.{quote(table.name)}", ", ".join(map(quote, names))
    # FORCE_NULL: a quoted empty cell is as empty as a bare one.
    statement = f"COPY {target} ({columns}) FROM STDIN WITH (FORMAT csv, ENCODING 'UTF8', FORCE_NULL ({columns}))"
    reader = _Reader(lines.read)
    try:
        with contextlib.closing(connection.connection.cursor()) as cursor:
            cursor.copy_expert(statement, reader, BLOCK)
    except psycopg2.Error as error:
        _raise_damage(error, reader, file)
    for cell in file.cells:
        if cell.kind.secret:
            connection.exec_driver_sql(f"ALTER TABLE {target} DROP COLUMN {quote(cell.header)}")
    joined = [cell.header for cell in file.cells if cell.header == "sourcedId" or cell.refers is not None]
    analyze_temporary(connection, table, *joined)
    return StagedFile(file, table, source.metadata_keys)


def _raise_damage(error: psycopg2.Error, reader: _Reader, file: CsvFile) -> None:
    if isinstance(reader.failure, UNREADABLE):
        raise DamagedFileError(file.file_name, "is truncated or damaged") from None
    if reader.failure is None and not (error.pgcode or "").startswith(DATA_EXCEPTION):
        # The database itself has failed.
        raise error
    # The server's words name the column but not the value; its further details would quote the row.
    raise DamagedFileError(file.file_name, error.diag.message_primary or "cannot be read") from None


class _Reader:
    """What COPY reads from; remembers what went wrong, because the driver only passes its words on."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self.failure: Exception | None = None

    def read(self, size: int) -> bytes:
        try:
            return self._read(size)
        except (SuspectBytesError, *UNREADABLE) as error:
            self.failure = error
            raise
