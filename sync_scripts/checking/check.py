"""A check: the rows that fail it, and the words of their refusal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, select

from sync_scripts.formats.model import LINE, StagedFile

Words = Callable[[ColumnElement[str]], ColumnElement[str]]


@dataclass(frozen=True)
class Check:
    """`failing` selects (place, value) of the rows that fail, the value being what is shown of them; `reason`: the
    words of the refusal, made from the value where they depend on it."""

    header: str
    failing: Select[Any]
    reason: str | Words


def select_rows(file: StagedFile, header: str, *conditions: ColumnElement[bool]) -> Select[Any]:
    """(place, value) of the rows of a file where the conditions hold; what is shown is the cell under the header."""
    return select(file.line.label(LINE), file[header].label("value")).where(*conditions)
