"""Dialects: other limits, extra operators and functions, and that each stands for one expression on every back end."""

import pytest
import sqlalchemy as sa
from oneroster_filter import (
    And,
    Clause,
    F,
    FilterError,
    FilterSyntaxError,
    FilterValueError,
    LimitError,
    Operator,
    Or,
    all_of,
    any_of,
    check,
    clauses,
    parse,
    predicate,
    sql_text,
    to_text,
)
from oneroster_filter.dialect import Dialect, ExtraOperator, Function
from oneroster_filter.sqlalchemy import sqlalchemy_where
from oneroster_filter.typing import Expr

from .samples import TYPES

IN = ExtraOperator("in", lambda field, value: any_of(*(field == item for item in value.split(","))))
NOT_IN = ExtraOperator("!*", lambda field, value: all_of(*(field != item for item in value.split(","))))


def stand_between(field: F, value: str) -> Expr:
    """Refuses by both errors: its own, and that of a value that has no text."""
    if not value:
        return field == []
    least, comma, most = value.partition(",")
    if not comma:
        raise ValueError("write two values and a comma")
    return all_of(field >= least, field <= most)


BETWEEN = ExtraOperator("between", stand_between)
YEAR = Function(
    "year",
    {
        Operator.EQUAL: lambda field, year: all_of(field >= f"{year}-01-01", field <= f"{year}-12-31"),
        Operator.GREATER: lambda field, year: field > f"{year}-12-31",
    },
)
DIALECT = Dialect(max_clauses=20, operators=[IN, NOT_IN, BETWEEN], functions=[YEAR])

STANDS_FOR = {
    "a word": ("role in 'teacher,aide'", "role='teacher' OR role='aide'"),
    "a word of one item": ("role  in  'teacher'", "role='teacher'"),
    "a word without a space after it": ("role in'teacher'", "role='teacher'"),
    "a field called as the word": ("in in 'a,b'", "in='a' OR in='b'"),
    "a field called as the word, compared": ("in='a'", "in='a'"),
    "signs that begin with those of another": ("role!*'teacher,aide'", "role!='teacher' AND role!='aide'"),
    "the others": ("role!='teacher' OR role~'a'", "role!='teacher' OR role~'a'"),
    "a function": ("year(birthDate)='2012'", "birthDate>='2012-01-01' AND birthDate<='2012-12-31'"),
    "a function with spaces": ("year( birthDate ) > '2012'", "birthDate>'2012-12-31'"),
    "a field called as the function": ("year='2012'", "year='2012'"),
    "a function of a dotted name": ("year(roles.beginDate)>'2012'", "roles.beginDate>'2012-12-31'"),
    "an operator on a function": ("year(birthDate) in '2012'", "birthDate>='2012-01-01' AND birthDate<='2012-12-31'"),
}


@pytest.mark.parametrize(("text", "meaning"), STANDS_FOR.values(), ids=STANDS_FOR)
def test_stands_for(text: str, meaning: str) -> None:
    types = {**TYPES, "in": TYPES["role"], "year": TYPES["role"]}

    assert check(DIALECT.parse(text), types) == check(parse(meaning), types)


def test_an_or_stands_inside_an_and_where_an_operator_needs_it() -> None:
    typed = check(DIALECT.parse("role in 'teacher,aide' AND status='active'"), TYPES)

    assert isinstance(typed, And)
    assert [type(operand) for operand in typed.operands] == [Or, type(clauses(typed)[0])]
    accepts = predicate(typed)
    assert [accepts({"role": role, "status": "active"}) for role in ("teacher", "aide", "student")] == [
        True,
        True,
        False,
    ]
    assert not accepts({"role": "teacher", "status": "tobedeleted"})


WRITTEN = {
    "a word": ("role  in 'a,b'", "role in 'a,b'"),
    "signs": ("role !* 'a'", "role!*'a'"),
    "a function": ("year( birthDate ) = '2012' AND role in 'it''s'", "year(birthDate)='2012' AND role in 'it''s'"),
}


@pytest.mark.parametrize(("text", "written"), WRITTEN.values(), ids=WRITTEN)
def test_is_written_as_it_was_parsed(text: str, written: str) -> None:
    expr = DIALECT.parse(text)

    assert to_text(expr) == written
    assert DIALECT.parse(written) == expr


BUILT: dict[str, tuple[Expr, str]] = {
    "an operator": (F("role").compare(IN, "a,b"), "role in 'a,b'"),
    "an operator and a list": (F("role").compare(NOT_IN, ["a", "b"]), "role!*'a,b'"),
    "a function": (F("birthDate", YEAR) > "2012", "year(birthDate)>'2012'"),
    "an operator on a function": (F("birthDate", YEAR).compare(IN, "2012,2013"), "year(birthDate) in '2012,2013'"),
}


@pytest.mark.parametrize(("expr", "text"), BUILT.values(), ids=BUILT)
def test_is_built_in_python(expr: Expr, text: str) -> None:
    assert to_text(expr) == text
    assert DIALECT.parse(text) == expr


def test_the_same_text_in_two_dialects_is_parsed_by_each() -> None:
    other = Dialect(operators=[ExtraOperator("in", IN.expand)])
    text = "role in 'a'"

    assert DIALECT.parse(text) == DIALECT.parse(text)
    assert DIALECT.parse(text) != other.parse(text)
    with pytest.raises(FilterSyntaxError):
        parse(text)


