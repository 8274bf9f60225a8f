"""Refused requests are counted by vendor, caller, status and cause; what they sent is stored nowhere."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from roster_service.accounts import clients, vendors
from roster_service.auth.access_log.reports import read_refused
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.db.roles import DatabaseRole, find_role, quote_name
from roster_service.db.tables import UNKNOWN, refused_requests
from roster_service.errors import Problem
from tests.actors import TESTER

from .client import ROOTS
from .conftest import SECRET_KEY, Served, roster, served

__all__ = ["roster", "served"]

ROOT = ROOTS["v1p1"]
NOT_STORED = "Zelda.4711-not-to-be-stored"
SIGNED = (
    'OAuth oauth_consumer_key="{}", oauth_signature_method="HMAC-SHA1", oauth_signature="eA%3D%3D", '
    'oauth_timestamp="{}", oauth_nonce="n", oauth_version="1.0"'
)


@dataclass(frozen=True)
class Caller:
    """A vendor with a client, an API key, and a key that has ended."""

    served: Served
    email: str
    client_id: str
    secret: str
    key: str
    ended_key: str
    password: str

    def send(self, path: str, *, method: str = "GET", **options: Any) -> int:
        """Sends a request. Returns the status of the answer."""
        return self.served.app.test_client().open(path, method=method, **options).status_code

    def ask(self, path: str, authorization: str | None = None) -> int:
        """Asks for a path of OneRoster 1.1 with this header."""
        return self.send(ROOT + path, headers={} if authorization is None else {"Authorization": authorization})

    def get_token(self, **form: str) -> int:
        """Asks for a token, with the credentials of the client unless the form has others."""
        return self.send("/oauth/token", method="POST", data=self.fill(form))

    def get_token_by_header(self) -> int:
        """Asks for a token with a wrong secret in the header."""
        coded = base64.b64encode(f"{self.client_id}:{NOT_STORED}".encode()).decode()
        form, headers = {"grant_type": "client_credentials"}, {"Authorization": f"Basic {coded}"}
        return self.send("/oauth/token", method="POST", data=form, headers=headers)

    def make_token(self, scope: ScopeName = ScopeName.FULL) -> str:
        """An access token with a scope."""
        form = self.fill({"scope": f"v1p1/{scope}"})
        return str(self.served.app.test_client().post("/oauth/token", data=form).json["access_token"])

    def fill(self, form: Mapping[str, str]) -> Mapping[str, str]:
        """A token request."""
        own = {"grant_type": "client_credentials", "client_id": self.client_id, "client_secret": self.secret}
        return {**own, **form}

    def log_in(self, key: str | None, password: str) -> int:
        """Logs in to the vendor interface."""
        headers = {} if key is None else {"x-api-key": key}
        body = {"email": self.email, "password": password}
        return self.send("/v1/login", method="POST", json=body, headers=headers)

    def disable(self) -> None:
        """Disables the client."""
        with self.served.engine.begin() as connection:
            clients.disable_client(connection, TESTER, self.client_id)


@pytest.fixture(scope="module")
def signing(make_served: Callable[..., Served]) -> Served:
    """An application of this module's own, which takes signed requests."""
    return make_served(oauth1=True)


@pytest.fixture
def caller(signing: Served, request: pytest.FixtureRequest) -> Caller:
    """A vendor of the test's own."""
    email = f"{abs(hash(request.node.name))}@refused.example"
    scopes = [Scope("v1p1", name) for name in (ScopeName.FULL, ScopeName.CORE)]
    with signing.engine.begin() as connection:
        ended = vendors.add_vendor(connection, TESTER, email, "Refused")
        made = clients.add_client(connection, TESTER, email, "tests", scopes, secret_key=SECRET_KEY)
        key = vendors.replace_key(connection, TESTER, email, timedelta(0)).api_key
    assert ended.password is not None
    return Caller(signing, email, made.client_id, made.client_secret, key, ended.api_key, ended.password)


def read_counts(served: Served) -> dict[tuple[str, str, int, str], int]:
    """The number of refused requests by vendor, caller, status and cause."""
    served.app.extensions["roster_access_log"].flush()
    with served.engine.connect() as connection:
        rows = read_refused(connection, None, None)
    return {(row.vendor, row.caller, row.status, row.cause): row.requests for row in rows}


