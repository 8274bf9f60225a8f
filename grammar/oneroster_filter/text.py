"""Writes an expression as text, which `parse` reads as an equal expression."""

from urllib.parse import quote

from oneroster_filter.nodes import Clause, Expr, Position, fold_tree, require_clauses


def to_text(expr: Expr) -> str:
    """Write an expression as a filter.

    Args:
        expr: What `parse` returned, or what was built with `F`.

    Returns:
        The filter, with single spaces around words and none around other operators. `parse` of the same dialect reads
        it as an equal expression, if its limits allow as many clauses and characters.
    """
    require_clauses(expr, Clause, "parse")
    return fold_tree(expr, _write_clause, " AND ".join, " OR ".join)


def to_query(expr: Expr) -> str:
    """Write an expression for a URL.

    Args:
        expr: What `parse` returned, or what was built with `F`.

    Returns:
        The filter, percent-encoded as UTF-8, for use after `filter=` in a query string.
    """
    return quote(to_text(expr), safe="")


def find_position(clause: Clause) -> Position:
    """Return the positions of the parts of a clause in its own text."""
    text = to_text(clause)
    operator = text.index(clause.operator.value, len(clause.subject))
    return Position(text, 0, operator, text.index("'", operator))


def _write_clause(clause: Clause) -> str:
    value = clause.value.replace("'", "''")
    symbol = clause.operator.value
    spaced = f" {symbol} " if symbol.isalpha() else symbol
    return f"{clause.subject}{spaced}'{value}'"
