"""The SQL itself: what each dialect is told, that values are bound, that shapes are shared, that indexes are used."""

import pickle
import re
import sqlite3

import pytest
import sqlalchemy as sa
from hypothesis import given
from oneroster_filter import (
    OPERATORS,
    ColumnError,
    FieldType,
    Kind,
    Operator,
    Through,
    add_sqlite_functions,
    check,
    fold,
    parse,
)
from oneroster_filter.sql_templates import COMPARISONS
from oneroster_filter.sqlalchemy import FilterValue, folded, sqlalchemy_where
from sqlalchemy.dialects import mssql, mysql, oracle, sqlite
from sqlalchemy.dialects.mysql.pymysql import MySQLDialect_pymysql
from sqlalchemy.dialects.postgresql.psycopg2 import PGDialect_psycopg2
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from tests.offenders import in_one_test

from .samples import COLUMNS, ROLES, TYPES, USERS, expressions, typed_clauses

DIALECTS = {"postgresql": PGDialect_psycopg2(), "sqlite": sqlite.dialect(), "mysql": MySQLDialect_pymysql()}


def where(text: str, columns=COLUMNS, types=TYPES) -> sa.ColumnElement[bool]:
    return sqlalchemy_where(check(parse(text), types), columns, collation="c")


def sql(condition: sa.ColumnElement[bool], dialect: str) -> str:
    statement = sa.select(USERS.c.id).where(condition).compile(dialect=DIALECTS[dialect])
    return " ".join(str(statement).partition("WHERE")[2].split())


SPELLED = {
    "status='a'": {
        "postgresql": "(users.status) = %(param_1)s",
        "sqlite": "(users.status) COLLATE BINARY = ?",
        "mysql": "(users.status) COLLATE utf8mb4_0900_bin = %s",
    },
    "status!='a'": {
        "postgresql": "(users.status) IS DISTINCT FROM %(param_1)s",
        "sqlite": "(users.status) COLLATE BINARY IS NOT ?",
        "mysql": "NOT ((users.status) COLLATE utf8mb4_0900_bin <=> %s)",
    },
    "status<='a'": {
        "postgresql": '(users.status) COLLATE "C" <= %(param_1)s',
        "sqlite": "(users.status) COLLATE BINARY <= ?",
        "mysql": "(users.status) COLLATE utf8mb4_0900_bin <= %s",
    },
    "status~'a'": {
        "postgresql": (
            "replace(lower(replace((users.status) COLLATE \"c\", 'İ', 'i')), 'ς', 'σ') LIKE "
            "replace(lower(replace((%(param_1)s) COLLATE \"c\", 'İ', 'i')), 'ς', 'σ') ESCAPE '/'"
        ),
        "sqlite": "oneroster_fold(users.status) LIKE oneroster_fold(?) ESCAPE '/'",
        "mysql": (
            "replace(lower(replace((users.status) COLLATE utf8mb4_0900_bin, 'İ', 'i')), 'ς', 'σ') LIKE "
            "replace(lower(replace((%s) COLLATE utf8mb4_0900_bin, 'İ', 'i')), 'ς', 'σ') ESCAPE '/'"
        ),
    },
    "enabledUser='true'": {
        "postgresql": "users.enabled = %(param_1)s",
        "sqlite": "users.enabled = ?",
        "mysql": "users.enabled = %s",
    },
    "dateLastModified='2026-01-01'": {
        "postgresql": "users.modified BETWEEN %(param_1)s AND %(param_2)s",
        "sqlite": "users.modified BETWEEN ? AND ?",
        "mysql": "users.modified BETWEEN %s AND %s",
    },
    "dateLastModified!='2026-01-01'": {
        "postgresql": "NOT coalesce(users.modified BETWEEN %(param_1)s AND %(param_2)s, false)",
        "sqlite": "NOT coalesce(users.modified BETWEEN ? AND ?, false)",
        "mysql": "NOT coalesce(users.modified BETWEEN %s AND %s, false)",
    },
    "grades='09,10'": {
        "postgresql": "(CAST(users.grades AS TEXT[]) @> CAST(%(param_1)s::TEXT[] AS TEXT[]))",
        "sqlite": ("(NOT EXISTS (SELECT value FROM json_each(?) EXCEPT SELECT value FROM json_each(users.grades)))"),
        "mysql": "JSON_CONTAINS(users.grades, %s)",
    },
    "grades~'09,10'": {
        "postgresql": "(CAST(users.grades AS TEXT[]) && CAST(%(param_1)s::TEXT[] AS TEXT[]))",
        "sqlite": "EXISTS (SELECT value FROM json_each(?) INTERSECT SELECT value FROM json_each(users.grades))",
        "mysql": "JSON_OVERLAPS(users.grades, %s)",
    },
    "roles.beginDate!='2026-01-01'": {
        "postgresql": (
            "NOT (EXISTS (SELECT * FROM roles WHERE roles.user_id = users.id AND roles.begin = %(param_1)s))"
        ),
        "sqlite": 'NOT (EXISTS (SELECT * FROM roles WHERE roles.user_id = users.id AND roles."begin" = ?))',
        "mysql": "NOT (EXISTS (SELECT * FROM roles WHERE roles.user_id = users.id AND roles.begin = %s))",
    },
}


