"""Batches of statements: a batch takes one round trip, one transaction and one snapshot.

Of the results of a batch, the driver returns the rows of the last statement only. The statements before it are there
for their effect: they admit a caller. Settings that they make for the transaction end with the batch. The session keeps
nothing but the plans of prepared statements, if it may prepare.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg2
import sqlalchemy as sa
from psycopg2.errors import FeatureNotSupported
from psycopg2.extras import NamedTupleCursor
from sqlalchemy.exc import DBAPIError

from roster_service.db import prepared_statements
from roster_service.db.deadline import limit_statement
from roster_service.db.engine import BATCH_SECONDS, BATCH_START
from roster_service.db.prepared_statements import PreparedStatement, Statement


@dataclass(frozen=True)
class Call:
    """A statement and its values. The caller keeps the statement, and may keep the call: a call caches its SQL text."""

    statement: Statement | PreparedStatement
    values: Mapping[str, Any]
    _texts: dict[bool, str] = field(default_factory=dict, compare=False, repr=False)

    def make_text(self, cursor: Any, prepared: bool) -> str:
        """Returns the SQL text with the values in it. `prepared`: whether the session has prepared the statement, so
        that the text is an EXECUTE."""
        made = self._texts.get(prepared)
        if made is None:
            wanted = prepared_statements.prepare(self.statement)
            if prepared:
                bound = [self.values[name] for name in wanted.values]
                made = cursor.mogrify(wanted.call, bound).decode()
            else:
                made = cursor.mogrify(wanted.plain, self.values).decode()
            self._texts[prepared] = made
        return made


class RoundTrips:
    """Sends batches of statements. Each thread has a connection of its own: taking one from a pool and giving it back
    would take as long as the round trip."""

    def __init__(self, engine: sa.Engine) -> None:
        """`engine`: of `make_reading_engine`."""
        self._engine = engine
        options = engine.get_execution_options()
        self._start: str = options[BATCH_START]
        self._timeout_seconds: float = options[BATCH_SECONDS]
        self._prepared = prepared_statements.may_prepare(engine)
        self._own = threading.local()

    def fetch_last(self, *calls: Call) -> Sequence[Any]:
        """Sends the calls as one batch, in one round trip, and returns the rows of the last call, as named tuples.

        If the connection is dead, or its plans were made for tables or functions of another version, the database has
        returned nothing: then it sends the batch once more, on a new connection. Raises DBAPIError for any other
        failure, and OverdueError if the time of the request is up.
        """
        try:
            return self._send(calls)
        except psycopg2.Error as error:
            driver = getattr(self._own, "driver", None)
            if driver is None or not (driver.closed or isinstance(error, FeatureNotSupported)):
                raise _hide_values(error) from None
        self.close()
        # The connections of the pool have the same age, so they are probably dead or stale too.
        self._engine.dispose()
        try:
            return self._send(calls)
        except psycopg2.Error as error:
            raise _hide_values(error) from None

    def fetch_once(self, first: Call, statement: Statement, values: Mapping[str, Any]) -> Sequence[sa.Row[Any]]:
        """Runs `first` and then a statement that the caller does not keep, in one transaction and two round trips;
        returns the rows of the statement.

        It neither prepares the statement nor caches its text: such a statement spends its time on finding its rows.
        Raises DBAPIError and OverdueError.
        """

        def fetch() -> Sequence[sa.Row[Any]]:
            with self._engine.connect() as connection:
                prepared_statements.fetch_rows(connection, first.statement, first.values)
                return connection.execute(statement, values).all()

        return prepared_statements.retry_with_fresh_plans(self._engine, fetch)

    def close(self) -> None:
        """Closes the connection of this thread, if it has one."""
        driver = getattr(self._own, "driver", None)
        if driver is not None:
            self._own.__dict__.clear()
            driver.close()

    def _send(self, calls: Sequence[Call]) -> Sequence[Any]:
        own = self._own
        if not hasattr(own, "driver"):
            pooled = self._engine.raw_connection()
            # Detached, so that it does not count for the pool: threads keep their connections, and a thread that waited
            # for one of the pool would wait for ever.
            pooled.detach()
            own.driver, own.info = pooled.dbapi_connection, pooled.info
        with own.driver.cursor(cursor_factory=NamedTupleCursor) as cursor:

            def send(batch: str) -> None:
                cursor.execute(f"{self._start} {limit_statement(self._timeout_seconds)}{batch}")

            if self._prepared:
                for call in calls:
                    prepared_statements.ensure_prepared(prepared_statements.prepare(call.statement), own.info, send)
            send("; ".join([call.make_text(cursor, self._prepared) for call in calls]))
            rows: Sequence[Any] = cursor.fetchall()
        return rows


def _hide_values(error: psycopg2.Error) -> BaseException:
    """Returns the driver's error as SQLAlchemy's, without the values of the statements."""
    hidden: BaseException = DBAPIError.instance("", None, error, psycopg2.Error, hide_parameters=True)
    return hidden
