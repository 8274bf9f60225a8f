"""The words of the enumerations: which there are, and how 1.1 says those that it lacks."""

from __future__ import annotations

import re

import pytest
import sqlalchemy as sa
from sqlalchemy.types import Text

from roster_service.roster import vocabulary
from roster_service.roster.vocabulary import Narrowing, Vocabulary

# What is stored -> what 1.1 says (None: left out).
NARROWED = {
    "NARROW_USER_ROLE": {
        "student": "student",
        "teacher": "teacher",
        "guardian": "guardian",
        "parent": "parent",
        "relative": "relative",
        "aide": "aide",
        "proctor": "proctor",
        "principal": "administrator",
        "siteAdministrator": "administrator",
        "districtAdministrator": "administrator",
        "systemAdministrator": "administrator",
        "counselor": "aide",
        "ext:coach": "aide",
    },
    "NARROW_ENROLLMENT_ROLE": {
        "administrator": "administrator",
        "proctor": "proctor",
        "student": "student",
        "teacher": "teacher",
        "ext:volunteer": "proctor",
    },
    "NARROW_ORG_TYPE": {"school": "school", "district": "district", "local": "local", "ext:campus": "local"},
    "NARROW_SESSION_TYPE": {"semester": "semester", "term": "term", "ext:camp": "term"},
    "NARROW_CLASS_TYPE": {"homeroom": "homeroom", "scheduled": "scheduled", "ext:lab": None},
    "NARROW_SEX": {"female": "female", "male": "male", "other": None, "unspecified": None, "ext:x": None},
}


@pytest.mark.parametrize("name", NARROWED)
def test_a_stored_word_is_said_so_in_1_1(engine: sa.Engine, name: str) -> None:
    """Also: nothing stays nothing, and whatever comes out is a word of 1.1."""
    narrowing: Narrowing = getattr(vocabulary, name)
    stored = sa.values(sa.column("word", Text), name="stored").data([(word,) for word in [*NARROWED[name], None]])
    with engine.connect() as connection:
        rows = connection.execute(sa.select(stored.c.word, narrowing.narrow(stored.c.word))).all()
    assert dict(map(tuple, rows)) == {**NARROWED[name], None: None}
    assert {said for _, said in rows} - {None} <= set(narrowing.vocabulary.words)


@pytest.mark.parametrize("name", NARROWED)
def test_the_words_that_1_1_says_as_another_one_are_listed(name: str) -> None:
    """But for those that have no word of their own, as extensions."""
    narrowing: Narrowing = getattr(vocabulary, name)
    for shown in narrowing.vocabulary.words:
        others, said = narrowing.list_others(shown), NARROWED[name]
        assert not [word for word in said if said[word] == shown and word in others]
        assert not [word for word in said if said[word] not in (shown, narrowing.otherwise) and word not in others]


@pytest.mark.parametrize("name", NARROWED)
def test_every_word_of_1_2_is_in_the_table(name: str) -> None:
    wide = {
        "NARROW_USER_ROLE": vocabulary.USER_ROLES,
        "NARROW_ENROLLMENT_ROLE": vocabulary.ENROLLMENT_ROLES,
        "NARROW_CLASS_TYPE": vocabulary.CLASS_TYPES,
        "NARROW_SEX": vocabulary.SEXES,
    }
    if name in wide:
        assert set(wide[name].words) == {word for word in NARROWED[name] if not word.startswith("ext:")}


WORDS = [
    pytest.param(vocabulary.STATUS, "active tobedeleted", False, id="status"),
    pytest.param(vocabulary.ORG_TYPES, "department district local national school state", True, id="orgs"),
    pytest.param(vocabulary.SESSION_TYPES, "gradingPeriod schoolYear semester term", True, id="sessions"),
    pytest.param(vocabulary.CLASS_TYPES, "homeroom scheduled", True, id="classes"),
    pytest.param(vocabulary.ENROLLMENT_ROLES, "administrator proctor student teacher", True, id="enrollments"),
    pytest.param(vocabulary.SEXES, "female male other unspecified", True, id="sexes"),
    pytest.param(vocabulary.ROLE_TYPES, "primary secondary", False, id="role-types"),
    pytest.param(vocabulary.SEXES_1_1, "female male", False, id="sexes-1.1"),
    pytest.param(
        vocabulary.USER_ROLES,
        "aide counselor districtAdministrator guardian parent principal proctor relative siteAdministrator student "
        "systemAdministrator teacher",
        True,
        id="roles",
    ),
    pytest.param(
        vocabulary.USER_ROLES_1_1,
        "administrator aide guardian parent proctor relative student teacher",
        False,
        id="roles-1.1",
    ),
]


@pytest.mark.parametrize(("words", "listed", "extensible"), WORDS)
def test_a_vocabulary_has_these_words(words: Vocabulary, listed: str, extensible: bool) -> None:
    assert sorted(words.words) == sorted(listed.split())
    assert words.extensible is extensible
    assert all(re.search(words.pattern, word) for word in words.words)
    assert bool(re.search(words.pattern, "ext:a.B-c_1")) is extensible
    for wrong in ("", "ext:", "ext:a b", "ext:é", "Active", "x" + words.words[0], words.words[0] + "x", "ext:a\nb"):
        assert not re.search(words.pattern, wrong)


def test_terms_are_what_the_specification_calls_terms() -> None:
    assert set(vocabulary.TERM_TYPES) == {"term", "semester"}
    assert set(vocabulary.GUARDIAN_ROLES) == {"guardian", "parent", "relative"}
