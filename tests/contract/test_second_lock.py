"""Row-level security: with the conditions of the query taken away, PostgreSQL still shows nobody what is not theirs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import Engine, func, select, text
from sqlalchemy.exc import DBAPIError

from roster_service.db import document_tables, tables
from roster_service.db.engine import make_reading_engine, require_reading
from roster_service.db.prepared import may_prepare
from roster_service.db.serving_role import READABLE, WRITABLE, find_serving_role, require_serving_role
from roster_service.db.visibility import Sight, open_roster
from roster_service.errors import SettingError
from tests.shelves import fill_all

from .client import GUARDIANS, ROOTS, SCOPES, VERSIONS
from .conftest import Served
from .locks import first_lock_open, make_unlocked_engine
from .paths import LISTED_KEYS, NESTED_KEYS

# A vendor of one school, with guardians and without, and one of the other district.
CALLERS = (
    ("elementary", SCOPES),
    ("elementary", tuple(scope for scope in SCOPES if scope != GUARDIANS)),
    ("north", SCOPES),
)
QUERIES = ("", "limit=2&offset=1&sort=dateLastModified", "filter=status='active'", "limit=0&filter=sourcedId~'s'")
# Lists without a condition of their own.
WHOLE = ("/orgs", "/academicSessions", "/courses", "/classes", "/users", "/enrollments", "/demographics")
# Whose ids stand in a path.
TABLES = {
    "/orgs": tables.orgs,
    "/schools": tables.orgs,
    "/academicSessions": tables.academic_sessions,
    "/terms": tables.academic_sessions,
    "/gradingPeriods": tables.academic_sessions,
    "/courses": tables.courses,
    "/classes": tables.classes,
    "/users": tables.users,
    "/students": tables.users,
    "/teachers": tables.users,
    "/enrollments": tables.enrollments,
    "/demographics": tables.demographics,
}
PARENTS = {
    "schoolId": tables.orgs,
    "termId": tables.academic_sessions,
    "courseId": tables.courses,
    "classId": tables.classes,
    "studentId": tables.users,
    "teacherId": tables.users,
    "userId": tables.users,
}


@pytest.fixture(scope="module", autouse=True)
def shelves(served: Served) -> None:
    """Records that are kept as documents have a policy of their own."""
    fill_all(served.engine)


@pytest.fixture(scope="module")
def addresses(served: Served) -> list[tuple[str, str]]:
    """(path, query): every list with every query, every single record, every list below every parent."""
    with served.engine.connect() as connection:
        ids = {table: connection.scalars(select(table.c.sourced_id)).all() for table in {*TABLES.values()}}
    found = [(path, query) for path in LISTED_KEYS for query in QUERIES]
    found += [(f"{path}/{one}", "") for path, table in TABLES.items() for one in ids[table]]
    for path in NESTED_KEYS:
        names = [name for name in PARENTS if f"{{{name}}}" in path]
        for chosen in itertools.product(*(ids[PARENTS[name]] for name in names)):
            found.append((path.format(**dict(zip(names, chosen, strict=True))), ""))
    return found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("vendor", "scopes"), CALLERS, ids=["school", "school-no-guardians", "other-district"])
def test_without_the_first_lock_every_answer_is_the_same(
    served: Served, addresses: list[tuple[str, str]], version: str, vendor: str, scopes: tuple[str, ...]
) -> None:
    token = served.client.token(version, scopes, vendor)
    expected = [ask(served, version, token, *address) for address in addresses]
    with first_lock_open(served.engine):
        found = [ask(served, version, token, *address) for address in addresses]
    differing = [(one, was, now) for one, was, now in zip(addresses, expected, found, strict=True) if was != now]
    assert differing == []


def ask(served: Served, version: str, token: str, path: str, query: str) -> tuple[int, str | None, bytes]:
    """The status, the count and the body of an answer."""
    headers = {"Authorization": f"Bearer {token}"}
    answer = served.app.test_client().get(f"{ROOTS[version]}{path}?{query}", headers=headers)
    return answer.status_code, answer.headers.get("X-Total-Count"), answer.data


def test_without_both_locks_everything_is_shown(
    served: Served, make_served: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the test above opens the first lock indeed."""
    monkeypatch.setattr("roster_service.app.make_serving_engine", make_unlocked_engine)
    unlocked = make_served(served.url)
    token = served.client.token("v1p2", SCOPES, "nobody")
    with first_lock_open(served.engine):
        shown = {path: int(ask(unlocked, "v1p2", token, path, "")[1] or 0) for path in WHOLE}
    with served.engine.connect() as connection:
        everything = {
            path: connection.scalar(select(func.count()).select_from(TABLES[path]))
            for path in (
                "/orgs",
                "/academicSessions",
                "/courses",
                "/classes",
                "/users",
                "/enrollments",
                "/demographics",
            )
        }
    assert shown == everything


