"""Retired words are found in every kind of name, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.style.words import list_troubles

MODULE = Path("roster_service/serving/plan.py")
FOUND = {
    "a class": "class QuirkTable: pass",
    "a function": "def read_wish(): pass",
    "a parameter": "def read(*, sight): pass",
    "a variable": "OUTLINES = 1",
    "an attribute": "self._journal = 1",
    "a word with an ending": "settled = 1",
    "a capital inside": "class VendorDoor: pass",
}
PLAIN = {
    "a longer word": "nightly = wishful = tellers = 1",
    "a name of a library": "import os\nos.walk('.')",
    "a comment and a text": "# no quirk\ntext = 'journal'",
    "a consumer's walk": "def measure_walk(): pass",
}


@pytest.mark.parametrize("source", FOUND.values(), ids=FOUND)
def test_a_retired_word_is_refused_with_its_replacement(source: str) -> None:
    (trouble,) = list_troubles(MODULE, source)
    assert trouble.startswith("roster_service/serving/plan.py:1: ")
    assert "is retired; say: " in trouble


@pytest.mark.parametrize("source", PLAIN.values(), ids=PLAIN)
def test_a_plain_word_is_taken(source: str) -> None:
    assert list(list_troubles(MODULE, source)) == []


@pytest.mark.parametrize("source", ["class Limits: pass", "Limits = tuple[int, int]"])
def test_a_class_and_an_alias_of_a_type_have_the_name_of_no_other(source: str) -> None:
    (trouble,) = list_troubles(Path("sync_scripts/engine/hold_policy.py"), source)
    assert "say: HoldLimits" in trouble
    assert list(list_troubles(Path("roster_service/serving/params.py"), source)) == []


def test_it_is_no_name_in_a_loop() -> None:
    for source in ("for it in rows: pass", "[it for it in rows]"):
        (trouble,) = list_troubles(MODULE, source)
        assert "say what it is" in trouble
    assert list(list_troubles(MODULE, "key = lambda it: it.name")) == []


@pytest.mark.parametrize(
    ("path", "refused"),
    [
        ("sync_scripts/settling.py", True),
        ("sync_scripts/deriving.py", True),
        ("sync_scripts/outcasts/__init__.py", True),
        ("sync_scripts/staging/__init__.py", False),
        ("roster_service/serving/plan.py", False),
    ],
)
def test_a_module_is_named_by_a_noun_that_is_in_use(path: str, refused: bool) -> None:
    assert bool(list(list_troubles(Path(path), ""))) is refused
