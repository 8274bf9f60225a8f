"""The direct way: one message, the answers of the application, and never one that was built from a stale guess."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import text

from roster_service.access import known_callers, leases
from roster_service.access.leases import outlast_leases
from roster_service.cli import main
from roster_service.db.prepared import prepare
from roster_service.db.tables import ROSTER_TABLES
from roster_service.direct import Direct

from .client import CORE, ROOTS, SCOPES, VERSIONS, Answer, RosterClient
from .conftest import Roster, Served, open_doors
from .messages import messages
from .paths import ENDPOINTS

PATHS = ("/users?limit=3", "/users/spr-student-1", "/schools/spr-high/students", "/users?filter=status%3D'active'")
# A second page has the walk kept; a third one finds it.
TIMES = 3
# The journal's own mark of each answer.
OWN = "X-Request-Id"
QUERIES = (
    "",
    "limit=2&offset=1",
    "limit=2&offset=1&sort=dateLastModified&orderBy=desc",
    "limit=0",
    "offset=100000",
    "limit=2&offset=1&sort=metadata.it's%25",
    "limit=2&offset=2&fields=sourcedId&sort=nonsense",
    "limit=2&offset=1&filter=status%3D'active'",
)
HEADERS: tuple[dict[str, str], ...] = (
    {},
    {"Accept-Encoding": "gzip, zstd"},
    {"If-None-Match": '"another"'},
    {"If-None-Match": "*"},
    {"Host": "roster.example:8080"},
    {"Host": "ROSTER.example:80"},
)
CHANGES = [
    pytest.param("UPDATE oauth_clients SET enabled = false", 401, id="client-disabled"),
    pytest.param("DELETE FROM oauth_clients", 401, id="client-removed"),
    pytest.param("UPDATE vendors SET enabled = false", 401, id="vendor-disabled"),
    pytest.param("UPDATE vendors SET grant_version = grant_version + 1", 401, id="grants-changed"),
    pytest.param("UPDATE oauth_clients SET version = version + 1", 401, id="secret-changed"),
    pytest.param("UPDATE signing_keys SET retired_at = now()", 401, id="key-retired"),
    pytest.param("UPDATE roster_state SET revision = revision + 1", 200, id="sync-committed"),
    pytest.param("UPDATE roster_state SET deletions_since = now()", 200, id="purged"),
]


@pytest.fixture
def make_own(server_url: str, roster: Roster, served: Served) -> Iterator[Callable[..., Served]]:
    """Serves a copy of the roster, which the test may change; its connections end with it."""
    with open_doors(server_url, roster) as make:
        yield functools.partial(make, documents=served.client.documents)


@pytest.fixture
def without_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    outlast_leases()
    monkeypatch.setattr(leases, "LEASE_SECONDS", 0)


@contextmanager
def only(way: str) -> Iterator[None]:
    """While every answer comes by one way: `direct`, or the `application`."""

    def fail(*_: object) -> Any:
        raise AssertionError("the application was asked")

    with pytest.MonkeyPatch.context() as patch:
        if way == "direct":
            patch.setattr("flask.Flask.full_dispatch_request", fail)
        else:
            patch.setattr(Direct, "_admit", lambda *_: None)
        yield


def ask(client: RosterClient, path: str, version: str = "v1p1", **headers: str) -> Answer:
    """A request of the vendor that sees both districts."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.fetch(ROOTS[version] + path, headers={"Authorization": f"Bearer {client.token(version)}", **sent})


def warm(client: RosterClient, path: str, version: str = "v1p1") -> Answer:
    """Asks until the direct way knows everything; the last answer."""
    return [ask(client, path, version) for _ in range(TIMES)][-1]


def tell(served: Served, statement: str) -> None:
    """What an administrator or a sync does meanwhile, when their command has ended."""
    with served.engine.begin() as connection:
        connection.execute(text(statement))
    outlast_leases()


