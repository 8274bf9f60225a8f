"""Usage counters and the access log: what they hold of both interfaces, and what they never hold."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from oneroster_filter import check, field_types, parse
from werkzeug.test import TestResponse

from roster_service.access_log.entries import mask_filter
from roster_service.access_log.reports import AccessLogFilter, read_access_log, read_usage
from roster_service.access_log.spool import Spool
from roster_service.accounts import clients, vendor_rights
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.versions import USERS, V1P2
from tests.actors import TESTER
from tests.vendor.client import Account, VendorClient
from tests.vendor.conftest import Served

LEA = "17-0042"


@pytest.fixture
def account(served: Served) -> Account:
    """A vendor who may have everything of Springfield."""
    return served.add(grants={"spr-district": ()}, flags=tuple(PermissionFlag))


@pytest.fixture
def log_of(served: Served) -> Callable[[Account], list[Any]]:
    """The access log of a vendor."""

    def read(account: Account) -> list[Any]:
        served.app.extensions["roster_access_log"].flush()
        with served.engine.connect() as connection:
            return read_access_log(connection, AccessLogFilter(vendor_id=account.id))

    return read


@pytest.fixture
def usage_of(served: Served) -> Callable[[Account], dict[Any, Any]]:
    """The usage of a vendor: (endpoint, class of status) -> (requests, records)."""

    def read(account: Account) -> dict[Any, Any]:
        served.app.extensions["roster_access_log"].flush()
        with served.engine.connect() as connection:
            rows = read_usage(connection, account.id, datetime.now(UTC).date() - timedelta(days=1))
        assert all(row.bytes > 0 for row in rows)
        return {(row.endpoint, row.status): (row.requests, row.records) for row in rows}

    return read


def ask_rostering(served: Served, account: Account, *addresses: str) -> list[TestResponse]:
    """Calls of the other interface."""
    with served.engine.begin() as connection:
        made = clients.add_client(connection, TESTER, account.email, "tests", [Scope("v1p1", ScopeName.FULL)])
    http = served.app.test_client()
    form = {"grant_type": "client_credentials", "client_id": made.client_id, "client_secret": made.client_secret}
    token = http.post("/oauth/token", data=form).json["access_token"]
    headers = {"Authorization": f"Bearer {token}"}
    return [http.get(f"/ims/oneroster/v1p1{address}", headers=headers) for address in addresses]


@pytest.mark.shows(
    "Access log",
    "A row has path templates, masked filters and keyed hashes of people: no ids or values of records.",
)
def test_students_leave_a_row_with_what_was_asked_but_no_value(
    client: VendorClient, account: Account, log_of: Callable[[Account], list[Any]]
) -> None:
    body = {"districtlea": LEA, "schools": ["spr-high"], "limit": 2, "include": ["contacts"]}
    client.students(account, client.token(account), body)
    [row] = log_of(account)
    assert (row.vendor, row.method, row.path, row.records) == (account.email, "POST", "/v1/students", 2)
    assert account.api_key.startswith(row.caller)
    assert row.filter == "districtlea='*' include='contacts' limit='*' offset='*' schools='*'"
    assert (row.scope.split(), row.districts) == (sorted(PermissionFlag), ["spr-district"])
    assert (row.address, bool(row.request_id)) == ("127.0.0.1", True)


@pytest.mark.shows(
    "Access log",
    "A row has path templates, masked filters and keyed hashes of people: no ids or values of records.",
)
def test_the_other_interface_leaves_rows_too(
    served: Served, account: Account, log_of: Callable[[Account], list[Any]]
) -> None:
    name = "familyName='O''Brien' AND givenName~'zo'"
    ask_rostering(served, account, f"/students?filter={name}", "/users/spr-student-1", "/classes/anything/students")
    rows = log_of(account)
    assert [(row.path.removeprefix("/ims/oneroster/v1p1"), row.filter, row.records) for row in rows] == [
        ("/students", "familyName='*' AND givenName~'*'", 1),
        ("/users/{sourcedId}", None, 1),
        ("/classes/{classId}/students", None, 0),
    ]
    assert {(row.caller[:7], row.scope, row.address, *row.districts) for row in rows} == {
        ("client-", f"v1p1/{ScopeName.FULL}", "127.0.0.1", "spr-district")
    }
    written = str(rows)
    assert not [value for value in ("Brien", "Zoë", "zo'", "spr-student", "anything") if value in written]


@pytest.mark.shows("Access log", "A row names the districts that the vendor's grants opened at its time.")
def test_a_row_names_the_districts_of_the_grants_at_its_time(
    served: Served, client: VendorClient, log_of: Callable[[Account], list[Any]]
) -> None:
    """Also those of which single schools are granted."""
    account = served.add(grants={"spr-district": ("spr-high",)})

    def ask() -> None:
        client.students(account, client.token(account), {"districtlea": LEA})

    ask()
    with served.engine.begin() as connection:
        vendor_rights.grant(connection, TESTER, account.email, "shv-district", ())
    ask()
    ask()
    districts = [row.districts for row in log_of(account)]
    assert districts == [["spr-district"], *[["shv-district", "spr-district"]] * 2]


def test_what_is_refused_leaves_no_row_but_counts(
    served: Served,
    client: VendorClient,
    account: Account,
    log_of: Callable[[Account], list[Any]],
    usage_of: Callable[[Account], dict[Any, Any]],
) -> None:
    token = client.token(account)
    client.students(account, token, {"districtlea": "17-0077"})
    client.students(account, token, {"limit": 0})
    client.login(account, password="wrong")
    ask_rostering(served, account, "/users/nobody", "/users?filter=x")
    assert log_of(account) == []
    assert usage_of(account) == {
        ("POST /v1/login", "2xx"): (1, 0),
        ("POST /v1/login", "4xx"): (1, 0),
        ("POST /v1/students", "4xx"): (2, 0),
        ("GET /ims/oneroster/v1p1/users", "4xx"): (1, 0),
        ("GET /ims/oneroster/v1p1/users/{sourcedId}", "4xx"): (1, 0),
    }


@pytest.mark.shows(
    "Access log",
    "An answer that cannot be recorded is 503, unless `ROSTER_ACCESS_LOG_REQUIRED` is `false`.",
)
def test_an_answer_that_cannot_be_recorded_is_503_on_both_interfaces(
    served: Served,
    client: VendorClient,
    account: Account,
    log_of: Callable[[Account], list[Any]],
    monkeypatch: pytest.MonkeyPatch,
    expected_faults: pytest.LogCaptureFixture,
) -> None:
    def refuse(*_: object) -> None:
        raise OSError

    token = client.token(account)
    monkeypatch.setattr(Spool, "append", refuse)
    with served.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE audit RENAME TO hidden")
    try:
        answer = client.students(account, token, {"districtlea": LEA})
        assert (answer.status, answer.json["code"], b"students" in answer.body) == (503, "unavailable", False)
        assert int(answer.headers["Retry-After"]) > 0
        assert [reply.status_code for reply in ask_rostering(served, account, "/users", "/users/spr-student-1")] == [
            503
        ] * 2
    finally:
        with served.engine.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE hidden RENAME TO audit")
    assert log_of(account) == []


def test_usage_adds_up_over_batches(
    client: VendorClient, account: Account, usage_of: Callable[[Account], dict[Any, Any]]
) -> None:
    token = client.token(account)
    for _ in range(3):
        client.students(account, token, {"districtlea": LEA})
    assert usage_of(account)["POST /v1/students", "2xx"] == (3, 18)
    client.students(account, token, {"districtlea": LEA, "limit": 1})
    assert usage_of(account)["POST /v1/students", "2xx"] == (4, 19)


@pytest.mark.parametrize(
    ("given", "masked"),
    [
        pytest.param(None, None, id="none"),
        pytest.param("givenName='x'", "givenName='*'", id="a clause"),
        pytest.param(
            "familyName >= 'O''Brien' OR agents.sourcedId~'%'", "familyName>='*' OR agents.sourcedId~'*'", id="two"
        ),
    ],
)
def test_every_value_of_a_filter_is_masked(given: str | None, masked: str | None) -> None:
    types = field_types(V1P2.records[USERS]())
    assert mask_filter(None if given is None else check(parse(given), types)) == masked
