"""Errors of filters, in words for requests and operators.

Apart from the service's own errors, which every command imports: with the filter library, `roster --help` takes 0.2 s
of processor time in place of 0.08.
"""

from __future__ import annotations

from oneroster_filter import FilterError


def describe_filter_error(error: FilterError) -> str:
    """Returns what is wrong with a filter, and where."""
    position = "" if error.column is None else f" at column {error.column + 1} of the filter"
    hint = f"; {error.hint}" if error.hint else ""
    return f"{error.message}{position}{hint}"
