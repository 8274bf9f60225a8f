"""The marks and spans of the lines that a feed's records were last made of, kept from night to night in `feed_lines`.

They count as long as the feed's fingerprints are trusted, and are written with them, in one transaction: a record of
the feed has the mark of its line as its fingerprint.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Mapping
from typing import BinaryIO

from sqlalchemy import Connection, delete, func, insert, select

from roster_service.db.tables import feed_lines
from sync_scripts.aligning import CODE, WIDTH
from sync_scripts.spans import PARTS, UNKNOWN
from sync_scripts.thinning import LineMarks

# How many marks a row of the table has; of whole spans, so that there may be some more.
CHUNK = 65_536


def fetch_marks(connection: Connection, feed_id: int, name: str, into: BinaryIO) -> LineMarks | None:
    """What is known of the file `name` of the last export, the marks in a file; None where nothing is kept."""
    mine = (feed_lines.c.feed_id == feed_id) & (feed_lines.c.file == name)
    chunks = connection.scalar(select(func.count()).where(mine)) or 0
    spans = array(CODE)
    for number in range(chunks):
        row = connection.execute(
            select(feed_lines.c.marks, feed_lines.c.spans).where(mine, feed_lines.c.number == number)
        ).one()
        into.write(row.marks)
        spans.frombytes(row.spans)
    return LineMarks(into, spans) if chunks else None


def keep_marks(
    connection: Connection, feed_id: int, files: Mapping[str, LineMarks], refused: Mapping[str, Collection[int]]
) -> None:
    """Keeps the marks and spans of the files of an export, by their names, in place of all others of the feed; those of
    lines that were `refused` are left out: these shall be looked at again."""
    connection.execute(delete(feed_lines).where(feed_lines.c.feed_id == feed_id))
    for name, found in files.items():
        for number, (marks, spans) in enumerate(_cut_chunks(found, refused.get(name, ()))):
            row = {"feed_id": feed_id, "file": name, "number": number}
            connection.execute(insert(feed_lines), {**row, "marks": marks.tobytes(), "spans": spans.tobytes()})


def _cut_chunks(found: LineMarks, refused: Collection[int]) -> Iterator[tuple[array[int], array[int]]]:
    """(marks, the spans that they are the marks of), a row of the table each."""
    found.marks.seek(0)
    begun, lines = 0, 0
    for at in range(0, len(found.spans), PARTS):
        lines += found.spans[at]
        behind = at + PARTS
        if lines >= CHUNK or behind == len(found.spans):
            marks = array(CODE)
            marks.frombytes(found.marks.read(lines * WIDTH))
            spans = found.spans[begun:behind]
            yield _leave_out(marks, spans, refused) if refused else (marks, spans)
            begun, lines = behind, 0


def _leave_out(marks: array[int], spans: array[int], refused: Collection[int]) -> tuple[array[int], array[int]]:
    """The marks without those that are `refused`; a span that had one of these is known by nothing from then on."""
    kept, changed, first = array(CODE), array(CODE), 0
    for at in range(0, len(spans), PARTS):
        count, size, mark = spans[at : at + PARTS]
        rest = [it for it in marks[first : first + count] if it not in refused]
        first += count
        kept.extend(rest)
        changed.extend((count, size, mark) if len(rest) == count else (len(rest), UNKNOWN, 0))
    return kept, changed
