"""A check: the rows that fail it, each with the reason of its rejection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Integer, Select, cast, literal, null, select

from roster_service.db.tables import CText
from sync_scripts.formats.model import LINE, StagedFile

# The columns of a failing row beside its line: the cell, the reason, and the number of the cause of the row that it
# refers to, if that row is rejected.
VALUE, REASON, CAUSE = "value", "reason", "cause"


@dataclass(frozen=True)
class Check:
    """A check of one column of a file. `failing` selects (line, value, reason, cause) of the rows that fail; `cause` is
    NULL except for a row that fails only because it refers to a rejected one."""

    header: str
    failing: Select[Any]


def select_rows(
    file: StagedFile, header: str, reason: str | ColumnElement[str], *conditions: ColumnElement[bool]
) -> Select[Any]:
    """The failing rows of a file: those where all conditions hold. The value is the cell under the header."""
    return select(
        file.line.label(LINE),
        file[header].label(VALUE),
        (literal(reason, CText) if isinstance(reason, str) else reason).label(REASON),
        cast(null(), Integer).label(CAUSE),
    ).where(*conditions)
