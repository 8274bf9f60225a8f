"""SECURITY.md and the page of claims stay true to the tree: each threat leads to claims, and each claim is a test's."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.docs import security_snapshot
from tests.docs.pages import list_rows, read_page, read_section
from tests.docs.security_snapshot import ROOT, SECTIONS, collect_claims, list_marks, make_page

PAGE = "SECURITY.md"
MOST_WORDS = 1_300
LINK = re.compile(r"\(docs/security-tests\.md#([\w-]+)\)")


def test_the_page_of_claims_is_generated_from_the_tests() -> None:
    """Line by line; `python -m tests.docs.security_snapshot` writes the page."""
    made, written = make_page().splitlines(), security_snapshot.PAGE.read_text().splitlines()
    assert [line for line in made if line not in written] == []
    assert [line for line in written if line not in made] == []
    assert made == written


def test_each_threat_has_a_section_of_claims_and_says_what_remains() -> None:
    rows = list_rows(read_section(PAGE, "Threats"), "harm")
    assert [LINK.findall(harm) for harm, *_ in rows] == [[name.lower().replace(" ", "-")] for name in SECTIONS]
    assert all(cell for row in rows for cell in row)


def test_each_section_has_claims() -> None:
    claims = collect_claims()
    assert [section for section in SECTIONS if not claims[section]] == []
    assert sum(map(len, claims.values())) > 100


def test_a_claim_is_one_short_sentence() -> None:
    claims = [claim for section in collect_claims().values() for claim in section]
    assert [claim for claim in claims if not re.fullmatch(r"[^|\n]{20,130}\.", claim)] == []
    assert len(claims) == len(set(claims)), "a claim in two sections"


def test_every_file_of_hostile_input_has_a_claim() -> None:
    """A test of hostile input is a measure against somebody, whom the threats name."""
    assert [path for path in (ROOT / "tests" / "hostile").glob("test_*.py") if not list(list_marks(path))] == []


@pytest.mark.parametrize(
    ("source", "trouble"),
    [
        ('@pytest.mark.shows("Load", "It holds.")\ndef helper(): ...', "at no test, in the lines \\[1\\]"),
        ('CASE = pytest.param(1, marks=pytest.mark.shows("Load", "It holds."))', "at no test"),
        ('@pytest.mark.shows("Weather", "It rains.")\ndef test_it(): ...', "no section 'Weather'"),
        ('@pytest.mark.shows("It holds.")\ndef test_it(): ...', "not enough values"),
    ],
)
def test_a_mark_that_shows_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, trouble: str
) -> None:
    monkeypatch.setattr(security_snapshot, "ROOT", tmp_path)
    (tmp_path / "test_it.py").write_text(source)
    with pytest.raises(ValueError, match=trouble):
        list(list_marks(tmp_path / "test_it.py"))


def test_the_page_for_a_privacy_officer_is_short() -> None:
    assert len(read_page(PAGE).split()) <= MOST_WORDS


@pytest.mark.shows(
    "Machine and database",
    "A known vulnerability of an installed package fails `make check`, as a find of ruff's security rules does.",
)
def test_make_check_asks_for_vulnerabilities_and_ruff_for_insecure_code() -> None:
    steps = dict(re.findall(r"^(check|lint): (.*?) ##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"audit", "lint"} <= set(steps["check"].split())
    assert "style" in steps["lint"].split()
    linted = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    assert "S" in linted["select"]
    assert [path for path, ignored in linted["per-file-ignores"].items() if "S" in ignored] == ["tests/**"]
