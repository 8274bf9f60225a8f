"""Prepared statements: compiled once in a process, planned once for each connection, with bound values.

For a statement that finds a few records by key, building its text and planning it costs more than running it. The
constants of a statement become part of its text. The values that callers bind stay parameters of the prepared
statement.

A prepared statement belongs to a session, so only connections with a session of their own may prepare
(`allow_preparing`). PostgreSQL plans again when another role runs the statement, so row-level security is part of every
plan.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import sqlalchemy as sa
from cachetools import LRUCache
from psycopg2.errors import FeatureNotSupported
from psycopg2.extensions import QuotedString, adapt
from sqlalchemy.dialects.postgresql.psycopg2 import dialect as make_dialect
from sqlalchemy.exc import NotSupportedError
from sqlalchemy.sql.compiler import SQLCompiler

from roster_service.errors import RosterServiceError

Statement = sa.Select[*tuple[Any, ...]] | sa.TextClause
Result = TypeVar("Result")

# The bound of the texts that a worker caches, and of the statements that a connection has prepared.
KEPT_TEXTS = 512
KEPT_PLANS = 64
PLANS = "roster_plans"

# A bound value, a list that SQLAlchemy expands late, a percent sign.
PLACEHOLDER = re.compile(r"%\((?P<value>\w+)\)s|__\[POSTCOMPILE_(?P<list>\w+)\]|%%")
DIALECT = make_dialect()  # type: ignore[no-untyped-call]
# The execution option of connections that may prepare.
_MAY_PREPARE = "roster_may_prepare"


@dataclass(frozen=True, eq=False)
class PreparedStatement:
    """A statement as PREPARE takes it. `text`: with `$1`, `$2`; `values`: the names of the values that these stand for;
    `plain`: the statement in the driver's format, for sessions that may not prepare."""

    name: str
    text: str
    values: tuple[str, ...]
    plain: str

    @functools.cached_property
    def call(self) -> str:
        """The EXECUTE statement, in the driver's format."""
        return f"EXECUTE {self.name}" + (f" ({', '.join(['%s'] * len(self.values))})" if self.values else "")


def prepare(statement: Statement | PreparedStatement) -> PreparedStatement:
    """Returns the prepared form of a statement; one that is prepared, as it is. The cache compares statements by
    identity, so the caller has to keep the statement object and pass it again."""
    return statement if isinstance(statement, PreparedStatement) else _prepare_once(statement)


def compile_statement(statement: Statement) -> PreparedStatement:
    """Returns the prepared form of a statement, for callers that keep it: a statement of a page is half a megabyte of
    objects, its prepared form 45 KB."""
    compiled: SQLCompiler = statement.compile(dialect=DIALECT)
    quote = quote_constants(compiled)
    numbers: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        constant = quote(found)
        return f"${numbers.setdefault(found['value'], len(numbers) + 1)}" if constant is None else constant

    def keep(found: re.Match[str]) -> str:
        constant = quote(found)
        return found[0] if constant is None else constant.replace("%", "%%")

    text = PLACEHOLDER.sub(number, str(compiled))
    # The name is a hash of the text, so it means the same text in every process: if a pooler hands out the session of
    # another process by mistake, EXECUTE still runs the right statement.
    name = f"roster_{hashlib.sha256(text.encode()).hexdigest()[:32]}"
    return PreparedStatement(name, text, tuple(numbers), PLACEHOLDER.sub(keep, str(compiled)))


def quote_constants(compiled: SQLCompiler) -> Callable[[re.Match[str]], str | None]:
    """Returns the function that gives, for a match of `PLACEHOLDER` in a compiled text, the text of a constant or of a
    percent sign; None for a value that callers bind."""
    constants = {name: value for name, value in compiled.params.items() if not compiled.binds[name].required}

    def quote(found: re.Match[str]) -> str | None:
        if found["list"]:
            return ", ".join(_quote(item) for item in constants[found["list"]])
        name = found["value"]
        return "%" if name is None else _quote(constants[name]) if name in constants else None

    return quote


_prepare_once = functools.lru_cache(KEPT_TEXTS)(compile_statement)


def allow_preparing(engine: sa.Engine, allowed: bool) -> sa.Engine:
    """Returns an engine on the same connections for which `fetch_rows` prepares statements, or does not, by
    `allowed`."""
    return engine.execution_options(**{_MAY_PREPARE: allowed})


def _quote(value: Any) -> str:
    quoted = adapt(value)
    if isinstance(quoted, QuotedString):
        quoted.encoding = "utf-8"
    return str(quoted.getquoted().decode())


def fetch_rows(
    connection: sa.Connection, statement: Statement | PreparedStatement, values: Mapping[str, Any]
) -> Sequence[sa.Row[Any]]:
    """Returns the rows of a statement, which it prepares if the connection may prepare.

    `values` must have every value that the statement binds; it ignores others. Raises StalePlansError if the plan of
    the connection was made for another version of the database.
    """
    wanted = prepare(statement)
    if not connection.get_execution_options().get(_MAY_PREPARE, False):
        return connection.exec_driver_sql(wanted.plain, values).all()
    # In the driver's format, with `%` doubled, like the text that the engine puts before the first statement of a
    # transaction.
    try:
        ensure_prepared(wanted, connection.info, lambda text: connection.exec_driver_sql(text.replace("%", "%%"), ()))
        return connection.exec_driver_sql(wanted.call, tuple(values[name] for name in wanted.values)).all()
    except NotSupportedError as error:
        if not isinstance(error.orig, FeatureNotSupported):
            raise
        raise StalePlansError("the plans of a connection were made for another version of the database") from error


class StalePlansError(RosterServiceError):
    """The plans of a connection were made for functions or tables that a migration has replaced since."""


def retry_with_fresh_plans(engine: sa.Engine, work: Callable[[], Result]) -> Result:
    """Calls `work`; if it raises StalePlansError, drops the pool's connections and calls it once more."""
    try:
        return work()
    except StalePlansError:
        engine.dispose()
        return work()


def may_prepare(engine: sa.Engine) -> bool:
    """Returns whether the connections of the engine may prepare statements."""
    return bool(engine.get_execution_options().get(_MAY_PREPARE, False))


def ensure_prepared(wanted: PreparedStatement, info: MutableMapping[Any, Any], run: Callable[[str], object]) -> None:
    """Prepares a statement in a session that has not prepared it yet. Beyond `KEPT_PLANS`, it deallocates the statement
    that was used longest ago. `info`: the session's own dictionary, which lists its statements; `run`: runs an SQL text
    in the session."""
    if PLANS not in info:
        info[PLANS] = LRUCache(KEPT_PLANS)
    plans: LRUCache[str, PreparedStatement] = info[PLANS]
    if plans.get(wanted.name) is not None:
        return
    if len(plans) >= KEPT_PLANS:
        run(f"DEALLOCATE {plans.popitem()[0]}")
    run(f"PREPARE {wanted.name} AS {wanted.text}")
    plans[wanted.name] = wanted
