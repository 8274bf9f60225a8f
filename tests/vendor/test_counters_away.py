"""The vendor interface while the counters cannot be reached."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from flask import Flask
from werkzeug.test import TestResponse

from roster_service.app import create_app
from roster_service.auth.credentials.api_keys import Allowance
from roster_service.settings import Settings
from tests.conftest import close_app
from tests.contract.conftest import SECRET_KEY
from tests.vendor.client import RATE_HEADERS
from tests.vendor.conftest import Served

FEW = Allowance(requests_per_second=1, burst=2, requests_per_day=None)


@pytest.fixture
def away(served: Served) -> Iterator[Flask]:
    """An application whose counters cannot be reached: a table is missing."""
    app = create_app(Settings(secret_key=SECRET_KEY), served.url)
    rename = "ALTER TABLE {} RENAME TO {}"
    with served.engine.begin() as connection:
        connection.execute(sa.text(rename.format("rate_hits", "hidden_hits")))
    yield app
    with served.engine.begin() as connection:
        connection.execute(sa.text(rename.format("hidden_hits", "rate_hits")))
    close_app(app)


# The access log deletes old counters with what it writes, so it may say that it cannot.
@pytest.mark.shows("Load", "While the counters are away, requests pass, and failed logins are still slowed.")
@pytest.mark.usefixtures("expected_faults")
def test_requests_pass_and_guesses_are_still_slowed(
    served: Served, away: Flask, caplog: pytest.LogCaptureFixture
) -> None:
    account, http = served.add(allowance=FEW, grants={"spr-district": ()}), away.test_client()

    def log_in(password: str) -> TestResponse:
        body = {"email": account.email, "password": password}
        return http.post("/v1/login", json=body, headers={"x-api-key": account.api_key})

    answers = [log_in(account.password) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200] * 4
    assert not any(name in answer.headers for answer in answers for name in RATE_HEADERS)
    guesses = [log_in("a guess at the password") for _ in range(6)]
    assert [guess.status_code for guess in guesses] == [401] * 5 + [429]
    assert 1 <= int(guesses[-1].headers["Retry-After"]) <= 61
    said = [record.getMessage() for record in caplog.records if "counters" in record.getMessage()]
    assert len(said) == 1
    assert "cannot be reached" in said[0]
