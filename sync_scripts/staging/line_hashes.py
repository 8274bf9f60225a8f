"""The hashes of the lines of an export, and its digest.

A record has the hash of its line as its fingerprint, so the fingerprints of a table are the hashes of the lines of the
last export. Two lines with the same hash have the same content in every column that the sync reads. The hash leaves
out the columns that the sync does not read, and secrets, because the sync must not store anything of a secret, not
even a hash.

A hash has 63 bits. The hash of a changed line is compared with the lines of its own file: among a million of them, one
changed line in 9,000,000,000,000 has the hash of another line. Where that other line is still in the file, the first
of the two uses the hash up, so the run stages the second one and looks at both (see `row_fingerprints.py`).
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import repeat
from pathlib import Path
from typing import BinaryIO

import sqlalchemy as sa
from xxhash import xxh3_64_intdigest, xxh3_128

from roster_service.db.tables import feeds
from sync_scripts.formats.cells import UNREAD
from sync_scripts.formats.model import CsvFile, Format
from sync_scripts.reading.headers import Header
from sync_scripts.reading.lines import LONGEST_LINE, Rows
from sync_scripts.reading.manifest import Contents
from sync_scripts.reading.package import UNREADABLE, open_package
from sync_scripts.reading.registry import Family
from sync_scripts.reading.rejections import RefusedExportError
from sync_scripts.staging.retained import is_active

# Increase this number when a check or a conversion changes: every feed's next run then looks at every row.
RULES = 8
# A cell with its quotes. `CleanLines` has searched the lines before, so their quoting is correct.
CELL = rb'(?:"(?:[^"\n]|"")*"|[^",\n]*)'
HEADER_LINES = 1
HASH_BYTES = 8

# (a block of lines, the same lines as a list) -> the block with some cells emptied
Blank = Callable[[bytes, list[bytes]], bytes]


@dataclass(frozen=True)
class LineHasher:
    """Hashes the lines of one file. `seed`: a number that depends on the rules, the format and the header; `blank`:
    functions that empty the cells of a block of lines that a hash leaves out; `added`: the number of cells that each
    line has beyond those of its file, empty or with a fault."""

    seed: int
    blank: tuple[Blank, ...]
    added: int = 0

    @staticmethod
    def of(file: CsvFile, header: Header, form: Format, added: int = 0) -> LineHasher:
        """The hasher of the rows of a file with this header and with `added` more cells. Every hash depends on `RULES`
        and on the name of the format."""
        described = "\n".join((str(RULES), form.name, *header.staged, "", *header.metadata_keys))
        seed = int.from_bytes(hashlib.sha256(described.encode()).digest()[:8])
        left_out = {cell.header: cell.kind for cell in file.cells if cell.kind.secret or cell.kind is UNREAD}
        width = len(header.staged) + added
        # An extra column may hold a secret.
        secrets = dict.fromkeys(header.extra, True) | {name: kind.secret for name, kind in left_out.items()}
        blank = (
            _make_blank(number, width, secret=secrets[name])
            for number, name in enumerate(header.staged)
            if name in secrets
        )
        return LineHasher(seed, tuple(blank), added)

    def hash(self, block: bytes) -> tuple[list[bytes], list[int]]:
        """(the lines of a block, their hashes)."""
        lines = _split(block)
        described = block
        for make_empty in self.blank:
            described = make_empty(described, lines)
        hashed = lines if described is block else _split(described)
        if self.added:
            # A row without a fault is known by what it was before the repair.
            hashed = [line.removesuffix(b"," * self.added) for line in hashed]
        # One bit less, so that a hash is positive as a signed number of 64 bits.
        return lines, [number >> 1 for number in map(xxh3_64_intdigest, hashed, repeat(self.seed))]


class NewLines:
    """The lines of a file whose hashes are not in `known`, each with its hash and its line number as two more cells.

    Each hash in `known` matches one line and is then removed, so a repeated line is new. The hashes that are left in
    `known` at the end belong to lines that the file no longer has. `rows` counts all lines of the file."""

    def __init__(self, lines: Rows, hasher: LineHasher, known: set[int]) -> None:
        self._lines = lines
        self._hasher = hasher
        self._known = known
        self.rows = 0

    def read(self, size: int) -> bytes:
        """Reads the next new lines. `size` limits their bytes without hashes and line numbers."""
        known = self._known
        while block := self._lines.read(size):
            lines, hashes = self._hasher.hash(block)
            first = self.rows + HEADER_LINES + 1
            self.rows += len(lines)
            places = self._lines.numbers or range(first, first + len(lines))
            new = []
            for index, number in enumerate(hashes):
                if number in known:
                    known.remove(number)
                else:
                    new.append(b"%b,%d,%d\n" % (lines[index], number, places[index]))
            if new:
                return b"".join(new)
        return b""


@dataclass(frozen=True)
class LastLines:
    """The lines of the last export of a feed. `trusted`: whether the fingerprints of the feed are the hashes of these
    lines; if not, the run stages every line. `day_first`: the columns of its days, as `NormalizedFiles` has them;
    `restaged`: by table, the hashes of unchanged lines that the run stages nevertheless."""

    feed_id: int
    trusted: bool
    day_first: frozenset[str] = frozenset()
    restaged: Mapping[sa.Table, Collection[int]] = field(default_factory=dict)

    def find_table(self, file: CsvFile) -> sa.Table | None:
        """The table whose fingerprints are the hashes of the file's lines; None: the run stages the whole file."""
        return file.table if self.trusted and file.is_plain else None

    def fetch_hashes(self, connection: sa.Connection, file: CsvFile) -> set[int]:
        """The hashes of the lines of a file that the run need not stage."""
        table = self.find_table(file)
        if table is None:
            return set()
        packed = sa.func.string_agg(sa.func.int8send(table.c.fingerprint), sa.literal(b""), type_=sa.LargeBinary)
        found = connection.scalar(sa.select(packed).where(is_active(table, self.feed_id))) or b""
        hashes = set(struct.unpack(f">{len(found) // HASH_BYTES}q", found))
        hashes.difference_update(self.restaged.get(table, ()))
        return hashes

    def add_restaged(self, more: Mapping[sa.Table, Collection[int]]) -> LastLines:
        """A copy with more lines to stage."""
        restaged = {table: {*self.restaged.get(table, ()), *more.get(table, ())} for table in {*self.restaged, *more}}
        return replace(self, restaged=restaged)