def shown(answer: Answer) -> tuple[int, dict[str, str], bytes]:
    """Everything of an answer but its own mark."""
    headers = {name: value for name, value in answer.headers.items() if name != OWN}
    assert len(headers) + (OWN in answer.headers) == len(answer.headers)
    return answer.status, headers, answer.body


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("endpoint", [pytest.param(item, id=item.template) for item in ENDPOINTS])
def test_both_ways_answer_the_same(client: RosterClient, version: str, endpoint: Any) -> None:
    for query in ("",) if endpoint.single else QUERIES:
        path = f"{endpoint.address}?{query}" if query else endpoint.address
        for headers in HEADERS if query in QUERIES[:2] else HEADERS[:1]:
            with only("application"):
                expected = [shown(ask(client, path, version, **headers)) for _ in range(TIMES)]
            assert [shown(ask(client, path, version, **headers)) for _ in range(TIMES)] == expected
        tag = ask(client, path, version).headers["ETag"]
        for known in (tag, f"W/{tag}", f'"another", {tag}'):
            headers = {"If-None-Match": known}
            with only("application"):
                expected = shown(ask(client, path, version, **headers))
            assert expected[0] == 304
            assert shown(ask(client, path, version, **headers)) == expected


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("endpoint", [pytest.param(item, id=item.template) for item in ENDPOINTS])
def test_each_path_has_its_direct_way(client: RosterClient, version: str, endpoint: Any) -> None:
    path = endpoint.address if endpoint.single else f"{endpoint.address}?limit=1&offset=1"
    tag = warm(client, path, version).headers["ETag"]
    with only("direct"):
        assert ask(client, path, version).status == 200
        assert ask(client, path, version, If_None_Match=tag).status == 304


@pytest.mark.parametrize("path", ["/users/spr-student-1", "/users?limit=3&offset=3", "/users?limit=3&offset=100"])
def test_an_answer_is_one_message(served: Served, without_leases: None, path: str) -> None:
    for _ in range(TIMES):
        ask(served.client, path)
    with messages() as seen:
        assert ask(served.client, path).status == 200
    assert len(seen) == 1
    # It begins with what admits the caller, who is all that a session has to be told.
    assert seen[0].lstrip().startswith("EXECUTE ")


@pytest.mark.parametrize("path", PATHS)
def test_a_304_is_one_message_that_names_no_table_of_the_roster(
    served: Served, without_leases: None, path: str
) -> None:
    tag = ask(served.client, path).headers["ETag"]
    with messages() as seen:
        assert ask(served.client, path, If_None_Match=tag).status == 304
    called = prepare(known_callers._STANDS)
    (message,) = (one for one in seen if "PREPARE" not in one)
    assert f"EXECUTE {called.name} (" in message
    assert not any(table.name in message + called.text for table in ROSTER_TABLES)


