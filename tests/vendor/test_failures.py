"""What goes wrong on the service's side, in the shape of this interface; and the served document itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
from psycopg2.errors import QueryCanceled
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from roster_service.auth.credentials import secrets
from roster_service.serving.reader import Reader
from roster_service.vendor.bodies import FAILURES
from tests.vendor.client import Account, VendorClient
from tests.vendor.conftest import Served

SECRET = "a value of a student"


@pytest.fixture(scope="module")
def account(served: Served) -> Account:
    """A vendor who may see Springfield."""
    return served.add(grants={"spr-district": ()})


BROKEN: list[Any] = [
    pytest.param(OperationalError(SECRET, {}, Exception(SECRET)), (503, "unavailable"), id="the database is away"),
    pytest.param(OperationalError(SECRET, {}, QueryCanceled()), (503, "unavailable"), id="the query took too long"),
    pytest.param(PoolTimeoutError(), (503, "unavailable"), id="every connection is in use"),
    pytest.param(ZeroDivisionError(), (500, "internal"), id="a fault"),
]


@pytest.mark.parametrize(("trouble", "outcome"), BROKEN)
def test_trouble_of_our_own(
    client: VendorClient,
    account: Account,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    trouble: Exception,
    outcome: tuple[int, str],
) -> None:
    def fail(*_arguments: object) -> None:
        raise trouble

    token = client.token(account)
    monkeypatch.setattr(Reader, "read_page", fail)
    answer = client.students(account, token, {"districtlea": "17-0042"})
    assert answer.outcome == outcome
    assert SECRET not in answer.body.decode() + caplog.text
    assert caplog.records
    # These faults were asked for.
    caplog.clear()


@pytest.mark.shows("Credentials", "An unknown e-mail costs as much as a wrong password, and has the same answer.")
def test_a_stranger_costs_as_much_work_as_a_wrong_password(
    client: VendorClient, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same hash with the same cost, once a try: time tells nothing of which e-mails there are."""
    costs = []
    hasher = secrets._HASHER

    class Counting:
        """The hasher, and what it was asked to verify."""

        hash = hasher.hash

        def verify(self, hashed: str, password: str) -> bool:
            costs.append(hashed.rsplit("$", 2)[0])
            return hasher.verify(hashed, password)

    monkeypatch.setattr(secrets, "_HASHER", Counting())
    client.login(account, password="wrong")
    client.login(account, email="nobody@vendors.example")
    assert len(costs) == 2
    assert len(set(costs)) == 1
    assert costs[0].startswith("$argon2id$")


def test_every_code_is_documented_beside_its_status(client: VendorClient) -> None:
    described = client.document["paths"]["/v1/students"]["post"]["responses"]
    for status, code in FAILURES.values():
        if code != "not-found":
            assert f"`{code}`" in described[str(status)]["description"]


def test_the_document_says_what_each_path_wants(client: VendorClient) -> None:
    paths = client.document["paths"]
    operations = {path: (method, made) for path, item in paths.items() for method, made in item.items()}
    assert {name for _, made in operations.values() for name in made} & {"parameters"} == set()
    assert {path: [list(*made["security"]), method] for path, (method, made) in operations.items()} == {
        "/v1/login": [["apiKey"], "post"],
        "/v1/students": [["apiKey", "permissionToken"], "post"],
        "/v1/status": [["apiKey", "permissionToken"], "get"],
    }
    body = client.document["components"]["schemas"]["StudentsRequest"]
    assert body["required"] == ["districtlea"]
    assert body["additionalProperties"] is False
    assert (body["properties"]["limit"]["minimum"], body["properties"]["limit"]["maximum"]) == (1, 5000)


def test_the_page_of_documents_leads_to_it(served: Served, client: VendorClient) -> None:
    assert 'data-document="/v1/openapi.json"' in served.app.test_client().get("/docs/reference/vendor").text
    assert json.dumps(client.document).count("#/components/schemas/Student") > 0
