"""The search of operators: the records that a typed text names.

A person is found by the beginnings of words of the given, middle, family and preferred names, in any order, without
accents and case; by the beginning of an e-mail, in capitals or not; and by that of an id, an identifier or a username,
as it is typed, in lower case or in capitals. PostgreSQL finds each of them in an index. Any other record is found by a
part of its title or code, or by its id.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from oneroster_filter import fold

from roster_service.db import tables
from roster_service.db.folding import fold_column, has_words, split_name
from roster_service.db.tables.roster import name_vector

# A shorter text names too many records to be of use.
LEAST_CHARACTERS = 2
# More words, or longer ones, are no name.
MOST_WORDS, MOST_CHARACTERS = 5, 256
_SURROGATES, _AFTER_SURROGATES = 0xD800, 0xE000
# Of other records than people: the columns of which any part may be typed. They are few enough to look at each.
_TITLES: Mapping[sa.Table, Sequence[sa.ColumnElement[Any]]] = {
    tables.orgs: (tables.orgs.c.name, tables.orgs.c.identifier),
    tables.academic_sessions: (tables.academic_sessions.c.title,),
    tables.courses: (tables.courses.c.title, tables.courses.c.course_code),
    tables.classes: (tables.classes.c.title, tables.classes.c.class_code),
    tables.enrollments: (),
    tables.demographics: (),
}


def make_search_condition(table: sa.Table, typed: str) -> sa.ColumnElement[bool]:
    """Returns the condition that a row of a roster table is named by the typed text, which has no blanks around it."""
    own_id = table.c.sourced_id
    if table is tables.users:
        found = [_folded_begins(tables.users.c.email, typed)]
        found += [_begins(column, typed) for column in (own_id, tables.users.c.identifier, tables.users.c.username)]
        words = split_name(typed)[:MOST_WORDS]
        return sa.or_(*found, *([has_words(name_vector, words)] if words else []))
    return sa.or_(_begins(own_id, typed), *(sa.func.contains_folded(column, typed) for column in _TITLES[table]))


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
