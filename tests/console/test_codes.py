"""One-time codes of operators: set up, used once, turned off, ended by a reset."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pyotp
import pytest

from roster_service.accounts import operator_sessions
from roster_service.change_log.actors import OperatorRole
from tests.console.conftest import PASSWORD, SECRET, Browser, Console, add_operator

STEP = 30


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = time.time()

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the codes."""
    made = Clock()
    monkeypatch.setattr(operator_sessions.time, "time", made.time)
    return made


@pytest.fixture
def make_user(console: Console) -> Callable[[str], Browser]:
    """Adds an operator, who logs in without a code."""

    def make(name: str) -> Browser:
        add_operator(console.engine, f"{name}@codes.example", OperatorRole.OWNER, SECRET)
        browser = console.open()
        assert browser.log_in(f"{name}@codes.example").status_code == 303
        return browser

    return make


def set_up(browser: Browser, clock: Clock) -> pyotp.TOTP:
    """Turns the codes on; the app of the operator."""
    shown = browser.send("/account/new-codes")
    key = re.search(r'name="key" value="([A-Z2-7]{32})"', shown.text)
    assert key is not None
    assert "style=" not in shown.text
    app = pyotp.TOTP(key[1])
    assert browser.send("/account/codes", key=key[1], code=app.at(clock.now)).status_code == 303
    return app


def log_in(console: Console, name: str, code: str) -> int:
    """The status of a login with a code."""
    sent = console.open().send("/login", csrf_of="/login", email=f"{name}@codes.example", password=PASSWORD, code=code)
    return sent.status_code


@pytest.mark.shows(
    "Console",
    "A one-time code counts once; codes are replaced or turned off with a code of the present key alone.",
)
def test_a_login_needs_a_code_that_was_not_used(
    console: Console, make_user: Callable[[str], Browser], clock: Clock
) -> None:
    app = set_up(make_user("user"), clock)
    assert log_in(console, "user", app.at(clock.now)) == 401, "the code that set them up"
    clock.now += STEP
    code = app.at(clock.now)
    assert log_in(console, "user", "") == 401
    assert log_in(console, "user", "000000" if code != "000000" else "000001") == 401
    assert log_in(console, "user", f"{code[:3]} {code[3:]}") == 303
    assert log_in(console, "user", code) == 401, "the same again"


@pytest.mark.parametrize(("steps", "status"), [(-2, 401), (-1, 303), (0, 303), (1, 303), (2, 401)])
def test_the_clocks_may_differ_by_a_step(
    console: Console, make_user: Callable[[str], Browser], clock: Clock, steps: int, status: int
) -> None:
    name = f"clock{steps + 2}"
    app = set_up(make_user(name), clock)
    clock.now += 10 * STEP
    assert log_in(console, name, app.at(clock.now + steps * STEP)) == status


@pytest.mark.parametrize("key", ["", "short", "A" * 32 + "\n", "a" * 32, "é" * 32])
def test_a_key_that_no_code_proves_is_refused(make_user: Callable[[str], Browser], key: str) -> None:
    browser = make_user(f"key{len(key)}{len(key.encode())}{key[:1].isupper()}")
    assert browser.send("/account/codes", key=key, code="123456").status_code == (303 if not key else 422)


def test_a_wrong_code_leaves_the_key_on_the_page(make_user: Callable[[str], Browser], clock: Clock) -> None:
    browser = make_user("again")
    app = pyotp.TOTP(pyotp.random_base32())
    wrong = browser.send("/account/codes", key=app.secret, code="12 34")
    assert (wrong.status_code, "wait for the next one" in wrong.text) == (422, True)
    assert f'name="key" value="{app.secret}"' in wrong.text
    assert browser.send("/account/codes", key=app.secret, code=app.at(clock.now)).status_code == 303


def test_codes_are_turned_off_with_a_code(console: Console, make_user: Callable[[str], Browser], clock: Clock) -> None:
    browser = make_user("off")
    app = set_up(browser, clock)
    clock.now += STEP
    assert browser.send("/account/codes", code="999").status_code == 422
    assert browser.send("/account/codes", code=app.at(clock.now)).status_code == 303
    assert log_in(console, "off", "") == 303


@pytest.mark.shows(
    "Console",
    "A one-time code counts once; codes are replaced or turned off with a code of the present key alone.",
)
def test_a_key_is_not_replaced_while_codes_are_on(
    console: Console, make_user: Callable[[str], Browser], clock: Clock
) -> None:
    browser = make_user("replaced")
    app = set_up(browser, clock)
    other = pyotp.TOTP(pyotp.random_base32())
    sent = browser.send("/account/codes", key=other.secret, code=other.at(clock.now))
    assert (sent.status_code, "turn them off first" in sent.text) == (422, True)
    clock.now += STEP
    assert log_in(console, "replaced", other.at(clock.now)) == 401
    assert log_in(console, "replaced", app.at(clock.now)) == 303


@pytest.mark.shows("Console", "Guesses of a one-time code have to wait.")
def test_guesses_of_a_code_have_to_wait(console: Console, make_user: Callable[[str], Browser], clock: Clock) -> None:
    browser = make_user("guessed")
    app = set_up(browser, clock)
    clock.now += STEP
    answers = [browser.send("/account/codes", code="999") for _ in range(6)]
    assert [it.status_code for it in answers] == [422] * 5 + [429]
    assert int(answers[-1].headers["Retry-After"]) > 0
    form = {"csrf_of": "/login", "email": "guessed@codes.example", "password": PASSWORD}
    statuses = []
    for number in range(6):
        # From an address of its own each: who guesses codes has the password, and an address is cheap.
        guesser = console.open(f"10.1.1.{number}")
        statuses.append(guesser.send("/login", **form, code="999").status_code)
    assert statuses == [401] * 5 + [429]
    assert browser.send("/logout").status_code == 303
    assert browser.send("/login", **form, code=app.at(clock.now)).status_code == 303, "the operator's own browser"


def test_a_reset_ends_the_codes(console: Console, make_user: Callable[[str], Browser], clock: Clock) -> None:
    set_up(make_user("lost"), clock)
    shown = console.log_in().send("/operators/reset", csrf_of="/operators", email="lost@codes.example")
    link = re.search(r"/console(/password\?link=[^<]+)<", shown.text)
    assert link is not None
    browser = console.open()
    browser.send("/password", csrf_of=link[1], link=link[1].partition("=")[2], password=PASSWORD, again=PASSWORD)
    assert log_in(console, "lost", "") == 303
