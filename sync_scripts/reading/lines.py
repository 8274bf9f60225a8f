r"""The lines of a CSV file, in whichever encoding.

The first bytes of a file tell both: every export begins with a header, which is ASCII. Other bytes are passed on as
they are, and `repair.py` reads lines of Windows-1252.

This module does not split the rows of good files. A few searches over blocks of bytes prove that every line is one row
of plain cells. COPY alone would not prove it: COPY drops a quote inside a bare cell, accepts a line break inside a
quoted one, and before PostgreSQL 18 takes a line `\.` for the end of the data. Where a search finds something,
`repair.py` reads the file again, line by line.
"""

from __future__ import annotations

import codecs
import io
import re
from collections import Counter
from collections.abc import Sequence
from typing import IO, Any, BinaryIO, Protocol, cast

from sync_scripts.formats.tolerated import BYTE_ORDER_MARK, MAC_LINES, UTF_16, Deviation

UTF_8, CP_1252 = "utf-8", "cp1252"
# An encoding that keeps every byte.
BYTES = "latin-1"
UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Bytes at the start of a file in which its first line ends.
HEAD = 8192
PIECE = 2**18


def open_plain(stream: IO[bytes]) -> BinaryIO:
    """The file as UTF-8 with line feeds, if its first bytes show that it is UTF-16 or has line ends of old Macs; else
    `stream` itself. `stream`: at its start, with the method `peek` of buffered files; closed if that fails."""
    try:
        head = cast(Any, stream).peek(HEAD)[:HEAD]
    except BaseException:
        stream.close()
        raise
    encoding = _find_utf_16(head)
    if encoding is not None:
        return PlainStream(stream, encoding, UTF_8, UTF_16)
    if b"\r" in head and b"\n" not in head:
        return PlainStream(stream, BYTES, BYTES, MAC_LINES)
    return cast(BinaryIO, stream)


def _find_utf_16(head: bytes) -> str | None:
    if head.startswith(UTF_16_MARKS):
        return "utf-16"
    # The first character of a header is ASCII, so one of its two bytes is zero.
    return {0: "utf-16-be", 1: "utf-16-le"}.get(head[:2].find(b"\0"))


def list_deviations(stream: object) -> tuple[Deviation, ...]:
    """The deviations of an opened file from UTF-8 with line feeds."""
    return (stream.deviation,) if isinstance(stream, PlainStream) else ()


def decode_cell(cell: bytes) -> str:
    """The text of a cell: UTF-8, else Windows-1252. Raises UnicodeDecodeError where it is neither."""
    try:
        return cell.decode(UTF_8)
    except UnicodeDecodeError:
        return cell.decode(CP_1252)


class PlainStream(io.BufferedReader):
    """The file `stream`, which has the encoding `source`, as bytes of the encoding `target` with line feeds.
    `deviation`: how the file differs from that. Reading raises UnicodeDecodeError for bytes of no character."""

    def __init__(self, stream: IO[bytes], source: str, target: str, deviation: Deviation) -> None:
        super().__init__(_Recoded(io.TextIOWrapper(stream, source, newline=None), target), PIECE)
        self.deviation = deviation


class _Recoded(io.RawIOBase):
    def __init__(self, text: io.TextIOWrapper, encoding: str) -> None:
        self._text = text
        self._encoding = encoding
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._rest = self._rest or self._text.read(PIECE).encode(self._encoding)
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size

    def close(self) -> None:
        self._text.close()
        super().close()


# Every C0 control character and DEL, except the line feed that ends a line.
CONTROLS = bytes({*range(32), 127} - {10})
# The C1 control characters in UTF-8.
MORE_CONTROLS = re.compile(rb"\xc2[\x80-\x9f]")
# A whole quoted cell, between commas or line ends.
QUOTED = re.compile(rb'"(?<![^,\n]")[^"\n]*+(?:""[^"\n]*+)*+"(?![^,\n])')
END_OF_DATA = re.compile(rb"^\\\.$", re.MULTILINE)
LONGEST_LINE = 2**20
# Bytes per read. The allocator reuses memory of this size; it would return larger blocks and request them again.


