"""The search of operators: the records that a typed text names.

A person is found by the beginnings of words of the given, middle, family and preferred names, in any order, without
accents and case; by the beginning of an e-mail, in capitals or not; and by that of an id, an identifier or a username,
as it is typed, in lower case or in capitals. Any other record is found by the beginnings of words of its title and
code, or by the beginning of its id. PostgreSQL finds people and classes in indexes.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from oneroster_filter import fold

from roster_service.db import tables
from roster_service.db.folding import fold_column, has_words, make_name_vector, split_name
from roster_service.db.tables.roster import class_vector, name_vector

# A shorter text names too many records to be of use.
LEAST_CHARACTERS = 2
# More words, or longer ones, are no name.
MOST_WORDS, MOST_CHARACTERS = 5, 256
_SURROGATES, _AFTER_SURROGATES = 0xD800, 0xE000
# Of other records than people: the words of their titles and codes. Those of classes have an index; the others are few
# enough to look at each.
_WORDS: Mapping[sa.Table, sa.ColumnElement[Any]] = {
    tables.orgs: make_name_vector(tables.orgs.c.name, tables.orgs.c.identifier),
    tables.academic_sessions: make_name_vector(tables.academic_sessions.c.title),
    tables.courses: make_name_vector(tables.courses.c.title, tables.courses.c.course_code),
    tables.classes: class_vector,
    tables.users: name_vector,
}


def make_search_condition(table: sa.Table, typed: str) -> sa.ColumnElement[bool]:
    """Returns the condition that a row of a roster table is named by the typed text, which has no blanks around it."""
    found = [_begins(table.c.sourced_id, typed)]
    if table is tables.users:
        found += [_begins(column, typed) for column in (tables.users.c.identifier, tables.users.c.username)]
        found.append(_folded_begins(tables.users.c.email, typed))
    words = split_name(typed)[:MOST_WORDS]
    if table in _WORDS and words:
        found.append(has_words(_WORDS[table], words))
    return sa.or_(*found)


def _folded_begins(column: sa.ColumnElement[Any], typed: str) -> sa.ColumnElement[bool]:
    return _is_in_range(fold_column(column), fold(typed))


def _begins(column: sa.ColumnElement[Any], typed: str) -> sa.ColumnElement[bool]:
    return sa.or_(*(_is_in_range(column, spelled) for spelled in dict.fromkeys((typed, typed.lower(), typed.upper()))))


def _is_in_range(text: sa.ColumnElement[Any], start: str) -> sa.ColumnElement[bool]:
    """Whether a text that is ordered by code point begins with `start`. LIKE means the same, but with it PostgreSQL
    compares each text that it has found in an index once more."""
    kept = start.rstrip(chr(sys.maxunicode))
    if not kept:
        return text >= start
    following = ord(kept[-1]) + 1
    # No text has a surrogate.
    following = _AFTER_SURROGATES if following == _SURROGATES else following
    return sa.and_(text >= start, text < kept[:-1] + chr(following))
