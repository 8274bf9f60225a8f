"""When the application is made, how often that is tried, and what is said of it."""

from __future__ import annotations

import pytest
from flask import Flask
from psycopg2.errors import QueryCanceled
from sqlalchemy.exc import OperationalError
from werkzeug.test import Client

from roster_service.db.deadline import OverdueError
from roster_service.errors import DatabaseUnavailableError, ErrorProfile, SettingError
from roster_service.server import late_app
from roster_service.server.late_app import LateApp
from tests.faults.services import BUSY

PATHS = {
    "token": "/oauth/token",
    "v1p1": "/ims/oneroster/v1p1/users",
    "v1p2": "/ims/oneroster/rostering/v1p2/x",
    "login": "/v1/login",
    "students": "/v1/students",
}
AWAY = DatabaseUnavailableError("the database is away")
SECRET = "a value of a student"


def make(*troubles: Exception) -> tuple[LateApp, list[Exception]]:
    """An application that can be made after these troubles, and those that are still to come."""
    left = list(troubles)

    def make_app() -> Flask:
        if left:
            raise left.pop(0)
        app = Flask("served")
        app.add_url_rule("/<path:_path>", view_func=lambda _path: "served", methods=["GET"])
        return app

    return LateApp(make_app, 60, ErrorProfile.SPECIFICATION), left


def ask(app: LateApp, path: str = PATHS["v1p1"]) -> int:
    """The status of an answer."""
    with Client(app).get(path) as response:
        return response.status_code


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every request tries."""
    monkeypatch.setattr(late_app, "PAUSE_SECONDS", 0)


@pytest.mark.parametrize("interface", PATHS)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "BREW"])
def test_each_interface_refuses_in_its_own_words(interface: str, method: str) -> None:
    app, _ = make(AWAY)
    app.start()
    with Client(app).open(PATHS[interface], method=method) as response:
        assert response.status_code == 503
        assert BUSY[interface](response.json)
        assert int(response.headers["Retry-After"]) > 0
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["X-Content-Type-Options"] == "nosniff"


TROUBLES: dict[str, tuple[Exception, str]] = {
    "away": (AWAY, "the database is away"),
    "in time": (OverdueError(), "the database failed (OverdueError)"),
    "locked": (OperationalError(SECRET, {}, QueryCanceled()), "the database failed (QueryCanceled, SQLSTATE None)"),
    "a setting": (SettingError("the setting is wrong"), "the setting is wrong"),
}


@pytest.mark.shows(
    "Machine and database",
    "A secret key that opens no signing key stops the start, or answers 503 if it is found later.",
)
@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(("trouble", "said"), TROUBLES.values(), ids=TROUBLES)
def test_trouble_that_is_found_later_is_said_once(
    caplog: pytest.LogCaptureFixture, trouble: Exception, said: str
) -> None:
    app, left = make(DatabaseUnavailableError("it was away before"), trouble, trouble, trouble)
    app.start()
    caplog.clear()
    assert [ask(app) for _ in range(5)] == [503, 503, 503, 200, 200]
    assert left == []
    reported = f"{said}; requests are answered 503 until it can be used"
    assert caplog.messages == [reported, "the database can be used now"]


def test_a_wrong_setting_that_is_found_at_the_start_stops_it() -> None:
    app, _ = make(SettingError("the setting is wrong"))
    with pytest.raises(SettingError):
        app.start()


def test_requests_between_two_tries_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    app, left = make(AWAY, AWAY, AWAY)
    app.start()
    monkeypatch.setattr(late_app, "PAUSE_SECONDS", 3600)
    assert {ask(app) for _ in range(5)} == {503}
    assert len(left) == 2


@pytest.mark.usefixtures("at_once")
def test_while_one_thread_tries_the_others_are_refused() -> None:
    seen: list[int] = []

    def make_app() -> Flask:
        if not seen:
            # As another thread would, meanwhile.
            seen.append(503)
            seen.append(ask(app))
        raise AWAY

    app = LateApp(make_app, 60, ErrorProfile.SPECIFICATION)
    assert ask(app) == 503
    assert seen == [503, 503]
