"""The back ends and sources of types that need another package: what each takes and refuses."""

import sqlite3
from datetime import UTC, date, datetime
from enum import Enum
from types import SimpleNamespace
from typing import Literal
from uuid import UUID

import pytest
import sqlalchemy as sa
from oneroster_filter import (
    ColumnError,
    FieldType,
    FieldTypesError,
    Kind,
    LimitError,
    RecordError,
    add_sqlite_functions,
    check,
    field_types,
    parse,
    predicate,
    sql_text,
)
from oneroster_filter.dialect import Dialect
from oneroster_filter.pandas import pandas_mask
from oneroster_filter.polars import polars_mask
from oneroster_filter.sqlalchemy import apply_filter, sqlalchemy_fields, sqlalchemy_where
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

from .back_ends import TEXT_COLUMNS
from .samples import TYPES


def typed(text: str):
    return check(parse(text), TYPES)


# Plain text of SQL

SPELLED = {
    "qmark": ("sqlite", "(users.status) COLLATE BINARY = ? AND users.modified BETWEEN ? AND ?"),
    "format": ("postgresql", "(users.status) = %s AND users.modified BETWEEN %s AND %s"),
    "dollar": ("postgresql", "(users.status) = $1 AND users.modified BETWEEN $2 AND $3"),
    "pyformat": ("postgresql", "(users.status) = %s AND users.modified BETWEEN %s AND %s"),
    "numeric": ("mysql", "(users.status) COLLATE utf8mb4_0900_bin = :1 AND users.modified BETWEEN :2 AND :3"),
}


@pytest.mark.parametrize("paramstyle", SPELLED)
def test_the_text_has_the_placeholders_of_the_driver(paramstyle: str) -> None:
    database, expected = SPELLED[paramstyle]

    text, values = sql_text(
        typed("status='a' AND dateLastModified='2026-01-01'"), TEXT_COLUMNS, database=database, paramstyle=paramstyle
    )

    assert text == expected
    assert values[0] == "a"


UNKNOWN = {
    "a style of placeholders": ({"paramstyle": "named"}, "paramstyle is one of qmark, format, .* not 'named'"),
    "a database": ({"database": "oracle"}, "database is one of postgresql, sqlite, mysql, mariadb, not 'oracle'"),
    "no database in particular": ({"database": "default"}, "not 'default'"),
}


