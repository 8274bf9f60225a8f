"""Several statements in one message: one round trip, one transaction, one snapshot.

Of what PostgreSQL answers to a message the driver hands over the rows of the last statement alone, so the others are
there for what they do: they admit a caller. What is set for the transaction ends with the message. Nothing stays with
the session but the plans of statements, where it may keep them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg2
from psycopg2.errors import FeatureNotSupported
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from roster_service.db.engine import MESSAGE_OPENING
from roster_service.db.prepared import Statement, may_prepare, plan, prepare


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


def fetch_last(engine: Engine, *calls: Call) -> Sequence[tuple[Any, ...]] | None:
    """The rows of the last of the calls, which are sent in one message. `engine`: of `make_reading_engine`.

    None where the connection was dead, or its plans were made for tables or functions of another version: nothing was
    answered, and whoever asks again gets a fresh connection. Raises DBAPIError for any other failure.
    """
    connection: Any = None
    try:
        connection = engine.raw_connection()
        return _send(connection, engine, calls)
    except psycopg2.Error as error:
        driver = None if connection is None else connection.dbapi_connection
        if driver is None or not (driver.closed or isinstance(error, FeatureNotSupported)):
            # As SQLAlchemy has it, and without the values of the statements.
            raise DBAPIError.instance("", None, error, psycopg2.Error, hide_parameters=True) from None
        connection.invalidate()
        # The others of the pool are as old as this one.
        engine.dispose()
        return None
    finally:
        if connection is not None:
            connection.close()


def _send(connection: Any, engine: Engine, calls: Sequence[Call]) -> Sequence[tuple[Any, ...]]:
    opening = engine.get_execution_options()[MESSAGE_OPENING]
    prepared = may_prepare(engine)
    with connection.cursor() as cursor:
        if prepared:
            for call in calls:
                plan(prepare(call.statement), connection.info, lambda text: cursor.execute(f"{opening} {text}"))
        cursor.execute(f"{opening} {'; '.join([call.spell(cursor, prepared) for call in calls])}")
        rows: Sequence[tuple[Any, ...]] = cursor.fetchall()
    return rows
