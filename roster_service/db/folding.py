"""Folded columns: texts in the form in which case makes no difference, as an index has them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from oneroster_filter import fold
from sqlalchemy import ColumnElement, Text, TextClause, cast, collate, func, literal, text
from sqlalchemy.dialects.postgresql import TSQUERY

# The letters that `oneroster_filter.fold` replaces.
DOTTED_I, PLAIN_I = "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}", "i"
FINAL_SIGMA, SIGMA = "\N{GREEK SMALL LETTER FINAL SIGMA}", "\N{GREEK SMALL LETTER SIGMA}"


def fold_column(column: ColumnElement[Any]) -> ColumnElement[str]:
    """Returns the folded text of a column, as `oneroster_filter.fold` folds. It is ordered by code point, so an
    index of it finds the texts that begin with a folded text.

    The constants are part of the SQL, because PostgreSQL uses an index of an expression for that very expression.
    """
    plain = func.replace(collate(column, "roster_nocase"), _quote(DOTTED_I), _quote(PLAIN_I))
    return collate(func.replace(func.lower(plain), _quote(FINAL_SIGMA), _quote(SIGMA), type_=Text()), "C")


# Accents, as Unicode decomposes letters; letters that it does not decompose, and what is searched for them; and the
# signs between the words of a name.
ACCENTS = "[\\u0300-\\u036f]"
LETTERS, PLAIN_LETTERS = "øłđðı", "olddi"
SIGNS = "-'’.,_/()"
_PLAIN = str.maketrans(LETTERS + SIGNS, PLAIN_LETTERS + " " * len(SIGNS))


def split_name(typed: str) -> list[str]:
    """Returns the words of a name without accents and case, as the index of names has them."""
    bare = re.sub(ACCENTS, "", unicodedata.normalize("NFD", typed))
    return fold(bare).translate(_PLAIN).split()


def make_name_vector(*names: ColumnElement[Any]) -> ColumnElement[Any]:
    """Returns the words of columns of names as a tsvector; an index of it finds the beginnings of words."""
    whole: ColumnElement[Any] = func.coalesce(names[0], _quote(""))
    for name in names[1:]:
        whole = whole.op("||")(_quote(" ")).op("||")(func.coalesce(name, _quote("")))
    bare = func.regexp_replace(func.normalize(whole, text("NFD")), _quote(ACCENTS), _quote(""), _quote("g"))
    letters, plain = LETTERS + SIGNS, PLAIN_LETTERS + " " * len(SIGNS)
    words = func.translate(fold_column(bare), _quote(letters), _quote(plain))
    return func.array_to_tsvector(func.array_remove(func.string_to_array(words, _quote(" ")), _quote("")))


def has_words(vector: ColumnElement[Any], words: Sequence[str]) -> ColumnElement[bool]:
    """Returns whether each of the words is the beginning of a word of a tsvector. `words`: of `split_name`; not
    empty."""
    quoted = (word.replace("\\", "\\\\").replace("'", "''") for word in words)
    query = cast(literal(" & ".join(f"'{word}':*" for word in quoted), Text()), TSQUERY)
    return vector.bool_op("@@")(query)


def _quote(letters: str) -> TextClause:
    return text("'" + letters.replace("'", "''") + "'")