@pytest.mark.parametrize("path", ["/users?limit=3", "/users?limit=3&offset=100"])
def test_who_asks_again_at_once_costs_the_database_nothing(
    make_own: Callable[..., Served], monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Where no record is shown."""
    monkeypatch.setattr(leases, "LEASE_SECONDS", 60)
    own = make_own()
    tag = warm(own.client, path).headers["ETag"]
    headers = {} if "offset" in path else {"If_None_Match": tag}
    expected = shown(ask(own.client, path, **headers))
    with messages() as seen:
        assert [shown(ask(own.client, path, **headers)) for _ in range(TIMES)] == [expected] * TIMES
    assert seen == []


def test_a_record_is_never_shown_without_asking(
    make_own: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "LEASE_SECONDS", 60)
    own = make_own()
    for path in ("/users?limit=3&offset=3", "/users/spr-student-1"):
        tag = warm(own.client, path).headers["ETag"]
        assert ask(own.client, path, If_None_Match=tag).status == 304
        with messages() as seen:
            assert ask(own.client, path).status == 200
        assert len(seen) == 1


def test_a_command_ends_after_the_leases(
    make_own: Callable[..., Served], roster: Roster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long these are."""
    monkeypatch.setattr(leases, "LEASE_SECONDS", 1.5)
    own = make_own()
    tag = warm(own.client, "/users?limit=3").headers["ETag"]
    assert ask(own.client, "/users?limit=3", If_None_Match=tag).status == 304
    client_id, _ = roster.credentials["both"]
    done = CliRunner().invoke(main, ["client", "disable", client_id], env={"ROSTER_DATABASE_URL": own.url})
    assert done.exit_code == 0, done.output
    assert ask(own.client, "/users?limit=3", If_None_Match=tag).status == 401


@pytest.mark.parametrize(("change", "status"), CHANGES)
def test_nothing_is_answered_from_what_was_known(make_own: Callable[..., Served], change: str, status: int) -> None:
    own = make_own()
    paths = (*PATHS, "/users?limit=3&offset=3", "/users?limit=3&offset=100")
    tags = {path: warm(own.client, path).headers["ETag"] for path in paths}
    for path, tag in tags.items():
        tell(own, change)
        known, answer = ask(own.client, path, If_None_Match=tag), ask(own.client, path)
        assert answer.status == status
        if status == 200:
            with only("application"):
                assert shown(answer) == shown(ask(own.client, path))
                assert shown(known) == shown(ask(own.client, path, If_None_Match=tag))


def test_a_school_that_moved_is_not_shown_by_what_was_known(make_own: Callable[..., Served]) -> None:
    """Even where nothing says that there was a sync."""
    own = make_own()
    path = "/classes/spr-class-math3-a"
    assert [ask(own.client, path).status for _ in range(TIMES)] == [200] * TIMES
    tell(own, "DELETE FROM vendor_grants WHERE district_id = 'spr-district'")
    assert ask(own.client, path).status == 404
    assert ask(own.client, "/users/spr-student-1").status == 404


def test_a_record_that_came_with_a_sync_is_found_and_one_that_went_is_not(make_own: Callable[..., Served]) -> None:
    own = make_own()
    assert [ask(own.client, "/orgs/spr-new").status for _ in range(TIMES)] == [404] * TIMES
    columns = "feed_id, name, type, district_id, status, date_last_modified"
    tell(
        own,
        f"INSERT INTO orgs (sourced_id, {columns}) SELECT 'spr-new', {columns} FROM orgs "
        "WHERE sourced_id = 'spr-high'; UPDATE roster_state SET revision = revision + 1",
    )
    assert [ask(own.client, "/orgs/spr-new").status for _ in range(TIMES)] == [200] * TIMES
    tell(own, "DELETE FROM orgs WHERE sourced_id = 'spr-new'; UPDATE roster_state SET revision = revision + 1")
    assert [ask(own.client, "/orgs/spr-new").status for _ in range(TIMES)] == [404] * TIMES


def test_another_token_is_admitted_by_itself(client: RosterClient) -> None:
    """What one may ask says nothing of another: neither a vendor nor a narrower token."""
    path = "/schools/spr-high/students"
    tag = warm(client, path).headers["ETag"]
    address = ROOTS["v1p1"] + path
    for token, status in (
        (client.token("v1p1", (CORE,)), 403),
        (client.token("v1p2"), 400),
        (client.token("v1p1", vendor="springfield"), 200),
        ("nonsense", 401),
    ):
        for _ in range(TIMES):
            for headers in ({"If-None-Match": tag}, {}):
                sent = {"Authorization": f"Bearer {token}", **headers}
                assert client.fetch(address, headers=sent).status == status
    assert client.fetch(address, headers={"If-None-Match": tag}).status == 401
    with_token = {"Authorization": f"Bearer {client.token('v1p1')}", "If-None-Match": tag}
    assert client.fetch(address, method="POST", headers=with_token).status == 400
    assert client.fetch(address, headers=with_token | {"Host": "other.example"}).status == 200


def test_each_answer_leaves_an_entry(make_own: Callable[..., Served]) -> None:
    own = make_own()
    tag = ask(own.client, "/users/spr-student-1").headers["ETag"]
    with only("direct"):
        for _ in range(TIMES):
            ask(own.client, "/users/spr-student-1")
            ask(own.client, "/users/spr-student-1", If_None_Match=tag)
    own.app.extensions["roster_journal"].flush()
    with own.engine.connect() as connection:
        endpoint = "GET /ims/oneroster/v1p1/users/{sourcedId}"
        counted = connection.execute(text("SELECT endpoint, requests, records FROM usage ORDER BY status_class")).all()
        assert counted == [(endpoint, 1 + TIMES, 1 + TIMES), (endpoint, TIMES, 0)]
        assert connection.scalar(text("SELECT count(*) FROM audit")) == 1 + TIMES


def test_callers_that_are_known_are_bounded(make_own: Callable[..., Served], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_callers, "KEPT_CALLERS", 2)
    own = make_own()
    for _ in range(TIMES):
        for scope in SCOPES[:3]:
            own.client.call("v1p1", "/users" if scope != SCOPES[2] else "/demographics", scopes=(scope,))
    assert len(own.app.extensions["roster_callers"]._known) == 2


SETTINGS = text(
    "SELECT current_setting('roster.granted_orgs', true), current_setting('roster.shown_orgs', true), "
    "CAST(current_user = session_user AS text), current_setting('transaction_isolation'), "
    "current_setting('statement_timeout')"
)


@pytest.mark.parametrize(
    ("prepared", "session"), [(True, ("false", "repeatable read", "30s")), (False, ("true", "read committed", "0"))]
)
def test_nothing_of_a_caller_stays_with_the_session(
    make_own: Callable[..., Served], prepared: bool, session: tuple[str, ...]
) -> None:
    """Nor, where a pooler may hand it to anybody, anything else."""
    own = make_own(prepared_statements=prepared)
    for _ in range(TIMES):
        ask(own.client, "/users/spr-student-1")
    driver = own.app.extensions["roster_messenger"]._own.driver
    with driver.cursor() as cursor:
        cursor.execute(str(SETTINGS))
        assert [tuple(value or None for value in row) for row in cursor.fetchall()] == [(None, None, *session)]
        cursor.execute("SELECT count(*) FROM pg_prepared_statements")
        assert (cursor.fetchone()[0] > 0) is prepared


def test_connections_that_died_are_not_noticed(make_own: Callable[..., Served]) -> None:
    own = make_own()
    tag = warm(own.client, "/users/spr-student-1").headers["ETag"]
    for headers in ({}, {"If_None_Match": tag}):
        tell(
            own,
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        assert ask(own.client, "/users/spr-student-1", **headers).status in (200, 304)


@pytest.mark.parametrize("way", ["direct", "application"])
def test_a_function_that_a_migration_replaced_is_planned_anew(make_own: Callable[..., Served], way: str) -> None:
    own = make_own()
    path = "/users?limit=3&offset=3"
    expected = [shown(ask(own.client, path)) for _ in range(TIMES)][-1]
    if way == "direct":
        # Its result has another type from now on.
        tell(
            own,
            "DROP FUNCTION client_stands; CREATE FUNCTION client_stands(text, numeric, numeric, text, integer, bigint, "
            "timestamptz, timestamptz) RETURNS integer LANGUAGE sql AS 'SELECT 1'",
        )
        tag = expected[1]["ETag"]
        assert ask(own.client, path, If_None_Match=tag).status == 304
    else:
        tell(
            own,
            "ALTER FUNCTION admit_client RENAME TO former; CREATE FUNCTION admit_client(text, numeric, numeric, text, "
            "boolean, OUT vendor integer, OUT districts text[], OUT schools text[], OUT revision bigint, "
            "OUT as_of timestamptz, OUT deletions_since timestamptz, OUT opening text, OUT everyone boolean, "
            "OUT added text) RETURNS SETOF record LANGUAGE sql SECURITY DEFINER AS "
            "$$ SELECT former.*, 'new' FROM former($1, $2, $3, $4, $5) $$",
        )
        with only("application"):
            assert shown(ask(own.client, path)) == expected
    assert shown(ask(own.client, path)) == expected


ODD = (
    "/users/%ff",
    "/users/%00",
    "/users/a%2Fb",
    "/users/a%252Fb",
    "/users/spr-student-1/",
    "/users/",
    "//users",
    "/users//classes",
    "/%75sers/spr-student-1",
    "/users/%73pr-student-1",
    "/users/spr-student-1?",
    "/users/spr-student-1?fields=sourcedId",
    "/users/spr-student-1?limit=1",
    "/users?limit=x",
    "/users?limit=2&offset=1&unknown=1",
    "/users?limit=2&offset=1&filter=nonsense",
    "/users?limit=2&offset=1&filter=givenName%3D'%C3%A9'",
    "/users?limit=2&offset=1&fields=sourcedId,,",
    "/nothing",
    "/openapi.json",
    "",
)
ODD_HEADERS: tuple[dict[str, str], ...] = (
    {"Host": 'bad host/"x'},
    {"Host": ""},
    {"Host": "[::1]:8000"},
    {"Host": "xn--mnchen-3ya.example"},
    {"Authorization": "Basic x"},
    {"Authorization": "bearer"},
    {"Accept-Encoding": "*;q=0, identity"},
    {"If-None-Match": "nonsense"},
    {"If-None-Match": ""},
)


@pytest.mark.parametrize("path", ODD)
def test_what_is_unusual_is_answered_as_ever(client: RosterClient, path: str) -> None:
    for _ in range(TIMES):
        with only("application"):
            expected = shown(ask(client, path))
        assert shown(ask(client, path)) == expected


@pytest.mark.parametrize("headers", ODD_HEADERS, ids=repr)
def test_unusual_headers_are_read_as_ever(client: RosterClient, headers: dict[str, str]) -> None:
    for path in ("/users/spr-student-1", "/users?limit=3&offset=3"):
        warm(client, path)
        sent = {"Authorization": f"Bearer {client.token('v1p1')}", **headers}
        with only("application"):
            expected = shown(client.fetch(ROOTS["v1p1"] + path, headers=sent))
        assert shown(client.fetch(ROOTS["v1p1"] + path, headers=sent)) == expected


def test_the_method_is_refused_as_ever(client: RosterClient) -> None:
    warm(client, "/users/spr-student-1")
    sent = {"Authorization": f"Bearer {client.token('v1p1')}"}
    for method in ("POST", "HEAD", "OPTIONS", "DELETE"):
        assert client.fetch(f"{ROOTS['v1p1']}/users/spr-student-1", method=method, headers=sent).status == 400
