"""The compiled statements of a test process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Compiled
from sqlalchemy.util import LRUCache

# A load has 150 to 220 of them, of about 100 KB; most of the others are of the few that a file of tests repeats.
CAPACITY = 2_000


class SharedStatements(LRUCache[Any, Compiled]):
    """SQLAlchemy's cache of compiled statements for all engines of a process, as the one engine of a nightly sync has
    one for all feeds. By default each engine has its own, because engines may have different dialects; those of the
    service have the same."""

    def get(self, key: Any, default: Any = None) -> Any:
        """The statement, whichever engine compiled it."""
        _dialect, *statement = key
        return super().get(tuple(statement), default)

    def __setitem__(self, key: Any, value: Compiled) -> None:
        _dialect, *statement = key
        super().__setitem__(tuple(statement), value)


def share_statements(
    statements: SharedStatements, make: Callable[..., sa.Engine], *given: Any, **named: Any
) -> sa.Engine:
    """The engine that `make` makes, but it compiles no statement that another one has compiled."""
    engine = make(*given, **named)
    engine.update_execution_options(compiled_cache=statements)
    return engine
