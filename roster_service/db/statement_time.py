"""A bound on the time of single statements, on a connection without a deadline."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from psycopg2.errors import QueryCanceled
from sqlalchemy.exc import OperationalError

from roster_service.errors import CommandError

_SET = sa.text("SELECT set_config('statement_timeout', :timeout, true)")


@contextmanager
def limit_statements(connection: sa.Connection, seconds: float) -> Iterator[None]:
    """Ends each statement of the block after `seconds`, and raises CommandError then. The transaction goes on."""
    try:
        with connection.begin_nested():
            connection.execute(_SET, {"timeout": f"{int(seconds * 1000)}ms"})
            yield
            connection.execute(_SET, {"timeout": "0"})
    except OperationalError as error:
        if not isinstance(error.orig, QueryCanceled):
            raise
        raise CommandError(f"this takes longer than {seconds:g} seconds; ask for less") from None
