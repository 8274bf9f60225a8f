"""A form whose session has ended comes back after the login of the same operator, and changes nothing before."""

from __future__ import annotations

import html
import re
import time
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from werkzeug.test import TestResponse

from roster_service.change_log.actors import OperatorRole
from roster_service.console import blueprint
from roster_service.console.kept_forms import KEPT_SECONDS, LONGEST, TYPED_AGAIN
from roster_service.db.tables import operator_sessions, vendors
from tests.console.conftest import PASSWORD, ROOT, Browser, Console, name_operator

pytestmark = pytest.mark.shows(
    "Console",
    "A form whose session has ended comes back sealed, for an hour, to its operator, without secrets.",
)

TEMPLATES = Path(blueprint.__file__).with_name("templates")
FORM = {
    "name": "Kept & <b>bold</b>",
    "email": "kept@vendors.example",
    "product": "students",
    "flag": ["contacts", "enrollments"],
    "reason": "a line\nand another",
    # As that of an agreement to its paper.
    "link": "https://papers.example/2026",
    "once": "x" * 22,
}
SECRETS = {name: f"not-to-be-kept-{name}" for name in TYPED_AGAIN}


def send_late(console: Console, browser: Browser, path: str = "/vendors/new/add", **form: Any) -> TestResponse:
    """Sends a form whose session ends meanwhile."""
    csrf = browser.read_csrf("/account")
    with console.engine.begin() as connection:
        connection.execute(sa.update(operator_sessions).values(used_at="2026-01-01"))
    return browser.client.post(ROOT + path, data={"csrf": csrf, **form})


def log_in_again(browser: Browser, shown: TestResponse, email: str, password: str = PASSWORD) -> TestResponse:
    """Sends the login that a page shows."""
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', shown.text))
    return browser.client.post(f"{ROOT}/login", data={**fields, "email": email, "password": password})


def read_fields(page: str) -> list[tuple[str, str]]:
    """The fields of the page that shows a form again. A browser leaves out the first line break of a text area."""
    found = re.findall(r'<input type="hidden" name="(once)" value="([^"]+)">', page)
    found += re.findall(r'<textarea [^>]*name="(\w+)"[^>]*>\n?([^<]*)</textarea>', page)
    return [(name, html.unescape(value)) for name, value in found]


def count_vendors(console: Console) -> int:
    """The vendors whose forms were sent late."""
    with console.engine.connect() as connection:
        own = sa.select(sa.func.count()).where(vendors.c.email == FORM["email"])
        return connection.scalar(own) or 0


@pytest.fixture
def owner(console: Console) -> Browser:
    return console.log_in()


def test_the_same_operator_sees_the_form_again_and_sends_it(console: Console, owner: Browser) -> None:
    shown = send_late(console, owner, **FORM)
    assert (shown.status_code, "nothing was changed" in shown.text) == (401, True)
    assert 'action="/console/login"' in shown.text
    email = name_operator(OperatorRole.OWNER)
    wrong = log_in_again(owner, shown, email, "wrong")
    assert wrong.status_code == 401
    again = log_in_again(owner, wrong, email)
    assert (again.status_code, f'action="{ROOT}/vendors/new/add"' in again.text) == (200, True)
    expected = [
        (name, value) for name, given in FORM.items() for value in ([given] if isinstance(given, str) else given)
    ]
    assert sorted(read_fields(again.text)) == sorted(expected)
    assert "<b>bold" not in again.text
    assert owner.get("/vendors").status_code == 200
    assert count_vendors(console) == 0, "a login and pages change nothing"
    csrf = re.search(r'name="csrf" value="([^"]+)"', again.text)
    assert csrf is not None
    fields: dict[str, list[str]] = {"csrf": [csrf[1]]}
    for name, value in read_fields(again.text):
        fields.setdefault(name, []).append(value)
    assert 'class="secret"' in owner.client.post(f"{ROOT}/vendors/new/add", data=fields).text
    assert count_vendors(console) == 1


def test_another_operator_and_a_later_one_see_nothing_of_it(
    console: Console, owner: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = {**FORM, "name": "not-for-others"}
    other = log_in_again(owner, send_late(console, owner, **form), name_operator(OperatorRole.EDITOR))
    assert (other.status_code, other.headers["Location"]) == (303, f"{ROOT}/vendors/new")
    shown = send_late(console, console.log_in(), **form)
    assert "not-for-others" not in shown.text
    browser = console.log_in()
    shown = send_late(console, browser, **form)
    now = time.time()
    with monkeypatch.context() as patched:
        patched.setattr("cryptography.fernet.time.time", lambda: now + KEPT_SECONDS + 1)
        assert log_in_again(browser, shown, name_operator(OperatorRole.OWNER)).status_code == 303


def test_the_forms_of_two_tabs_are_taken_after_one_login(console: Console, owner: Browser) -> None:
    """One tab had been sent before the login, and one is sent after it."""
    email = name_operator(OperatorRole.OWNER)
    csrf, form = owner.read_csrf("/account"), {**FORM, "email": "tab@vendors.example", "once": "y" * 22}
    shown = send_late(console, owner, **FORM)
    assert owner.log_in(email).status_code == 303
    sent = owner.client.post(f"{ROOT}/vendors/new/add", data={"csrf": csrf, **form})
    assert (sent.status_code, 'class="secret"' in sent.text) == (200, True)
    assert "What you sent" in log_in_again(owner, shown, email).text
    owner.send("/logout")
    assert owner.log_in(email).status_code == 303
    assert owner.client.post(f"{ROOT}/vendors/new/add", data={"csrf": csrf, **FORM}).status_code == 403


@pytest.mark.parametrize("kept", ["", "no form", "gAAAAA"])
def test_a_forged_one_is_left_out(console: Console, kept: str) -> None:
    browser = console.open()
    form = {"kept": kept, "email": name_operator(OperatorRole.OWNER), "password": PASSWORD}
    assert browser.send("/login", csrf_of="/login", **form).status_code == 303


def test_secrets_and_confirmations_are_typed_again(console: Console, owner: Browser) -> None:
    shown = send_late(console, owner, **FORM, **SECRETS)
    again = log_in_again(owner, shown, name_operator(OperatorRole.OWNER))
    assert again.status_code == 200
    assert "not-to-be-kept" not in shown.text + again.text
    fields = dict(read_fields(again.text))
    assert {name: fields[name] for name in SECRETS} == dict.fromkeys(SECRETS, "")


def test_each_secret_field_of_a_page_is_one_of_them() -> None:
    secret = re.compile(r'<(?:input|textarea)[^>]*name="(\w+)"[^>]*')
    marks = ('type="password"', "one-time-code", 'name="typed"', 'name="secret"', 'name="key"')
    found = {
        field[1]
        for template in TEMPLATES.glob("*.html")
        for field in secret.finditer(template.read_text())
        if any(mark in field[0] for mark in marks)
    }
    assert found == TYPED_AGAIN


def test_what_cannot_be_kept_leads_to_the_login(console: Console) -> None:
    """A text that is too long, a form of another site, and one of no session of this browser."""
    for form in ({"reason": "x" * LONGEST}, {"csrf": "guessed"}):
        answer = send_late(console, console.log_in(), **{**FORM, **form})
        assert (answer.status_code, answer.headers["Location"]) == (303, f"{ROOT}/login")
    browser = console.log_in()
    browser.send("/logout")
    assert browser.client.post(f"{ROOT}/vendors/new/add", data=FORM).status_code == 303