def forge(claims: Mapping[str, object]) -> str:
    """A token with these claims that nobody has signed."""
    parts = ({"alg": "RS256", "kid": "x"}, claims)
    return ".".join([*(base64.urlsafe_b64encode(json.dumps(it).encode()).decode().rstrip("=") for it in parts), "eA"])


def ask_disabled(it: Caller, action: Callable[[], int]) -> int:
    """Does something once the client is disabled."""
    it.disable()
    return action()


# Behaviour -> the request, whether it names the client or the key, the status, the cause.
CASES: Mapping[str, tuple[Callable[[Caller], int], str, int, Problem]] = {
    "a wrong secret": (lambda it: it.get_token(client_secret=NOT_STORED), "client", 401, Problem.CREDENTIALS),
    "an unknown client": (lambda it: it.get_token(client_id=NOT_STORED), UNKNOWN, 401, Problem.CREDENTIALS),
    "a client id with a NUL": (lambda it: it.get_token(client_id="x\0"), UNKNOWN, 401, Problem.CREDENTIALS),
    "a wrong secret in the header": (lambda it: it.get_token_by_header(), "client", 401, Problem.CREDENTIALS),
    "a header that is no base64": (
        lambda it: it.send("/oauth/token", method="POST", headers={"Authorization": "Basic é:x"}),
        UNKNOWN,
        400,
        Problem.PARAMETER,
    ),
    "no secret": (lambda it: it.get_token(client_secret=""), "client", 401, Problem.CREDENTIALS),
    "a disabled client": (lambda it: ask_disabled(it, it.get_token), "client", 401, Problem.DISABLED),
    "a scope that the client lacks": (lambda it: it.get_token(scope="v1p2/x"), "client", 400, Problem.SCOPE),
    "another grant": (lambda it: it.get_token(grant_type="password"), "client", 400, Problem.PARAMETER),
    "another method for a token": (lambda it: it.send("/oauth/token"), UNKNOWN, 405, Problem.METHOD),
    "no token": (lambda it: it.ask("/orgs"), UNKNOWN, 401, Problem.NO_TOKEN),
    "a text that is no token": (lambda it: it.ask("/orgs", f"Bearer {NOT_STORED}"), UNKNOWN, 401, Problem.BAD_TOKEN),
    "bytes that are no token": (lambda it: it.ask("/orgs", "Bearer .é.\x7f"), UNKNOWN, 401, Problem.BAD_TOKEN),
    "a token of an unknown client": (
        lambda it: it.ask("/orgs", f"Bearer {forge({'client_id': NOT_STORED, 'sub': it.email})}"),
        UNKNOWN,
        401,
        Problem.BAD_TOKEN,
    ),
    "a token that nobody signed": (
        lambda it: it.ask("/orgs", f"Bearer {forge({'client_id': it.client_id})}"),
        "client",
        401,
        Problem.BAD_TOKEN,
    ),
    "a token of a client that is disabled since": (
        lambda it: (token := it.make_token()) and ask_disabled(it, lambda: it.ask("/orgs", f"Bearer {token}")),
        "client",
        401,
        Problem.BAD_TOKEN,
    ),
    "a wrong signature": (
        lambda it: it.ask("/orgs", SIGNED.format(it.client_id, int(time.time()))),
        "client",
        401,
        Problem.BAD_SIGNATURE,
    ),
    "a signature of an unknown client": (
        lambda it: it.ask("/orgs", SIGNED.format(NOT_STORED, int(time.time()))),
        UNKNOWN,
        401,
        Problem.BAD_SIGNATURE,
    ),
    "a scope that the token lacks": (
        lambda it: it.ask("/schools/x/classes", f"Bearer {it.make_token(ScopeName.CORE)}"),
        "client",
        403,
        Problem.SCOPE,
    ),
    "a vendor without a grant": (
        lambda it: it.ask("/orgs", f"Bearer {it.make_token()}"),
        "client",
        403,
        Problem.NO_GRANT,
    ),
    "a wrong filter": (
        lambda it: it.ask(f"/orgs?filter={NOT_STORED}", f"Bearer {it.make_token()}"),
        "client",
        400,
        Problem.FILTER,
    ),
    "an unknown path": (
        lambda it: it.ask(f"/{NOT_STORED}", f"Bearer {it.make_token()}"),
        "client",
        404,
        Problem.UNKNOWN_PATH,
    ),
    "another method": (lambda it: it.send(f"{ROOT}/orgs", method="DELETE"), UNKNOWN, 400, Problem.METHOD),
    "no API key": (lambda it: it.log_in(None, it.password), UNKNOWN, 403, Problem.API_KEY),
    "an unknown API key": (lambda it: it.log_in(f"key-00000000-{'x' * 43}", "x"), UNKNOWN, 403, Problem.API_KEY),
    "an API key that has ended": (lambda it: it.log_in(it.ended_key, it.password), "ended", 403, Problem.API_KEY),
    "a wrong password": (lambda it: it.log_in(it.key, NOT_STORED), "key", 401, Problem.CREDENTIALS),
}


