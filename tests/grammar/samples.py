"""One sort of record with a field of every kind, as field types, as SQL tables, and as things to draw from.

The tests of this folder share it: a filter in a table of cases names these fields.
"""

import string
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import sqlalchemy as sa
from hypothesis import strategies as st
from oneroster_filter import OPERATORS, Clause, FieldType, FieldTypes, Kind, Operator, Through, all_of, any_of
from oneroster_filter.typing import Expr
from sqlalchemy.dialects import mysql, postgresql

TYPES = FieldTypes(
    {
        "status": Kind.TEXT,
        "role": Kind.TEXT,
        "familyName": Kind.TEXT,
        "enabledUser": Kind.FLAG,
        "dateLastModified": Kind.INSTANT,
        "birthDate": Kind.DAY,
        "grades": Kind.TEXTS,
        "class.sourcedId": Kind.TEXT,
        "roles.role": FieldType(Kind.TEXT, many=True),
        "roles.beginDate": FieldType(Kind.DAY, many=True),
        "metadata.*": Kind.TEXT,
    }
)

METADATA = sa.MetaData()
TEXT_LIST = sa.JSON().with_variant(postgresql.ARRAY(sa.Text()), "postgresql")
USERS = sa.Table(
    "users",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("status", sa.Text),
    sa.Column("role", sa.Text),
    sa.Column("family_name", sa.Text),
    sa.Column("enabled", sa.Boolean),
    sa.Column("modified", sa.DateTime(timezone=True).with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")),
    sa.Column("born", sa.Date),
    sa.Column("grades", TEXT_LIST),
    sa.Column("class_id", sa.Text),
    sa.Column("extra", sa.JSON(none_as_null=True)),
    prefixes=["TEMPORARY"],
)
ROLES = sa.Table(
    "roles",
    METADATA,
    sa.Column("user_id", sa.Integer),
    sa.Column("role", sa.Text),
    sa.Column("begin", sa.Date),
    prefixes=["TEMPORARY"],
)


def has_role(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """The EXISTS around a condition on one role."""
    return sa.exists().where(ROLES.c.user_id == USERS.c.id, condition)


COLUMNS = {
    "status": USERS.c.status,
    "role": USERS.c.role,
    "familyName": USERS.c.family_name,
    "enabledUser": USERS.c.enabled,
    "dateLastModified": USERS.c.modified,
    "birthDate": USERS.c.born,
    "grades": USERS.c.grades,
    "class.sourcedId": USERS.c.class_id,
    "roles.role": Through(ROLES.c.role, has_role),
    "roles.beginDate": Through(ROLES.c.begin, has_role),
    "metadata.tier": USERS.c.extra["tier"].as_string(),
    "metadata.2nd-name": USERS.c.extra["2nd-name"].as_string(),
}

Record = Mapping[str, Any]


def load(connection: sa.Connection, records: Sequence[Record]) -> None:
    """Put records into the tables, in place of what was there; a record's place is its id."""
    connection.execute(sa.delete(USERS))
    connection.execute(sa.delete(ROLES))
    users = [
        {
            "id": part,
            "status": record.get("status"),
            "role": record.get("role"),
            "family_name": record.get("familyName"),
            "enabled": record.get("enabledUser"),
            "modified": _utc(record.get("dateLastModified")),
            "born": record.get("birthDate"),
            "grades": record.get("grades"),
            "class_id": (record.get("class") or {}).get("sourcedId"),
            "extra": record.get("metadata"),
        }
        for part, record in enumerate(records)
    ]
    roles = [
        {"user_id": part, "role": role.get("role"), "begin": role.get("beginDate")}
        for part, record in enumerate(records)
        for role in record.get("roles") or ()
    ]
    for table, rows in ((USERS, users), (ROLES, roles)):
        if rows:
            connection.execute(sa.insert(table), rows)


def _utc(moment: datetime | None) -> datetime | None:
    # SQLite keeps the digits of a datetime and drops its offset.
    return moment and moment.astimezone(UTC)


ALPHABET = st.characters(exclude_categories=("Cs", "Cn"), exclude_characters="\0")
"""Any character that Python's Unicode knows: of those that only a database knows, the letter case may be missing."""

NAMES = (
    "O'Brien",
    "o'brien",
    "ΣΊΣΥΦΟΣ",
    "σίσυφος",
    "İstanbul",
    "istanbul",
    "Straße",
    "%",
    "_",
    "a/b",
    "a_b",
    "a\\b",
    "",
    " ",
    "A",
    "a",
    "B",
)
ROLE_NAMES = ("student", "teacher", "Teacher", "aide")
GRADES = ("09", "10", "K", "k", "Ж")
MOMENTS = (
    datetime(2026, 11, 20, 23, 59, 59, 999999, UTC),
    datetime(2026, 11, 21, tzinfo=UTC),
    datetime(2026, 11, 21, 0, 0, 0, 999, UTC),
    datetime(2026, 11, 21, 0, 0, 0, 1000, UTC),
    datetime(2026, 11, 21, 2, 0, 0, 123456, UTC),
    datetime(2026, 11, 21, 23, 59, 59, 999999, UTC),
    datetime(2026, 11, 22, tzinfo=UTC),
)
DAYS = (date(2010, 2, 28), date(2010, 3, 1), date(2012, 2, 29))

texts = st.sampled_from(NAMES) | st.text(ALPHABET, max_size=6)
zones = st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45)), timezone(-timedelta(hours=8))])
near = st.integers(-(10**15), 10**15).map(lambda microseconds: MOMENTS[0] + timedelta(microseconds=microseconds))
moments = st.builds(lambda moment, zone: moment.astimezone(zone), st.sampled_from(MOMENTS) | near, zones)
days = st.sampled_from(DAYS) | st.dates()
grade_lists = st.lists(st.sampled_from(GRADES), max_size=3)

