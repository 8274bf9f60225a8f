"""Two lines have the same mark exactly where they say the same of everything that is read."""

from __future__ import annotations

import io
from array import array

import pytest

from sync_scripts.aligning import CODE
from sync_scripts.formats import CsvFile, Format
from sync_scripts.headers import read_header
from sync_scripts.lines import CleanLines
from sync_scripts.marks import Marker
from sync_scripts.oneroster import VERSIONS
from sync_scripts.thinning import LineMarks, MarkedLines, thin_out

FORM = VERSIONS["1.1"]
USERS = FORM.file("users")
HEADER = ",".join((*USERS.headers, "metadata.note"))
PLACES = {name: number for number, name in enumerate(HEADER.split(","))}


def row(**cells: str) -> str:
    filled = {"sourcedId": "1", "givenName": "Ada", "familyName": "Lovelace", **cells}
    return ",".join(filled.get(name, "") for name in PLACES)


def make_marker(header: str = HEADER, form: Format = FORM, file: CsvFile = USERS) -> Marker:
    return Marker.of(file, read_header(header.encode(), file)[0], form)


def mark(*rows: str) -> list[int]:
    return make_marker().mark("".join(f"{line}\n" for line in rows).encode()).marks


SAME = {
    "an empty password and a filled one": ({}, {"password": "secret"}),
    "two passwords": ({"password": "secret"}, {"password": "other"}),
    "passwords with commas": ({"password": '"a,b"'}, {"password": '"c,""d"",e"'}),
    "a password behind a quoted cell": (
        {"familyName": '"Lovelace, King"', "password": "secret"},
        {"familyName": '"Lovelace, King"', "password": "other"},
    ),
    "dates that are not read": ({"dateLastModified": "2026-01-01"}, {"dateLastModified": "2026-01-02"}),
}
OTHER = {
    "names": ({}, {"givenName": "Grace"}),
    "ids": ({}, {"sourcedId": "2"}),
    "metadata": ({}, {"metadata.note": "x"}),
    "status": ({}, {"status": "tobedeleted"}),
    "a cell and its neighbour": ({"givenName": "x", "middleName": ""}, {"givenName": "", "middleName": "x"}),
    "what stands behind a password": (
        {"password": '"a,b"', "metadata.note": "x"},
        {"password": '"a,b"', "metadata.note": "y"},
    ),
}


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME)
def test_what_is_not_read_has_no_part_in_a_mark(one: dict[str, str], other: dict[str, str]) -> None:
    assert mark(row(**one)) == mark(row(**other))
    # Also in a block of others.
    assert mark(row(**one), row())[0] == mark(row(**other), row())[0]


@pytest.mark.parametrize(("one", "other"), OTHER.values(), ids=OTHER)
def test_what_is_read_makes_another_mark(one: dict[str, str], other: dict[str, str]) -> None:
    assert mark(row(**one)) != mark(row(**other))


def test_a_secret_never_reaches_a_mark_wherever_it_stands() -> None:
    """Whatever the lines around it are like."""
    plain, quoted = row(), row(familyName='"Lovelace, King"')
    for before in (plain, quoted):
        for behind in (plain, quoted):
            hidden = mark(before, row(password="x1"), behind)
            assert hidden == mark(before, row(password="x2"), behind)


def test_another_format_or_header_makes_other_marks() -> None:
    block = f"{row()}\n".encode()
    others = [make_marker(form=VERSIONS["1.2"]), make_marker(header=HEADER.replace("metadata.note", "metadata.nota"))]
    marks = [marker.mark(block).marks[0] for marker in (make_marker(), *others)]
    assert len(set(marks)) == len(marks)


def test_lines_bear_their_marks_and_only_new_ones_their_numbers() -> None:
    old = [row(sourcedId=str(number)) for number in range(5)]
    new = [*old[:2], row(sourcedId="x"), *old[3:]]

    def lines(rows: list[str]) -> CleanLines:
        return CleanLines(io.BytesIO("\r\n".join((HEADER, *rows, "")).encode()))

    kept = LineMarks(io.BytesIO(), array(CODE))
    staged = MarkedLines(lines(old), make_marker(), kept).read(10_000).decode().splitlines()
    assert staged == [f"{line},{number}" for line, number in zip(old, mark(*old), strict=True)]
    found, fresh = LineMarks(io.BytesIO(), array(CODE)), io.BytesIO()
    gone = thin_out(lines(new), make_marker(), kept, found, fresh, 10_000)
    # The header is line 1.
    assert fresh.getvalue().decode() == f"{new[2]},{mark(new[2])[0]},4\n"
    assert list(gone) == mark(old[2])
    assert isinstance(found.marks, io.BytesIO)
    assert found.marks.getvalue() == b"".join(number.to_bytes(8, "little") for number in mark(*new))
