"""The digest of a whole export. An export with the digest of the last one changes nothing, so a run skips it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

import sqlalchemy as sa
from xxhash import xxh3_128

from roster_service.db.tables import feeds
from sync_scripts.formats.model import CsvFile, Format
from sync_scripts.reading.lines import LONGEST_LINE
from sync_scripts.reading.manifest import Contents
from sync_scripts.reading.package import UNREADABLE, open_package
from sync_scripts.reading.registry import Family
from sync_scripts.reading.rejections import RefusedExportError
from sync_scripts.staging.line_hashes import RULES

# The first bytes of a digest depend only on facts that are known without reading a file, such as names and sizes.
STRUCTURE_BYTES = 16


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


def store_digest(connection: sa.Connection, feed_id: int, digest: bytes | None) -> None:
    """Stores the digest of the export that the feed was loaded from; None: the next run must not skip any export."""
    connection.execute(sa.update(feeds).where(feeds.c.id == feed_id).values(last_digest=digest))
