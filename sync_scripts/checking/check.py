"""A check: the rows that fail it, each with the reason of its rejection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

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
    failing: sa.Select[Any]


def select_rows(
    file: StagedFile, header: str, reason: str | sa.ColumnElement[str], *conditions: sa.ColumnElement[bool]
) -> sa.Select[Any]:
    """The failing rows of a file: those where all conditions hold. The value is the cell under the header."""
    return sa.select(
        file.line.label(LINE),
        file[header].label(VALUE),
        (sa.literal(reason, CText) if isinstance(reason, str) else reason).label(REASON),
        sa.cast(sa.null(), sa.Integer).label(CAUSE),
    ).where(*conditions)
