"""How long the database may work for one request.

PostgreSQL ends a statement that takes too long. A request has several, and would otherwise go on to the next way of
finding its records after each that was ended: so once its time is up, nothing more is asked of the database for it.
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
    """The time of a request is up: it is treated as the database's own failures are."""


@contextlib.contextmanager
def limit_time(seconds: float) -> Iterator[None]:
    """While the block runs, this thread asks the database for nothing once `seconds` have passed."""
    _own.end = time.monotonic() + seconds
    try:
        yield
    finally:
        # What else the thread does is no request's.
        del _own.end


def require_time_left() -> None:
    """Raises OverdueError where this thread works for a request whose time is up."""
    end: float | None = getattr(_own, "end", None)
    if end is not None and time.monotonic() > end:
        raise OverdueError("the time of the request is up")


def enforce_deadline(engine: Engine) -> None:
    """Has every new connection and every statement of the engine ask for `require_time_left`."""

    def check(*_: Any) -> None:
        require_time_left()

    event.listen(engine, "do_connect", check)
    event.listen(engine, "before_cursor_execute", check)
