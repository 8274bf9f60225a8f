"""The back ends and sources of types that need another package: what each takes and refuses."""

import sqlite3
import sys
from datetime import UTC, date, datetime
from typing import Literal

import oneroster_filter
import pytest
import sqlalchemy as sa
from oneroster_filter import (
    ColumnError,
    FieldType,
    Kind,
    RecordError,
    add_sqlite_functions,
    check,
    field_types,
    parse,
    sql_text,
    sqlalchemy_fields,
    sqlalchemy_where,
)
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
    types, columns = sqlalchemy_fields(User, NAMES)

    condition = sqlalchemy_where(check(parse(text), types), columns)

    assert session.scalars(sa.select(User.id).where(condition).order_by(User.id)).all() == CHOSEN[text]


def test_only_named_attributes_of_a_class_are_fields() -> None:
    assert sqlalchemy_fields(User, ["family_name", "roles.role"]).types == {
        "family_name": FieldType(Kind.TEXT),
        "roles.role": FieldType(Kind.TEXT, many=True),
    }


WRONG_NAMES = {
    "no attribute": ("shoe_size", AttributeError),
    "a number": ("id", TypeError),
    "JSON without a star": ("extra", TypeError),
    "a name below a column": ("family_name.x", TypeError),
}


@pytest.mark.parametrize(("name", "error"), WRONG_NAMES.values(), ids=WRONG_NAMES)
def test_an_attribute_that_is_no_field_is_refused(name: str, error: type[Exception]) -> None:
    with pytest.raises(error, match=name.partition(".")[0]):
        sqlalchemy_fields(User, [name])


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
        chosen = oneroster_filter.pandas_mask(check(parse(text), FRAME_TYPES), frame)
        assert chosen.dtype == bool
        return list(frame.index[chosen])

    assert mask("name~'nan'") == ["a"]
    assert mask("name!='Nan' AND born!='2012-02-29'") == ["b", "c", "d"]
    assert mask("born='2012-02-29' AND enabled='true'") == ["a"]
    assert mask("since='2026-11-21T02:00:00.000Z'") == ["a"]
    assert mask("grade='9.0'") == ["a"]


def test_the_mask_of_an_empty_frame_is_empty(pandas, polars) -> None:
    expr = check(parse("name='x'"), FRAME_TYPES)

    assert list(oneroster_filter.pandas_mask(expr, pandas.DataFrame({"name": []}))) == []
    assert (
        polars.DataFrame({"name": []}).filter(oneroster_filter.polars_mask(expr, polars.DataFrame({"name": []}))).height
        == 0
    )


def test_a_polars_mask_filters_the_frame(polars) -> None:
    frame = polars.DataFrame({"name": ["a", None], "class.sourcedId": ["c1", "c2"], "grades": [["09"], None]})
    types = {"name": str, "class.sourcedId": str, "grades": list[str]}

    def choose(text: str) -> list[str]:
        return frame.filter(oneroster_filter.polars_mask(check(parse(text), types), frame))["class.sourcedId"].to_list()

    assert choose("name!='a'") == ["c2"]
    assert choose("class.sourcedId='c1' AND grades~'09,10'") == ["c1"]


def test_a_frame_needs_one_column_for_each_field(pandas) -> None:
    expr = check(parse("name='x'"), FRAME_TYPES)

    for columns in (["other"], ["name", "name"]):
        with pytest.raises(ColumnError, match="name"):
            oneroster_filter.pandas_mask(expr, pandas.DataFrame([["x"] * len(columns)], columns=columns))


def test_a_value_of_a_frame_that_is_not_of_its_kind_is_refused(pandas) -> None:
    with pytest.raises(RecordError):
        oneroster_filter.pandas_mask(check(parse("enabled='true'"), FRAME_TYPES), pandas.DataFrame({"enabled": [2]}))


# What is not installed


MISSING = {
    "sqlalchemy_where": ("sqlalchemy", "sql_where"),
    "folded": ("sqlalchemy", "sql_constructs"),
    "sqlalchemy_fields": ("sqlalchemy", "sqlalchemy_model"),
    "django_q": ("django", "django_condition"),
}


@pytest.mark.parametrize("name", MISSING)
def test_the_error_of_a_missing_package_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package, module = MISSING[name]
    monkeypatch.delitem(sys.modules, f"oneroster_filter.{module}", raising=False)
    for loaded in [package, *(one for one in sys.modules if one.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, loaded, None)

    with pytest.raises(ImportError, match=rf"oneroster-filter\[{package}\]"):
        getattr(oneroster_filter, name)


# Types of pydantic and of Python


def test_of_a_pydantic_model() -> None:
    pydantic = pytest.importorskip("pydantic")
    from pydantic.alias_generators import to_camel

    class Ref(pydantic.BaseModel):
        sourced_id: pydantic.StrictStr = pydantic.Field(alias="sourcedId")

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
        age: int
        password: str = pydantic.Field(exclude=True)
        nickname: str = pydantic.Field(serialization_alias="knownAs")

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
        "knownAs": FieldType(Kind.TEXT),
    }
