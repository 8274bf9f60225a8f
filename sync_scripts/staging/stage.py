"""Stages CSV files: copies them into temporary tables of texts. PostgreSQL's COPY splits the rows; Python only passes
bytes on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO

import psycopg2
import sqlalchemy as sa

from roster_service.db.tables import CText
from sync_scripts.formats.model import FAULT, HASH, LINE, CsvFile, Format, Staged, StagedFile, name_metadata_column
from sync_scripts.formats.tolerated import Notice, Tolerated
from sync_scripts.reading.headers import Header, read_header
from sync_scripts.reading.lines import LONGEST_LINE, CleanLines, Rows, SuspectBytesError
from sync_scripts.reading.manifest import Contents
from sync_scripts.reading.package import UNREADABLE, ExportPackage, describe_unreadable
from sync_scripts.reading.rejections import Findings, RefusedExportError, Rejection, refuse_if
from sync_scripts.reading.repair import RepairedLines, find_faults, find_shapes
from sync_scripts.staging.line_hashes import DigestingReader, LastLines, LineHasher, NewLines
from sync_scripts.staging.temporary import Follow, analyze_temporary, create_temporary

# Bytes per read of COPY; no line is longer than half of it.
BLOCK = 2 * LONGEST_LINE
# SQLSTATE class of unreadable data: wrong numbers of cells, bytes that are not UTF-8.
DATA_EXCEPTION = "22"
# The only SQLSTATE of that class whose message quotes no data: wrong numbers of cells.
BAD_COPY_FILE_FORMAT = "22P04"


class DamagedFileError(Exception):
    """A file cannot be staged. `reason` applies if the slower reading of `find_damage` finds no better one."""

    def __init__(self, file_name: str, reason: str) -> None:
        super().__init__(reason)
        self.file_name = file_name
        self.reason = reason


@dataclass(frozen=True)
class Stage:
    """The staged files, by name, and the notices about tolerated deviations. `digests`, `rows`: of each file of the
    export, by its name; `gone`: for each file that is staged with only its new lines, by its table, the hashes of the
    lines that are gone."""

    files: Staged
    notices: tuple[Notice, ...]
    digests: Mapping[str, bytes]
    rows: Mapping[str, int]
    gone: Mapping[sa.Table, Collection[int]]


def stage_files(connection: sa.Connection, contents: Contents, form: Format, last: LastLines, follow: Follow) -> Stage:
    """Copies the files of an export into temporary tables; a silent file gets an empty table. Leaves out lines that are
    among the `last` ones, for files where one row describes one record. `follow`: of the step.

    Raises RefusedExportError for headers that differ from the declared ones and for required files without rows, and
    DamagedFileError for rows that COPY cannot split; `find_damage` then finds the reasons.
    """
    headers, header_notices = _read_headers(contents.package, contents.files)
    findings = Findings()
    staged: dict[str, StagedFile] = {}
    digests: dict[str, bytes] = {}
    rows: dict[str, int] = {}
    gone: dict[sa.Table, Collection[int]] = {}
    notices: list[Notice] = [*header_notices]
    for file in follow(contents.files):
        source = _Source(contents.package, file, headers[file.name], form)
        found = _stage_file(connection, source, last)
        staged[file.name], digests[file.name], rows[file.name] = found.file, found.digest, found.rows
        table = last.find_table(file)
        if table is not None:
            gone[table] = found.gone.union(last.restaged.get(table, ()))
        notices += found.notices
        if file.required and not found.rows and file.name not in contents.deltas:
            findings += Findings.of([Rejection(file.file_name, "has no rows")])
    refuse_if(findings)
    for file in contents.silent:
        kept = [cell.header for cell in file.cells if not cell.kind.secret]
        staged[file.name] = StagedFile(file, _create(connection, file, kept), ())
    return Stage(staged, tuple(notices), digests, rows, gone)


def find_damage(package: ExportPackage, files: Iterable[CsvFile], error: DamagedFileError) -> RefusedExportError:
    """Reads all files line by line and returns their faults as an error; without faults, the reason of `error`."""
    findings = Findings()
    for file in files:
        try:
            with _open(package, file) as stream:
                header, _ = read_header(CleanLines(stream).header, file)
            findings += _find_faults(package, file, header)
        except DamagedFileError as damage:
            findings += Findings.of([Rejection(damage.file_name, damage.reason)])
    return RefusedExportError(findings or Findings.of([Rejection(error.file_name, error.reason)]))


def _read_headers(package: ExportPackage, files: Iterable[CsvFile]) -> tuple[dict[str, Header], list[Notice]]:
    """The header of each file by its name, and the notices about tolerated deviations in them."""
    headers = {}
    notices: list[Notice] = []
    findings = Findings()
    for file in files:
        with _open(package, file) as stream:
            lines = CleanLines(stream)
        headers[file.name], found = read_header(lines.header, file)
        findings += found
        notices += (Tolerated(file.file_name, deviation) for deviation in lines.deviations)
        notices += headers[file.name].notices
    refuse_if(findings)
    return headers, notices


@dataclass(frozen=True)
class _Source:
    """A file with a good header, and the format that declares it."""

    package: ExportPackage
    file: CsvFile
    header: Header
    form: Format

    def open(self) -> contextlib.AbstractContextManager[BinaryIO]:
        return _open(self.package, self.file)


@contextlib.contextmanager
def _open(package: ExportPackage, file: CsvFile) -> Iterator[BinaryIO]:
    try:
        with package.open(file.file_name) as stream:
            yield stream
    except UNREADABLE as error:
        raise DamagedFileError(file.file_name, describe_unreadable(error)) from None


def _find_faults(package: ExportPackage, file: CsvFile, header: Header) -> Findings:
    with _open(package, file) as stream:
        return Findings.of(find_faults(stream, file.file_name, header.written))


@dataclass(frozen=True)
class _Found:
    """A staged file, the digest of its bytes, the number of its rows, the notices about repaired ones, and the hashes
    of the lines of the last export that it no longer has."""

    file: StagedFile
    digest: bytes
    rows: int
    notices: tuple[Notice, ...]
    gone: set[int]


def _stage_file(connection: sa.Connection, source: _Source, last: LastLines) -> _Found:
    with contextlib.suppress(DamagedFileError), connection.begin_nested():
        return _copy(connection, source, CleanLines, last)
    # Most faults can be repaired, so copy the file again, line by line.
    width = len(source.header.written)
    with source.open() as stream:
        shapes = find_shapes(stream, width)
    return _copy(connection, source, partial(RepairedLines, width=width, shapes=shapes), last)


def _quote(connection: sa.Connection, name: str) -> str:
    return connection.dialect.identifier_preparer.quote_identifier(name)


def _create(connection: sa.Connection, file: CsvFile, headers: Iterable[str]) -> sa.Table:
    columns: list[sa.ColumnElement[Any]] = [
        sa.column(HASH, sa.BigInteger),
        sa.column(LINE, sa.BigInteger),
        *(sa.column(header, CText) for header in headers),
        sa.column(FAULT, CText),
    ]
    return create_temporary(connection, f"staged_{file.name}", columns)


def _copy(
    connection: sa.Connection,
    source: _Source,
    read: Callable[[DigestingReader], Rows],
    last: LastLines,
) -> _Found:
    """Copies the lines that `read` makes of a file into a table, without those among the `last` ones."""
    file, keys = source.file, source.header.metadata_keys
    known = last.fetch_hashes(connection, file)
    extra = source.header.extra
    table = _create(connection, file, [*file.headers, *map(name_metadata_column, range(len(keys))), *extra])
    quote = partial(_quote, connection)
    target, columns = f"pg_temp.{quote(table.name)}", ", ".join(map(quote, source.header.staged))
    # FORCE_NULL: a quoted empty cell is as empty as a bare one.
    with source.open() as stream, contextlib.closing(connection.connection.cursor()) as cursor:
        digested = DigestingReader(stream)
        lines = read(digested)
        everything = ", ".join([columns, *map(quote, (*lines.added, HASH, LINE))])
        options = f"FORMAT csv, ENCODING 'UTF8', FORCE_NULL ({columns})"
        statement = f"COPY {target} ({everything}) FROM STDIN WITH ({options})"
        new = NewLines(lines, LineHasher.of(file, source.header, source.form, len(lines.added)), known)
        reader = _Reader(new)
        try:
            cursor.copy_expert(statement, reader, BLOCK)
            is_known = last.find_table(file) is not None and not cursor.rowcount
        except psycopg2.Error as error:
            _raise_damage(error, reader, file)
    # An extra column may hold a secret.
    for unread in (*(cell.header for cell in file.cells if cell.kind.secret), *extra):
        connection.exec_driver_sql(f"ALTER TABLE {target} DROP COLUMN {quote(unread)}")
    joined = [cell.header for cell in file.cells if cell.header == file.key or cell.refers is not None]
    analyze_temporary(connection, table, *joined)
    staged = StagedFile(file, table, keys, has_faults=lines.faults > 0, is_known=is_known)
    notices = (Tolerated(file.file_name, deviation, count=count) for deviation, count in lines.repairs.items() if count)
    return _Found(staged, digested.digest, new.rows, tuple(notices), known)


def _raise_damage(error: psycopg2.Error, reader: _Reader, file: CsvFile) -> None:
    if isinstance(reader.failure, UNREADABLE):
        raise DamagedFileError(file.file_name, describe_unreadable(reader.failure)) from None
    if reader.failure is not None and not isinstance(reader.failure, SuspectBytesError):
        raise reader.failure
    if reader.failure is None and not (error.pgcode or "").startswith(DATA_EXCEPTION):
        # The fault is not in the data: the database has failed.
        raise error
    # The server's primary message names the column but not the value; its details would quote the row.
    message = error.diag.message_primary if error.pgcode == BAD_COPY_FILE_FORMAT else None
    raise DamagedFileError(file.file_name, message or "cannot be read") from None


class _Reader:
    """The stream that COPY reads. It keeps an error that reading raises, because the driver passes only the text of the
    error on, and passes it to the log of the database."""

    def __init__(self, lines: NewLines) -> None:
        self._lines = lines
        self.failure: Exception | None = None

    def read(self, size: int) -> bytes:
        try:
            return self._lines.read(size)
        except Exception as error:  # noqa: BLE001  (`_raise_damage` raises it again after the driver has returned)
            self.failure = error
            raise SuspectBytesError from None
