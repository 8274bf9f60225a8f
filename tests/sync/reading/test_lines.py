"""The bytes on their way into COPY: good ones arrive as they are, whatever the blocks; bad ones stop."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_scripts.formats.tolerated import (
    BLANK_LINE,
    EXTRA_CELLS,
    MAC_LINES,
    QUOTED_NEWLINE,
    UTF_16,
    WINDOWS_1252,
    Deviation,
)
from sync_scripts.reading.lines import LONGEST_LINE, CleanLines, SuspectBytesError, list_deviations, open_plain
from sync_scripts.reading.package import UNREADABLE
from sync_scripts.reading.repair import RepairedLines, find_faults, find_shapes
from tests.offenders import in_one_test

COLUMNS = ["a", "b"]
HEADER = b"a,b\n"


def read_all(data: bytes, size: int = 2**20) -> list[bytes]:
    lines = CleanLines(io.BytesIO(data))
    blocks = list(iter(lambda: lines.read(size), b""))
    assert all(block.endswith(b"\n") and len(block) <= size for block in blocks)
    return b"".join(blocks).splitlines(keepends=True)


GOOD = {
    "plain": (b"1,2\n3,4\n", [b"1,2\n", b"3,4\n"]),
    "no end of the last line": (b"1,2\n3,4", [b"1,2\n", b"3,4\n"]),
    "CRLF": (b"1,2\r\n3,4\r\n", [b"1,2\n", b"3,4\n"]),
    "CRLF, no last end": (b"1,2\r\n3,4", [b"1,2\n", b"3,4\n"]),
    "empty lines at the end": (b"1,2\n\n\r\n\n", [b"1,2\n"]),
    "quoted": (b'"1,1","2 ""two"""\n', [b'"1,1","2 ""two"""\n']),
    "quoted and empty": (b'"",""\n', [b'"",""\n']),
    "nothing": (b"", []),
    "other scripts": ("王,Ω\n".encode(), ["王,Ω\n".encode()]),
    "a backslash and a dot in a cell": (b"\\.,2\n", [b"\\.,2\n"]),
}
BAD = {
    "a quote in a bare cell": (b'5" pipe,2\n', "line 2, column a: broken quoting"),
    "two quotes in a bare cell": (b'1,5" and 6" pipe\n', "line 2, column b: broken quoting"),
    "text behind a quoted cell": (b'"1"x,2\n', "line 2, column a: broken quoting"),
    "a quote never closed": (b'1,"2\n3,4\n', "line 2, column b: broken quoting"),
    "a line break in a cell": (b'1,"2\n2"\n', "line 2, column b: broken quoting"),
    "NUL": (b"1,2\n3,4\x00\n", "line 3, column b: holds a control character"),
    "tab": (b"1\t,2\n", "line 2, column a: holds a control character"),
    "lone carriage return": (b"1,2\r3,4\n", "line 2, column b: holds a control character"),
    "C1 control": ("1,2\x85\n".encode(), "line 2, column b: holds a control character"),
    "the end inside a quoted cell": (b'1,2\n3,"4', "line 3: the file ends inside this row"),
    "too long a line": (b"1," + b"2" * (LONGEST_LINE + 1) + b"\n", "line 2: the line is longer"),
}


@in_one_test
@pytest.mark.parametrize("size", [64, 2**20])
@pytest.mark.parametrize(("data", "lines"), GOOD.values(), ids=GOOD)
def test_good_lines_arrive(data: bytes, lines: list[bytes], size: int) -> None:
    assert read_all(HEADER + data, size) == lines
    assert list(find_faults(io.BytesIO(HEADER + data), "f.csv", COLUMNS)) == []


@pytest.mark.parametrize(("data", "words"), BAD.values(), ids=BAD)
def test_bad_lines_stop_and_are_explained(data: bytes, words: str) -> None:
    with pytest.raises(SuspectBytesError):
        read_all(HEADER + data)
    first = next(find_faults(io.BytesIO(HEADER + data), "f.csv", COLUMNS))
    assert str(first).startswith(f"f.csv, {words}")


