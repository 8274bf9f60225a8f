"""When the service itself fails: the same envelope, whether to try again, and nothing of the inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg2
import pytest
import sqlalchemy as sa
from psycopg2.errors import QueryCanceled
from sqlalchemy.engine import ExceptionContext

from roster_service.db import round_trip as message
from tests.extent import every_other

from .client import VERSIONS, Answer, RosterClient
from .conftest import Served

each_version = pytest.mark.parametrize("version", VERSIONS)
INSIDE = (b"Traceback", b"psycopg2", b"sqlalchemy", b"SELECT", b"secret value", b"127.0.0.1", b"Error")


def assert_failed(answer: Answer, status: int, minor: str) -> None:
    """The envelope, and no word of what is inside."""
    assert (answer.status, answer.minor) == (status, minor)
    assert not [word for word in INSIDE if word in answer.body.partition(b" (in ")[0]]


@each_version
def test_a_fault_of_our_own_is_500(
    client: RosterClient, version: str, monkeypatch: pytest.MonkeyPatch, expected_faults: pytest.LogCaptureFixture
) -> None:
    token = client.token(version)

    def fail(*_args: object) -> None:
        raise RuntimeError("a secret value")

    monkeypatch.setattr("roster_service.serving.reader.Reader.read_page", fail)
    assert_failed(client.call(version, "/users", bearer=token), 500, "internal_server_error")
    assert "RuntimeError" in expected_faults.text


@pytest.mark.shows("Load", "Request line, headers, body and query parameters have bounds, and statements a time.")
def test_a_query_that_takes_too_long_is_503(
    make_served: Callable[..., Served], served: Served, expected_faults: pytest.LogCaptureFixture
) -> None:
    """A lock stands in for a slow query; when it is gone, the same request is answered."""
    own = make_served(served.url, request_seconds=1)
    token = own.client.token("v1p2")
    with own.engine.begin() as connection:
        connection.execute(sa.text("LOCK TABLE courses IN ACCESS EXCLUSIVE MODE"))
        answer = own.client.call("v1p2", "/courses", bearer=token)
    assert_failed(answer, 503, "server_busy")
    assert int(answer.headers["Retry-After"]) > 0
    assert "QueryCanceled" in expected_faults.text
    assert own.client.call("v1p2", "/courses", bearer=token).total == 6


@pytest.fixture
def cancelled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The statements that the database ended because they took too long."""
    found: list[str] = []

    def note(context: ExceptionContext) -> None:
        if isinstance(context.original_exception, QueryCanceled):
            found.append(str(context.statement))

    def note_message(error: psycopg2.Error) -> BaseException:
        if isinstance(error, QueryCanceled):
            found.append("a message")
        return hide(error)

    hide = message._hide_values
    monkeypatch.setattr(message, "_hide_values", note_message)
    sa.event.listen(sa.Engine, "handle_error", note)
    yield found
    sa.event.remove(sa.Engine, "handle_error", note)


@pytest.mark.parametrize(
    "path", every_other(["/users", "/users?limit=2&offset=2", "/users?limit=0", "/users/spr-student-1"])
)
def test_what_took_too_long_is_not_tried_in_another_way(
    make_served: Callable[..., Served], cancelled: list[str], expected_faults: pytest.LogCaptureFixture, path: str
) -> None:
    """Nothing is known yet of the caller and the collection, so there is much to ask."""
    own = make_served(request_seconds=1)
    token = own.client.token("v1p2")
    with own.engine.begin() as connection:
        connection.execute(sa.text("LOCK TABLE users IN ACCESS EXCLUSIVE MODE"))
        assert_failed(own.client.call("v1p2", *path.split("?"), bearer=token), 503, "server_busy")
    assert len(cancelled) == 1
    # On a busy machine, a statement that nobody has asked for yet may take longer than that second, too.
    assert any(own.client.call("v1p2", *path.split("?"), bearer=token).status == 200 for _ in range(5))


@each_version
def test_a_database_that_is_away_is_503_and_comes_back(
    client: RosterClient,
    served: Served,
    version: str,
    monkeypatch: pytest.MonkeyPatch,
    expected_faults: pytest.LogCaptureFixture,
) -> None:
    """Both when a kept connection was cut and when no new one can be made."""
    token = client.token(version)
    cut = sa.text(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> :me"
    )
    with served.engine.begin() as connection:
        me = connection.scalar(sa.text("SELECT pg_backend_pid()"))
        connection.execute(cut, {"me": me})
    for _ in range(10):
        answer = client.call(version, "/orgs", bearer=token)
        if answer.status == 200:
            break
        assert_failed(answer, 503, "server_busy")
    else:
        raise AssertionError("the service never found its database again")
    # The token endpoint has connections of its own, and finds that they were ended before it uses one.
    assert {client.ask_token(client.form()).status for _ in range(10)} == {200}

    engine = served.app.extensions["roster_engine"]
    engine.dispose()
    served.app.extensions["roster_round_trips"].close()
    address = served.engine.url.set(database="there_is_no_such_database")
    monkeypatch.setattr(engine.pool, "_creator", lambda *_: _connect(address.render_as_string(hide_password=False)))
    assert_failed(client.call(version, "/orgs", bearer=token), 503, "server_busy")
    monkeypatch.undo()
    assert client.call(version, "/orgs", bearer=token).total == 8


def test_a_connection_that_is_lost_on_the_way_is_503(
    client: RosterClient, served: Served, monkeypatch: pytest.MonkeyPatch, expected_faults: pytest.LogCaptureFixture
) -> None:
    """psycopg2 reports the use of a connection that it has closed as an error of its interface."""
    token = client.token("v1p1")

    def lose(*_args: object) -> None:
        with served.app.extensions["roster_engine"].connect() as connection:
            connection.connection.driver_connection.close()
            connection.execute(sa.text("SELECT 1"))

    monkeypatch.setattr("roster_service.serving.reader.Reader.read_page", lose)
    assert_failed(client.call("v1p1", "/users", bearer=token), 503, "server_busy")


def _connect(url: str) -> object:
    return psycopg2.connect(url.replace("+psycopg2", ""))


def test_the_token_endpoint_fails_in_its_own_words(
    client: RosterClient, monkeypatch: pytest.MonkeyPatch, expected_faults: pytest.LogCaptureFixture
) -> None:
    def fail(*_args: object) -> None:
        raise RuntimeError("a secret value")

    monkeypatch.setattr("roster_service.rostering.token_endpoint.find_client", fail)
    answer = client.ask_token(client.form())
    assert (answer.status, answer.json["error"]) == (500, "server_error")
    assert not [word for word in INSIDE if word in answer.body]


@each_version
def test_readers_cannot_write(served: Served, version: str) -> None:
    """Whatever the code above does, PostgreSQL itself refuses."""
    engine = served.app.extensions["roster_engine"]
    with engine.connect() as connection, pytest.raises(Exception, match="read-only transaction"):
        connection.execute(sa.text("DELETE FROM users"))
    assert served.client.call(version, "/users").total == 26
