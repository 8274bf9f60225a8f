"""Headers: the declared columns in their order, then metadata."""

from __future__ import annotations

import dataclasses

import pytest

from roster_service.db.tables import orgs
from sync_scripts.formats.cells import TEXT
from sync_scripts.formats.model import Cell
from sync_scripts.formats.oneroster import ONEROSTER_1_1
from sync_scripts.reading.headers import MOST_COLUMNS, MOST_METADATA_COLUMNS, read_header

ORGS = ONEROSTER_1_1.find_file("orgs")
GOOD = "sourcedId,status,dateLastModified,name,type,identifier,parentSourcedId"

TAKEN = {
    "as declared": (GOOD, ()),
    "quoted": ('"sourcedId",status,dateLastModified,name,type,identifier,"parentSourcedId"', ()),
    "metadata": (GOOD + ",metadata.a,metadata.b.c,metadata.Größe 1", ("a", "b.c", "Größe 1")),
}
REFUSED = {
    "empty file": ("", [(None, "is empty")]),
    "broken quoting": ('sourcedId,"status', [(None, "broken quoting")]),
    "misspelt": (GOOD.replace("name", "nmae"), [("4", "did you mean name?"), ("name", "is missing")]),
    "semicolons": (
        GOOD.replace(",", ";"),
        [(None, "the columns are separated by semicolons; separate them by commas")],
    ),
    "tabs": (GOOD.replace(",", "\t"), [(None, "the columns are separated by tabs")]),
    "bars, quoted": ('"' + GOOD.replace(",", '"|"') + '"', [(None, "the columns are separated by vertical bars")]),
    "two that are alike": (
        GOOD.replace("sourcedId,", "sourced_key,").replace("name,", "source_name,"),
        [("1", "is no column of this file"), ("sourcedId", "is missing")],
    ),
    "two like one": (
        GOOD.replace("type", "typ") + ",types",
        [("5", "is no column of this file"), ("8", "did you mean type?")],
    ),
    "twice, once in another case": (GOOD + ",NAME", [("NAME", "stands in the header twice")]),
    "twice, once misspelt": (GOOD + ",dataLastModified", [("dataLastModified", "stands in the header twice")]),
    "missing": (GOOD.replace("name,", ""), [("name", "is missing")]),
    "twice": (GOOD + ",name", [("name", "stands in the header twice")]),
    "metadata twice": (GOOD + ",metadata.a,metadata.a", [("9", "stands in the header twice")]),
    "no header, only rows": ("a,b,c", [("1", "is no column of this file")]),
    "too many of one's own": (
        GOOD + "".join(f",metadata.{number}" for number in range(MOST_METADATA_COLUMNS + 1)),
        [(None, f"has more than {MOST_METADATA_COLUMNS} metadata columns")],
    ),
    "too many": (GOOD + "," * MOST_COLUMNS, [(None, f"has more than {MOST_COLUMNS} columns")]),
}

# Headers that are not as declared, and the deviations in them.
TOLERATED = {
    "misordered": (GOOD.replace("name,type", "type,name"), ["columns in another order"]),
    "metadata in front": ("metadata.a," + GOOD, []),
    "unknown": (GOOD + ",principal", ["a column that the file should not have (principal)"]),
    "a comma too many": (GOOD + ",", ["a column that the file should not have (column 8)"]),
    "metadata without a name": (GOOD + ",metadata.", ["a column that the file should not have (metadata.)"]),
    "unknown twice": (GOOD + ",x,x", ["should not have (x, x)"]),
    "missing": (GOOD.removesuffix(",parentSourcedId"), ["parentSourcedId: a column is missing that may be empty"]),
}


@pytest.mark.parametrize(("line", "words"), TOLERATED.values(), ids=TOLERATED)
def test_tolerated(line: str, words: list[str]) -> None:
    found, findings = read_header(line.encode(), ORGS)
    assert not findings
    assert len(found.staged) == len(set(found.staged)) == len(line.split(","))
    assert len(found.notices) == len(words)
    assert all(wanted in str(notice) for wanted, notice in zip(words, found.notices, strict=True))


@pytest.mark.parametrize(("line", "keys"), TAKEN.values(), ids=TAKEN)
def test_taken(line: str, keys: tuple[str, ...]) -> None:
    found, findings = read_header(line.encode(), ORGS)
    assert (found.metadata_keys, findings.total) == (keys, 0)
    assert found.notices == ()


@pytest.mark.parametrize(("line", "wanted"), REFUSED.values(), ids=REFUSED)
def test_refused(line: str, wanted: list[tuple[str | None, str]]) -> None:
    _, findings = read_header(line.encode(), ORGS)
    found = [(refusal.column, refusal.reason) for refusal in findings.first]
    assert all(refusal.line == 1 and refusal.file == "orgs.csv" for refusal in findings.first)
    for column, words in wanted:
        assert any(column == at and words in reason for at, reason in found), found


def test_neither_utf8_nor_windows_1252() -> None:
    _, findings = read_header(GOOD.encode() + b",metadata.\x81", ORGS)
    assert findings.first[0].reason == "is neither UTF-8 nor Windows-1252"


# As of a field that is read from a column of metadata.
LOCKER = Cell("metadata.locker", TEXT, orgs.c.name)
WITH_LOCKER = dataclasses.replace(ORGS, cells=(*ORGS.cells, LOCKER))


def test_a_declared_header_that_begins_as_metadata_is_no_key_of_the_metadata() -> None:
    """Its own value would be stored under the next key, and so on."""
    found, findings = read_header(f"{GOOD},metadata.locker,metadata.homeroom".encode(), WITH_LOCKER)
    assert (found.metadata_keys, findings.total) == (("homeroom",), 0)
    assert found.staged[-2:] == ("metadata.locker", read_header(f"{GOOD},metadata.a".encode(), ORGS)[0].staged[-1])


@pytest.mark.parametrize("line", [GOOD, f"metadata.locker,{GOOD}"], ids=["missing", "in front"])
def test_a_declared_header_that_begins_as_metadata_may_be_missing_or_stand_anywhere(line: str) -> None:
    """Else every export without it would get a notice, each night."""
    found, findings = read_header(line.encode(), WITH_LOCKER)
    assert (found.notices, findings.total) == ((), 0)