FAULT_1, FAULT_3 = "the row has 1 cells, not 2", "the row has 3 cells, not 2; a cell with a comma needs quotes"
FAULT_4, FAULT_6 = (FAULT_3.replace("3", number, 1) for number in "46")
# What the slow reading makes of a file: its rows with their lines and faults, and its repairs.
REPAIRED: dict[str, tuple[bytes, list[tuple[int, str]], dict[Deviation, int]]] = {
    "nothing to repair": (b"1,2\n3,4", [(2, "1,2,"), (3, "3,4,")], {}),
    "a line of Windows-1252 among others": (
        b"1,\xe9\n" + "2,é\n".encode(),
        [(2, "1,é,"), (3, "2,é,")],
        {WINDOWS_1252: 1},
    ),
    "too few": (b"1\n3,4\n", [(2, f'1,,"{FAULT_1}"'), (3, "3,4,")], {}),
    "too many": (b"1,2,3\n", [(2, f'1,2,"{FAULT_3}"')], {}),
    "empty lines": (b"\n1,2\n\n\r\n3,4\n\n\n", [(3, "1,2,"), (6, "3,4,")], {BLANK_LINE: 3}),
    "empty cells too many": (
        b'1,"2,2",\n\n5,6,""\n7,8,\n9,9,\n',
        [(2, '1,"2,2",'), (4, "5,6,"), (5, "7,8,"), (6, "9,9,")],
        {EXTRA_CELLS: 4, BLANK_LINE: 1},
    ),
    "more of them in one row": (b"1,2,\n3,4,,\n5,6,\n", [(2, "1,2,"), (3, "3,4,"), (4, "5,6,")], {EXTRA_CELLS: 3}),
    "too few rows to speak for each other": (b"1,2,\n3,4,\n", [(2, f'1,2,"{FAULT_3}"'), (3, f'3,4,"{FAULT_3}"')], {}),
    "the rest of a sentence in every row": (
        b"a, b,\nc, d,\ne, f,\n",
        [(line, f'{cells},"{FAULT_3}"') for line, cells in enumerate(("a, b", "c, d", "e, f"), 2)],
        {},
    ),
    "a comma too many in another place than in the others": (
        b"1,x,\n2,y,\n3,z,\n4,5,x\n1,,x\n",
        [(2, "1,x,"), (3, "2,y,"), (4, "3,z,"), (5, f'4,5,"{FAULT_3}"'), (6, f'1,,"{FAULT_3}"')],
        {EXTRA_CELLS: 3},
    ),
    "many of them in one row": (b"1,2\n3,4,,,,\n", [(2, "1,2,"), (3, f'3,4,"{FAULT_6}"')], {}),
    "only in some rows": (b"1,2\n3,4,\n", [(2, "1,2,"), (3, "3,4,")], {EXTRA_CELLS: 1}),
    "only in a row of another kind": (b"1,2\nx,y,\n", [(2, "1,2,"), (3, f'x,y,"{FAULT_3}"')], {}),
    "a comma before an empty last cell": (b"1,\nx,2,\n", [(2, "1,,"), (3, f'x,2,"{FAULT_3}"')], {}),
    "a comma before the last cells": (b"1,\n1,2,,\n", [(2, "1,,"), (3, f'1,2,"{FAULT_4}"')], {}),
    "a comma too many between two cells": (b",2\n,,2\n", [(2, ",2,"), (3, f',,"{FAULT_3}"')], {}),
    "and too few in another row": (
        b"1,2,\n3\n4,5,\n6,7,\n",
        [(2, "1,2,"), (3, f'3,,"{FAULT_1}"'), (4, "4,5,"), (5, "6,7,")],
        {EXTRA_CELLS: 3},
    ),
    "a line break in a cell": (b'1,"2\r\n2"\n3,4\n', [(2, "1,2 2,"), (4, "3,4,")], {QUOTED_NEWLINE: 1}),
    "end-of-data mark": (b"\\.\n3,4\n", [(2, f'"\\.",,"{FAULT_1}"'), (3, "3,4,")], {}),
}
NOT_REPAIRED = {
    "the end inside a row": b"1,2\n3",
    "a quote in a bare cell": b'5" pipe,2\n3,4\n',
    "a quote never closed": b'1,"2\n3,4\n',
    "control character": b"1,2\x07\n",
    "neither UTF-8 nor Windows-1252": b"1,\x81\n",
}


def repair(data: bytes, size: int) -> tuple[list[tuple[int, str]], RepairedLines]:
    data = HEADER + data
    lines = RepairedLines(io.BytesIO(data), 2, find_shapes(io.BytesIO(data), 2))
    rows: list[tuple[int, str]] = []
    while block := lines.read(size):
        assert lines.numbers is not None
        rows += zip(lines.numbers, block.decode().splitlines(), strict=True)
    return rows, lines


