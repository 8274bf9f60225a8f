"""CSV files into temporary tables of texts, with COPY: PostgreSQL takes the rows apart, Python only passes bytes on."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, BinaryIO

import psycopg2
from sqlalchemy import BigInteger, Column, Connection
from sqlalchemy.types import NullType

from roster_service.db.tables import CText
from roster_service.errors import StorageError
from sync_scripts.ahead import read_ahead
from sync_scripts.aligning import CODE, TooDifferentError
from sync_scripts.digests import Digested
from sync_scripts.faults import MendedLines, find_faults
from sync_scripts.formats import CsvFile, Format, Staged, StagedFile, name_metadata_column
from sync_scripts.headers import Header, read_header
from sync_scripts.known_lines import fetch_marks
from sync_scripts.lines import LONGEST_LINE, CleanLines, SuspectBytesError
from sync_scripts.manifest import Contents
from sync_scripts.marks import Marker
from sync_scripts.package import UNREADABLE, Package
from sync_scripts.quirks import tell_place
from sync_scripts.refusals import Findings, Refusal, RefusedExportError, refuse_if
from sync_scripts.temporary import MARK, PLACE, analyze_temporary, create_temporary
from sync_scripts.thinning import LineMarks, Lines, MarkedLines, Numbers, thin_out

# No line is longer than half of it.
BLOCK = 2 * LONGEST_LINE
# SQLSTATE class of data that cannot be read: wrong numbers of cells, bytes that are not UTF-8.
DATA_EXCEPTION = "22"
# The one of that class whose words quote nothing: wrong numbers of cells.
BAD_COPY_FILE_FORMAT = "22P04"


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
    # Of each file that the export brings, by its name.
    digests: Mapping[str, bytes]
    # What is known of all lines of the files whose lines have marks.
    marks: Mapping[str, LineMarks]


@dataclass(frozen=True)
class Night:
    """What staging has to know beside the export: its format and its feed, whether the last one's lines count, the
    names of files that are staged whole though they do, and what closes the files that are made on the way."""

    form: Format
    feed_id: int
    trusted: bool
    whole: frozenset[str]
    closing: contextlib.ExitStack

    def without(self, *names: str) -> Night:
        """The same, with more files that are staged whole."""
        return replace(self, whole=self.whole.union(names))

    def make_spool(self) -> BinaryIO:
        """A file of bytes that is gone with the run. Making and writing it raise StorageError."""
        with _blame_temporary_folder(), tempfile.TemporaryFile(buffering=0) as made:
            return self.closing.enter_context(io.BufferedRandom(_Spool(os.dup(made.fileno()), "r+b")))


class _Spool(io.FileIO):
    """What is written says by itself that it cannot be: an OSError would pass for one of the export's files."""

    def write(self, data: Any, /) -> int:
        with _blame_temporary_folder():
            return super().write(data)


@contextlib.contextmanager
def _blame_temporary_folder() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # There may be none.
        place = f" {tempfile.tempdir}" if tempfile.tempdir else ""
        raise StorageError(
            f"the temporary folder{place} cannot be written ({error.strerror}); make room, or name another in TMPDIR"
        ) from None


def stage_files(connection: Connection, contents: Contents, night: Night) -> Stage:
    """Copies the files of an export into temporary tables; a silent one gets an empty table.

    Of a file whose rows are records by themselves, the lines bear marks, and of those that the last export had in the
    same words nothing is staged.

    Raises RefusedExportError for headers that are not the declared ones and for files without the rows they need;
    DamagedFileError for rows that cannot be taken apart, after which `find_damage` says more.
    """
    headers, told = _read_headers(contents.package, contents.files)
    findings = Findings()
    staged: dict[str, StagedFile] = {}
    digests: dict[str, bytes] = {}
    marks: dict[str, LineMarks] = {}
    notices: list[str] = [*told]
    for file in contents.files:
        source = _Source(contents.package, file, headers[file.name])
        is_marked = file.is_plain and file.name not in contents.deltas and not night.form.derived
        found = _stage_file(connection, source, night if is_marked else None)
        staged[file.name], digests[file.name] = found.file, found.digest
        if found.marks is not None:
            marks[file.name] = found.marks
        if found.mended:
            notices.append(f"{file.file_name}: in {found.mended} rows, empty cells beyond the last column are ignored")
        if file.required and not found.rows and file.name not in contents.deltas:
            findings += Findings.of([Refusal(file.file_name, "has no rows")])
    refuse_if(findings)
    for file in contents.silent:
        columns = [Column(cell.header, CText) for cell in file.cells if not cell.kind.secret]
        staged[file.name] = StagedFile(
            file, create_temporary(connection, f"staged_{file.name}", [_place(), *columns]), ()
        )
    return Stage(staged, tuple(notices), digests, marks)


