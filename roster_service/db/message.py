"""Several statements in one message: one round trip, one transaction, one snapshot.

Of what PostgreSQL answers to a message the driver hands over the rows of the last statement alone, so the others are
there for what they do: they admit a caller. What is set for the transaction ends with the message. Nothing stays with
the session but the plans of statements, where it may keep them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg2
from psycopg2.errors import FeatureNotSupported
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from roster_service.db.engine import MESSAGE_OPENING
from roster_service.db.prepared import Prepared, Statement, may_prepare, plan, prepare


@dataclass(frozen=True)
class Call:
    """A kept statement, and its values."""

    statement: Statement
    values: Mapping[str, Any]


def fetch_last(engine: Engine, *calls: Call) -> Sequence[tuple[Any, ...]] | None:
    """The rows of the last of the calls, which are sent in one message. `engine`: of `make_reading_engine`.

    None where the connection was dead, or its plans were made for tables or functions of another version: nothing was
    answered, and whoever asks again gets a fresh connection. Raises DBAPIError for any other failure.
    """
    connection: Any = None
    try:
        connection = engine.raw_connection()
        return _send(connection, engine, [(prepare(call.statement), call.values) for call in calls])
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


def _send(
    connection: Any, engine: Engine, calls: Sequence[tuple[Prepared, Mapping[str, Any]]]
) -> Sequence[tuple[Any, ...]]:
    opening = engine.get_execution_options()[MESSAGE_OPENING]
    with connection.cursor() as cursor:
        if may_prepare(engine):
            for wanted, _ in calls:
                plan(wanted, connection.info, lambda statement: cursor.execute(f"{opening} {statement}", ()))
            message = "; ".join(wanted.call for wanted, _ in calls)
            bound = [values[name] for wanted, values in calls for name in wanted.values]
            cursor.execute(f"{opening} {message}", bound)
        else:
            # Each by itself: two statements may have a value of the same name.
            told = "; ".join(cursor.mogrify(wanted.plain, values).decode() for wanted, values in calls)
            cursor.execute(f"{opening} {told.replace('%', '%%')}", ())
        rows: Sequence[tuple[Any, ...]] = cursor.fetchall()
    return rows
