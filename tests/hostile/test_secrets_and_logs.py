"""Secrets are compared in constant time, never sent to the database in clear, and stand in no log; nor do pupils."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DataError

from roster_service.auth.credentials import secrets as secret_texts
from roster_service.logs import JsonFormatter
from roster_service.web.request_log import add_request_facts
from tests.contract.client import RosterClient
from tests.contract.conftest import Served
from tests.contract.messages import messages
from tests.vendor.client import Account, VendorClient

STUDENT = "Zoë"


@pytest.fixture
def statements(served: Served) -> Iterator[list[str]]:
    """Every statement that is sent to the database, with its values. Rows of the access log are written later, and
    their callers looked up: those of earlier tests, which ask with passwords as names, are written before."""
    served.app.extensions["roster_access_log"].flush()
    with messages() as sent:

        def note(_connection: Any, _cursor: Any, statement: str, values: Any, _context: Any, _many: bool) -> None:
            sent.append(f"{statement} {values!r}")

        sa.event.listen(sa.Engine, "before_cursor_execute", note)
        yield sent
        sa.event.remove(sa.Engine, "before_cursor_execute", note)


@pytest.mark.shows("Credentials", "Client secrets are compared in constant time, those of unknown clients too.")
@pytest.mark.parametrize("changed", [{}, {"client_secret": "wrong"}, {"client_id": "client-nobody"}], ids=repr)
def test_every_try_of_a_client_secret_is_one_comparison_in_constant_time(
    client: RosterClient, monkeypatch: pytest.MonkeyPatch, changed: dict[str, str]
) -> None:
    """Of two hashes of the same kind, whoever asks: a stranger is compared too."""
    compared: list[tuple[bytes, bytes]] = []
    real = hmac.compare_digest

    def note(given: bytes, stored: bytes) -> bool:
        compared.append((given, stored))
        return real(given, stored)

    monkeypatch.setattr(secret_texts.hmac, "compare_digest", note)
    form = client.form(**changed)
    assert client.ask_token(form).status == (401 if changed else 200)
    monkeypatch.undo()
    assert compared
    assert all(given == secret_texts.hash_secret(form["client_secret"]) for given, _ in compared)


@pytest.mark.shows("Credentials", "No secret, password, API key or token is sent to the database in clear.")
def test_no_secret_is_sent_to_the_database(
    served: Served, client: RosterClient, vendor: VendorClient, account: Account, statements: list[str]
) -> None:
    """They are looked up by their hashes, whose order tells nothing of theirs."""
    form = client.form()
    assert client.ask_token(form).status == 200
    permission_token = vendor.token(account)
    assert vendor.students(account, permission_token, {"districtlea": "17-0042"}).status == 200
    for _ in range(3):
        assert client.call("v1p1", "/users/spr-student-1", bearer=client.token("v1p1")).status == 200
    served.app.extensions["roster_access_log"].flush()
    sent = "\n".join(statements)
    assert len(statements) > 5
    for secret in (form["client_secret"], account.api_key, account.password, permission_token, client.token("v1p1")):
        assert secret not in sent


def plant(client: RosterClient, vendor: VendorClient, account: Account) -> dict[str, Callable[[], int]]:
    """Requests that go wrong in every way, with secrets and names of pupils in them; each gives its status."""
    token, permission_token = client.token("v1p2"), vendor.token(account)
    hostile = {"filter": f"givenName='{STUDENT}' OR"}

    def ask(**options: Any) -> Callable[[], int]:
        return lambda: client.call("v1p2", options.pop("path", "/users"), options.pop("query", None), **options).status

    return {
        "a refused filter": ask(query=hostile),
        "an unknown parameter": ask(query={STUDENT: "x"}),
        "an unknown record": ask(path=f"/users/{account.password}"),
        "an unknown path": ask(path=f"/{account.password}/x"),
        "a broken token": ask(bearer=token + "x"),
        "a secret as a token": ask(bearer=account.password),
        "a wrong secret": lambda: client.ask_token(client.form(client_id=account.password)).status,
        "a wrong password": lambda: vendor.login(account, password=account.password + "x").status,
        "a broken permit": lambda: vendor.students(account, permission_token + "x", {}).status,
        "a wrong key": lambda: vendor.send("/v1/students", {}, headers={"x-api-key": account.api_key + "x"}).status,
        "a key that is none": lambda: vendor.students(account, permission_token, {STUDENT: account.password}).status,
        "no JSON": lambda: vendor.students(account, permission_token, raw=account.password.encode()).status,
        "a good one": ask(query={"filter": f"givenName='{STUDENT}'"}),
        "students": lambda: vendor.students(account, permission_token, {"districtlea": "17-0042"}).status,
    }


@pytest.fixture
def facts_in_log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """The captured log has every line of the service, with the facts of its request, as in production."""
    caplog.set_level(logging.DEBUG, "roster_service")
    usual = caplog.handler.formatter
    caplog.handler.setFormatter(JsonFormatter())
    caplog.handler.addFilter(add_request_facts)
    yield
    caplog.handler.removeFilter(add_request_facts)
    caplog.handler.setFormatter(usual)


FAULTS: list[Any] = [
    pytest.param(ValueError(STUDENT), id="a fault with a value in its words"),
    pytest.param(KeyError(STUDENT), id="a key that is missing"),
    pytest.param(DataError("SELECT", {"name": STUDENT}, Exception(STUDENT)), id="a value that the database refuses"),
]


def assert_silent(
    log: str, client: RosterClient, account: Account, capture: tuple[str, str], permission_token: str | None = None
) -> None:
    """None of what was planted stands there."""
    form = client.form()
    planted = [form["client_secret"], account.api_key, account.password, client.token("v1p2"), STUDENT, "Zo\\xeb"]
    for place in (log, *capture):
        assert [text for text in planted if text in place] == []


@pytest.mark.shows(
    "Logs and transport", "No request of 14 kinds writes a secret, a token or the name of a pupil into the log."
)
def test_no_log_line_has_a_secret_or_a_pupil_in_it(
    client: RosterClient,
    vendor: VendorClient,
    account: Account,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    facts_in_log: None,
) -> None:
    requests = plant(client, vendor, account)
    statuses = {name: send() for name, send in requests.items()}
    assert {400, 401, 403, 404, 200} <= set(statuses.values())
    assert caplog.text.count('"request_id"') >= len(requests)
    assert_silent(caplog.text, client, account, capsys.readouterr())


@pytest.mark.shows(
    "Logs and transport",
    "A fault is logged with its place and without its words, except in Python's development mode.",
)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_logged_with_its_place_and_without_its_words(
    client: RosterClient,
    vendor: VendorClient,
    account: Account,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    fault: Exception,
) -> None:
    token, permission_token = client.token("v1p2"), vendor.token(account)

    def fail(*_arguments: object) -> None:
        try:
            raise fault
        except Exception as error:
            raise RuntimeError(STUDENT) from error

    def fail_plainly(*_arguments: object) -> None:
        raise fault

    for failing in (fail, fail_plainly):
        monkeypatch.setattr("roster_service.serving.reader.Reader.read_page", failing)
        assert client.call("v1p2", "/users", bearer=token).status == 500
        assert vendor.students(account, permission_token, {"districtlea": "17-0042"}).status == 500
    assert "RuntimeError" in caplog.text
    assert "fail" in caplog.text
    assert_silent(caplog.text, client, account, capsys.readouterr())