@pytest.mark.parametrize(("options", "message"), UNKNOWN.values(), ids=UNKNOWN)
def test_the_text_is_refused_for(options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sql_text(typed("status='a'"), TEXT_COLUMNS, **options)


BOUND = {
    ("postgresql", "grades='09,10'"): ["09", "10"],
    ("sqlite", "grades='09,10'"): '["09", "10"]',
    ("mariadb", "grades='09,10'"): '["09", "10"]',
    ("postgresql", "dateLastModified<'2026-01-01T01:00:00+01:00'"): datetime(2026, 1, 1, tzinfo=UTC),
    ("sqlite", "dateLastModified<'2026-01-01'"): "2026-01-01 00:00:00.000000",
    ("mysql", "dateLastModified<'2026-01-01'"): datetime(2026, 1, 1),  # noqa: DTZ001
    ("postgresql", "birthDate='2026-01-01'"): date(2026, 1, 1),
    ("sqlite", "birthDate='2026-01-01'"): "2026-01-01",
    ("sqlite", "enabledUser='true'"): True,
    ("mysql", "status~'10%'"): "%10/%%",
}


@pytest.mark.parametrize(("database", "text"), BOUND)
def test_the_values_of_the_text_are_those_of_the_driver(database: str, text: str) -> None:
    assert sql_text(typed(text), TEXT_COLUMNS, database=database).values == (BOUND[database, text],)


@pytest.mark.parametrize("text", ["status='a'", "roles.role='a'"])
def test_the_text_needs_a_column_for_each_field(text: str) -> None:
    with pytest.raises(ColumnError):
        sql_text(typed(text), {"roles.role": "roles.role"})


def test_the_text_takes_a_function_of_columns_and_keeps_its_shape_inside_another_condition() -> None:
    connection = sqlite3.connect(":memory:")
    add_sqlite_functions(connection)
    connection.execute("CREATE TABLE users (status TEXT, role TEXT)")
    connection.execute("INSERT INTO users VALUES ('ACTIVE', NULL)")
    condition = sql_text(
        typed("status~'active' OR role!='x'"), lambda name: f"users.{name}", database="sqlite", paramstyle="qmark"
    )

    statement = f"SELECT count(*) FROM users WHERE {condition.text} AND status = 'other'"
    assert connection.execute(statement, condition.values).fetchone() == (0,)
    connection.close()


# Classes of SQLAlchemy


class Base(DeclarativeBase):
    pass


class Org(Base):
    __tablename__ = "model_orgs"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    parent_id: Mapped[int | None] = mapped_column(sa.ForeignKey("model_orgs.id"))
    parent: Mapped["Org | None"] = relationship(remote_side="Org.id")
    members: Mapped[list["User"]] = relationship(viewonly=True)


class Role(Base):
    __tablename__ = "model_roles"
    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(sa.ForeignKey("model_users.id"))
    role: Mapped[str]
    org_id: Mapped[int | None] = mapped_column(sa.ForeignKey("model_orgs.id"))
    org: Mapped[Org | None] = relationship()
    users: Mapped[list["User"]] = relationship(
        viewonly=True, primaryjoin="User.id == foreign(Role.user_id)", uselist=True
    )


class User(Base):
    __tablename__ = "model_users"
    id: Mapped[int] = mapped_column(primary_key=True)
    family_name: Mapped[str | None]
    level: Mapped[Literal["low", "high"] | None]
    enabled: Mapped[bool | None]
    modified: Mapped[datetime | None]
    born: Mapped[date | None]
    grades: Mapped[list[str] | None] = mapped_column(sa.ARRAY(sa.Text()).with_variant(sa.JSON(), "sqlite"))
    extra: Mapped[dict[str, str] | None] = mapped_column(sa.JSON())
    school_id: Mapped[int | None] = mapped_column(sa.ForeignKey("model_orgs.id"))
    school: Mapped[Org | None] = relationship()
    roles: Mapped[list[Role]] = relationship(viewonly=True)
    owned: Mapped[list[Role]] = relationship(overlaps="roles")


class Shade(Enum):
    DARK = "dark"
    LIGHT = "light"


class LowerCase(sa.TypeDecorator[str]):
    impl = sa.String
    cache_ok = True


IDENTIFIER = UUID("0b5e4e8c-6b1f-4d43-9d55-000000000001")
TYPED = sa.Table(
    "typed",
    sa.MetaData(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("shade", sa.Enum(Shade)),
    sa.Column("shade_by_value", sa.Enum(Shade, name="s", values_callable=lambda cls: [one.value for one in cls])),
    sa.Column("identifier", sa.Uuid),
    sa.Column("text_identifier", sa.Uuid(native_uuid=False)),
    sa.Column("nickname", LowerCase),
    sa.Column("grades", sa.JSON(none_as_null=False)),
    sa.Column("year", sa.Integer),
)
TYPED_ROWS = (
    {
        "id": 1,
        "shade": Shade.DARK,
        "shade_by_value": Shade.DARK,
        "identifier": IDENTIFIER,
        "text_identifier": IDENTIFIER,
        "nickname": "ada",
        "grades": ["09", "10"],
        "year": 2026,
    },
    {"id": 2, "shade": Shade.LIGHT, "shade_by_value": Shade.LIGHT, "nickname": "b", "grades": [], "year": 202},
    {"id": 3},
)
TYPED_NAMES = [column.name for column in TYPED.c if column.name != "id"]
FOUND = {
    "shade='dark'": [1],
    "shade='DARK'": [],
    "shade!='dark'": [2, 3],
    "shade~'IGH'": [2],
    "shade>='e'": [2],
    "shade_by_value='dark'": [1],
    f"identifier='{IDENTIFIER}'": [1],
    f"identifier!='{IDENTIFIER}'": [2, 3],
    "identifier~'4D43-9'": [1],
    f"text_identifier='{IDENTIFIER}'": [1],
    "nickname='ada'": [1],
    "nickname!='ada'": [2, 3],
    "grades='10'": [1],
    "grades!='10'": [2, 3],
    "grades~'11,09'": [1],
    "year='2026'": [1],
    "year~'02'": [1, 2],
    "year!='2026'": [2, 3],
}


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_table_gives_types_and_columns_of_every_type(
    request: pytest.FixtureRequest, database: str, collation: str
) -> None:
    connection: sa.Connection = request.getfixturevalue(database)
    types, columns = sqlalchemy_fields(TYPED, TYPED_NAMES, kinds={"year": Kind.TEXT})
    with connection.begin_nested() as nested:
        TYPED.create(connection)
        for row in TYPED_ROWS:
            connection.execute(TYPED.insert(), row)

        def find(text: str) -> list[int]:
            condition = sqlalchemy_where(check(parse(text), types), columns, collation=collation)
            return list(connection.scalars(sa.select(TYPED.c.id).where(condition).order_by(TYPED.c.id)))

        assert {text: find(text) for text in FOUND} == FOUND
        nested.rollback()


SPELLED_EXACTLY = {
    "a collation of its own": (sa.Text(collation="ci"), '(x COLLATE "C") = %(param_1)s'),
    "a collation of PostgreSQL": (sa.Text(collation="de-x-icu"), "(x) = %(param_1)s"),
    "citext": (sa.dialects.postgresql.CITEXT(), "(CAST(x AS TEXT)) = %(param_1)s"),
}


@pytest.mark.parametrize(("type_", "expected"), SPELLED_EXACTLY.values(), ids=SPELLED_EXACTLY)
def test_postgresql_compares_to_the_letter_whatever_the_column_does(type_, expected: str) -> None:
    condition = sqlalchemy_where(typed("status='a'"), {"status": sa.column("x", type_)})

    assert str(condition.compile(dialect=sa.dialects.postgresql.psycopg2.dialect())) == expected


def test_a_collation_of_the_column_means_nothing_elsewhere() -> None:
    condition = sqlalchemy_where(typed("status='a'"), {"status": sa.column("x", sa.Text(collation="ci"))})

    assert str(condition.compile(dialect=sa.dialects.sqlite.dialect())) == "(x) COLLATE BINARY = ?"


NAMES = {
    "familyName": "family_name",
    "level": "level",
    "enabledUser": "enabled",
    "dateLastModified": "modified",
    "birthDate": "born",
    "grades": "grades",
    "metadata.*": "extra",
    "school.name": "school.name",
    "school.parent.name": "school.parent.name",
    "roles.role": "roles.role",
    "roles.org.name": "roles.org.name",
    "roles.users.name": "roles.users.family_name",
    "classmates": "school.members.family_name",
}


@pytest.fixture(scope="module")
def session():
    engine = sa.create_engine("sqlite://")
    sa.event.listen(engine, "connect", add_sqlite_functions)
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        top, low = Org(id=1, name="district"), Org(id=2, name="school", parent_id=1)
        one = User(
            id=1,
            family_name="Lovelace",
            level="high",
            enabled=True,
            modified=datetime(2026, 11, 21, 2),  # noqa: DTZ001
            born=date(2012, 2, 29),
            grades=["09"],
            extra={"tier": "1"},
            school=low,
            owned=[Role(id=1, role="aide", org=top), Role(id=2, role="teacher")],
        )
        session.add_all([top, low, one, User(id=2)])
        session.flush()
        yield session
    engine.dispose()


CHOSEN = {
    "familyName~'LOVE'": [1],
    "level='high'": [1],
    "level!='low'": [1, 2],
    "enabledUser='true'": [1],
    "dateLastModified='2026-11-21'": [1],
    "birthDate!='2012-02-29'": [2],
    "grades='09'": [1],
    "metadata.tier='1'": [1],
    "metadata.tier!='1'": [2],
    "school.name='school'": [1],
    "school.name!='school'": [2],
    "school.parent.name='district'": [1],
    "school.parent.name!='district'": [2],
    "roles.role='teacher'": [1],
    "roles.role!='teacher'": [2],
    "roles.org.name='district'": [1],
    "roles.org.name!='district'": [2],
    "roles.users.name='Lovelace'": [1],
    "classmates='Lovelace'": [1],
    "classmates!='Lovelace'": [2],
}


@pytest.mark.parametrize("text", CHOSEN)
def test_a_mapped_class_gives_types_and_columns(session: Session, text: str) -> None:
    statement = apply_filter(sa.select(User.id).order_by(User.id), text, sqlalchemy_fields(User, NAMES))

    assert session.scalars(statement).all() == CHOSEN[text]


def test_one_call_takes_a_request_without_a_filter_and_a_dialect(session: Session) -> None:
    schema, everyone = sqlalchemy_fields(User, NAMES), sa.select(User.id)
    three = "level='high' OR level='low' OR level='none'"

    assert apply_filter(everyone, None, schema) is everyone
    with pytest.raises(LimitError):
        apply_filter(everyone, three, schema)
    assert session.scalars(apply_filter(everyone, three, schema, dialect=Dialect(max_clauses=3))).all() == [1]
    update = apply_filter(sa.update(User), "familyName~'x'", schema, contains=lambda text, value: text == value)
    assert str(update).endswith("WHERE model_users.family_name = :param_1")


def test_only_named_attributes_of_a_class_are_fields() -> None:
    assert sqlalchemy_fields(User, ["family_name", "roles.role"]).types == {
        "family_name": FieldType(Kind.TEXT),
        "roles.role": FieldType(Kind.TEXT, many=True),
    }


WRONG_NAMES = {
    "a relationship": (
        "school",
        "school: .*User.school is no column; of a relationship, name an attribute: school.NAME",
    ),
    "what only looks like an attribute": ("metadata.*", r"metadata.\*: .* is no column"),
    "keys of a text": ("family_name.*", r"family_name.\*: only a column of JSON has keys, .* the type .*String"),
    "no attribute": ("shoe_size", "shoe_size: .*User.* has no shoe_size; it has .*family_name"),
    "a number": ("id", "id: no kind of field fits the column type .*; name one in `kinds`"),
    "a name below a column": ("family_name.x", "family_name.* is not a relationship"),
}


@pytest.mark.parametrize(("name", "message"), WRONG_NAMES.values(), ids=WRONG_NAMES)
def test_an_attribute_that_is_no_field_is_refused(name: str, message: str) -> None:
    with pytest.raises(FieldTypesError, match=message):
        sqlalchemy_fields(User, [name])


def test_what_is_no_schema_is_refused_with_what_to_give() -> None:
    with pytest.raises(FieldTypesError, match=r"a mapped class or a table, not from \{'id': 1\}"):
        sqlalchemy_fields({"id": 1}, ["name"])  # type: ignore[arg-type]
    for text in (None, "id='1'"):
        with pytest.raises(FieldTypesError, match=r"what sqlalchemy_fields returned, or Schema.*, not \{'id': .*\}"):
            apply_filter(sa.select(User.id), text, {"id": User.id})  # type: ignore[arg-type]


def test_an_attribute_of_a_table_is_a_column() -> None:
    with pytest.raises(FieldTypesError, match=r"has no nothing; it has .*nickname"):
        sqlalchemy_fields(TYPED, ["nothing"])
    with pytest.raises(FieldTypesError, match="nickname"):
        sqlalchemy_fields(TYPED, ["nickname.x"])
    table = sa.Table("t", sa.MetaData(), sa.Column("keys", sa.Text))
    assert sqlalchemy_fields(table, ["keys"]).types == {"keys": FieldType(Kind.TEXT)}


class Place(Enum):
    FIRST = 1


WITHOUT_TEXT = {
    "a fraction": (sa.Numeric(), "ways"),
    "a float": (sa.Float(), "ways"),
    "an enumeration of numbers": (sa.Enum(Place), "if its values are texts"),
}


@pytest.mark.parametrize(("type_", "message"), WITHOUT_TEXT.values(), ids=WITHOUT_TEXT)
def test_a_column_without_a_certain_text_is_refused_as_one(type_, message: str) -> None:
    with pytest.raises(FieldTypesError, match=message):
        sqlalchemy_fields(sa.table("t", sa.column("c", type_)), ["c"], kinds={"c": Kind.TEXT})


def test_a_kind_of_a_field_that_is_not_named_is_refused() -> None:
    with pytest.raises(FieldTypesError, match="no field of these names: yaer"):
        sqlalchemy_fields(TYPED, ["year"], kinds={"yaer": Kind.TEXT})


OPEN = sa.Table("open", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True), sa.Column("extra", sa.JSON))
OPEN_VALUES = (True, False, "true", 1, "", None)
KEYS_FOUND = {"true": [0, 2], "false": [1], "1": [3], "": [4]}


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_key_of_json_is_the_text_of_its_value(request: pytest.FixtureRequest, database: str) -> None:
    connection: sa.Connection = request.getfixturevalue(database)
    schema = sqlalchemy_fields(OPEN, {"metadata.*": "extra.*"})
    with connection.begin_nested() as nested:
        OPEN.create(connection)
        connection.execute(OPEN.insert(), [{"id": place, "extra": {"k": it}} for place, it in enumerate(OPEN_VALUES)])

        def find(value: str, sign: str) -> list[int]:
            chosen = apply_filter(sa.select(OPEN.c.id).order_by(OPEN.c.id), f"metadata.k{sign}'{value}'", schema)
            return list(connection.scalars(chosen))

        assert {value: find(value, "=") for value in KEYS_FOUND} == KEYS_FOUND
        assert find("true", "!=") == [1, 3, 4, 5]
        nested.rollback()
    for value, places in KEYS_FOUND.items():
        test = predicate(check(parse(f"metadata.k='{value}'"), schema.types))
        assert [place for place, it in enumerate(OPEN_VALUES) if test({"metadata": {"k": it}})] == places


def test_django_refuses_a_database_with_another_meaning() -> None:
    django_condition = pytest.importorskip("oneroster_filter.django")
    [comparison] = django_condition.django_q(typed("status='a'"), {"status": "status"}).children

    with pytest.raises(django_condition.NotSupportedError, match="no SQL for oracle: the databases are postgresql"):
        comparison.as_sql(None, SimpleNamespace(vendor="oracle"))


# Data frames


@pytest.fixture
def pandas():
    return pytest.importorskip("pandas")


@pytest.fixture
def polars():
    return pytest.importorskip("polars")


FRAME_TYPES = {"name": str, "born": date, "since": datetime, "grades": list[str], "grade": str, "enabled": bool}


def test_a_pandas_mask_has_the_index_of_the_frame_and_takes_what_pandas_has_for_nothing(pandas) -> None:
    frame = pandas.DataFrame(
        {
            "name": ["Nan", None, float("nan"), pandas.NA],
            "born": pandas.to_datetime(["2012-02-29", None, None, None]),
            "since": pandas.to_datetime(["2026-11-21T02:00:00.000000999Z", None, None, None], format="ISO8601"),
            "enabled": pandas.array([True, None, None, None], dtype="boolean"),
            "grade": [9, None, None, None],
        },
        index=["a", "b", "c", "d"],
    )

    def mask(text: str) -> list[str]:
        chosen = pandas_mask(check(parse(text), FRAME_TYPES), frame)
        assert chosen.dtype == bool
        return list(frame.index[chosen])

    assert mask("name~'nan'") == ["a"]
    assert mask("name!='Nan' AND born!='2012-02-29'") == ["b", "c", "d"]
    assert mask("born='2012-02-29' AND enabled='true'") == ["a"]
    assert mask("since='2026-11-21T02:00:00.000Z'") == ["a"]
    assert mask("grade='9'") == ["a"]


UNCERTAIN = {
    "a fraction": [9, 9.5, None],
    "too large": [9, 2.0**53, None],
    "infinite": [9, float("inf"), None],
    "without a gap": [9, 10.0, 11],
}


@pytest.mark.parametrize("values", UNCERTAIN.values(), ids=UNCERTAIN)
def test_a_pandas_column_that_may_be_of_fractions_stays_one(pandas, values: list[float]) -> None:
    mask = pandas_mask(check(parse("grade='9.0'"), FRAME_TYPES), pandas.DataFrame({"grade": values}))

    assert list(mask) == [True, False, False]


def test_the_mask_of_an_empty_frame_is_empty(pandas, polars) -> None:
    expr = check(parse("name='x'"), FRAME_TYPES)

    assert list(pandas_mask(expr, pandas.DataFrame({"name": []}))) == []
    assert polars.DataFrame({"name": []}).filter(polars_mask(expr, polars.DataFrame({"name": []}))).height == 0


def test_a_polars_mask_filters_the_frame(polars) -> None:
    frame = polars.DataFrame({"name": ["a", None], "class.sourcedId": ["c1", "c2"], "grades": [["09"], None]})
    types = {"name": str, "class.sourcedId": str, "grades": list[str]}

    def choose(text: str) -> list[str]:
        return frame.filter(polars_mask(check(parse(text), types), frame))["class.sourcedId"].to_list()

    assert choose("name!='a'") == ["c2"]
    assert choose("class.sourcedId='c1' AND grades~'09,10'") == ["c1"]


def test_a_frame_needs_one_column_for_each_field(pandas) -> None:
    expr = check(parse("name='x'"), FRAME_TYPES)

    for columns in (["other"], ["name", "name"]):
        with pytest.raises(ColumnError, match="name"):
            pandas_mask(expr, pandas.DataFrame([["x"] * len(columns)], columns=columns))


def test_a_value_of_a_frame_that_is_not_of_its_kind_is_refused(pandas) -> None:
    with pytest.raises(RecordError):
        pandas_mask(check(parse("enabled='true'"), FRAME_TYPES), pandas.DataFrame({"enabled": [2]}))


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_a_moment_of_a_frame_is_a_day_only_at_midnight_without_a_zone(pandas, zone: str | None) -> None:
    expr = check(parse("born='2026-11-21'"), {"born": Kind.DAY})

    for hour, is_day in ((0, zone is None), (9, False)):
        moments = pandas.to_datetime(pandas.Series([f"2026-11-21T{hour:02}:00:00"])).dt.tz_localize(zone)
        frame = pandas.DataFrame({"born": moments})
        if is_day:
            assert list(pandas_mask(expr, frame)) == [True]
        else:
            with pytest.raises(RecordError):
                pandas_mask(expr, frame)


FRAMES = {
    "text": ("name", str, ["b", None, "Ärger", "c"], ["name>='b'", "name~'ÄR'", "name!='b'", "name<'b'"]),
    "flags": ("on", bool, [True, None, False], ["on='true'", "on!='true'"]),
    "days": (
        "born",
        date,
        [date(2012, 2, 29), None, date(1815, 12, 10)],
        ["born='2012-02-29'", "born!='2012-02-29'", "born<='1815-12-10'", "born>'0001-01-01'"],
    ),
    "instants": (
        "since",
        datetime,
        [datetime(2026, 11, 21, 2, 0, 0, 123456, UTC), None, datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)],
        [
            "since='2026-11-21T02:00:00.123Z'",
            "since!='2026-11-21'",
            "since>'1969-12-31T23:59:59.998Z'",
            "since<='9999-12-31'",
            "since<'0001-01-02'",
        ],
    ),
    "lists": (
        "grades",
        list[str],
        [["09", "10"], None, [], ["10"]],
        ["grades='09,10'", "grades~'09,K'", "grades!='10'"],
    ),
    "texts of the wire": (
        "since",
        datetime,
        ["2026-11-21T02:00:00Z", None],
        ["since='2026-11-21'", "since!='2026-11-21'"],
    ),
    "nothing at all": ("name", str, [None, None], ["name='a'", "name!='a'"]),
}
"""A column, its type, its values, and filters. Nothing but the plain predicate says which rows they select."""


