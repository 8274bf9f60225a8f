"""Row-level security: with the conditions of the query taken away, PostgreSQL still shows nobody what is not theirs."""

from __future__ import annotations

import itertools
import re
import uuid
from collections.abc import Callable, Iterator

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from roster_service.auth.credentials.signing_keys import KeyRing
from roster_service.auth.credentials.tokens import read_access_token
from roster_service.db import tables
from roster_service.db.engine import make_engine, make_reading_engine, require_reading
from roster_service.db.roles import (
    READABLE,
    RIGHTS,
    VENDOR_ROLES,
    WRITABLE,
    DatabaseRole,
    find_role,
    make_role_url,
    quote_name,
)
from roster_service.db.round_trip import Call
from roster_service.errors import SettingError
from tests.access_matrix.layers import open_row_level_security
from tests.extent import EXTENT, Extent, long, pair

from .client import GUARDIANS, ROOTS, SCOPES, VERSIONS
from .conftest import SECRET_KEY, Served
from .layers import query_filter_open
from .paths import LISTED_KEYS, NESTED_KEYS
from .test_bearer import ISSUER

# A vendor of one school, with guardians and without, and one of the other district.
CALLERS = {
    "school": ("elementary", SCOPES),
    "school-no-guardians": ("elementary", tuple(scope for scope in SCOPES if scope != GUARDIANS)),
    "other-district": ("north", SCOPES),
}
# A later page comes after its own first page: one of another test is of another view where the filter is open.
QUERIES = (
    "", "limit=1&sort=dateLastModified", "limit=2&offset=1&sort=dateLastModified", "filter=status='active'",
    "limit=0&filter=sourcedId~'s'",
)  # fmt: skip
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


@pytest.fixture(scope="module")
def addresses(served: Served) -> list[tuple[str, str]]:
    """(path, query): every list with every query, every single record, every list below every parent; of a class below
    a school, below its own one and another one, which is at times of the other district."""
    with served.engine.connect() as connection:
        ids = {table: connection.scalars(sa.select(table.c.sourced_id)).all() for table in {*TABLES.values()}}
        schools = connection.execute(sa.select(tables.classes.c.school_id, tables.classes.c.sourced_id)).all()
    taught = [*map(tuple, schools), *zip(itertools.cycle(ids[tables.orgs]), ids[tables.classes], strict=False)]
    if EXTENT is Extent.ALL:
        taught = [*itertools.product(ids[tables.orgs], ids[tables.classes])]
    found = [(path, query) for path in LISTED_KEYS for query in QUERIES]
    found += [(f"{path}/{one}", "") for path, table in TABLES.items() for one in ids[table]]
    for path in NESTED_KEYS:
        names = [name for name in PARENTS if f"{{{name}}}" in path]
        for chosen in taught if len(names) > 1 else zip(ids[PARENTS[names[0]]], strict=True):
            found.append((path.format(**dict(zip(names, chosen, strict=True))), ""))
    return found


@pytest.mark.parametrize(
    ("version", "caller"),
    # The access matrix asks both versions with more callers, of a roster that has more in it.
    [
        pytest.param(version, caller, marks=() if caller == "school-no-guardians" else long)
        for version, caller in pair([*CALLERS], VERSIONS)
    ],
)
def test_without_the_query_filter_every_answer_is_the_same(
    served: Served, addresses: list[tuple[str, str]], caller: str, version: str
) -> None:
    vendor, scopes = CALLERS[caller]
    token = served.client.token(version, scopes, vendor)
    expected = [ask(served, version, token, *address) for address in addresses]
    with query_filter_open():
        found = [ask(served, version, token, *address) for address in addresses]
    differing = [(one, was, now) for one, was, now in zip(addresses, expected, found, strict=True) if was != now]
    assert differing == []


def ask(served: Served, version: str, token: str, path: str, query: str) -> tuple[int, str | None, bytes]:
    """The status, the count and the body of an answer."""
    headers = {"Authorization": f"Bearer {token}"}
    answer = served.app.test_client().get(f"{ROOTS[version]}{path}?{query}", headers=headers)
    return answer.status_code, answer.headers.get("X-Total-Count"), answer.data


