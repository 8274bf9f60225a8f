"""Statements that every request runs: compiled once, planned once for each connection, their values still bound.

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

from cachetools import LRUCache
from psycopg2.errors import FeatureNotSupported
from psycopg2.extensions import QuotedString, adapt
from sqlalchemy import Connection, Engine, Row, Select, TextClause
from sqlalchemy.dialects.postgresql.psycopg2 import dialect as make_dialect
from sqlalchemy.exc import NotSupportedError
from sqlalchemy.sql.compiler import SQLCompiler

from roster_service.errors import RosterServiceError

Statement = Select[*tuple[Any, ...]] | TextClause
Done = TypeVar("Done")

# Statements that a worker keeps the text of, and that a connection keeps the plans of.
KEPT_TEXTS = 512
KEPT_PLANS = 64
PLANS = "roster_plans"

# A bound value, a list that the statement spells, a percent sign.
_PLACEHOLDER = re.compile(r"%\((?P<value>\w+)\)s|__\[POSTCOMPILE_(?P<list>\w+)\]|%%")
DIALECT = make_dialect()  # type: ignore[no-untyped-call]
# The execution option of connections that may prepare.
_MAY_PREPARE = "roster_may_prepare"


@dataclass(frozen=True, eq=False)
class Prepared:
    """The text of a statement with `$1`, `$2` in it, and the names of the values that these stand for; `plain` is the
    statement in the driver's own format, for sessions that keep no plans."""

    name: str
    text: str
    values: tuple[str, ...]
    plain: str

    @functools.cached_property
    def call(self) -> str:
        """What runs it, in the driver's own format."""
        return f"EXECUTE {self.name}" + (f" ({', '.join(['%s'] * len(self.values))})" if self.values else "")


@functools.lru_cache(KEPT_TEXTS)
def prepare(statement: Statement) -> Prepared:
    """The prepared form of a statement that is kept by its maker: another object is another statement."""
    compiled: SQLCompiler = statement.compile(dialect=DIALECT)
    own = {name: value for name, value in compiled.params.items() if not compiled.binds[name].required}
    numbers: dict[str, int] = {}

    def spell(found: re.Match[str]) -> str | None:
        """What the statement spells itself, None for a value that is bound."""
        if found["list"]:
            return ", ".join(_quote(item) for item in own[found["list"]])
        name = found["value"]
        return "%" if name is None else _quote(own[name]) if name in own else None

    def number(found: re.Match[str]) -> str:
        spelled = spell(found)
        return f"${numbers.setdefault(found['value'], len(numbers) + 1)}" if spelled is None else spelled

    def keep(found: re.Match[str]) -> str:
        spelled = spell(found)
        return found[0] if spelled is None else spelled.replace("%", "%%")

    text = _PLACEHOLDER.sub(number, str(compiled))
    # One name is one text, in every process: behind a pooler by mistake, no session answers another question.
    name = f"roster_{hashlib.sha256(text.encode()).hexdigest()[:32]}"
    return Prepared(name, text, tuple(numbers), _PLACEHOLDER.sub(keep, str(compiled)))


def allow_preparing(engine: Engine, wanted: bool) -> Engine:
    """The engine, on the same connections, whose statements `fetch_rows` prepares; or not, where `wanted` is false."""
    return engine.execution_options(**{_MAY_PREPARE: wanted})


def _quote(value: Any) -> str:
    quoted = adapt(value)
    if isinstance(quoted, QuotedString):
        quoted.encoding = "utf-8"
    return str(quoted.getquoted().decode())


def fetch_rows(connection: Connection, statement: Statement, values: Mapping[str, Any]) -> Sequence[Row[Any]]:
    """The rows of a kept statement. Every value that it wants must be in `values`; others are left aside."""
    if not connection.get_execution_options().get(_MAY_PREPARE, False):
        return connection.execute(statement, values).all()
    wanted = prepare(statement)
    # In the driver's own format, as whatever stands before the first statement of a transaction.
    try:
        plan(wanted, connection.info, lambda text: connection.exec_driver_sql(text.replace("%", "%%"), ()))
        return connection.exec_driver_sql(wanted.call, tuple(values[name] for name in wanted.values)).all()
    except NotSupportedError as error:
        if not isinstance(error.orig, FeatureNotSupported):
            raise
        raise StalePlansError("the plans of a connection were made for another version of the database") from error


class StalePlansError(RosterServiceError):
    """A connection's plans were made for functions or tables that a migration has replaced since."""


def retry_with_fresh_plans(engine: Engine, work: Callable[[], Done]) -> Done:
    """Does the work, and where the plans of its connection are stale, once more on a fresh connection."""
    try:
        return work()
    except StalePlansError:
        engine.dispose()
        return work()


def may_prepare(engine: Engine) -> bool:
    """Whether the statements of its connections may be prepared."""
    return bool(engine.get_execution_options().get(_MAY_PREPARE, False))


def plan(wanted: Prepared, info: MutableMapping[Any, Any], run: Callable[[str], object]) -> None:
    """Has the session plan a statement, unless it has. `info`: what is remembered of the session; `run` runs a
    statement in it."""
    if PLANS not in info:
        info[PLANS] = LRUCache(KEPT_PLANS)
    plans: LRUCache[str, Prepared] = info[PLANS]
    if plans.get(wanted.name) is not None:
        return
    if len(plans) >= KEPT_PLANS:
        run(f"DEALLOCATE {plans.popitem()[0]}")
    run(f"PREPARE {wanted.name} AS {wanted.text}")
    plans[wanted.name] = wanted
