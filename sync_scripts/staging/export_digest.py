"""The digest of a whole export: what came before in the same bytes changes nothing, and is not loaded again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from sqlalchemy import Connection, select, update
from xxhash import xxh3_128

from roster_service.db.tables import feeds
from sync_scripts.formats.model import CsvFile, Format
from sync_scripts.reading.lines import LONGEST_LINE
from sync_scripts.reading.manifest import Contents
from sync_scripts.reading.package import UNREADABLE, open_package
from sync_scripts.reading.registry import Family
from sync_scripts.reading.rejections import RefusedExportError
from sync_scripts.staging.line_hashes import RULES

# Bytes of a digest that say what can be seen without reading a file.
STRUCTURE_BYTES = 16


class DigestingReader:
    """A file as it is read, from its start to its end, and the digest of what was read of it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._sum = xxh3_128()

    def read(self, size: int) -> bytes:
        """At most so many bytes."""
        block = self._stream.read(size)
        self._sum.update(block)
        return block

    def readline(self, size: int) -> bytes:
        """The next line, at most so many bytes of it."""
        line = self._stream.readline(size)
        self._sum.update(line)
        return line

    @property
    def digest(self) -> bytes:
        """Of all that was read by now."""
        return self._sum.digest()


def make_digest(contents: Contents, form: Format, digests: Mapping[str, bytes]) -> bytes:
    """The digest of everything in an export that a load depends on. `digests`: of each of its files, by name."""
    whole = hashlib.sha256()
    for file in contents.files:
        whole.update(f"\n{file.name}\n".encode() + digests[file.name])
    return _hash_structure(contents, form) + whole.digest()


def is_last_export(connection: Connection, feed_id: int, contents: Contents, form: Format) -> bool:
    """Whether this very export is what the feed's records were last made of, without a refusal. No where a file cannot
    be read, which staging then tells."""
    last = connection.scalar(select(feeds.c.last_digest).where(feeds.c.id == feed_id))
    # Reading all files takes time, and another export nearly always has other sizes.
    if last is None or last[:STRUCTURE_BYTES] != _hash_structure(contents, form):
        return False
    return bytes(last) == read_digest(contents, form)


def read_digest(contents: Contents, form: Format) -> bytes | None:
    """The digest of an export of which all files are read for it; None where one cannot be."""
    try:
        return make_digest(contents, form, {file.name: _digest_file(contents, file) for file in contents.files})
    except UNREADABLE:
        return None


def digest_export(path: Path, family: Family) -> bytes | None:
    """The digest of the export at `path`; None where it is none that can be read."""
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


def store_digest(connection: Connection, feed_id: int, digest: bytes | None) -> None:
    """Remembers what the feed's records are made of; None: nothing that may be skipped the next time."""
    connection.execute(update(feeds).where(feeds.c.id == feed_id).values(last_digest=digest))
