"""Files that are UTF-16, or have the line ends of old Macs, read as UTF-8 with line feeds; and cells that are no UTF-8.

The first bytes of a file tell both: every export begins with a header, which is ASCII. Other bytes are passed on as
they are, and `repair.py` reads lines of Windows-1252.
"""

from __future__ import annotations

import codecs
import io
from typing import IO, Any, BinaryIO, cast

from sync_scripts.formats.tolerated import MAC_LINES, UTF_16, Deviation

UTF_8, CP_1252 = "utf-8", "cp1252"
# An encoding that keeps every byte.
BYTES = "latin-1"
UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Bytes at the start of a file in which its first line ends.
HEAD = 8192
PIECE = 2**18


def open_plain(stream: IO[bytes]) -> BinaryIO:
    """The file as UTF-8 with line feeds, if its first bytes show that it is UTF-16 or has line ends of old Macs; else
    `stream` itself. `stream`: at its start, with the method `peek` of buffered files."""
    head = cast(Any, stream).peek(HEAD)[:HEAD]
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