def find_damage(package: Package, files: Iterable[CsvFile], error: DamagedFileError) -> RefusedExportError:
    """What is wrong with the rows of the files, found by reading all of them line by line; else what `error` says."""
    findings = Findings()
    for file in files:
        try:
            with _open(package, file) as stream:
                header, _ = read_header(CleanLines(stream).header, file)
            findings += _find_faults(_Source(package, file, header))
        except DamagedFileError as damage:
            findings += Findings.of([Refusal(damage.file_name, damage.reason)])
    return RefusedExportError(findings or Findings.of([Refusal(error.file_name, error.reason)]))


def _read_headers(package: Package, files: Iterable[CsvFile]) -> tuple[dict[str, Header], list[str]]:
    """The header of each file, and what was put up with in them."""
    headers = {}
    notices: list[str] = []
    findings = Findings()
    for file in files:
        with _open(package, file) as stream:
            lines = CleanLines(stream)
        headers[file.name], found = read_header(lines.header, file)
        findings += found
        notices += (tell_place(file.file_name, quirk) for quirk in lines.quirks)
        notices += headers[file.name].notices
    refuse_if(findings)
    return headers, notices


@dataclass(frozen=True)
class _Source:
    """A file with a good header."""

    package: Package
    file: CsvFile
    header: Header

    def open(self) -> contextlib.AbstractContextManager[BinaryIO]:
        return _open(self.package, self.file)


@contextlib.contextmanager
def _open(package: Package, file: CsvFile) -> Iterator[BinaryIO]:
    try:
        with package.open(file.file_name) as stream:
            yield stream
    except UNREADABLE:
        raise DamagedFileError(file.file_name, "is truncated or damaged") from None


def _find_faults(source: _Source) -> Findings:
    with source.open() as stream:
        return Findings.of(find_faults(stream, source.file.file_name, source.header.written))


@dataclass(frozen=True)
class _Found:
    """A staged file, the digest of its bytes, its rows, how many of them were mended, and what is known of them."""

    file: StagedFile
    digest: bytes
    rows: int
    mended: int = 0
    marks: LineMarks | None = None


def _stage_file(connection: Connection, source: _Source, night: Night | None) -> _Found:
    """`night`: None where lines get no marks."""
    try:
        return _stage_lines(connection, source, night)
    except DamagedFileError:
        if _find_faults(source):
            raise
    # Nothing that cannot be mended: once more, line by line.
    with source.open() as stream:
        read = Digested(stream)
        mended = MendedLines(read, len(source.header.written))
        return _Found(_copy(connection, source, mended), read.digest, mended.rows, mended.mended)


def _stage_lines(connection: Connection, source: _Source, night: Night | None) -> _Found:
    with contextlib.suppress(TooDifferentError):
        return _stage_once(connection, source, night)
    return _stage_once(connection, source, None if night is None else night.without(source.file.name))


def _stage_once(connection: Connection, source: _Source, night: Night | None) -> _Found:
    with connection.begin_nested(), source.open() as stream:
        read = Digested(stream)
        lines = CleanLines(read)
        if night is None:
            file, marks = _copy(connection, source, lines), None
        else:
            file, marks = _copy_marked(connection, source, lines, night)
        return _Found(file, read.digest, lines.rows, marks=marks)


