"""The limit on the time that the database works for one request.

PostgreSQL ends a statement that takes too long. But a request has several statements, and would try the next one after
each that was ended. So a request whose time is up begins no further statement.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.exc import SQLAlchemyError

_own = threading.local()


class OverdueError(SQLAlchemyError):
    """The time of a request is up. It is an SQLAlchemyError, so that callers treat it as a failure of the database."""


@contextlib.contextmanager
def limit_time(seconds: float) -> Iterator[None]:
    """Lets this thread, in the block, begin no statement once `seconds` have passed."""
    _own.end = time.monotonic() + seconds
    try:
        yield
    finally:
        # Work of the thread outside of a request has no limit.
        del _own.end


def require_time_left() -> None:
    """Raises OverdueError if this thread works for a request whose time is up."""
    end: float | None = getattr(_own, "end", None)
    if end is not None and time.monotonic() > end:
        raise OverdueError("the time of the request is up")


def enforce_deadline(engine: Engine) -> None:
    """Makes every new connection and every statement of the engine call `require_time_left` first."""

    def check(*_: Any) -> None:
        require_time_left()

    event.listen(engine, "do_connect", check)
    event.listen(engine, "before_cursor_execute", check)
