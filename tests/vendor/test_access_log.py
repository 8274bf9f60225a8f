"""Usage counters and the access log: what they hold of both interfaces, and what they never hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, insert, select, text

from roster_service.access import clients
from roster_service.access.access_log.reports import read_access_log, read_usage
from roster_service.access.access_log.writer import AccessLog, Disclosure, Entry, mask_filter
from roster_service.access.scopes import Scope, ScopeName
from roster_service.db.tables import audit
from roster_service.schemas.flags import PermissionFlag
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
            return read_access_log(connection, account.id, None)

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


def ask_rostering(served: Served, account: Account, *addresses: str) -> None:
    """Calls of the other interface."""
    with served.engine.begin() as connection:
        made = clients.add_client(connection, TESTER, account.email, "tests", [Scope("v1p1", ScopeName.FULL)])
    http = served.app.test_client()
    form = {"grant_type": "client_credentials", "client_id": made.client_id, "client_secret": made.client_secret}
    token = http.post("/oauth/token", data=form).json["access_token"]
    for address in addresses:
        http.get(f"/ims/oneroster/v1p1{address}", headers={"Authorization": f"Bearer {token}"})


def test_students_leave_a_row_with_what_was_asked_but_no_value(
    client: VendorClient, account: Account, log_of: Callable[[Account], list[Any]]
) -> None:
    body = {"districtlea": LEA, "schools": ["spr-high"], "limit": 2, "include": ["contacts"]}
    client.students(account, client.token(account), body)
    [row] = log_of(account)
    assert (row.vendor, row.method, row.path, row.records) == (account.email, "POST", "/v1/students", 2)
    assert account.api_key.startswith(row.caller)
    assert row.filter == "districtlea='*' include='contacts' limit='*' offset='*' schools='*'"
    assert row.request_id


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
    assert {row.caller[:7] for row in rows} == {"client-"}
    written = str(rows)
    assert not [value for value in ("Brien", "Zoë", "zo'", "spr-student", "anything") if value in written]


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


def test_usage_adds_up_over_batches(
    client: VendorClient, account: Account, usage_of: Callable[[Account], dict[Any, Any]]
) -> None:
    token = client.token(account)
    for _ in range(3):
        client.students(account, token, {"districtlea": LEA})
    assert usage_of(account)["POST /v1/students", "2xx"] == (3, 18)
    client.students(account, token, {"districtlea": LEA, "limit": 1})
    assert usage_of(account)["POST /v1/students", "2xx"] == (4, 19)


def make_entry(at: datetime | None = None) -> Entry:
    """A request that was shown a record."""
    shown = Disclosure(1, lambda: None)
    return Entry(at or datetime.now(UTC), 1, "key-0", None, "GET", "/x", 200, 10, "id", shown)


@pytest.fixture
def access_log(engine: Engine) -> Iterator[AccessLog]:
    """A journal on a database of this test's own."""
    made = AccessLog(engine, 400)
    yield made
    made.close()


def test_what_is_left_is_written_at_the_end(engine: Engine, access_log: AccessLog) -> None:
    for _ in range(5):
        access_log.add(make_entry())
    access_log.close()
    with engine.connect() as connection:
        assert len(read_access_log(connection, None, None)) == 5


def test_a_database_that_is_away_loses_no_entry(
    engine: Engine, access_log: AccessLog, expected_faults: pytest.LogCaptureFixture
) -> None:
    rename = "ALTER TABLE {} RENAME TO {}"
    with engine.begin() as connection:
        connection.execute(text(rename.format("audit", "hidden")))
    access_log.add(make_entry())
    access_log.flush()
    with engine.begin() as connection:
        connection.execute(text(rename.format("hidden", "audit")))
    access_log.flush()
    assert [record.getMessage().partition(" (")[0] for record in expected_faults.records] == [
        "the access log does not answer",
        "the access log answers again",
    ]
    with engine.connect() as connection:
        assert len(read_access_log(connection, None, None)) == 1
        assert [row.requests for row in read_usage(connection, None, None)] == [1]


def test_the_log_is_kept_for_its_days_and_no_longer(engine: Engine, access_log: AccessLog) -> None:
    now = datetime.now(UTC)
    row = {"vendor_id": 1, "caller": "c", "method": "GET", "path": "/x", "records": 1, "request_id": "r"}
    with engine.begin() as connection:
        connection.execute(insert(audit), [row | {"at": now - timedelta(days=days)} for days in (401, 399)])
    access_log.add(make_entry(now))
    access_log.flush()
    with engine.connect() as connection:
        ages = [now - at for at in connection.scalars(select(audit.c.at).order_by(audit.c.at))]
    assert [round(age / timedelta(days=1)) for age in ages] == [399, 0]


@pytest.mark.parametrize(
    ("given", "masked"),
    [
        pytest.param(None, None, id="none"),
        pytest.param("givenName='x'", "givenName='*'", id="a clause"),
        pytest.param("a.b >= 'O''Brien' OR c~'%'", "a.b>='*' OR c~'*'", id="two clauses"),
    ],
)
def test_every_value_of_a_filter_is_masked(given: str | None, masked: str | None) -> None:
    assert mask_filter(given) == masked
