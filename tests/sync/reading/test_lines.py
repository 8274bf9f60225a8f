"""The bytes on their way into COPY: good ones arrive as they are, whatever the blocks; bad ones stop."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_scripts.reading.csv_errors import MendedLines, find_faults
from sync_scripts.reading.lines import LONGEST_LINE, CleanLines, SuspectBytesError

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
    "end-of-data mark": (b"1,2\n\\.\n3,4\n", "line 3: the row has 1 cells, not 2"),
    "end-of-data mark, CRLF": (b"1,2\r\n\\.\r\n", "line 3: the row has 1 cells, not 2"),
    "end-of-data mark, no end of line": (b"1,2\n\\.", "line 3: the row has 1 cells, not 2"),
    "a quote in a bare cell": (b'5" pipe,2\n', "line 2, column a: broken quoting"),
    "two quotes in a bare cell": (b'1,5" and 6" pipe\n', "line 2, column b: broken quoting"),
    "text behind a quoted cell": (b'"1"x,2\n', "line 2, column a: broken quoting"),
    "a quote never closed": (b'1,"2\n3,4\n', "line 2, column b: broken quoting"),
    "a line break in a cell": (b'1,"2\n2"\n', "line 2, column b: broken quoting"),
    "NUL": (b"1,2\n3,4\x00\n", "line 3, column b: holds a control character"),
    "tab": (b"1\t,2\n", "line 2, column a: holds a control character"),
    "lone carriage return": (b"1,2\r3,4\n", "line 2, column b: holds a control character"),
    "C1 control": ("1,2\x85\n".encode(), "line 2, column b: holds a control character"),
    "too long a line": (b"1," + b"2" * (LONGEST_LINE + 1) + b"\n", "line 2: the line is longer"),
}


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


# What the slow reading alone finds: COPY itself stops at these.
LEFT_TO_COPY = {
    "not UTF-8": (b"1,\xff\xfe\n", ["line 2, column b: is not UTF-8"]),
    "too few": (b"1\n", ["line 2: the row has 1 cells, not 2"]),
    "too many": (b"1,2,3\n", ["line 2: the row has 3 cells, not 2"]),
    "an empty line among others": (b"1,2\n\n3,4\n", ["line 3: the line is empty"]),
    "several": (b"1\n1,2\n1,2,3\n", ["line 2: the row has 1 cells, not 2", "line 4: the row has 3 cells, not 2"]),
    "empty cells too many": (b"1,2,,\n3,4\n", []),
}


@pytest.mark.parametrize(("data", "words"), LEFT_TO_COPY.values(), ids=LEFT_TO_COPY)
def test_the_slow_reading_finds_the_rest(data: bytes, words: list[str]) -> None:
    found = [str(fault).removeprefix("f.csv, ") for fault in find_faults(io.BytesIO(HEADER + data), "f.csv", COLUMNS)]
    assert found == words


def test_the_byte_order_mark_is_no_part_of_the_header() -> None:
    assert CleanLines(io.BytesIO(b"\xef\xbb\xbfa,b\r\n1,2\r\n")).header == b"a,b"


@pytest.mark.parametrize("size", [8, 2**20])
def test_empty_cells_too_many_are_cut_off(size: int) -> None:
    lines = MendedLines(io.BytesIO(HEADER + b'1,"2,2",\n3,4\r\n\n5,6,,""'), 2)
    assert b"".join(iter(lambda: lines.read(size), b"")) == b'1,"2,2"\n3,4\n5,6\n'
    assert lines.mended == 2


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
        assert list(find_faults(io.BytesIO(HEADER + data), "f.csv", COLUMNS))
        return
    for line in read:
        rows = list(csv.reader([line.decode("latin-1")], strict=True))
        assert len(rows) == 1
