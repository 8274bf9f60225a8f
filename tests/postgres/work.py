"""How much work statements make for PostgreSQL, as a number that is the same each time."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

EXPLAIN = "EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) "
EXPLAINED = ("INSERT", "UPDATE", "DELETE", "SELECT", "WITH")
ROWS = ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Join Filter")


@dataclass
class Work:
    """The rows that the nodes of the plans have read, by the text of the statement."""

    rows: dict[str, float] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """Of all statements."""
        return sum(self.rows.values())


@contextlib.contextmanager
def watch_work(engine: sa.Engine) -> Iterator[Work]:
    """Gives the work of the statements that the engine executes. Each is executed twice: first by EXPLAIN, which a
    savepoint takes back."""
    work = Work()

    def explain(_connection: Any, cursor: Any, statement: str, parameters: Any, _context: Any, many: bool) -> None:
        if not many and statement.lstrip().startswith(EXPLAINED):
            cursor.execute("SAVEPOINT explained")
            cursor.execute(EXPLAIN + statement, parameters)
            plan = cursor.fetchone()[0]
            cursor.execute("ROLLBACK TO SAVEPOINT explained")
            found = (plan if isinstance(plan, list) else json.loads(plan))[0]["Plan"]
            work.rows[statement] = work.rows.get(statement, 0) + _count_rows(found)

    sa.event.listen(engine, "before_cursor_execute", explain)
    try:
        yield work
    finally:
        sa.event.remove(engine, "before_cursor_execute", explain)


def _count_rows(node: Mapping[str, Any]) -> float:
    own = sum(node.get(name, 0) for name in ROWS) * node["Actual Loops"]
    return own + sum(map(_count_rows, node.get("Plans", ())))
