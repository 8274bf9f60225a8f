"""The words for the rules of a grant."""

from __future__ import annotations

import pytest

from roster_service.schemas.rule_words import make_filter, read_parts
from roster_service.schemas.sharing_rules import Rules, Staff


@pytest.mark.parametrize(
    ("students", "classes", "words"),
    [
        ("grades~'06,07,08'", "subjects~'Mathematics'", "grades 6 to 8, mathematics"),
        ("grades~'KG,01,02'", None, "kindergarten, grades 1 and 2"),
        ("grades~'10,06,08,07,Other'", None, "grade Other, grades 6 to 8 and 10"),
        ("grades~'6'", None, "grade 6"),
        ("grades='06,07'", None, "students with grades='06,07'"),
        ("grades~'06' AND givenName='Ada'", None, "students with grades~'06' AND givenName='Ada'"),
        (None, "grades~'06' OR subjects~'ELA,Latin'", "classes of grade 6 or ELA or latin"),
        (None, "subjects~'Latin' AND title~'AP, I'", "latin, classes with “AP, I” in the title"),
        (None, "classType='homeroom'", "homeroom classes"),
        (None, None, "all students and classes"),
    ],
)
def test_rules_have_words_or_say_the_filter(students: str | None, classes: str | None, words: str) -> None:
    assert Rules(students, classes, Staff.ALL, guardians=True).words == words


def test_all_of_the_rules_are_described() -> None:
    rules = Rules("grades~'06'", None, Staff.CLASSES, guardians=False)
    assert rules.describe() == "grade 6; the teachers of these classes; no guardians"


@pytest.mark.parametrize(
    ("filter_", "parts"),
    [
        ("grades~'06, 07'", {"grades": "06, 07"}),
        ("subjects~'Maths' AND title~'it''s'", {"subjects": "Maths", "title": "it's"}),
        ("subjects~'Maths' AND title='A'", {}),
        ("grades='06'", {}),
        ("grades~'06' OR title~'07'", {}),
        ("title~'A' AND title~'B'", {}),
        (None, {}),
    ],
)
def test_a_filter_is_read_as_a_form_if_boxes_and_texts_say_all_of_it(
    filter_: str | None, parts: dict[str, str]
) -> None:
    assert read_parts(filter_) == parts
    if parts:
        assert make_filter(parts) == filter_


def test_a_form_without_values_is_no_filter() -> None:
    assert make_filter({"grades": "", "title": ""}) is None