def _split(block: bytes) -> list[bytes]:
    lines = block.split(b"\n")
    # A block ends with a line end, so the last item is empty.
    lines.pop()
    return lines


def _make_blank(number: int, width: int, *, secret: bool) -> Blank:
    """A function that empties the cells of the column with this number, from 0, in lines of `width` cells."""
    cells = re.compile(rb"^((?:%b,){%d})%b" % (CELL, number, CELL), re.MULTILINE)
    filled = re.compile(rb"^(?:%b,){%d}[^,\n]" % (CELL, number), re.MULTILINE)
    behind = width - number

    def is_filled(line: bytes) -> bool:
        # Count the cells from the end, where hardly any line has quotes: without quotes every comma ends a cell. A line
        # with more or fewer cells gives a wrong answer here, but no record keeps the hash of such a line.
        last = line.rsplit(b",", behind)
        if b'"' in line[len(last[0]) :]:
            return filled.match(line) is not None
        return len(last) <= behind or last[1] != b""

    def is_empty(block: bytes, lines: list[bytes]) -> bool:
        if not secret:
            # An exporter that fills an unread column fills it in every row, so the first line of a block decides. Where
            # another line differs, its hash differs too and the run looks at it, which does no harm.
            return filled.match(block) is None
        return not any(map(is_filled, lines))

    return lambda block, lines: block if is_empty(block, lines) else cells.sub(rb"\1", block)


# The first bytes of a digest depend only on facts that are known without reading a file, such as names and sizes.
STRUCTURE_BYTES = 16
# In front of the digest of an export with findings, so that it equals no digest: a run skips no such export, because
# the records that its rejected rows name may be there by now.
_LOOK_AGAIN = b"again"


class DigestingReader:
    """Passes the bytes of a file on, and computes the digest of the bytes it has passed on."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._sum = xxh3_128()

    def read(self, size: int) -> bytes:
        """Reads at most `size` bytes."""
        block = self._stream.read(size)
        self._sum.update(block)
        return block

    def readline(self, size: int) -> bytes:
        """Reads the next line, at most `size` bytes of it."""
        line = self._stream.readline(size)
        self._sum.update(line)
        return line

    @property
    def digest(self) -> bytes:
        """The digest of all bytes read so far."""
        return self._sum.digest()


def make_digest(contents: Contents, form: Format, digests: Mapping[str, bytes]) -> bytes:
    """The digest of everything in an export that a load depends on. `digests`: the digest of each file, by name."""
    whole = hashlib.sha256()
    for file in contents.files:
        whole.update(f"\n{file.name}\n".encode() + digests[file.name])
    return _hash_structure(contents, form) + whole.digest()


def is_last_export(connection: sa.Connection, feed_id: int, contents: Contents, form: Format) -> bool:
    """Whether the feed was last loaded from an export with this digest, without findings. False where a file cannot be
    read; staging then reports it."""
    last = connection.scalar(sa.select(feeds.c.last_digest).where(feeds.c.id == feed_id))
    # Reading all files takes time, and a different export nearly always has other sizes.
    if last is None or last[:STRUCTURE_BYTES] != _hash_structure(contents, form):
        return False
    return bytes(last) == read_digest(contents, form)


def read_digest(contents: Contents, form: Format) -> bytes | None:
    """Reads all files of an export and returns its digest; None where a file cannot be read."""
    try:
        return make_digest(contents, form, {file.name: _digest_file(contents, file) for file in contents.files})
    except UNREADABLE:
        return None


def digest_export(path: Path, family: Family) -> bytes | None:
    """The digest of the export at `path`; None where it is refused or cannot be read."""
    try:
        with open_package(path) as package:
            form, contents = family.read(package)
            return read_digest(contents, form)
    except RefusedExportError:
        return None


def _hash_structure(contents: Contents, form: Format) -> bytes:
    silent = sorted(file.name for file in contents.silent)
    sizes = [f"{file.name} {contents.package.size(file.file_name)}" for file in contents.files]
    structure = "\n".join((str(RULES), form.name, *sorted(contents.deltas), "", *silent, "", *sizes))
    return hashlib.sha256(structure.encode()).digest()[:STRUCTURE_BYTES]


def _digest_file(contents: Contents, file: CsvFile) -> bytes:
    with closing(contents.package.open(file.file_name)) as stream:
        digested = DigestingReader(stream)
        while digested.read(LONGEST_LINE):
            pass
        return digested.digest


def store_digest(connection: sa.Connection, feed_id: int, digest: bytes, *, has_findings: bool) -> None:
    """Stores the digest of the export that the feed was loaded from. The next run does not skip one with findings."""
    stored = _LOOK_AGAIN + digest if has_findings else digest
    connection.execute(sa.update(feeds).where(feeds.c.id == feed_id).values(last_digest=stored))


def is_same_with_findings(stored: bytes | None, digest: bytes) -> bool:
    """Whether the feed was last loaded from an export with this digest, with findings. `stored`: its `last_digest`."""
    return stored is not None and bytes(stored) == _LOOK_AGAIN + digest