def _copy_marked(
    connection: Connection, source: _Source, lines: CleanLines, night: Night
) -> tuple[StagedFile, LineMarks]:
    """(the staged file, what is known of all its lines)."""
    name = source.file.name
    marker, found = Marker.of(source.file, source.header, night.form), LineMarks(night.make_spool(), array(CODE))
    is_whole = name in night.whole or not night.trusted
    old = None if is_whole else fetch_marks(connection, night.feed_id, name, night.make_spool())
    if old is None:
        return _copy(connection, source, MarkedLines(lines, marker, found), Column(MARK, BigInteger)), found
    new = night.make_spool()
    try:
        gone = thin_out(lines, marker, old, found, new, BLOCK)
    except SuspectBytesError:
        raise DamagedFileError(source.file.file_name, "cannot be read") from None
    new.seek(0)
    file = _copy(connection, source, new, Column(MARK, BigInteger), Column(PLACE, BigInteger))
    table = create_temporary(connection, f"gone_lines_{name}", [Column(MARK, BigInteger)])
    with contextlib.closing(connection.connection.cursor()) as cursor:
        cursor.copy_expert(f"COPY pg_temp.{_quote(connection, table.name)} FROM STDIN", Numbers(gone))
    analyze_temporary(connection, table)
    return replace(file, gone=table), found


def _quote(connection: Connection, name: str) -> str:
    return connection.dialect.identifier_preparer.quote_identifier(name)


def _place() -> Column[object]:
    # ctid: where a row lies is its place in the file, because COPY into an empty table keeps the order.
    return Column("ctid", NullType(), system=True)


def _copy(connection: Connection, source: _Source, lines: Lines, *more: Column[Any]) -> StagedFile:
    """Copies lines into a table; `more`: the columns of further cells, which are never empty."""
    file = source.file
    keys = source.header.metadata_keys
    names = [*file.headers, *map(name_metadata_column, range(len(keys)))]
    table = create_temporary(
        connection, f"staged_{file.name}", [_place(), *(Column(name, CText) for name in names), *more]
    )
    quote = partial(_quote, connection)
    target, columns = f"pg_temp.{quote(table.name)}", ", ".join(map(quote, source.header.staged))
    everything = ", ".join([columns, *(quote(column.name) for column in more)])
    # FORCE_NULL: a quoted empty cell is as empty as a bare one.
    statement = f"COPY {target} ({everything}) FROM STDIN WITH (FORMAT csv, ENCODING 'UTF8', FORCE_NULL ({columns}))"
    with read_ahead(lines, BLOCK) as ahead, contextlib.closing(connection.connection.cursor()) as cursor:
        reader = _Reader(ahead.read)
        try:
            cursor.copy_expert(statement, reader, BLOCK)
        except psycopg2.Error as error:
            _raise_damage(error, reader, file)
    for cell in file.cells:
        if cell.kind.secret:
            connection.exec_driver_sql(f"ALTER TABLE {target} DROP COLUMN {quote(cell.header)}")
    joined = [cell.header for cell in file.cells if cell.header == file.key or cell.refers is not None]
    analyze_temporary(connection, table, *joined)
    return StagedFile(file, table, keys)


def _raise_damage(error: psycopg2.Error, reader: _Reader, file: CsvFile) -> None:
    if isinstance(reader.failure, UNREADABLE):
        raise DamagedFileError(file.file_name, "is truncated or damaged") from None
    if reader.failure is not None and not isinstance(reader.failure, SuspectBytesError):
        raise reader.failure
    if reader.failure is None and not (error.pgcode or "").startswith(DATA_EXCEPTION):
        # The database itself has failed.
        raise error
    # The server's words name the column but not the value; its further details would quote the row.
    words = error.diag.message_primary if error.pgcode == BAD_COPY_FILE_FORMAT else None
    raise DamagedFileError(file.file_name, words or "cannot be read") from None


class _Reader:
    """What COPY reads from; remembers what went wrong, because the driver only passes words on, and these to the log
    of the database."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self.failure: Exception | None = None

    def read(self, size: int) -> bytes:
        try:
            return self._read(size)
        except Exception as error:  # noqa: BLE001  (raised again where the driver has let go)
            self.failure = error
            raise SuspectBytesError from None
