"""Refused requests are counted by hour, vendor, caller, status, cause and path; what they sent is stored nowhere."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from roster_service.access_log.causes import CAUSES, NOTHING_FOUND
from roster_service.access_log.entries import Entry
from roster_service.access_log.reports import LATEST_HOURS, RefusedRow, read_refused
from roster_service.access_log.writer import KEPT_ADDRESSES, write_entries
from roster_service.accounts import clients, vendor_rights, vendors
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.db.roles import DatabaseRole, find_role, quote_name
from roster_service.db.tables import UNKNOWN, refused_requests
from roster_service.errors import Problem
from tests.actors import TESTER

from .client import ROOTS
from .conftest import SECRET_KEY, Served, roster, served

__all__ = ["roster", "served"]

ROOT = ROOTS["v1p1"]
NOT_STORED = "Zelda.zyx-not-to-be-stored"
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

    def make_permission_token(self) -> str:
        """A token of the vendor interface, for a grant."""
        with self.served.engine.begin() as connection:
            vendor_rights.grant(connection, TESTER, self.email, "spr-district", ())
        http, body = self.served.app.test_client(), {"email": self.email, "password": self.password}
        return str(http.post("/v1/login", json=body, headers={"x-api-key": self.key}).json["token"])

    def fill(self, form: Mapping[str, str]) -> Mapping[str, str]:
        """A token request."""
        own = {"grant_type": "client_credentials", "client_id": self.client_id, "client_secret": self.secret}
        return {**own, **form}

    def log_in(self, key: str | None, password: str) -> int:
        """Logs in to the vendor interface."""
        headers = {} if key is None else {"x-api-key": key}
        body = {"email": self.email, "password": password}
        return self.send("/v1/login", method="POST", json=body, headers=headers)

    def log_in_disabled(self, password: str) -> int:
        """Logs in to the vendor interface once the vendor is disabled."""
        with self.served.engine.begin() as connection:
            vendors.set_vendor_enabled(connection, TESTER, self.email, enabled=False)
        return self.log_in(self.key, password)

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


def in_the_past(make: Callable[[], str]) -> str:
    """A token that was made two days ago."""
    now = time.time
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(time, "time", lambda: now() - 172_800)
        return make()


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
        Problem.ENDED_TOKEN,
    ),
    "a token whose time is over": (
        lambda it: it.ask("/orgs", f"Bearer {in_the_past(it.make_token)}"),
        "client",
        401,
        Problem.ENDED_TOKEN,
    ),
    "a permission token whose time is over": (
        lambda it: it.send(
            "/v1/students",
            method="POST",
            json={},
            headers={"x-api-key": it.key, "Authorization": f"Bearer {in_the_past(it.make_permission_token)}"},
        ),
        "key",
        401,
        Problem.ENDED_TOKEN,
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
    "a vendor without a grant, at the login": (
        lambda it: it.log_in(it.key, it.password),
        "key",
        403,
        Problem.NO_GRANT,
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
    "a disabled vendor": (lambda it: it.log_in_disabled(it.password), "key", 401, Problem.DISABLED),
    "a wrong password of a disabled vendor": (
        lambda it: it.log_in_disabled(NOT_STORED),
        "key",
        401,
        Problem.CREDENTIALS,
    ),
}


@pytest.mark.shows(
    "Logs and transport",
    "Counters of refused requests have templates and names of fields; unknown callers add no row.",
)
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
    assert "zyx" not in str(rows)
    assert all(row.addresses == ["127.0.0.1"] and row.last_at < datetime.now(UTC) for row in rows)
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


def read_addresses(engine: sa.Engine) -> list[str]:
    """The last addresses of the refused requests, by caller and cause."""
    with engine.connect() as connection:
        return [row.addresses[0] for row in read_refused(connection, None, None)]


def test_a_row_has_the_first_and_the_last_of_its_requests(make_served: Callable[..., Served]) -> None:
    """Also where another worker has stored a later one before."""
    own = make_served()
    start = datetime(2026, 11, 25, 9, 10, tzinfo=UTC)
    for minutes, ids in ((20, "cd"), (0, "ab"), (40, "ef")):
        entries = [
            replace(
                Entry(start + timedelta(minutes=minutes + place), 7, "c", f"192.0.2.{minutes}", "GET", "/x", 403, 1, 0),
                cause=Problem.NO_GRANT.value,
                request_id=f"request-{letter}",
                fields=[f"field-{letter}", "status"],
            )
            for place, letter in enumerate(ids)
        ]
        with own.engine.begin() as connection:
            write_entries(connection, entries)
    with own.engine.connect() as connection:
        [row] = read_refused(connection, None, None)
        assert row == RefusedRow(
            vendor="7",
            vendor_id=7,
            caller="c",
            status=403,
            cause=Problem.NO_GRANT.value,
            endpoint="GET /x",
            requests=6,
            first_at="2026-11-25T09:10:00.000+00:00",
            first_request_id="request-a",
            last_at="2026-11-25T09:51:00.000+00:00",
            last_request_id="request-f",
            addresses=["192.0.2.40", "192.0.2.20", "192.0.2.0"],
            fields=[*(f"field-{letter}" for letter in "abcdef"), "status"],
            hours={"2026-11-25T09:00+00:00": 6},
            words="no district or school is granted",
            remedy="choose districts or schools for the vendor",
        )
        for request_id, found in (("request-a", 1), ("request-f", 1), ("request-c", 0)):
            assert len(read_refused(connection, None, None, request_id)) == found


def test_hours_are_summed_up(make_served: Callable[..., Served]) -> None:
    own = make_served()
    start = datetime(2026, 11, 1, tzinfo=UTC)
    entries = [
        Entry(
            start + timedelta(hours=hour),
            7,
            "c",
            f"192.0.2.{hour}",
            "GET",
            "/x",
            403,
            1,
            0,
            Problem.NO_GRANT.value,
            f"{hour}",
        )
        for hour in range(30)
    ]
    with own.engine.begin() as connection:
        write_entries(connection, entries)
    with own.engine.connect() as connection:
        [row] = read_refused(connection, 7, None)
        assert (row.requests, row.first_request_id, row.last_request_id) == (30, "0", "29")
        assert (row.addresses[0], len(row.addresses)) == ("192.0.2.29", KEPT_ADDRESSES)
        assert (next(iter(row.hours)), len(row.hours)) == ("2026-11-02T05:00+00:00", LATEST_HOURS)
        [row] = read_refused(connection, 7, start.date() + timedelta(days=1))
        assert row.requests == 6


@pytest.mark.shows(
    "Logs and transport",
    "Counters of refused requests have templates and names of fields; unknown callers add no row.",
)
def test_unknown_callers_do_not_make_the_table_larger(make_served: Callable[..., Served]) -> None:
    """Whatever ids, addresses, methods, paths and fields they send."""
    own = make_served(trusted_proxies=1)
    http = own.app.test_client()

    def send(number: int) -> None:
        headers = {"X-Forwarded-For": f"192.0.2.{number}", "X-Request-Id": f"request-{number}"}
        http.post("/oauth/token", data={"grant_type": "x", "client_id": f"c{number}"}, headers=headers)
        http.open(f"{ROOT}/orgs/{number}?filter=f{number}='x'&fields=status", method=f"M{number}", headers=headers)
        http.get(f"{ROOT}/users/{number}/classes?filter=status='x'", headers=headers)

    send(0)
    with own.engine.connect() as connection:
        assert len(set(read_counts(own))) == 3
        before = connection.scalar(sa.select(sa.func.count()).select_from(refused_requests))
    for number in range(1, 100):
        send(number)
    read_counts(own)
    with own.engine.connect() as connection:
        rows = connection.execute(sa.select(refused_requests)).all()
    # The hour may end meanwhile.
    assert len({row[2:6] for row in rows}) == before
    assert all(len(row.addresses) <= KEPT_ADDRESSES and not row.fields for row in rows)


@pytest.mark.shows(
    "Logs and transport",
    "Counters of refused requests have templates and names of fields; unknown callers add no row.",
)
def test_names_of_fields_are_kept_and_nothing_else_of_a_query(caller: Caller) -> None:
    """Of a vendor, neither a value, nor an id of a path, nor a name that the wire format does not have."""
    token = {"Authorization": f"Bearer {caller.make_token()}", "X-Request-Id": "request-of-fields"}
    query = (
        f"filter=familyName='{NOT_STORED}' AND {NOT_STORED}>'sex' OR grades={NOT_STORED}&sort=birthDate.x"
        f"&fields=email,{NOT_STORED}&fields[]=phone&{NOT_STORED}=1"
    )
    assert caller.send(f"{ROOT}/users/{NOT_STORED}?{query}", headers=token) == 400
    caller.served.app.extensions["roster_access_log"].flush()
    with caller.served.engine.connect() as connection:
        [row] = read_refused(connection, None, None, "request-of-fields")
        stored = connection.execute(sa.select(refused_requests)).all()
    assert (row.endpoint, row.caller) == (f"GET {ROOT}/users/{{sourcedId}}", caller.client_id)
    assert row.fields == ["birthDate", "email", "familyName", "grades", "phone"]
    assert "zyx" not in str(stored)


def test_each_cause_has_words_and_a_remedy() -> None:
    never_counted = {Problem.FILTER_WORD, Problem.SORT_FIELD, Problem.SELECTION_FIELD, Problem.BUSY, Problem.INTERNAL}
    assert set(CAUSES) == {NOTHING_FOUND, *(problem.value for problem in set(Problem) - never_counted)}


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
