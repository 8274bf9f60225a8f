"""A check: the rows that fail it, and the reason of their rejection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, select

from sync_scripts.formats.model import LINE, StagedFile

# A value as SQL -> a text as SQL.
Words = Callable[[ColumnElement[str]], ColumnElement[str]]


@dataclass(frozen=True)
class Check:
    """A check of one column of a file. `failing` selects (line, value) of the rows that fail; the value is the text to
    store with the rejection. `reason`: the reason of the rejection, or a function that makes it from the value."""

    header: str
    failing: Select[Any]
    reason: str | Words


def select_rows(file: StagedFile, header: str, *conditions: ColumnElement[bool]) -> Select[Any]:
    """(line, value) of the rows of a file where all conditions hold; the value is the cell under the header."""
    return select(file.line.label(LINE), file[header].label("value")).where(*conditions)
