"""Folded columns: texts in the form in which case makes no difference, as an index has them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Text, TextClause, collate, func, text

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


def _quote(letter: str) -> TextClause:
    return text(f"'{letter}'")