@in_one_test
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("text", SPELLED)
def test_each_dialect_is_reported(text: str, dialect: str) -> None:
    assert sql(where(text), dialect) == SPELLED[text][dialect]


def test_mariadb_has_collations_of_its_own() -> None:
    dialect = mysql.dialect(is_mariadb=True)

    assert str(where("status='a'").compile(dialect=dialect)) == "(users.status) COLLATE utf8mb4_nopad_bin = %s"


@pytest.mark.parametrize("dialect", [mssql.dialect(), oracle.dialect()], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize(
    "condition",
    [where("status='a'"), folded(USERS.c.status, "c") == "a"],
    ids=["comparison", "folded"],
)
def test_a_database_with_another_meaning_is_refused(condition, dialect) -> None:
    with pytest.raises(sa.exc.CompileError, match=f"no SQL for {dialect.name}: the databases are postgresql, sqlite"):
        condition.compile(dialect=dialect)


@pytest.mark.parametrize("text", SPELLED)
def test_a_condition_travels_between_processes(text: str) -> None:
    condition = where(text, COLUMNS | {"roles.beginDate": Through(ROLES.c.begin, sa.exists().where)})

    assert sql(pickle.loads(pickle.dumps(condition)), "sqlite") == sql(condition, "sqlite")


def test_a_condition_is_printed_as_plain_sql() -> None:
    assert str(where("status~'a'")) == (
        "replace(lower(replace(users.status, 'İ', 'i')), 'ς', 'σ') LIKE "
        "replace(lower(replace(:param_1, 'İ', 'i')), 'ς', 'σ') ESCAPE '/'"
    )


@pytest.mark.parametrize("dialect", DIALECTS)
@given(expr=expressions(typed_clauses()))
def test_no_value_stands_in_the_sql(dialect: str, expr) -> None:
    compiled = sqlalchemy_where(check(expr, TYPES), COLUMNS).compile(dialect=DIALECTS[dialect])

    # What is quoted in the SQL is ours: the letters levelled, the escape character, the path into JSON.
    ours = {"İ", "i", "ς", "σ", "/", "{tier}", "{2nd-name}", '$."tier"', '$."2nd-name"', "tier", "2nd-name", "null"}
    assert set(re.findall(r"'([^']*)'", str(compiled))) <= ours


SAME_SHAPE = {
    "text": ("status='a'", "status='it''s'"),
    "wildcards": ("status~'a'", "status~'%_/'"),
    "one item and three": ("grades='09'", "grades='09,10,11'"),
    "an instant and a day": ("dateLastModified!='2026-01-01'", "dateLastModified!='2026-01-01T02:00:00Z'"),
    "both flags": ("enabledUser='true'", "enabledUser='false'"),
    "two clauses": ("status='a' OR role!='b'", "status='c' OR role!='d'"),
}


@pytest.mark.parametrize(("one", "other"), SAME_SHAPE.values(), ids=SAME_SHAPE)
def test_the_same_shape_is_the_same_sql_and_is_compiled_once(one: str, other: str) -> None:
    first, second = where(one), where(other)

    assert {sql(first, dialect) for dialect in DIALECTS} == {sql(second, dialect) for dialect in DIALECTS}
    assert first._generate_cache_key() == second._generate_cache_key()


def test_a_database_may_have_a_way_of_its_own_to_look_for_a_text() -> None:
    def search(filter_: str) -> str:
        return sql(sqlalchemy_where(check(parse(filter_), TYPES), COLUMNS, contains=sa.func.has_text), "postgresql")

    assert search("status~'A%'") == "has_text(users.status, %(param_1)s)"
    for other in ("grades~'09'", "status='a'"):
        assert search(other) == sql(where(other), "postgresql")


def test_values_are_distinguished_from_the_constants_of_their_columns() -> None:
    column = sa.case((USERS.c.status == "x", "y"), else_=USERS.c.status)
    condition = where("status='a' AND status!='b'", {"status": column})

    values = [bound.value for bound in sa.sql.visitors.iterate(condition) if isinstance(bound, FilterValue)]
    assert values == ["a", "b"]


def test_another_collation_is_not_the_same_sql() -> None:
    typed = check(parse("status~'a'"), TYPES)
    one, other = (sqlalchemy_where(typed, COLUMNS, collation=name) for name in ('a"b', "c"))

    assert 'COLLATE "a""b"' in sql(one, "postgresql")
    assert one._generate_cache_key() != other._generate_cache_key()


@pytest.mark.parametrize(
    ("version", "collation"),
    [(None, "und-x-icu"), ((16, 9), "und-x-icu"), ((17, 0), "pg_c_utf8"), ((18,), "pg_c_utf8")],
)
def test_without_a_collation_it_is_one_that_the_server_has(version: tuple[int, ...] | None, collation: str) -> None:
    """As a connection has found it: PostgreSQL can be built without ICU, and has the other one from 17 on."""
    database = PGDialect_psycopg2()
    database.server_version_info = version
    condition = sqlalchemy_where(check(parse("status~'a'"), TYPES), COLUMNS)
    assert str(condition.compile(dialect=database)).count(f'COLLATE "{collation}"') == 2
    assert f'COLLATE "{collation}"' in str(folded(USERS.c.status).compile(dialect=database))


def test_every_operator_of_every_kind_has_a_row() -> None:
    every = {(kind, operator) for kind, operators in OPERATORS.items() for operator in operators}
    assert all(set(comparisons) == every for comparisons in COMPARISONS.values())


def test_columns_may_be_a_function() -> None:
    assert sql(where("status='a'", columns=lambda name: USERS.c[name]), "sqlite") == SPELLED["status='a'"]["sqlite"]


WRONG_COLUMNS = {
    "a field without a column": ("status='a'", {}),
    "a field that the function does not know": ("status='a'", lambda name: USERS.c["nothing"]),
    "a many field with a column": ("roles.role='a'", {"roles.role": ROLES.c.role}),
    "a single field with a Through": ("status='a'", {"status": Through(ROLES.c.role, sa.exists)}),
}


@pytest.mark.parametrize(("text", "columns"), WRONG_COLUMNS.values(), ids=WRONG_COLUMNS)
def test_columns_that_do_not_fit_are_a_fault_of_the_program(text: str, columns) -> None:
    with pytest.raises(ColumnError) as caught:
        where(text, columns)

    assert str(caught.value).startswith(f"{caught.value.field}: {caught.value.message}")
    assert text.startswith(caught.value.field)


class Base(DeclarativeBase):
    pass


class Role(Base):
    __tablename__ = "orm_roles"
    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(sa.ForeignKey("orm_users.id"))
    role: Mapped[str]


class User(Base):
    __tablename__ = "orm_users"
    id: Mapped[int] = mapped_column(primary_key=True)
    status: Mapped[str]
    roles: Mapped[list[Role]] = relationship()


ORM_COLUMNS = {"status": User.status, "roles.role": Through(Role.role, lambda condition: User.roles.any(condition))}


def test_orm_attributes_are_columns_too() -> None:
    types = {"status": Kind.TEXT, "roles.role": FieldType(Kind.TEXT, many=True)}
    engine = sa.create_engine("sqlite://")
    Base.metadata.create_all(engine)
    with sa.orm.Session(engine) as session:
        session.add(User(id=1, status="active", roles=[Role(role="aide"), Role(role="teacher")]))
        session.add(User(id=2, status="active", roles=[]))
        condition = where("status='active' AND roles.role='teacher'", ORM_COLUMNS, types)

        assert session.scalars(sa.select(User.id).where(condition)).all() == [1]
    engine.dispose()


INSTANTS = (("2026-11-21T00:00:00Z", True), ("2026-11-21T01:00:00Z", False))


@pytest.mark.parametrize("zoned", [True, False])
@pytest.mark.parametrize(("text", "found"), INSTANTS)
def test_postgresql_compares_instants_in_utc_whatever_the_session_says(
    postgresql: sa.Connection, zoned: bool, text: str, found: bool
) -> None:
    column = sa.cast(sa.literal_column("'2026-11-21 00:00:00+00'"), sa.DateTime(timezone=zoned))
    typed = check(parse(f"d='{text}'"), {"d": Kind.INSTANT})
    with postgresql.begin_nested():
        postgresql.execute(sa.text("SET LOCAL TIME ZONE 'Asia/Kathmandu'"))

        assert postgresql.scalar(sa.select(sqlalchemy_where(typed, {"d": column}))) is found


@pytest.fixture
def indexed(postgresql: sa.Connection, collation: str):
    """A table with text in code point order, its index, an index on folded text, and one on a list."""
    table = sa.Table(
        "indexed",
        sa.MetaData(),
        sa.Column("id", sa.Text(collation="C")),
        sa.Column("name", sa.Text()),
        sa.Column("grades", sa.dialects.postgresql.ARRAY(sa.Text())),
        prefixes=["TEMPORARY"],
    )
    with postgresql.begin_nested() as nested:
        table.create(postgresql)
        sa.Index("by_id", table.c.id).create(postgresql)
        sa.Index("by_name", table.c.name).create(postgresql)
        sa.Index("by_folded_name", folded(table.c.name, collation).label("x")).create(postgresql)
        sa.Index("by_grade", table.c.grades, postgresql_using="gin").create(postgresql)
        postgresql.execute(sa.text("SET LOCAL enable_seqscan = off"))
        yield table
        nested.rollback()


INDEXES = {
    "equality, by code point": ("id='x'", "by_id"),
    "order, by code point": ("id>='x'", "by_id"),
    "equality, in any collation": ("name='x'", "by_name"),
    "all of a list": ("grades='09'", "by_grade"),
    "any of a list": ("grades~'09,10'", "by_grade"),
}


@pytest.mark.parametrize(("text", "index"), INDEXES.values(), ids=INDEXES)
def test_postgresql_uses_the_index(
    postgresql: sa.Connection, indexed: sa.Table, collation: str, text: str, index: str
) -> None:
    typed = check(parse(text), {"id": Kind.TEXT, "name": Kind.TEXT, "grades": Kind.TEXTS})
    condition = sqlalchemy_where(typed, indexed.c.__getitem__, collation=collation)

    plan = _explain(postgresql, sa.select(indexed.c.id).where(condition))

    assert re.search(rf"Index (Only )?Scan (using|on) {index}\b.*Index Cond", plan, re.DOTALL)


def test_postgresql_finds_the_folded_expression_that_an_index_is_on(
    postgresql: sa.Connection, indexed: sa.Table, collation: str
) -> None:
    plan = _explain(postgresql, sa.select(indexed.c.id).where(folded(indexed.c.name, collation) == "x"))

    assert "by_folded_name" in plan


def _explain(connection: sa.Connection, statement: sa.Select[tuple[str]]) -> str:
    def explain(conn, cursor, statement, parameters, context, executemany):
        return f"EXPLAIN {statement}", parameters

    sa.event.listen(connection, "before_cursor_execute", explain, retval=True)
    try:
        return "\n".join(connection.execute(statement).scalars())
    finally:
        sa.event.remove(connection, "before_cursor_execute", explain)


def test_sqlite_folds_by_a_function_that_leaves_null_alone() -> None:
    connection = sqlite3.connect(":memory:")
    add_sqlite_functions(connection)

    assert connection.execute("SELECT oneroster_fold('ÀΣ'), oneroster_fold(NULL)").fetchone() == (fold("ÀΣ"), None)
    connection.close()


def test_not_equal_is_the_negation_of_equal_in_every_kind() -> None:
    assert all((Operator.EQUAL in taken) == (Operator.NOT_EQUAL in taken) for taken in OPERATORS.values())


INSIDE = {
    "in another comparison": (lambda condition: condition == sa.true(), "(users.born = %(param_1)s) = true"),
    "negated": (sa.not_, "NOT (users.born = %(param_1)s)"),
    "beside another condition": (
        lambda condition: sa.and_(condition, sa.or_(condition, USERS.c.enabled)),
        "users.born = %(param_1)s AND (users.born = %(param_1)s OR users.enabled)",
    ),
}


@pytest.mark.parametrize(("wrap", "expected"), INSIDE.values(), ids=INSIDE)
def test_a_comparison_keeps_its_shape_inside_another_expression(wrap, expected: str) -> None:
    assert sql(wrap(where("birthDate='2026-01-01'")), "postgresql") == expected


def test_a_source_with_an_operator_gets_parentheses() -> None:
    source = sa.or_(USERS.c.enabled, USERS.c.status == "x")

    assert sql(where("enabledUser='true'", {"enabledUser": source}), "postgresql") == (
        "(users.enabled OR users.status = %(status_1)s) = %(param_1)s"
    )