@pytest.mark.parametrize(("send", "names", "status", "cause"), CASES.values(), ids=CASES)
def test_a_refused_request_is_counted_once(
    caller: Caller, send: Callable[[Caller], int], names: str, status: int, cause: Problem
) -> None:
    before, start = read_counts(caller.served), datetime.now(UTC) - timedelta(seconds=1)
    assert send(caller) == status
    found = read_counts(caller.served)
    known = {"client": caller.client_id, "key": caller.key[:12], "ended": caller.ended_key[:12]}
    key = (UNKNOWN, UNKNOWN) if names == UNKNOWN else (caller.email, known[names])
    added = {row: number - before.get(row, 0) for row, number in found.items() if number != before.get(row)}
    assert added == {(*key, status, cause.value): 1}
    with caller.served.engine.connect() as connection:
        rows = connection.execute(sa.select(refused_requests)).all()
    assert "4711" not in str(rows)
    assert all(row.address == "127.0.0.1" and row.last_at < datetime.now(UTC) for row in rows)
    assert any(row.last_at > start and row.cause == cause.value for row in rows)


def test_the_last_time_and_address_are_those_of_the_last_request(make_served: Callable[..., Served]) -> None:
    """Of two in one batch, and over batches."""
    own = make_served(trusted_proxies=1)
    http = own.app.test_client()
    for batch in (("192.0.2.1", "192.0.2.2"), ("192.0.2.3",)):
        for address in batch:
            assert http.get(f"{ROOT}/orgs", headers={"X-Forwarded-For": address}).status_code == 401
        assert read_counts(own)
        assert read_addresses(own.engine) == [batch[-1]]
    assert list(read_counts(own).values()) == [3]


def read_addresses(engine: sa.Engine) -> list[str | None]:
    """The last addresses of the refused requests, by caller and cause."""
    with engine.connect() as connection:
        return [row.address for row in read_refused(connection, None, None)]


def test_neither_an_answer_nor_a_page_nor_an_outage_is_counted(
    caller: Caller, expected_faults: pytest.LogCaptureFixture
) -> None:
    before = read_counts(caller.served)
    assert caller.get_token() == 200
    assert caller.send("/nowhere") == 404
    with caller.served.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE oauth_clients RENAME TO hidden")
    try:
        assert caller.get_token() == 500
    finally:
        with caller.served.engine.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE hidden RENAME TO oauth_clients")
    assert read_counts(caller.served) == before


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT secret_hash FROM oauth_clients",
        "SELECT visibility_key FROM vendors",
        "SELECT key_hash FROM api_keys",
        "DELETE FROM refused_requests",
    ],
)
def test_the_role_that_counts_reads_the_names_of_callers_alone(signing: Served, statement: str) -> None:
    """The other tests show that its rights suffice."""
    with signing.engine.connect() as connection:
        connection.exec_driver_sql(f"SET LOCAL ROLE {quote_name(str(find_role(connection, DatabaseRole.COUNTERS)))}")
        with pytest.raises(DBAPIError, match="permission denied"):
            connection.exec_driver_sql(statement)
