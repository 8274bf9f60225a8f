"""Folded columns: texts in the form in which case makes no difference, as an index has them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from oneroster_filter import fold
from sqlalchemy.dialects.postgresql import TSQUERY

# The letters that `oneroster_filter.fold` replaces.
DOTTED_I, PLAIN_I = "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}", "i"
FINAL_SIGMA, SIGMA = "\N{GREEK SMALL LETTER FINAL SIGMA}", "\N{GREEK SMALL LETTER SIGMA}"


def fold_column(column: sa.ColumnElement[Any]) -> sa.ColumnElement[str]:
    """Returns the folded text of a column, as `oneroster_filter.fold` folds. It is ordered by code point, so an
    index of it finds the texts that begin with a folded text.

    The constants are part of the SQL, because PostgreSQL uses an index of an expression for that very expression.
    """
    plain = sa.func.replace(sa.collate(column, "roster_nocase"), _quote(DOTTED_I), _quote(PLAIN_I))
    return sa.collate(sa.func.replace(sa.func.lower(plain), _quote(FINAL_SIGMA), _quote(SIGMA), type_=sa.Text()), "C")


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


def make_name_vector(*names: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """Returns the words of columns of names as a tsvector; an index of it finds the beginnings of words."""
    whole: sa.ColumnElement[Any] = sa.func.coalesce(names[0], _quote(""))
    for name in names[1:]:
        whole = whole.op("||")(_quote(" ")).op("||")(sa.func.coalesce(name, _quote("")))
    bare = sa.func.regexp_replace(sa.func.normalize(whole, sa.text("NFD")), _quote(ACCENTS), _quote(""), _quote("g"))
    letters, plain = LETTERS + SIGNS, PLAIN_LETTERS + " " * len(SIGNS)
    words = sa.func.translate(fold_column(bare), _quote(letters), _quote(plain))
    return sa.func.array_to_tsvector(sa.func.array_remove(sa.func.string_to_array(words, _quote(" ")), _quote("")))


def has_words(vector: sa.ColumnElement[Any], words: Sequence[str]) -> sa.ColumnElement[bool]:
    """Returns whether each of the words is the beginning of a word of a tsvector. `words`: of `split_name`; not
    empty."""
    quoted = (word.replace("\\", "\\\\").replace("'", "''") for word in words)
    query = sa.cast(sa.literal(" & ".join(f"'{word}':*" for word in quoted), sa.Text()), TSQUERY)
    return vector.bool_op("@@")(query)


def _quote(letters: str) -> sa.TextClause:
    return sa.text("'" + letters.replace("'", "''") + "'")
