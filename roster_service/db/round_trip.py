"""Several statements in one message: one round trip, one transaction, one snapshot.

Of what PostgreSQL answers to a message the driver hands over the rows of the last statement alone, so the others are
there for what they do: they admit a caller. What is set for the transaction ends with the message. Nothing stays with
the session but the plans of statements, where it may keep them.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg2
from psycopg2.errors import FeatureNotSupported
from sqlalchemy import Engine, Row
from sqlalchemy.exc import DBAPIError

from roster_service.db.deadline import require_time_left
from roster_service.db.engine import BATCH_START
from roster_service.db.prepared_statements import (
    Statement,
    fetch_rows,
    may_prepare,
    plan,
    prepare,
    retry_with_fresh_plans,
)


@dataclass(frozen=True)
class Call:
    """A kept statement, and its values. Who makes the same call again and again keeps it: it is spelled once."""

    statement: Statement
    values: Mapping[str, Any]
    _spelled: dict[bool, str] = field(default_factory=dict, compare=False, repr=False)

    def spell(self, cursor: Any, prepared: bool) -> str:
        """The call with its values in it; `prepared`: for a session that has the statement's plan."""
        spelled = self._spelled.get(prepared)
        if spelled is None:
            wanted = prepare(self.statement)
            if prepared:
                bound = [self.values[name] for name in wanted.values]
                spelled = cursor.mogrify(wanted.call, bound).decode()
            else:
                spelled = cursor.mogrify(wanted.plain, self.values).decode()
            self._spelled[prepared] = spelled
        return spelled


class RoundTrips:
    """Sends messages, over one connection of each thread, which stays its own: fetching one from a pool and giving it
    back would cost as much as the message."""

    def __init__(self, engine: Engine) -> None:
        """`engine`: of `make_reading_engine`."""
        self._engine = engine
        self._start: str = engine.get_execution_options()[BATCH_START]
        self._prepared = may_prepare(engine)
        self._own = threading.local()

    def fetch_last(self, *calls: Call) -> Sequence[tuple[Any, ...]]:
        """The rows of the last of the calls, which are sent in one message.

        Where the connection was dead, or its plans were made for tables or functions of another version, nothing was
        answered, and the message is sent once more on a fresh connection. Raises DBAPIError for any other failure, and
        OverdueError where the time of the request is up.
        """
        try:
            return self._send(calls)
        except psycopg2.Error as error:
            driver = getattr(self._own, "driver", None)
            if driver is None or not (driver.closed or isinstance(error, FeatureNotSupported)):
                raise _hide_values(error) from None
        self.close()
        # Those of the pool are as old as this one.
        self._engine.dispose()
        try:
            return self._send(calls)
        except psycopg2.Error as error:
            raise _hide_values(error) from None

    def fetch_once(self, first: Call, statement: Statement, values: Mapping[str, Any]) -> Sequence[Row[Any]]:
        """The rows of a statement that is not kept, in one transaction after a call: two messages. What such a
        statement costs is finding its rows, and nothing of it stays here."""

        def fetch() -> Sequence[Row[Any]]:
            with self._engine.connect() as connection:
                fetch_rows(connection, first.statement, first.values)
                return connection.execute(statement, values).all()

        return retry_with_fresh_plans(self._engine, fetch)

    def close(self) -> None:
        """Closes the connection of this thread, if it has one."""
        driver = getattr(self._own, "driver", None)
        if driver is not None:
            self._own.__dict__.clear()
            driver.close()

    def _send(self, calls: Sequence[Call]) -> Sequence[tuple[Any, ...]]:
        own = self._own
        if not hasattr(own, "driver"):
            pooled = self._engine.raw_connection()
            # Not one of those that the pool lends: a thread that waits for one would wait for ever.
            pooled.detach()
            own.driver, own.info = pooled.dbapi_connection, pooled.info
        with own.driver.cursor() as cursor:

            def send(message: str) -> None:
                require_time_left()
                cursor.execute(f"{self._start} {message}")

            if self._prepared:
                for call in calls:
                    plan(prepare(call.statement), own.info, send)
            send("; ".join([call.spell(cursor, self._prepared) for call in calls]))
            rows: Sequence[tuple[Any, ...]] = cursor.fetchall()
        return rows


def _hide_values(error: psycopg2.Error) -> BaseException:
    """A failure as SQLAlchemy has it, without the values of the statements."""
    hidden: BaseException = DBAPIError.instance("", None, error, psycopg2.Error, hide_parameters=True)
    return hidden
