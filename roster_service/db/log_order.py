"""The order in which the rows of a log are listed."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa


def order_rows(rows: sa.Select[Any], log: sa.FromClause, latest: tuple[int, int] | None) -> sa.Select[Any]:
    """Returns a SELECT of rows of a log, the oldest first. `latest`: only this many rows (the second number), the
    newest first, without the newest ones (the first number)."""
    if latest is None:
        return rows.order_by(log.c.at, log.c.id)
    skipped, count = latest
    return rows.order_by(log.c.at.desc(), log.c.id.desc()).offset(skipped).limit(count)
