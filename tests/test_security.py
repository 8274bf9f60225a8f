"""SECURITY.md cannot rot: the tests that it names are there, and every threat names one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "SECURITY.md").read_text()
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| who ")]
NAMED = sorted(set(re.findall(r"`((?:tests|roster_service)/[\w./]+)`", PAGE)))


@pytest.mark.parametrize("path", NAMED)
def test_every_file_that_is_named_is_there(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("row", ROWS)
def test_every_threat_names_the_test_that_holds_it_off(row: str) -> None:
    _, *cells, _ = row.split("|")
    assert len(cells) == 4
    assert re.search(r"`tests/[\w/]+\.py`", cells[-1])


def test_the_tests_of_hostile_input_all_stand_there() -> None:
    """Who adds one says what it is against."""
    files = {f"tests/hostile/{path.name}" for path in (ROOT / "tests" / "hostile").glob("test_*.py")}
    assert files <= set(NAMED)
    assert len(ROWS) > 10
