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

from sync_scripts.formats.tolerated import BYTE_ORDER_MARK

# Every C0 control character and DEL, but the line feed that ends a line.
CONTROLS = bytes({*range(32), 127} - {10})
# C1 control characters, as UTF-8 spells them.
MORE_CONTROLS = re.compile(rb"\xc2[\x80-\x9f]")
# A quoted cell, whole, between commas or line ends.
QUOTED = re.compile(rb'"(?<![^,\n]")[^"\n]*+(?:""[^"\n]*+)*+"(?![^,\n])')
END_OF_DATA = re.compile(rb"^\\\.$", re.MULTILINE)
LONGEST_LINE = 2**20
# So much is read at once: memory of this size is used again, where more would be given back and asked for anew.
PIECE = 2**18


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

    `header` is the first line, without a byte order mark, and `deviations` is what was put up with in it. `read` raises
    SuspectBytesError. Lines may end with CRLF, as RFC 4180 has it. Empty lines at the end of the file are dropped;
    None of them is `mended`.
    """

    mended = 0

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._rest = b""
        self._ended = False
        line = stream.readline(LONGEST_LINE)
        self.deviations = (BYTE_ORDER_MARK,) if line.startswith(codecs.BOM_UTF8) else ()
        self.header = line.removeprefix(codecs.BOM_UTF8).removesuffix(b"\n").removesuffix(b"\r")

    def read(self, size: int) -> bytes:
        """The next whole lines, at most `size` bytes of them; empty at the end."""
        if self._ended:
            return b""
        # Room for the line feed that the last line may lack.
        size -= 1
        while True:
            block = self._stream.read(min(max(size - len(self._rest), 1), PIECE))
            data = self._rest + block
            if not block:
                self._ended = True
                # The last line may lack its end; empty lines behind it are nothing.
                self._rest = b""
                lines = data.rstrip(b"\r\n")
                return self._search(lines + b"\n") if lines else b""
            cut = data.rfind(b"\n") + 1
            # Line ends that may turn out to be the last ones wait for what follows them.
            lines = data[:cut].rstrip(b"\r\n")
            cut = data.find(b"\n", len(lines)) + 1 if lines else 0
            self._rest = data[cut:]
            if cut:
                return self._search(data[:cut])
            if len(self._rest) >= min(size, LONGEST_LINE):
                raise SuspectBytesError

    def _search(self, lines: bytes) -> bytes:
        """The lines, each ended by a line feed alone."""
        plain = lines.translate(None, CONTROLS)
        # All control characters were carriage returns at the ends of lines. A single byte is found at once; most files
        # have none of those that the patterns begin with.
        if len(plain) != len(lines) and len(lines) - len(plain) != lines.count(b"\r\n"):
            raise SuspectBytesError
        if b"\xc2" in plain and MORE_CONTROLS.search(plain):
            raise SuspectBytesError
        if b'"' in plain and b'"' in QUOTED.sub(b"", plain):
            raise SuspectBytesError
        if b"\\" in plain and END_OF_DATA.search(plain):
            raise SuspectBytesError
        return plain