@in_one_test
@pytest.mark.parametrize("size", [8, 2**20])
@pytest.mark.parametrize(("data", "rows", "repairs"), REPAIRED.values(), ids=REPAIRED)
def test_the_slow_reading_repairs(
    data: bytes, rows: list[tuple[int, str]], repairs: dict[Deviation, int], size: int
) -> None:
    found, lines = repair(data, size)
    assert [(number, next(csv.reader([row]))) for number, row in found] == [
        (number, next(csv.reader([row]))) for number, row in rows
    ]
    assert {it: count for it, count in lines.repairs.items() if count} == repairs
    assert lines.faults == sum("cells, not" in row for _, row in rows)


@pytest.mark.parametrize("data", NOT_REPAIRED.values(), ids=NOT_REPAIRED)
def test_the_slow_reading_stops_at_the_rest(data: bytes) -> None:
    with pytest.raises(SuspectBytesError):
        repair(data, 2**20)
    assert list(find_faults(io.BytesIO(HEADER + data), "f.csv", COLUMNS))


AS_UTF_8 = "a,b\n1,é王\n".encode()


@pytest.mark.parametrize(
    ("data", "deviation"),
    [
        (AS_UTF_8, None),
        ("a,b\r\n1,é王\r\n".encode("utf-16"), UTF_16),
        ("a,b\r\n1,é王\r\n".encode("utf-16-be"), UTF_16),
        ("a,b\n1,é王\n".encode("utf-16-le"), UTF_16),
        (AS_UTF_8.replace(b"\n", b"\r"), MAC_LINES),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 2**20])
def test_a_file_is_read_as_utf_8_with_line_feeds(data: bytes, deviation: Deviation | None, size: int) -> None:
    stream = open_plain(io.BufferedReader(io.BytesIO(data)))  # type: ignore[arg-type]
    assert list_deviations(stream) == (() if deviation is None else (deviation,))
    assert b"".join(iter(lambda: stream.read(size), b"")) == AS_UTF_8


@pytest.mark.parametrize("data", ["a,b\n1,é\n".encode("utf-16")[:-1], "a".encode("utf-16") + b"\x00\xd8\x00\xd8"])
def test_broken_utf_16_is_not_read(data: bytes) -> None:
    with pytest.raises(UNREADABLE):
        open_plain(io.BufferedReader(io.BytesIO(data))).read()  # type: ignore[arg-type]


def test_the_byte_order_mark_is_no_part_of_the_header() -> None:
    assert CleanLines(io.BytesIO(b"\xef\xbb\xbfa,b\r\n1,2\r\n")).header == b"a,b"


awkward = st.text(alphabet='",\\.\r\n\t aé王\x85', max_size=12)


@given(st.lists(st.tuples(awkward, awkward), max_size=6), st.sampled_from(["\n", "\r\n"]), st.integers(32, 200))
def test_written_rows_arrive_or_stop(rows: list[tuple[str, str]], end: str, size: int) -> None:
    """Rows of plain text arrive as the same rows; rows with control characters in them never do."""
    out = io.StringIO(newline="")
    clean = all(character not in cell for row in rows for cell in row for character in "\r\n\t\x85")
    # Unasked, the writer leaves a carriage return without quotes, where it is part of a line end.
    quoting = csv.QUOTE_MINIMAL if clean else csv.QUOTE_ALL
    csv.writer(out, lineterminator=end, quoting=quoting).writerows([COLUMNS, *rows])
    try:
        read = read_all(out.getvalue().encode(), size)
    except SuspectBytesError:
        # A block that is smaller than a line stops too, and no real block is.
        assert not clean or any(len(line) >= size for line in out.getvalue().encode().splitlines())
    else:
        assert clean
        assert [tuple(row) for row in csv.reader(line.decode() for line in read)] == rows


@given(st.binary(max_size=60).map(lambda data: data.replace(b"\x00", b'"')))
def test_whatever_passes_is_one_row_per_line(data: bytes) -> None:
    try:
        read = read_all(HEADER + data)
    except SuspectBytesError:
        try:
            read = [row.encode() for _, row in repair(data, 2**20)[0]]
        except SuspectBytesError:
            assert list(find_faults(io.BytesIO(HEADER + data), "f.csv", COLUMNS))
            return
    for line in read:
        rows = list(csv.reader([line.decode("latin-1")], strict=True))
        assert len(rows) == 1
