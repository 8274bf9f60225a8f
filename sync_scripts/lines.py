"""The bytes of a CSV file on their way into COPY: cut into whole lines, made uniform, and searched for trouble.

In good files no row is taken apart here: a few searches over blocks of bytes prove that every line is one row of
plain cells, which is what COPY alone would not: it drops a quote inside a bare cell, reads a line break inside a
quoted one, and before PostgreSQL 18 takes a line `\\.` for the end of the data. Where a search finds something,
`faults` reads the file again, line by line, and says what and where.
"""

from __future__ import annotations

import codecs
import re
from typing import Protocol

from sync_scripts.quirks import BYTE_ORDER_MARK

# Every C0 control character and DEL, but the line feed that ends a line.
CONTROLS = bytes({*range(32), 127} - {10})
# C1 control characters, as UTF-8 spells them.
MORE_CONTROLS = re.compile(rb"\xc2[\x80-\x9f]")
# A quoted cell, whole, between commas or line ends.
QUOTED = re.compile(rb'"(?<![^,\n]")[^"\n]*+(?:""[^"\n]*+)*+"(?![^,\n])')
END_OF_DATA = re.compile(rb"^\\\.$", re.MULTILINE)
LONGEST_LINE = 2**20
# So much is read at once: memory of this size is used again, where more would be given back and asked for anew.
PIECE = 2**16


class ByteStream(Protocol):
    """A file that is read from its start."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes; none at the end."""

    def readline(self, size: int, /) -> bytes:
        """The next line, at most so many bytes of it."""


class SuspectBytesError(Exception):
    """A search found something; a second, slower reading will say what."""


class CleanLines:
    """The rows of a CSV file, as a file that COPY reads: UTF-8, ended by line feeds, without the header.

    `header` is the first line, without a byte order mark, and `quirks` is what was put up with in it. `read` and `take`
    raise SuspectBytesError. Lines may end with CRLF, as RFC 4180 has it. Empty lines at the end of the file are
    dropped; `rows` counts the lines that were handed out or passed over, and `raw` is what the last ones that were
    handed out look like in the file.
    """

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        # What was read of the file: from `_at` to `_end` whole lines that come next, none of which can be an empty one
        # at the end of the file.
        self._window = b""
        self._at = 0
        self._end = 0
        self._ended = False
        self.rows = 0
        self.raw = b""
        line = stream.readline(LONGEST_LINE)
        self.quirks = (BYTE_ORDER_MARK,) if line.startswith(codecs.BOM_UTF8) else ()
        self.header = line.removeprefix(codecs.BOM_UTF8).removesuffix(b"\n").removesuffix(b"\r")

    def read(self, size: int) -> bytes:
        """The next whole lines, at most `size` bytes of them; empty at the end."""
        # Room for the line feed that the last line may lack.
        size -= 1
        while self._at == self._end:
            self._require_line_end(size)
            if not self._read_on(max(size - len(self._window) + self._at, 1)):
                return b""
        behind = self._end
        if behind - self._at > size:
            behind = self._window.rfind(b"\n", self._at, self._at + size) + 1
            if not behind:
                raise SuspectBytesError
        return self._hand_out(behind)

    def take(self, count: int) -> bytes:
        """So many of the next lines; fewer at the end."""
        behind = self._at
        for _ in range(count):
            while behind == self._end:
                self._require_line_end(LONGEST_LINE)
                length = behind - self._at
                if not self._read_on():
                    return self._hand_out(self._end)
                behind = self._at + length
            behind = self._window.index(b"\n", behind) + 1
        return self._hand_out(behind)

    def peek(self, size: int) -> memoryview | None:
        """The next `size` bytes of the file, if so many belong to lines that are still to come."""
        while self._end - self._at < size:
            if not self._read_on():
                return None
        return memoryview(self._window)[self._at : self._at + size]

    def pass_over(self, count: int, size: int) -> None:
        """Leaves out the next `count` lines, which are the next `size` bytes of the file."""
        self._at += size
        self.rows += count

    def _read_on(self, size: int = PIECE) -> bool:
        """Reads the next piece of the file, at most `size` bytes; says whether there may be more lines now."""
        if self._ended:
            return False
        block = self._stream.read(min(size, PIECE))
        self._ended = not block
        data = self._window[self._at :] + block
        whole = data if self._ended else data[: data.rfind(b"\n") + 1]
        # Line ends that may turn out to be the last ones wait for what follows them; behind the last line they are
        # nothing, and it may lack its own.
        lines = whole.rstrip(b"\r\n")
        end = data.find(b"\n", len(lines)) + 1 if lines else 0
        if self._ended:
            data = lines + b"\n" if lines and not end else data[:end]
            end = len(data)
        self._window, self._at, self._end = data, 0, end
        return True

    def _require_line_end(self, size: int) -> None:
        if len(self._window) - self._end >= min(size, LONGEST_LINE):
            raise SuspectBytesError

    def _hand_out(self, behind: int) -> bytes:
        """The lines up to there, each ended by a line feed alone."""
        self.raw = self._window[self._at : behind]
        self._at = behind
        plain = _search(self.raw)
        self.rows += plain.count(b"\n")
        return plain


def _search(lines: bytes) -> bytes:
    """The lines, each ended by a line feed alone. Raises SuspectBytesError where they may be in trouble."""
    plain = lines.translate(None, CONTROLS)
    # All control characters were carriage returns at the ends of lines. A single byte is found at once; most files have
    # none of those that the patterns begin with.
    if len(plain) != len(lines) and len(lines) - len(plain) != lines.count(b"\r\n"):
        raise SuspectBytesError
    if b"\xc2" in plain and MORE_CONTROLS.search(plain):
        raise SuspectBytesError
    if b'"' in plain and b'"' in QUOTED.sub(b"", plain):
        raise SuspectBytesError
    if b"\\" in plain and END_OF_DATA.search(plain):
        raise SuspectBytesError
    return plain