@pytest.mark.parametrize("unit", ["ns", "us", "ms"])
@pytest.mark.parametrize(("name", "type_", "values", "texts"), FRAMES.values(), ids=FRAMES)
def test_a_mask_compares_a_column_as_the_predicate_does(
    pandas, polars, name: str, type_, values: list, texts: list[str], unit: str
) -> None:
    series = polars.Series(name, values)
    if series.dtype == polars.Datetime:
        series = series.dt.cast_time_unit(unit)
    table = polars.DataFrame([series])
    columns = [pandas.Series(values, dtype=object)]
    if isinstance(values[0], date):
        columns.append(pandas.Series(pandas.to_datetime(values, utc=type_ is datetime)).dt.as_unit(unit))
    for text in texts:
        wanted = check(parse(text), {name: type_})
        expected = [predicate(wanted)({name: value}) for value in series.to_list()]

        assert table.select(polars_mask(wanted, table)).to_series().to_list() == expected, text
        for column in columns:
            assert pandas_mask(wanted, pandas.DataFrame({name: column})).tolist() == expected, text


def test_a_lazy_frame_is_filtered_by_an_expression(polars) -> None:
    frame = polars.LazyFrame({"name": ["a", None], "since": ["2026-11-21", None]})
    types = {"name": str, "since": datetime}

    assert frame.filter(polars_mask(check(parse("name!='a'"), types), frame)).collect().height == 1
    with pytest.raises(ColumnError, match="since: a lazy frame needs a column of its kind, not of String"):
        polars_mask(check(parse("since='2026-11-21'"), types), frame)


