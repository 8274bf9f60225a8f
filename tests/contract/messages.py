"""What the readers send to the database, message by message, whoever sends it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from psycopg2.extras import NamedTupleCursor

from roster_service.db.engine import ReadingConnection


@contextmanager
def messages() -> Iterator[list[str]]:
    """The messages of every reading connection meanwhile, with the values in them."""
    seen: list[str] = []

    class Noting(NamedTupleCursor):  # type: ignore[misc]
        def execute(self, statement: str, values: Any = None) -> None:
            """Notes it, and sends it."""
            seen.append(self.mogrify(statement, values).decode())
            super().execute(statement, values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            ReadingConnection,
            "cursor",
            lambda self, **_given: super(ReadingConnection, self).cursor(cursor_factory=Noting),
            raising=False,
        )
        yield seen