records: st.SearchStrategy[Record] = st.fixed_dictionaries(
    {},
    optional={
        "status": st.none() | st.sampled_from(["active", "tobedeleted"]),
        "role": st.none() | st.sampled_from(ROLE_NAMES),
        "familyName": st.none() | texts,
        "enabledUser": st.none() | st.booleans(),
        "dateLastModified": st.none() | moments,
        "birthDate": st.none() | days,
        "grades": st.none() | grade_lists,
        "class": st.none() | st.fixed_dictionaries({}, optional={"sourcedId": st.none() | texts}),
        "roles": st.none()
        | st.lists(
            st.fixed_dictionaries(
                {}, optional={"role": st.none() | st.sampled_from(ROLE_NAMES), "beginDate": st.none() | days}
            ),
            max_size=3,
        ),
        "metadata": st.none()
        | st.dictionaries(st.sampled_from(["tier", "2nd-name", "other"]), st.none() | texts, max_size=2),
    },
)
"""Records as a program holds them, every part of them absent now and then."""


def _moment_text(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


VALUES = {
    Kind.TEXT: texts | st.sampled_from(ROLE_NAMES) | st.sampled_from(NAMES).map(str.swapcase),
    Kind.FLAG: st.sampled_from(["true", "false"]),
    Kind.INSTANT: moments.map(_moment_text) | st.sampled_from(MOMENTS).map(lambda moment: moment.date().isoformat()),
    Kind.DAY: days.map(date.isoformat),
    Kind.TEXTS: st.lists(st.sampled_from(GRADES), min_size=1, max_size=3).map(",".join),
}
"""Values that a field of each kind takes, near to those of the records."""

FIELDS = {name: TYPES.find(name) for name in COLUMNS}


@st.composite
def typed_clauses(draw: st.DrawFn) -> Clause:
    """A clause that `check` accepts."""
    field = draw(st.sampled_from(sorted(FIELDS)))
    kind = FIELDS[field].kind
    return Clause(field, draw(st.sampled_from(OPERATORS[kind])), draw(VALUES[kind]))


any_clauses = st.builds(
    Clause,
    st.lists(st.text(string.ascii_letters + string.digits + "_-", min_size=1, max_size=8), min_size=1, max_size=3).map(
        ".".join
    ),
    st.sampled_from(Operator),
    st.text(ALPHABET | st.just("'"), max_size=20),
)
"""Clauses that mean nothing in particular, with any text as their value."""


def expressions(clauses: st.SearchStrategy[Clause]) -> st.SearchStrategy[Expr]:
    """Expressions of a few clauses, joined in every way that the language has."""
    conjunctions = st.lists(clauses, min_size=1, max_size=3).map(lambda operands: all_of(*operands))
    return st.lists(conjunctions, min_size=1, max_size=3).map(lambda operands: any_of(*operands))
