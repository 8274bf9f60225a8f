"""Two lines have the same hash exactly where they say the same of everything that is read; only new ones are staged."""

from __future__ import annotations

import io
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_scripts.formats.model import CsvFile, Format
from sync_scripts.formats.oneroster import VERSIONS
from sync_scripts.reading.headers import read_header
from sync_scripts.reading.lines import CleanLines
from sync_scripts.reading.repair import RepairedLines
from sync_scripts.staging import line_hashes
from sync_scripts.staging.line_hashes import LineHasher, NewLines
from tests.offenders import in_one_test

FORM = VERSIONS["1.1"]
USERS = FORM.find_file("users")
HEADER = ",".join((*USERS.headers, "metadata.note"))
PLACES = {name: number for number, name in enumerate(HEADER.split(","))}


def row(**cells: str) -> str:
    filled = {"sourcedId": "1", "givenName": "Ada", "familyName": "Lovelace", **cells}
    return ",".join(filled.get(name, "") for name in PLACES)


def make_hasher(header: str = HEADER, form: Format = FORM, file: CsvFile = USERS) -> LineHasher:
    return LineHasher.of(file, read_header(header.encode(), file)[0], form)


def hash_rows(*rows: str) -> list[int]:
    return make_hasher().hash("".join(f"{line}\n" for line in rows).encode())[1]


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
def test_what_is_not_read_has_no_part_in_a_hash(one: dict[str, str], other: dict[str, str]) -> None:
    assert hash_rows(row(**one)) == hash_rows(row(**other))
    # Also in a block of others.
    assert hash_rows(row(**one), row())[0] == hash_rows(row(**other), row())[0]


@pytest.mark.parametrize(("one", "other"), OTHER.values(), ids=OTHER)
def test_what_is_read_makes_another_hash(one: dict[str, str], other: dict[str, str]) -> None:
    assert hash_rows(row(**one)) != hash_rows(row(**other))


def test_a_secret_never_reaches_a_hash_wherever_it_stands() -> None:
    """Whatever the lines around it are like."""
    plain, quoted = row(), row(familyName='"Lovelace, King"')
    for before in (plain, quoted):
        for behind in (plain, quoted):
            hidden = hash_rows(before, row(password="x1"), behind)
            assert hidden == hash_rows(before, row(password="x2"), behind)


def test_a_secret_never_reaches_the_hash_of_a_repaired_row() -> None:
    """A repaired row has one cell more than the file has columns."""
    hasher = LineHasher.of(USERS, read_header(HEADER.encode(), USERS)[0], FORM, len(RepairedLines.added))
    hashes = [hasher.hash(f"{row(password=secret)},\n".encode())[1] for secret in ("x1", "x2", "")]
    assert hashes[0] == hashes[1] == hashes[2]


def test_another_format_or_header_makes_other_hashes() -> None:
    block = f"{row()}\n".encode()
    others = [make_hasher(form=VERSIONS["1.2"]), make_hasher(header=HEADER.replace("metadata.note", "metadata.nota"))]
    hashes = [hasher.hash(block)[1][0] for hasher in (make_hasher(), *others)]
    assert len(set(hashes)) == len(hashes)


def test_another_version_of_the_rules_makes_other_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    before = hash_rows(row())
    monkeypatch.setattr(line_hashes, "RULES", line_hashes.RULES + 1)
    assert hash_rows(row()) != before


# --- lines that are staged -----------------------------------------------------------------------------------------

ROWS = [row(sourcedId=str(number)) for number in range(300)]
NEW = [row(sourcedId=f"x{number}") for number in range(40)]


def stage(rows: list[str], known: set[int], size: int = 10_000, end: str = "\r\n") -> list[tuple[str, int, int]]:
    """(line, hash, number) of the lines that are staged."""
    lines = CleanLines(io.BytesIO(end.join((HEADER, *rows, "")).encode()))
    new = NewLines(lines, make_hasher(), known)
    staged = b"".join(iter(lambda: new.read(size), b"")).decode().splitlines()
    cut = [line.rsplit(",", 2) for line in staged]
    return [(line, int(number), int(place)) for line, number, place in cut]


CHANGED: dict[str, tuple[list[str], list[int]]] = {
    "nothing": (ROWS, []),
    "the order": (ROWS[::-1], []),
    "a line in the middle": ([*ROWS[:100], NEW[0], *ROWS[101:]], [100]),
    "the first lines": ([*NEW[:2], *ROWS[5:]], [0, 1]),
    "lines at the end": ([*ROWS, *NEW], [*range(300, 340)]),
    "a line less": (ROWS[1:], []),
    "a line twice": ([*ROWS, ROWS[7]], [300]),
    "a line twice, one after the other": ([ROWS[0], *ROWS], [1]),
    "all": (NEW, [*range(40)]),
    "no line": ([], []),
}


@in_one_test
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("size", [500, 10_000])
@pytest.mark.parametrize(("rows", "places"), CHANGED.values(), ids=CHANGED)
def test_only_new_lines_are_staged(rows: list[str], places: list[int], size: int, end: str) -> None:
    hashes = dict(zip(ROWS, hash_rows(*ROWS), strict=True))
    known = set(hashes.values())
    # The header is line 1.
    assert stage(rows, known, size, end) == [(rows[it], hash_rows(rows[it])[0], it + 2) for it in places]
    assert known == {hashes[line] for line in set(ROWS) - set(rows)}


@given(st.lists(st.integers(0, 30), unique=True), st.lists(st.integers(0, 30)), st.integers(1, 5))
def test_what_is_staged_and_what_is_gone_is_the_difference(old: list[int], new: list[int], lines: int) -> None:
    known = set(hash_rows(*(ROWS[number] for number in old)))
    staged = stage([ROWS[number] for number in new], known, (lines + 1) * (len(ROWS[30]) + 2))
    before, after = Counter(ROWS[number] for number in old), Counter(ROWS[number] for number in new)
    assert Counter(line for line, _, _ in staged) == after - before
    assert sorted(known) == sorted(hash_rows(*(before - after).elements()))
