"""What names a person: the ids and full names by which a text that somebody typed, or the rule of a grant, tells who is
meant."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from roster_service.db.folding import split_name

# The characters of the shortest text that names nobody else.
LEAST_NAMING = 5


def is_named(text: str, naming: str) -> bool:
    """Returns whether a text that somebody typed names a person: also without accents, in capitals, or with other signs
    or blanks. `naming`: of `make_name_pattern`."""
    return any(re.search(naming, said, re.IGNORECASE) for said in _list_spellings(text))


def _list_spellings(text: str) -> tuple[str, ...]:
    """A text, and its words without accents; in capitals, ß is SS."""
    return (text, *(" ".join(split_name(form)) for form in (text, text.casefold())))


def list_ids(sourced_id: str, person: Any, usernames: Iterable[str]) -> frozenset[str]:
    """Returns the values by which the rule of a grant can name a person. `person`: as for `make_name_pattern`;
    `usernames`: of the person's profiles."""
    others = usernames if person is None else (person.username, person.email, *_list_numbers(person), *usernames)
    return frozenset(value.casefold() for value in (sourced_id, *others) if value)


def make_name_pattern(sourced_id: str, person: Any, least: int = 1) -> str:
    """Returns the pattern of the texts that name a person, also inside JSON; both Python and PostgreSQL read
    it. `person`: the row of the user; None if there is none; `least`: the characters that an id or a number has at
    least. A full name may have fewer."""
    ids, names = [sourced_id], list[str]()
    if person is not None:
        # A short number of another system is also the value of others.
        others = [number for number in _list_numbers(person)[1:] if number and len(number) >= LEAST_NAMING]
        ids += [person.username, person.email, person.identifier, *others]
        names = [form for name in _list_full_names(person) for form in _list_spellings(name)]
    said = [*(text for text in ids if text and len(text) >= least), *names]
    spelled = {text for name in said for text in (name, json.dumps(name, ensure_ascii=False)[1:-1])}
    # Without a name, the pattern that no text fits.
    return rf"(?<!\w)({'|'.join(map(re.escape, sorted(spelled))) or '(?!)'})(?!\w)"


def _list_numbers(person: Any) -> Sequence[str]:
    """The identifiers of a person beside the id."""
    return (person.identifier, person.user_master_identifier, *(entry["identifier"] for entry in person.user_ids or ()))


def _list_full_names(person: Any) -> Iterator[str]:
    """The given and the family names of a person, with the middle ones and without."""
    given, middle, family = (
        [name for name in names if name]
        for names in (
            (person.given_name, person.preferred_first_name),
            (None, person.middle_name, person.preferred_middle_name),
            (person.family_name, person.preferred_last_name),
        )
    )
    for first, last in itertools.product(given, family):
        for firsts in (first, *(f"{first} {more}" for name in middle for more in (name, f"{name[0]}.", name[0]))):
            yield f"{firsts} {last}"
            yield f"{last}, {firsts}"