def test_a_struct_of_polars_is_compared_inside(polars) -> None:
    frame = polars.DataFrame(
        {
            "class": [{"sourcedId": "c1"}, None],
            "roles": [[{"role": "aide"}, {"role": "teacher"}], []],
            "words": [[["a"], ["b", "c"]], None],
            "nicknames": [["x", "y"], ["z"]],
            "tag": ["t", None],
            "odd": [[{"since": "2026-11-21"}], []],
        }
    )
    types = {
        "class.sourcedId": FieldType(Kind.TEXT),
        "class.other": FieldType(Kind.TEXT),
        "roles.role": FieldType(Kind.TEXT, many=True),
        "roles.other": FieldType(Kind.TEXT, many=True),
        "words": FieldType(Kind.TEXTS, many=True),
        "nicknames": FieldType(Kind.TEXT, many=True),
        "tag": FieldType(Kind.TEXT, many=True),
        "odd.since": FieldType(Kind.INSTANT, many=True),
    }
    found = {
        "class.sourcedId='c1'": [True, False],
        "class.other!='c1'": [True, True],
        "roles.role='aide'": [True, False],
        "roles.role!='aide'": [False, True],
        "roles.other='aide'": [False, False],
        "words='b,c'": [True, False],
        "words!='b,c'": [False, True],
        "nicknames='y'": [True, False],
        "tag='t'": [True, False],
        "odd.since='2026-11-21'": [True, False],
    }

    def mask(text: str) -> list[bool]:
        return frame.select(polars_mask(check(parse(text), types), frame)).to_series().to_list()

    assert {text: mask(text) for text in found} == found
    with pytest.raises(RecordError):
        polars_mask(check(parse("tag.x='t'"), {"tag.x": Kind.TEXT}), frame)


