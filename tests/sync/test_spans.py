"""A file of which whole spans come again ends in the same marks, new lines and lost ones as one that is read line by
line, whatever came, went or moved, however many nights it is."""

from __future__ import annotations

import io
import random
from array import array
from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_scripts.aligning import CODE
from sync_scripts.headers import read_header
from sync_scripts.lines import CleanLines
from sync_scripts.marks import Marker
from sync_scripts.oneroster import VERSIONS
from sync_scripts.spans import LINES, PARTS, UNKNOWN
from sync_scripts.thinning import LineMarks, MarkedLines, thin_out

FILE = VERSIONS["1.1"].file("users")
HEADERS = (*FILE.headers, "metadata.note")
MARKER = Marker.of(FILE, read_header(",".join(HEADERS).encode(), FILE)[0], VERSIONS["1.1"])
BLOCK = 2**20


def row(name: str, password: str = "") -> str:
    filled = {"sourcedId": name, "givenName": "Ada", "password": password}
    return ",".join(filled.get(header, "") for header in HEADERS)


def write(rows: list[str], end: str = "\r\n", last: str = "\r\n") -> bytes:
    return end.join((",".join(HEADERS), *rows)).encode() + last.encode()


def nothing_known() -> LineMarks:
    return LineMarks(io.BytesIO(), array(CODE))


def learn(data: bytes) -> LineMarks:
    """What is known of a file that was staged whole."""
    found = nothing_known()
    lines = MarkedLines(CleanLines(io.BytesIO(data)), MARKER, found)
    while lines.read(BLOCK):
        pass
    return found


@dataclass(frozen=True)
class Night:
    """What a night made of a file: (number, line) of the new ones, the marks of the lost ones, what is known now, and
    how many lines were read."""

    new: list[tuple[int, str]]
    gone: list[int]
    found: LineMarks
    read: int


class CountingLines(CleanLines):
    """Counts the lines that are handed out."""

    handed_out = 0

    def _hand_out(self, behind: int) -> bytes:
        lines = super()._hand_out(behind)
        self.handed_out += lines.count(b"\n")
        return lines


def thin(data: bytes, old: LineMarks) -> Night:
    found, new, lines = nothing_known(), io.BytesIO(), CountingLines(io.BytesIO(data))
    gone = thin_out(lines, MARKER, old, found, new, BLOCK)
    cut = [line.rsplit(",", 2) for line in new.getvalue().decode().splitlines()]
    assert lines.rows == len(read_marks(found)) == sum(found.spans[::PARTS])
    return Night([(int(number), text) for text, _, number in cut], list(gone), found, lines.handed_out)


def read_marks(known: LineMarks) -> list[int]:
    known.marks.seek(0)
    return array(CODE, known.marks.read()).tolist()


ROWS = [row(str(number)) for number in range(20 * LINES)]
CHANGED: dict[str, list[str]] = {
    "nothing": ROWS,
    "a line in the middle": [*ROWS[:100], row("x"), *ROWS[101:]],
    "a longer line": [*ROWS[:100], row("x" * 200), *ROWS[101:]],
    "a line more": [*ROWS[:100], row("x"), *ROWS[100:]],
    "a line less": [*ROWS[:100], *ROWS[101:]],
    "the first lines": [row("x"), row("y"), *ROWS[5:]],
    "the last line": [*ROWS[:-1], row("x")],
    "lines at the end": [*ROWS, row("x"), row("y")],
    "the last lines are gone": ROWS[: -LINES // 2],
    "a whole span is gone": [*ROWS[: 2 * LINES], *ROWS[3 * LINES :]],
    "spans came": [*ROWS[:100], *(row(f"x{number}") for number in range(3 * LINES)), *ROWS[100:]],
}


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("rows", CHANGED.values(), ids=CHANGED)
def test_what_comes_again_in_spans_is_not_read(rows: list[str], end: str) -> None:
    old, new = learn(write(ROWS, end, end)), learn(write(rows, end, end))
    night = thin(write(rows, end, end), old)
    assert read_marks(night.found) == read_marks(new)
    assert Counter(text for _, text in night.new) == Counter(rows) - Counter(ROWS)
    assert Counter(night.gone) == Counter(read_marks(old)) - Counter(read_marks(new))
    assert all(rows[number - 2] == text for number, text in night.new)
    assert night.read <= abs(len(rows) - len(ROWS)) + 4 * LINES


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(write(ROWS, last=""), write(ROWS, last=""), id="no end of the last line, twice"),
        pytest.param(write(ROWS, last=""), write(ROWS), id="an end now"),
        pytest.param(write(ROWS), write(ROWS, last=""), id="no end now"),
        pytest.param(write(ROWS), write(ROWS) + b"\r\n\n", id="empty lines at the end"),
        pytest.param(write(ROWS), write(ROWS, end="\n", last="\n"), id="other ends"),
        pytest.param(write(ROWS[:9], "\n", "\n") + write(ROWS[9:]).split(b"\r\n", 1)[1], write(ROWS), id="mixed ends"),
    ],
)
def test_ends_of_lines_say_nothing(before: bytes, after: bytes) -> None:
    night = thin(after, learn(before))
    assert (night.new, night.gone) == ([], [])


