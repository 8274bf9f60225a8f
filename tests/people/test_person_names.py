"""By what a text that somebody typed names a person."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from roster_service.explore.person_names import LEAST_NAMING, is_named, make_name_pattern


def make_person(given: str, family: str, **given_more: Any) -> Any:
    """A row of `users` with these names."""
    others = ("username", "email", "identifier", "user_master_identifier", "user_ids", "preferred_first_name",
              "middle_name", "preferred_middle_name", "preferred_last_name")  # fmt: skip
    return SimpleNamespace(**{**dict.fromkeys(others), "given_name": given, "family_name": family, **given_more})


# The names of a person, a text, and whether it names the person, if ids have a length at least.
TEXTS = {
    "the name": ("Jörg", "Groß", "erase Jörg Groß, letter", True),
    "without accents": ("Jörg", "Groß", "jorg groß", True),
    "in capitals": ("Jörg", "Groß", "ERASE: JÖRG GROSS, letter of 3 May", True),
    "with SS for ß": ("Jörg", "Groß", "Jörg Gross", True),
    "a short name": ("小明", "王", "student: 小明 王 in Math", True),
    "another short name": ("Bo", "Y", "student: Bo Yu in Math", False),
    "a short id": ("Bo", "Y", "grade 77", False),
}


@pytest.mark.parametrize(("given", "family", "text", "names"), TEXTS.values(), ids=TEXTS)
def test_a_text_names_a_person(given: str, family: str, text: str, *, names: bool) -> None:
    naming = make_name_pattern("77", make_person(given, family, identifier="77"), LEAST_NAMING)
    assert is_named(text, naming) is names