# Types of pydantic and of Python


def test_of_a_pydantic_model() -> None:
    pydantic = pytest.importorskip("pydantic")
    from pydantic.alias_generators import to_camel

    class Ref(pydantic.BaseModel):
        sourced_id: pydantic.StrictStr = pydantic.Field(alias="sourcedId")

    class Shade(Enum):
        DARK = "dark"

    class Person(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(alias_generator=to_camel)

        family_name: str | None = None
        modified: pydantic.AwareDatetime
        born: pydantic.PastDate | None
        enabled: bool
        grades: list[str]
        role: Literal["student", "teacher"]
        school: Ref
        classes: list[Ref]
        metadata: dict[str, str]
        shade: Shade
        identifier: UUID
        own: pydantic.UUID4
        address: pydantic.HttpUrl | None
        age: int
        password: str = pydantic.Field(exclude=True)
        nickname: str = pydantic.Field(serialization_alias="knownAs")

    # A model with one needs a further package.
    assert field_types({"email": pydantic.EmailStr}) == {"email": FieldType(Kind.TEXT)}
    assert field_types(Person) == {
        "familyName": FieldType(Kind.TEXT),
        "modified": FieldType(Kind.INSTANT),
        "born": FieldType(Kind.DAY),
        "enabled": FieldType(Kind.FLAG),
        "grades": FieldType(Kind.TEXTS),
        "role": FieldType(Kind.TEXT),
        "school.sourcedId": FieldType(Kind.TEXT),
        "classes.sourcedId": FieldType(Kind.TEXT, many=True),
        "metadata.*": FieldType(Kind.TEXT),
        "shade": FieldType(Kind.TEXT),
        "identifier": FieldType(Kind.TEXT),
        "own": FieldType(Kind.TEXT),
        "address": FieldType(Kind.TEXT),
        "knownAs": FieldType(Kind.TEXT),
    }