def test_a_line_that_goes_on_is_another_one() -> None:
    night = thin(write([*ROWS[:-1], ROWS[-1] + "x"]), learn(write(ROWS, last="")))
    assert [text for _, text in night.new] == [ROWS[-1] + "x"]


@pytest.mark.parametrize("secret", [0, 40, len(ROWS) - 1])
def test_no_span_knows_a_secret(secret: int) -> None:
    def with_password(password: str) -> bytes:
        return write([*ROWS[:secret], row(str(secret), password), *ROWS[secret + 1 :]])

    known = [learn(with_password(password)) for password in ("x1", "x2")]
    known += [thin(with_password("x3"), known[0]).found, thin(with_password("x4"), learn(write(ROWS))).found]
    sizes = [list(it.spans) for it in known]
    assert sizes[0] == sizes[1]
    for found in known:
        hidden = [at for at in range(0, len(found.spans), PARTS) if found.spans[at + 1] == UNKNOWN]
        behind = 0
        covered = []
        for at in range(0, len(found.spans), PARTS):
            begun, behind = behind, behind + found.spans[at]
            if at in hidden:
                covered += range(begun, behind)
        assert secret in covered


def test_spans_do_not_become_shorter_from_night_to_night() -> None:
    dice = random.Random(1)
    rows, known = list(ROWS), learn(write(ROWS))
    for number in range(60):
        place = dice.randrange(len(rows))
        rows[place : place + dice.randrange(2)] = [row(f"n{number}")] * dice.randrange(2)
        known = thin(write(rows), known).found
    assert read_marks(known) == read_marks(learn(write(rows)))
    assert len(known.spans) // PARTS < 2 * len(rows) / LINES


edits = st.lists(st.tuples(st.integers(0, len(ROWS)), st.integers(0, 80), st.integers(0, 80)), max_size=6)


@given(st.lists(edits, min_size=1, max_size=4), st.sampled_from(["\n", "\r\n"]))
def test_any_nights_find_what_line_by_line_would_be_found(nights: list[list[tuple[int, int, int]]], end: str) -> None:
    rows, known = list(ROWS), learn(write(ROWS, end, end))
    for night, changes in enumerate(nights):
        before = Counter(read_marks(known))
        for number, (place, went, came) in enumerate(changes):
            rows[place : place + went] = [row(f"{night}.{number}.{it}") for it in range(came)]
        data = write(rows, end, end)
        found = thin(data, known)
        after = Counter(read_marks(learn(data)))
        assert Counter(read_marks(found.found)) == after
        marks = Counter(MARKER.mark("".join(f"{text}\n" for _, text in found.new).encode()).marks)
        assert marks - Counter(found.gone) == after - before
        assert Counter(found.gone) - marks == before - after
        known = found.found