class ByteStream(Protocol):
    """A file that the caller reads from its start."""

    def read(self, size: int, /) -> bytes:
        """Reads at most `size` bytes; returns no bytes at the end."""

    def readline(self, size: int, /) -> bytes:
        """Reads the next line, at most `size` bytes of it."""


class Rows(Protocol):
    """The rows of a CSV file, in blocks, as files that COPY can read. `added`: the names of the cells that each row has
    beside the columns of the file; `repairs`: the number of rows with each deviation, and `faults`: the number of rows
    with a fault, among those that were read."""

    @property
    def added(self) -> tuple[str, ...]: ...

    @property
    def repairs(self) -> Counter[Deviation]: ...

    @property
    def faults(self) -> int: ...

    @property
    def numbers(self) -> Sequence[int] | None:
        """The numbers of the lines in the last block; None: the lines follow each other from line 2."""

    def read(self, size: int, /) -> bytes:
        """Reads the next whole lines, at most `size` bytes; returns no bytes at the end."""


class SuspectBytesError(Exception):
    """A search found a possible fault: `repair.py` repairs it, or `csv_errors.py` names it."""


class CleanLines:
    """The rows of a CSV file, as a file that COPY can read: UTF-8, ended by line feeds, without the header.

    `header`: the first line, without a byte order mark; `deviations`: the tolerated deviations in it. `read` raises
    SuspectBytesError. Lines may end with CRLF, as in RFC 4180. Empty lines at the end of the file are dropped.
    """

    added: tuple[str, ...] = ()
    numbers: Sequence[int] | None = None
    faults = 0

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._rest = b""
        self._ended = False
        self.repairs: Counter[Deviation] = Counter()
        line = stream.readline(LONGEST_LINE)
        marks = (BYTE_ORDER_MARK,) if line.startswith(codecs.BOM_UTF8) else ()
        self.deviations: tuple[Deviation, ...] = (*list_deviations(stream), *marks)
        self.header = line.removeprefix(codecs.BOM_UTF8).removesuffix(b"\n").removesuffix(b"\r")

    def read(self, size: int) -> bytes:
        """Reads the next whole lines, at most `size` bytes; returns no bytes at the end. Raises SuspectBytesError."""
        if self._ended:
            return b""
        # One byte less, for the line feed that the last line may lack.
        size -= 1
        while True:
            block = self._stream.read(min(max(size - len(self._rest), 1), PIECE))
            data = self._rest + block
            if not block:
                self._ended = True
                # The last line may lack its line end, and empty lines may follow it.
                self._rest = b""
                lines = data.rstrip(b"\r\n")
                return self._search(lines + b"\n") if lines else b""
            cut = data.rfind(b"\n") + 1
            # Keep trailing line ends for the next block: at the end of the file they are empty lines to drop.
            lines = data[:cut].rstrip(b"\r\n")
            cut = data.find(b"\n", len(lines)) + 1 if lines else 0
            self._rest = data[cut:]
            if cut:
                return self._search(data[:cut])
            if len(self._rest) >= min(size, LONGEST_LINE):
                raise SuspectBytesError

    def _search(self, lines: bytes) -> bytes:
        """The same lines, each ended by a line feed alone. Raises SuspectBytesError."""
        plain = lines.translate(None, CONTROLS)
        # The only allowed control characters are carriage returns at line ends. Each pattern below runs only if its
        # first byte occurs: the search for one byte is fast, and most files have none of them.
        if len(plain) != len(lines) and len(lines) - len(plain) != lines.count(b"\r\n"):
            raise SuspectBytesError
        if b"\xc2" in plain and MORE_CONTROLS.search(plain):
            raise SuspectBytesError
        if b'"' in plain and b'"' in QUOTED.sub(b"", plain):
            raise SuspectBytesError
        if b"\\" in plain and END_OF_DATA.search(plain):
            raise SuspectBytesError
        return plain
