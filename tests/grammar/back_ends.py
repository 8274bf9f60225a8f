"""Every back end on the records of `samples.py`: each gives the places of the records that satisfy an expression."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import sqlalchemy as sa
from oneroster_filter import Through, predicate, sql_text
from oneroster_filter.sqlalchemy import sqlalchemy_where
from oneroster_filter.typing import TypedExpr

from .samples import COLUMNS, USERS, Record, load

Choose = Callable[[Sequence[Record], Sequence[TypedExpr]], list[list[int]]]
ChooseOn = Callable[[str, str], Choose]
"""Takes the name of a database and its collation."""


def choose_by_predicate(records: Sequence[Record], wanted: Sequence[TypedExpr]) -> list[list[int]]:
    return [[place for place, record in enumerate(records) if test(record)] for test in map(predicate, wanted)]


def choose_by_sqlalchemy(connection: sa.Connection, collation: str | None) -> Choose:
    def choose(records: Sequence[Record], wanted: Sequence[TypedExpr]) -> list[list[int]]:
        load(connection, records)
        conditions = [sqlalchemy_where(expr, COLUMNS, collation=collation) for expr in wanted]
        # CASE takes null as false, as WHERE does; one statement for all of them saves most of the time.
        flags = [sa.case((condition, 1), else_=0) for condition in conditions]
        return _list_places(connection.execute(sa.select(USERS.c.id, *flags).order_by(USERS.c.id)).all(), wanted)

    return choose


def _list_places(rows: Sequence[Sequence[Any]], wanted: Sequence[TypedExpr]) -> list[list[int]]:
    return [[row[0] for row in rows if row[column]] for column in range(1, len(wanted) + 1)]


def _has_role(condition: str) -> str:
    return f"EXISTS (SELECT 1 FROM roles WHERE roles.user_id = users.id AND {condition})"


TEXT_COLUMNS = {
    "status": "users.status",
    "role": "users.role",
    "familyName": "users.family_name",
    "enabledUser": "users.enabled",
    "dateLastModified": "users.modified",
    "birthDate": "users.born",
    "grades": "users.grades",
    "class.sourcedId": "users.class_id",
    "roles.role": Through("roles.role", _has_role),
    "roles.beginDate": Through('roles."begin"', _has_role),
}
KEYS = {
    "sqlite": {name: f"json_extract(users.extra, '$.\"{name}\"')" for name in ("tier", "2nd-name")},
    "postgresql": {name: f"users.extra ->> '{name}'" for name in ("tier", "2nd-name")},
    "mariadb": {name: f"JSON_VALUE(users.extra, '$.\"{name}\"')" for name in ("tier", "2nd-name")},
}
PARAMSTYLE = {"sqlite": "qmark", "postgresql": "format", "mariadb": "format"}


def choose_by_text(connection: sa.Connection, collation: str) -> Choose:
    def choose(records: Sequence[Record], wanted: Sequence[TypedExpr]) -> list[list[int]]:
        load(connection, records)
        database = connection.dialect.name
        columns = TEXT_COLUMNS | {f"metadata.{name}": source for name, source in KEYS[database].items()}
        conditions = [
            sql_text(expr, columns, database=database, paramstyle=PARAMSTYLE[database], collation=collation)
            for expr in wanted
        ]
        flags = ", ".join(f"CASE WHEN {condition.text} THEN 1 ELSE 0 END" for condition in conditions)
        values = tuple(value for condition in conditions for value in condition.values)
        with contextlib.closing(connection.connection.cursor()) as cursor:
            cursor.execute(f"SELECT users.id, {flags} FROM users ORDER BY users.id", values)
            return _list_places(cursor.fetchall(), wanted)

    return choose


def choose_by_pandas(records: Sequence[Record], wanted: Sequence[TypedExpr]) -> list[list[int]]:
    pd = pytest.importorskip("pandas")
    from oneroster_filter.pandas import pandas_mask

    frame = pd.DataFrame({name: [record.get(name) for record in records] for name in FRAME_COLUMNS})
    return [list(frame.index[pandas_mask(expr, frame)]) for expr in wanted]


FRAME_COLUMNS = (
    *("status", "role", "familyName", "enabledUser", "dateLastModified", "birthDate"),
    *("grades", "class", "roles", "metadata"),
)


def choose_by_polars(records: Sequence[Record], wanted: Sequence[TypedExpr]) -> list[list[int]]:
    pl = pytest.importorskip("polars")
    from oneroster_filter.polars import polars_mask

    text = pl.String()
    schema = {
        "status": text,
        "role": text,
        "familyName": text,
        "enabledUser": pl.Boolean(),
        "dateLastModified": pl.Datetime("us", "UTC"),
        "birthDate": pl.Date(),
        "grades": pl.List(text),
        "class": pl.Struct({"sourcedId": text}),
        "roles": pl.List(pl.Struct({"role": text, "beginDate": pl.Date()})),
        "metadata": pl.Struct({"tier": text, "2nd-name": text}),
    }
    rows = [{name: record.get(name) for name in schema} for record in records]
    frame = pl.DataFrame(rows, schema=schema).with_row_index("place")
    return [frame.filter(polars_mask(expr, frame))["place"].to_list() for expr in wanted]