@pytest.fixture(params=[True, False], ids=["own-sessions", "pooled-sessions"])
def serving(served: Served, request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Connections of the serving role; one, used again and again."""
    with served.engine.connect() as connection:
        role = find_serving_role(connection)
    engine = make_reading_engine(served.url, role=role, statement_seconds=5, pool_size=1, own_sessions=request.param)
    yield engine
    engine.dispose()


def count_rows(engine: Engine, *districts: str) -> dict[str, int]:
    """How many rows of each table a transaction sees that was opened for these districts; not opened, for none."""
    with engine.connect() as connection:
        if districts:
            open_roster(connection, districts, (), Sight(guardians=True, metadata=frozenset()))
        count = "SELECT count(*) FROM {}"
        return {table.name: connection.scalar(text(count.format(table.name))) or 0 for table in READABLE}


def test_a_transaction_that_is_not_opened_sees_no_row(serving: Engine) -> None:
    assert set(count_rows(serving).values()) == {0}


def test_what_a_transaction_may_see_ends_with_it(serving: Engine) -> None:
    """Also on the same session: it is set for the transaction, so a pooler may hand the session to anybody."""
    with serving.connect() as connection:
        session = connection.scalar(text("SELECT pg_backend_pid()"))
    seen = count_rows(serving, "spr-district")
    assert all(count > 0 for name, count in seen.items() if name != "user_profiles")
    assert set(count_rows(serving).values()) == {0}
    other = count_rows(serving, "shv-district")
    assert other != seen
    assert all(count > 0 for count in other.values())
    with serving.connect() as connection:
        with connection.begin():
            open_roster(connection, ("spr-district",), (), Sight(guardians=True, metadata=frozenset()))
        with connection.begin():
            assert connection.scalar(text("SELECT count(*) FROM users")) == 0
            assert connection.scalar(text("SELECT pg_backend_pid()")) == session


def test_a_session_that_was_not_told_is_refused(served: Served, serving: Engine) -> None:
    """As behind a pooler that leaves out what a session is to be told when it begins."""
    role = find_serving_role_of(serving)
    require_reading(serving)
    require_serving_role(serving, role)
    with pytest.raises(SettingError, match="ROSTER_PREPARED_STATEMENTS=false"):
        require_reading(served.engine)
    with pytest.raises(SettingError, match="ROSTER_PREPARED_STATEMENTS=false"):
        require_serving_role(served.engine, role)


def test_every_transaction_is_a_reader_in_the_serving_role(serving: Engine) -> None:
    shown = ("role", "transaction_read_only", "transaction_isolation", "statement_timeout", "TimeZone")
    for _ in range(2):
        with serving.connect() as connection:
            found = [connection.scalar(text(f"SHOW {name}")) for name in shown]
            assert found[0] == find_serving_role_of(connection.engine)
            assert found[1:] == ["on", "repeatable read", "5s", "UTC"]
            connection.rollback()
            # A session of its own keeps the role; one that a pooler may hand to anybody keeps nothing.
            raw = connection.connection.dbapi_connection
            assert raw is not None
            raw.rollback()
            with raw.cursor() as cursor:
                cursor.execute("SHOW role")
                assert cursor.fetchone() == (found[0] if may_prepare(serving) else "none",)


def find_serving_role_of(engine: Engine) -> str:
    """The role as the session's own user knows it."""
    with engine.connect() as connection:
        return str(connection.scalar(text("SELECT current_user")))


@pytest.mark.parametrize("table", [table.name for table in READABLE])
@pytest.mark.parametrize("change", ["INSERT INTO {} DEFAULT VALUES", "DELETE FROM {}", "TRUNCATE {}"])
def test_the_serving_role_cannot_write(served: Served, serving: Engine, table: str, change: str) -> None:
    role = find_serving_role_of(serving)
    with served.engine.connect() as connection:
        connection.execute(text(f'SET LOCAL ROLE "{role}"'))
        with pytest.raises(DBAPIError, match="permission denied"):
            connection.execute(text(change.format(table)))


@pytest.mark.parametrize(
    "table",
    [
        table.name
        for table in tables.metadata.sorted_tables
        # Where the roster stands, which shelves do, and the orders that the role keeps for itself.
        if table not in (*READABLE, *WRITABLE, tables.roster_state, document_tables.shelves)
    ],
)
def test_the_serving_role_reads_nothing_but_the_roster(serving: Engine, table: str) -> None:
    with serving.connect() as connection, pytest.raises(DBAPIError, match="permission denied"):
        connection.execute(text(f"SELECT FROM {table}"))


def test_every_table_of_records_has_a_policy(served: Served) -> None:
    """A table that is added to what the role reads, and has no policy, would be open to every caller."""
    locked = text("SELECT relname FROM pg_class WHERE relrowsecurity")
    readable = text(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
        " AND has_table_privilege(:role, oid, 'SELECT')"
    )
    with served.engine.connect() as connection:
        role = find_serving_role(connection)
        own = {
            str(name) for name in connection.scalars(readable, {"role": role}) if not name.startswith(("pg_", "sql_"))
        }
        own -= {table.name for table in WRITABLE}
        assert own == {table.name for table in READABLE} == set(connection.scalars(locked))
