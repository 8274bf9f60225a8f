"""Letter case: every character that Python knows folds the same in Python and in the databases."""

import sys
import unicodedata

import pytest
import sqlalchemy as sa
from oneroster_filter import fold
from oneroster_filter.sqlalchemy import folded

CHARACTERS = [
    chr(code) for code in range(1, sys.maxunicode + 1) if unicodedata.category(chr(code)) not in ("Cn", "Cs", "Co")
]

FOLDED = {
    "letters": ("ABC xyz", "abc xyz"),
    "accents": ("ÅÉÑ", "åéñ"),
    "Greek, its final sigma levelled": ("ΟΔΟΣ οδος", "οδοσ οδοσ"),
    "Turkish, its dotted I levelled": ("İIiı", "iiiı"),
    "one letter stays one": ("Straße STRASSE", "straße strasse"),
    "title case": ("ǅ", "ǆ"),
    "Georgian": ("ᲐᲑ", "აბ"),
}


@pytest.mark.parametrize(("text", "expected"), FOLDED.values(), ids=FOLDED)
def test_folds(text: str, expected: str) -> None:
    assert fold(text) == expected


def test_folding_keeps_the_length_and_folds_no_further() -> None:
    assert [c for c in CHARACTERS if len(fold(c)) != 1 or fold(fold(c)) != fold(c)] == []


def test_a_capital_at_the_end_of_a_word_folds_as_anywhere() -> None:
    assert [c for c in CHARACTERS if fold(f"a{c}") != f"a{fold(c)}"] == []


@pytest.mark.parametrize("backend", ["sqlite", "postgresql"])
def test_every_character_folds_in_the_database_as_in_python(
    request: pytest.FixtureRequest, collation: str, backend: str
) -> None:
    connection: sa.Connection = request.getfixturevalue(backend)
    block = sa.bindparam("block", type_=sa.Text())
    different = []
    for start in range(0, len(CHARACTERS), 10_000):
        characters = CHARACTERS[start : start + 10_000]
        # In one text, between letters: what a database does with a character may depend on its neighbours.
        folded_block = connection.execute(
            sa.select(folded(block, collation)), {"block": "x".join(characters)}
        ).scalar_one()
        different += [
            f"U+{ord(character):04X}"
            for character, answer in zip(characters, folded_block[::2], strict=True)
            if fold(character) != answer
        ]

    assert different == []
