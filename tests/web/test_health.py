"""`/livez` and `/readyz`: without credentials, with a reason, and with nothing that strangers should not read."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sqlalchemy as sa
from werkzeug.test import Client, TestResponse

from roster_service.db.tables import signing_keys
from roster_service.errors import DatabaseUnavailableError, ErrorProfile, SchemaError, SettingError
from roster_service.server import late_app
from roster_service.server.late_app import LateApp
from roster_service.web.health import REASONS, Need
from tests.contract.conftest import Served
from tests.postgres.databases import close_database

pytestmark = pytest.mark.shows("Logs and transport", "`/livez` and `/readyz` name no address or account.")

PRIVATE = "postgresql://owner@10.0.0.7/roster"


def ask(app: object, path: str) -> TestResponse:
    """The response to a probe."""
    with Client(app).get(path) as response:  # type: ignore[arg-type]
        response.get_data()
        assert response.headers["Cache-Control"] == "no-store"
        return response


def test_a_service_that_can_answer_is_ready(served: Served) -> None:
    for path, status in (("/livez", "alive"), ("/readyz", "ready")):
        response = ask(served.app, path)
        assert (response.status_code, response.json) == (200, {"status": status})


def test_a_service_whose_signing_key_cannot_be_read_is_not_ready(make_served: Callable[..., Served]) -> None:
    own = make_served()
    with own.engine.begin() as connection:
        connection.execute(sa.update(signing_keys).values(private_sealed=b"x"))
    assert_not_ready(ask(own.app, "/readyz"), Need.SIGNING_KEY)


def test_a_service_whose_database_is_gone_is_alive_and_not_ready(
    make_served: Callable[..., Served], server_url: str
) -> None:
    own = make_served()
    close_database(server_url, str(own.engine.url.database))
    assert_not_ready(ask(own.app, "/readyz"), Need.DATABASE)
    assert ask(own.app, "/livez").status_code == 200


TROUBLES = [
    (DatabaseUnavailableError(PRIVATE), Need.DATABASE),
    (SchemaError(PRIVATE), Need.SCHEMA),
    (SettingError(PRIVATE), Need.SETTINGS),
]


@pytest.mark.parametrize(("trouble", "unmet"), TROUBLES, ids=[need for _, need in TROUBLES])
def test_a_service_that_could_not_start_says_the_kind_of_reason(
    monkeypatch: pytest.MonkeyPatch, trouble: Exception, unmet: Need
) -> None:
    monkeypatch.setattr(late_app, "PAUSE_SECONDS", 0)

    def fail() -> object:
        raise trouble

    app = LateApp(fail, 30, ErrorProfile.SPECIFICATION)  # type: ignore[arg-type]
    assert_not_ready(ask(app, "/readyz"), unmet)
    assert ask(app, "/livez").json == {"status": "alive"}


def assert_not_ready(response: TestResponse, unmet: Need) -> None:
    """The response says what is missing, and no more."""
    assert response.status_code == 503
    assert int(response.headers["Retry-After"]) > 0
    assert response.json == {"status": "not ready", "unmet": unmet, "reason": REASONS[unmet]}