def test_the_limits_are_those_of_the_dialect() -> None:
    text = " OR ".join(["role='x'"] * 21)

    assert len(clauses(DIALECT.parse(text[: -len(" OR role='x'")]))) == 20
    with pytest.raises(LimitError, match="more than 20 clauses"):
        DIALECT.parse(text)
    with pytest.raises(LimitError, match="the maximum is 10"):
        Dialect(max_length=10).parse(text)
    with pytest.raises(LimitError, match="more than 2 clauses"):
        Dialect().parse(text)


MANY = 3000


@pytest.mark.parametrize("operator", ["in", "!*"])
def test_a_list_may_be_longer_than_an_expression_of_sqlite_may_be_deep(operator: str) -> None:
    dialect = Dialect(max_length=MANY * 8, operators=[IN, NOT_IN])
    listed = ",".join(f"x{number}" for number in range(MANY))
    typed = check(dialect.parse(f"role {operator} '{listed}'"), {"role": str})
    table = sa.table("t", sa.column("role"))
    condition, values = sql_text(typed, {"role": "role"}, database="sqlite", paramstyle="qmark")
    engine = sa.create_engine("sqlite://")
    with engine.connect() as connection:
        connection.exec_driver_sql("CREATE TABLE t (role TEXT)")
        connection.exec_driver_sql("INSERT INTO t VALUES ('x7'), ('y')")
        chosen = connection.scalars(
            sa.select(table.c.role).where(sqlalchemy_where(typed, {"role": table.c.role}))
        ).all()
        plain = connection.exec_driver_sql(f"SELECT role FROM t WHERE {condition}", values).scalars().all()
    engine.dispose()

    assert chosen == plain == (["x7"] if operator == "in" else ["y"])


REFUSED = {
    "an unknown word": ("role on 'a'", "operator-in-words", "on 'a'"),
    "a word without a value": ("role in a", "operator-in-words", "in a"),
    "a word without a field": ("role='a' AND in 'a'", "field-missing", "in 'a'"),
    "an unknown function": ("month(birthDate)='1'", "function", "(birthDate)='1'"),
    "a function of nothing": ("year()='1'", "function", "()='1'"),
    "an operator that the function does not have": ("year(birthDate)~'1'", "operator-not-taken", "~'1'"),
    "an unknown field in a function": ("year(birthdate)='2012'", "unknown-field", "year(birthdate)='2012'"),
    "a value that the function cannot take": ("role='a' AND year(birthDate)='12'", "not-a-day", "'12'"),
    "a value that the operator refuses": ("status='a' OR grades between '9'", "value-refused", "'9'"),
    "a value of which nothing can be made": ("status='a' OR grades between ''", "value-refused", "''"),
    "an item of the wrong kind": ("birthDate in '2012-02-29,x'", "not-a-day", "'2012-02-29,x'"),
    "an operator that the kind does not have": ("year(grades)>'12'", "operator-not-taken", ">'12'"),
}


@pytest.mark.parametrize(("text", "code", "rest"), REFUSED.values(), ids=REFUSED)
def test_an_error_refers_to_the_clause_as_it_is_written(text: str, code: str, rest: str) -> None:
    with pytest.raises(FilterError) as caught:
        check(DIALECT.parse(text), TYPES)

    error = caught.value
    assert (error.code, error.text) == (code, text)
    assert error.column is not None
    assert text[error.column :] == rest


def test_an_error_in_a_built_clause_refers_to_its_own_text() -> None:
    with pytest.raises(FilterError) as caught:
        check(F("birthDate").compare(IN, "x"), TYPES)

    assert caught.value.caret == "birthDate in 'x'\n             ^"


def test_an_error_names_the_operators_of_the_dialect() -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        DIALECT.parse("role on 'a'")

    assert caught.value.expected[-3:] == ("in", "!*", "between")
    assert caught.value.hint == "the operators are = != > >= < <= ~ in !* between"


def test_an_operator_says_why_it_refuses_a_value() -> None:
    with pytest.raises(FilterValueError, match="the operator between refuses the value: write two values and a comma"):
        check(DIALECT.parse("role between 'a'"), TYPES)


def test_an_operator_that_a_function_does_not_have_is_answered_with_those_that_it_has() -> None:
    with pytest.raises(FilterError) as caught:
        check(DIALECT.parse("year(birthDate)~'1'"), TYPES)

    assert caught.value.message == "year(birthDate) is a function, which does not have the operator ~"
    assert caught.value.expected == ("=", ">")


@pytest.mark.parametrize("value", ["", "=", "~", "AND", "OR", "not in", "a1", "'", "(", ".x", "=a"])
def test_an_operator_that_could_not_be_read_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="an extra operator is"):
        ExtraOperator(value, IN.expand)


@pytest.mark.parametrize("name", ["", "a b", "a.b", "2nd", "x("])
def test_a_function_that_could_not_be_read_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="the name of a function"):
        Function(name, {})


@pytest.mark.parametrize(
    "extras", [{"operators": [IN, IN]}, {"functions": [YEAR, YEAR]}], ids=["operators", "functions"]
)
def test_two_that_are_written_alike_are_refused(extras: dict) -> None:
    with pytest.raises(ValueError, match="written alike"):
        Dialect(**extras)


def test_clauses_of_a_dialect_are_compared_by_operator_and_function() -> None:
    assert Clause("a", IN, "x") != Clause("a", NOT_IN, "x")
    assert Clause("a", Operator.EQUAL, "x") != Clause("a", Operator.EQUAL, "x", function=YEAR)