def test_without_both_layers_everything_is_shown(
    served: Served, make_served: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the test above opens the first lock indeed."""
    open_row_level_security(monkeypatch)
    unlocked = make_served(served.url)
    token = served.client.token("v1p2", SCOPES, "elementary")
    with query_filter_open():
        # Sorted, because a collection without a sort is put together from the feeds that the vendor sees.
        shown = {path: int(ask(unlocked, "v1p2", token, path, "sort=sourcedId")[1] or 0) for path in WHOLE}
    with served.engine.connect() as connection:
        everything = {
            path: connection.scalar(sa.select(sa.func.count()).select_from(TABLES[path]))
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
def serving(served: Served, request: pytest.FixtureRequest) -> Iterator[sa.Engine]:
    """Connections of the serving role; one, used again and again."""
    engine = make_role_engine(served, DatabaseRole.SERVING, own_sessions=request.param)
    yield engine
    engine.dispose()


def make_role_engine(served: Served, role: DatabaseRole, *, own_sessions: bool = True) -> sa.Engine:
    """An engine that logs in as a role."""
    with served.engine.connect() as connection:
        name = find_role(connection, role)
    assert name is not None
    url = make_role_url(served.url, name, None)
    return make_reading_engine(url, statement_seconds=5, pool_size=1, own_sessions=own_sessions)


def find_admission(served: Served, vendor: str, *, guardians: bool = True) -> Call:
    """What admits a vendor's client, as a token of it does."""
    scopes = tuple(scope for scope in SCOPES if guardians or scope != GUARDIANS)
    return read_access_token(served.client.token("v1p1", scopes, vendor), find_keys(served), issuer=ISSUER).admission


def find_keys(served: Served) -> KeyRing:
    """The keys of the service."""
    return KeyRing(served.engine, SECRET_KEY)


def admit(connection: sa.Connection, admission: Call) -> bool:
    """Whether the transaction reads what the client may, from now on."""
    return bool(connection.scalar(admission.statement, admission.values))


def count_rows(engine: sa.Engine, admission: Call | None = None) -> dict[str, int]:
    """How many rows of each table a transaction sees that admitted a client; for none, where it did not."""
    with engine.connect() as connection:
        if admission is not None:
            assert admit(connection, admission)
        return {table.name: connection.scalar(sa.text(f"SELECT count(*) FROM {table.name}")) or 0 for table in READABLE}


@pytest.mark.shows(
    "Visibility",
    "A transaction without an admission sees no row, and an admission ends with its transaction.",
)
def test_a_transaction_without_an_admission_sees_no_row(serving: sa.Engine) -> None:
    assert set(count_rows(serving).values()) == {0}


@pytest.mark.shows(
    "Visibility",
    "A transaction without an admission sees no row, and an admission ends with its transaction.",
)
def test_what_a_transaction_may_see_ends_with_it(served: Served, serving: sa.Engine) -> None:
    """Also on the same session: it is set for the transaction, so a pooler may hand the session to anybody."""
    springfield, north = find_admission(served, "springfield"), find_admission(served, "north")
    with serving.connect() as connection:
        session = connection.scalar(sa.text("SELECT pg_backend_pid()"))
    seen = count_rows(serving, springfield)
    # The export has no profiles, and nobody has left yet.
    empty = {"user_profiles", "departures", "group_members", "visible_groups", "kept_people"}
    assert {name for name, count in seen.items() if count == 0} == empty
    assert set(count_rows(serving).values()) == {0}
    other = count_rows(serving, north)
    assert other != seen
    assert {name for name, count in other.items() if count == 0} == empty - {"user_profiles"}
    with serving.connect() as connection:
        with connection.begin():
            assert admit(connection, springfield)
        with connection.begin():
            assert connection.scalar(sa.text("SELECT count(*) FROM users")) == 0
            assert connection.scalar(sa.text("SELECT pg_backend_pid()")) == session


def test_a_session_without_its_settings_is_refused(served: Served, serving: sa.Engine) -> None:
    """As behind a pooler that leaves out what a session is to be told when it begins."""
    require_reading(serving)
    with pytest.raises(SettingError, match="ROSTER_PREPARED_STATEMENTS=false"):
        require_reading(served.engine)


def test_every_transaction_is_a_reader(serving: sa.Engine) -> None:
    shown = ("transaction_read_only", "transaction_isolation", "statement_timeout", "TimeZone")
    for _ in range(2):
        with serving.connect() as connection:
            assert [connection.scalar(sa.text(f"SHOW {name}")) for name in shown] == [
                "on",
                "repeatable read",
                "5s",
                "UTC",
            ]
            connection.rollback()


# --- a raw session of a role, with whatever it can say -------------------------------------------------------------


# tests/cli/test_console_role.py has the role of the console.
@pytest.fixture(params=VENDOR_ROLES, ids=lambda role: role.value)
def raw(served: Served, request: pytest.FixtureRequest) -> Iterator[tuple[DatabaseRole, sa.Connection]]:
    """A session that logs in as a role, as whoever has its password can, and each of whose statements is a
    transaction."""
    with served.engine.connect() as connection:
        name = find_role(connection, request.param)
    engine = make_engine(make_role_url(served.url, str(name), None)).execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield request.param, connection
    engine.dispose()


@pytest.mark.shows(
    "Machine and database",
    "The roles that workers log in as become no other role, do what they are for, and write no record.",
)
@pytest.mark.parametrize("table", tables.metadata.sorted_tables, ids=lambda table: table.name)
def test_a_raw_session_reads_and_writes_what_its_role_is_for(
    raw: tuple[DatabaseRole, sa.Connection], table: sa.Table
) -> None:
    """No row of the roster, of orgs that vendors see, or of orderings; and else only what the rights name."""
    role, connection = raw
    rights = [right for right in RIGHTS[role] if re.search(rf"\b{table.name}\b", right)]
    columns = re.search(rf"SELECT \(([^)]*)\) ON {table.name}$", " ".join(rights))
    wanted = columns[1] if columns else "*"
    if any("SELECT" in right.split(" ON ")[0] for right in rights) and table.name != "audit":
        rows = connection.execute(sa.text(f"SELECT {wanted} FROM {table.name}")).all()
        assert table not in (*READABLE, *WRITABLE) or rows == []
    else:
        with pytest.raises(DBAPIError, match="permission denied"):
            connection.execute(sa.text(f"SELECT * FROM {table.name}"))
    for change, word in (("DELETE FROM {}", "DELETE"), ("TRUNCATE {}", "TRUNCATE"), ("DROP TABLE {}", "DROP")):
        if not any(word in right.split(" ON ")[0] for right in rights):
            with pytest.raises(DBAPIError, match=r"permission denied|must be owner"):
                connection.execute(sa.text(change.format(table.name)))


@pytest.mark.shows(
    "Machine and database",
    "The roles that workers log in as become no other role, do what they are for, and write no record.",
)
def test_no_role_may_write_a_record(raw: tuple[DatabaseRole, sa.Connection]) -> None:
    """Neither of the roster, nor which orgs a vendor sees: not a column of them."""
    _, connection = raw
    writes = sa.text(
        "SELECT has_table_privilege(:name, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')"
        " OR has_any_column_privilege(:name, 'INSERT, UPDATE, REFERENCES')"
    )
    assert [table.name for table in READABLE if connection.scalar(writes, {"name": table.name})] == []


@pytest.mark.shows(
    "Machine and database",
    "The roles that workers log in as become no other role, do what they are for, and write no record.",
)
def test_a_raw_session_can_become_no_other_role(served: Served, raw: tuple[DatabaseRole, sa.Connection]) -> None:
    _, connection = raw
    me = connection.scalar(sa.text("SELECT session_user"))
    with served.engine.connect() as owner:
        others = [name for name in owner.scalars(sa.text("SELECT rolname FROM pg_roles")) if name != me]
    assert len(others) > 10
    for name in others:
        for become in (f"SET ROLE {quote_name(name)}", f"SET SESSION AUTHORIZATION {quote_name(name)}"):
            with pytest.raises(DBAPIError, match="permission denied"):
                connection.execute(sa.text(become))
    for back in ("RESET ROLE", "RESET SESSION AUTHORIZATION", "SET ROLE NONE"):
        connection.execute(sa.text(back))
        assert connection.scalar(sa.text("SELECT current_user")) == me


@pytest.mark.shows("Machine and database", "A session of the serving role without a vendor's key reads nothing.")
def test_a_raw_session_cannot_make_up_what_the_policies_trust(served: Served) -> None:
    """Neither with the settings, of whatever value it can know, nor with the functions that it may call."""
    with served.engine.connect() as connection:
        name = str(find_role(connection, DatabaseRole.SERVING))
        known = connection.execute(
            sa.text(
                "SELECT client_id, vendor_id, version, grant_version FROM oauth_clients JOIN vendors ON vendors.id ="
                " vendor_id JOIN (SELECT vendor_id v FROM visible_orgs GROUP BY 1) seen ON v = vendor_id"
            )
        ).all()
        key_id = connection.scalar(sa.text("SELECT key_id FROM signing_keys LIMIT 1"))
    assert known
    engine = make_engine(make_role_url(served.url, name, None))
    made_up = str(uuid.uuid4())
    settings = {
        "roster.visibility_key": (made_up, str(uuid.UUID(int=0))),
        "roster.guardians": ("true",),
        "row_security": ("off",),
    }
    try:
        for client in known:
            with engine.connect() as connection:
                for setting, values in settings.items():
                    for value in values:
                        connection.execute(
                            sa.text("SELECT set_config(:name, :value, false)"), {"name": setting, "value": value}
                        )
                        connection.execute(sa.text("SET row_security = on"))
                call = sa.text(
                    "SELECT admit_client(:client, :vendor, :version, :grants, CAST(:key AS uuid), :key_id, true)"
                )
                for key in (made_up, str(uuid.UUID(int=0))):
                    values = {
                        "client": client.client_id,
                        "vendor": client.vendor_id,
                        "version": client.version,
                        "grants": client.grant_version,
                        "key": key,
                        "key_id": key_id,
                    }
                    assert connection.scalar(call, values) is False
                assert connection.execute(sa.text("SELECT * FROM admit_key_holder('\\x00', true)")).all() == []
                assert {connection.scalar(sa.text(f"SELECT count(*) FROM {table.name}")) for table in READABLE} == {0}
                assert {connection.scalar(sa.text(f"SELECT count(*) FROM {table.name}")) for table in WRITABLE} == {0}
                connection.execute(sa.text("SET row_security = off"))
                for table in (*READABLE, *WRITABLE):
                    with pytest.raises(DBAPIError, match="row-level security"), connection.begin_nested():
                        connection.execute(sa.text(f"SELECT FROM {table.name}"))
    finally:
        engine.dispose()


def test_a_raw_session_calls_no_function_but_those_of_its_role(
    served: Served, raw: tuple[DatabaseRole, sa.Connection]
) -> None:
    role, connection = raw
    with served.engine.connect() as owner:
        own = owner.execute(
            sa.text(
                "SELECT p.oid::regprocedure::text AS name, prosecdef FROM pg_proc p"
                " WHERE pronamespace = current_schema()::regnamespace"
            )
        ).all()
    may = sa.text("SELECT has_function_privilege(CAST(:name AS regprocedure), 'EXECUTE')")
    callable_as_owner = {one.name for one in own if one.prosecdef and connection.scalar(may, {"name": one.name})}
    granted = {right for right in RIGHTS[role] if right.startswith("EXECUTE")}
    assert all(any(name.partition("(")[0] in right for right in granted) for name in callable_as_owner)
    if role is DatabaseRole.COUNTERS:
        # Without the random part of a link that an operator made, it changes nothing.
        assert callable_as_owner == {"use_secret_link(bytea,bytea,text)", "note_ended_agreements()"}
        assert connection.scalar(sa.text("SELECT use_secret_link('\\x00', '\\x01', 'x')")) is None
    elif role is DatabaseRole.ACCOUNTS:
        # They say why an agreement does not hold, and what is granted, and nothing of records.
        assert callable_as_owner == {"find_agreement_refusal(integer)", "agreed_grants(integer)"}
    else:
        assert (role is DatabaseRole.SERVING) == bool(callable_as_owner)


def test_an_admission_that_is_refused_closes_what_an_earlier_one_opened(served: Served, serving: sa.Engine) -> None:
    admission = find_admission(served, "springfield")
    refused = Call(admission.statement, {**admission.values, "visibility_key": str(uuid.uuid4())})
    with serving.connect() as connection:
        assert admit(connection, admission)
        assert connection.scalar(sa.text("SELECT count(*) FROM users")) > 0
        assert not admit(connection, refused)
        assert connection.scalar(sa.text("SELECT count(*) FROM users")) == 0


@pytest.mark.shows("Visibility", "Every table that the serving role reads records from has a policy.")
def test_every_table_of_records_has_a_policy(served: Served) -> None:
    """A table that is added to what the role reads, and has no policy, would be open to every caller."""
    locked = sa.text("SELECT relname FROM pg_class WHERE relrowsecurity")
    readable = sa.text(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
        " AND has_table_privilege(:role, oid, 'SELECT')"
    )
    with served.engine.connect() as connection:
        role = find_role(connection, DatabaseRole.SERVING)
        own = {
            str(name) for name in connection.scalars(readable, {"role": role}) if not name.startswith(("pg_", "sql_"))
        }
        assert own == {table.name for table in (*READABLE, *WRITABLE)} == set(connection.scalars(locked))
