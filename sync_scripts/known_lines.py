"""The marks of the lines that a feed's records were last made of, kept from night to night in `feed_lines`.

They count as long as the feed's fingerprints are trusted, and are written with them, in one transaction: a record of
the feed has the mark of its line as its fingerprint.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping
from typing import BinaryIO

from sqlalchemy import Connection, delete, func, insert, select

from roster_service.db.tables import feed_lines
from sync_scripts.aligning import CODE, WIDTH

# How many marks a row of the table has.
CHUNK = 65_536


def fetch_marks(connection: Connection, feed_id: int, name: str, into: BinaryIO) -> bool:
    """Writes the marks of the file `name` of the last export into a file; False where none are kept."""
    mine = (feed_lines.c.feed_id == feed_id) & (feed_lines.c.file == name)
    chunks = connection.scalar(select(func.count()).where(mine)) or 0
    for number in range(chunks):
        one = select(feed_lines.c.marks).where(mine, feed_lines.c.number == number)
        into.write(connection.execute(one).scalar_one())
    into.seek(0)
    return chunks > 0


def keep_marks(
    connection: Connection, feed_id: int, files: Mapping[str, BinaryIO], refused: Mapping[str, Collection[int]]
) -> None:
    """Keeps the marks of the files of an export, by their names, in place of all others of the feed; those of lines
    that were `refused` are left out: these shall be looked at again."""
    connection.execute(delete(feed_lines).where(feed_lines.c.feed_id == feed_id))
    for name, marks in files.items():
        marks.seek(0)
        number = 0
        while chunk := marks.read(CHUNK * WIDTH):
            row = {
                "feed_id": feed_id,
                "file": name,
                "number": number,
                "marks": _leave_out(chunk, refused.get(name, ())),
            }
            connection.execute(insert(feed_lines), row)
            number += 1


def _leave_out(chunk: bytes, marks: Collection[int]) -> bytes:
    if not marks:
        return chunk
    kept = array(CODE)
    kept.frombytes(chunk)
    return array(CODE, (mark for mark in kept if mark not in marks)).tobytes()
