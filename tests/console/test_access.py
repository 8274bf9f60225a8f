"""Who reaches what: every address of the console for every role and without a session, forged forms, and sessions."""

from __future__ import annotations

import html
import re
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.accounts.operators import set_operator_enabled
from roster_service.change_log.actors import OperatorRole
from roster_service.console.screens import FORMS, SCREENS
from roster_service.db.tables import operator_sessions, operators
from roster_service.settings import Settings
from sync_scripts.engine.load import Options, load
from tests.actors import TESTER
from tests.console.conftest import PASSWORD, ROOT, SECRET, Browser, Console, add_operator, name_operator
from tests.console.links import list_links, make_pattern
from tests.postgres.loaded import EXPORTS, FEEDS
from tests.sync.export_changes import cell_of

ADDRESSES = [
    (screen, shape)
    for screen in SCREENS
    for shape in ("", ".json", ".csv")
    if shape != ".csv" or screen.rows is not None
]


def fill(path: str) -> str:
    """An address of a path, with the number 1 or a word that nothing has for each value."""
    return re.sub(r"<\w+:\w+>", "1", re.sub(r"<(\w+)>", "nothing", path))


def find_address(path: str, shape: str) -> str:
    """The address of a screen in a shape."""
    return fill(path) + shape if path or not shape else f"/index{shape}"


@pytest.fixture(scope="module")
def browsers(console: Console) -> dict[OperatorRole, Browser]:
    """A browser for each role."""
    return {role: console.log_in(role) for role in OperatorRole}


@pytest.mark.shows("Console", "Session and role are asked before any screen and any form.")
@pytest.mark.parametrize(("screen", "shape"), ADDRESSES, ids=lambda it: getattr(it, "name", it) or "page")
def test_a_screen_is_for_its_role_and_no_one_else(
    console: Console, browsers: dict[OperatorRole, Browser], screen: object, shape: str
) -> None:
    path = find_address(screen.path, shape)  # type: ignore[attr-defined]
    alone = console.open().get(path)
    assert alone.status_code == (401 if shape else 303)
    assert shape or alone.headers["Location"] == f"{ROOT}/login"
    for role, browser in browsers.items():
        answered = browser.get(path).status_code
        # A screen of a subject that is not there says so, but only to those who may see it.
        allowed = (200, 404) if role.includes(screen.least) else (403,)  # type: ignore[attr-defined]
        assert answered in allowed, (role, answered)


@pytest.mark.shows("Console", "Session and role are asked before any screen and any form.")
@pytest.mark.parametrize("form", FORMS, ids=lambda it: f"{it.screen}-{it.name}")
def test_a_form_is_for_its_role_and_for_pages_of_the_session(
    console: Console, browsers: dict[OperatorRole, Browser], form: object
) -> None:
    screens = {screen.name: screen for screen in SCREENS}
    path = f"{fill(screens[form.screen].path)}/{form.name}"  # type: ignore[attr-defined]
    alone = console.open().client.post(ROOT + path)
    assert (alone.status_code, alone.headers["Location"]) == (303, f"{ROOT}/login")
    for role, browser in browsers.items():
        assert browser.client.post(ROOT + path).status_code == 403, "without the token"
        assert browser.client.post(ROOT + path, data={"csrf": "guessed"}).status_code == 403
        # A form that fails shows its screen.
        needed = (form.verb.least_role, screens[form.screen].least)  # type: ignore[attr-defined]
        if not all(role.includes(least) for least in needed):
            assert browser.send(path).status_code == 403, role


def test_the_page_of_operators_says_which_pages_a_viewer_may_not_open(browsers: dict[OperatorRole, Browser]) -> None:
    page = html.unescape(browsers[OperatorRole.OWNER].get("/operators").text)
    [said] = re.findall(r"every page of the menu but ([^<.]+)\.", page)
    viewer = browsers[OperatorRole.VIEWER]
    refused = [it.menu for it in SCREENS if it.menu and viewer.get(it.path).status_code == 403]
    assert re.split(", | and ", said) == refused


def test_an_address_of_a_form_leads_to_its_page_and_any_other_is_a_page(console: Console) -> None:
    browser = console.log_in()
    screens = {screen.name: screen for screen in SCREENS}
    led = {form: browser.get(f"{fill(screens[form.screen].path)}/{form.name}/") for form in FORMS}
    found = {form: answer.headers.get("Location") for form, answer in led.items()}
    assert found == {form: ROOT + fill(screens[form.screen].path) for form in FORMS}
    for path in ("/nothing-there", "/vendors/x/nothing.json"):
        answer = browser.get(path)
        assert (answer.status_code, answer.mimetype, f'href="{ROOT}"' in answer.text) == (404, "text/html", True)
    sent = browser.send("/runs")
    assert (sent.status_code, sent.mimetype, sent.headers["Allow"]) == (405, "text/html", "GET")


@pytest.fixture(scope="module")
def rejected(console: Console) -> None:
    """A run with rejected rows."""
    feed = cell_of("users", "spr-student-1", "enabledUser", "maybe")
    with tempfile.TemporaryDirectory() as home:
        folder = Path(shutil.copytree(EXPORTS / FEEDS["springfield"], Path(home) / "export"))
        feed(folder)
        load(console.engine, "springfield", folder, options=Options(Settings(home=Path(home)), allow_mass_delete=True))


# An owner is refused nothing.
@pytest.mark.parametrize("role", [role for role in OperatorRole if role is not OperatorRole.OWNER])
def test_no_link_of_a_page_leads_to_a_refusal(
    browsers: dict[OperatorRole, Browser], rejected: None, role: OperatorRole
) -> None:
    """From the first page on, a few pages of each screen."""
    patterns = {screen.name: make_pattern(screen) for screen in SCREENS}
    looked: Counter[str] = Counter()
    queue, seen, refused = [""], {""}, []
    while queue:
        page = queue.pop(0)
        answer = browsers[role].get(page)
        if answer.status_code == 403:
            refused.append(page)
        for link in list_links(answer.text) if "text/html" in answer.headers["Content-Type"] else ():
            place = link.removeprefix(ROOT) if link.startswith(ROOT) else None
            names = [name for name, pattern in patterns.items() if pattern.match(link.partition("?")[0])]
            if place is not None and place not in seen and all(looked[name] < 3 for name in names):
                seen.add(place)
                looked.update(names)
                queue.append(place.partition("#")[0])
    assert refused == []
    assert looked["run"] > 0 < looked["feeds"]


@pytest.mark.shows(
    "Console",
    "Another site can send no form, frame no page and keep no session: token, `SameSite`, policy, new session.",
)
def test_a_form_of_another_site_is_refused(console: Console) -> None:
    browser = console.log_in()
    csrf = browser.read_csrf("/operators")
    sent = browser.client.post(
        f"{ROOT}/operators/add", data={"csrf": csrf, "email": "a@b"}, headers={"Sec-Fetch-Site": "cross-site"}
    )
    assert sent.status_code == 403


@pytest.mark.shows(
    "Console",
    "Another site can send no form, frame no page and keep no session: token, `SameSite`, policy, new session.",
)
def test_every_answer_forbids_frames_foreign_sources_and_caches(console: Console) -> None:
    browser = console.log_in()
    for path in ("", "/login", "/operators.json", "/operators.csv", "/nothing-there"):
        headers = browser.get(path).headers
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Cache-Control"] == "no-store"


def test_the_cookie_is_for_the_console_alone_and_no_script_reads_it(console: Console) -> None:
    sent = console.open().client.post(f"{ROOT}/login", base_url="https://roster.example")
    assert sent.status_code == 403
    page = console.open().client.get(f"{ROOT}/login", base_url="https://roster.example")
    cookie = page.headers["Set-Cookie"]
    assert all(word in cookie for word in ("Secure", "HttpOnly", "SameSite=Strict", "Path=/console"))


@pytest.mark.shows(
    "Console",
    "Another site can send no form, frame no page and keep no session: token, `SameSite`, policy, new session.",
)
def test_a_login_leaves_nothing_of_the_cookie_before_it(console: Console) -> None:
    browser = console.open()
    before = browser.read_csrf()
    browser.log_in(name_operator(OperatorRole.OWNER))
    assert browser.read_csrf("/account") != before


def test_after_the_login_comes_the_page_that_was_asked_for_and_no_other_site(console: Console) -> None:
    browser = console.open()
    browser.get("/account?next=https://evil.example/")
    sent = browser.log_in(name_operator(OperatorRole.OWNER))
    assert sent.headers["Location"] == "/console/account?next=https://evil.example/"


@pytest.mark.parametrize(
    ("email", "password"),
    [("owner@operators.example", "wrong"), ("nobody@operators.example", PASSWORD), ("", ""), ("'; --", "x" * 10_000)],
)
def test_a_wrong_login_is_refused_with_the_same_words(console: Console, email: str, password: str) -> None:
    sent = console.open().log_in(email, password)
    assert sent.status_code == 401
    assert "The e-mail, the password or the code is wrong, or the account is disabled." in sent.text


# The address of further logins, whether their browser is that of an earlier login, and what they are answered: five
# wrong ones, a right one.
FURTHER: dict[str, tuple[str, bool, list[int]]] = {
    "another browser at the address": ("10.0.0.1", False, [429] * 6),
    "the browser of an earlier login at the address": ("10.0.0.1", True, [401] * 5 + [429]),
    "another address": ("10.0.0.2", False, [401] * 5 + [429]),
    "an address of the same subscriber": ("2001:db8::2", False, [429] * 6),
}


@pytest.mark.shows("Console", "Failed logins of the console are slowed, and keep nobody out elsewhere.")
@pytest.mark.parametrize(("address", "is_known", "answers"), FURTHER.values(), ids=FURTHER)
def test_failed_logins_keep_nobody_out_elsewhere(
    console: Console, address: str, is_known: bool, answers: list[int]
) -> None:
    email = f"{address.replace(':', '-')}-{is_known}@operators.example"
    add_operator(console.engine, email, OperatorRole.VIEWER, SECRET)
    known = console.open(address)
    if is_known:
        assert known.log_in(email).status_code == 303
        known.send("/logout")
    guesser = console.open("2001:db8::1" if ":" in address else "10.0.0.1")
    wrong = [guesser.log_in(email, "wrong").status_code for _ in range(6)]
    assert wrong == [401] * 5 + [429]
    assert int(guesser.log_in(email).headers["Retry-After"]) > 0
    further = known if is_known else console.open(address)
    found = [further.log_in(email, "wrong").status_code for _ in range(5)]
    assert [*found, further.log_in(email).status_code] == answers
    last = console.open("10.9.9.9")
    assert last.log_in(email).status_code == 303, "an address without failures"


def test_a_link_sets_the_password_once_and_logs_in(console: Console) -> None:
    owner = console.log_in()
    shown = owner.send("/operators/add", email="new@operators.example", name="New", role="viewer")
    link = re.search(r"http://[^<]+/console(/password\?link=[^<]+)<", shown.text)
    assert link is not None
    token = link[1].partition("=")[2]
    browser = console.open()
    assert "new@operators.example" in browser.get(link[1]).text
    form = {"csrf_of": link[1], "link": token, "password": PASSWORD}
    assert browser.send("/password", **form, again="another one").status_code == 422
    assert browser.send("/password", **{**form, "password": "short"}, again="short").status_code == 422
    assert browser.send("/password", **form, again=PASSWORD).status_code == 303
    assert "New" in browser.get("/account").text
    form["csrf_of"] = "/login"
    for again in (console.open().get(link[1]), console.open().send("/password", **form, again=PASSWORD)):
        assert (again.status_code, "<form" in again.text) == (422, False)
        assert "was used already" in again.text
    forged = console.open().send("/password", **{**form, "link": token[:-2] + "xx"}, again=PASSWORD)
    assert "no link of this service" in forged.text


def test_an_owner_who_gives_up_the_role_reads_that_it_is_done(console: Console) -> None:
    email = "former@operators.example"
    add_operator(console.engine, email, OperatorRole.OWNER, SECRET)
    browser = console.open()
    browser.log_in(email)
    for role, status in (("owner", 200), ("viewer", 200), ("owner", 403)):
        sent = browser.send("/operators/role", email=email, role=role)
        shown = sent if sent.status_code == 403 else browser.get(sent.headers["Location"].removeprefix(ROOT))
        assert (shown.status_code, f"{email} is {role} now." in shown.text) == (status, status == 200), role


def test_the_link_of_a_disabled_operator_says_that_it_waits(console: Console) -> None:
    owner, email, words = console.log_in(), "waits@operators.example", "is disabled now: the link counts once"
    assert words not in owner.send("/operators/add", email=email, name="Waits", role="viewer").text
    # It may have ended, too.
    assert "no password yet, link not used" in owner.get("/operators").text
    owner.send("/operators/enable", email=email, enabled="no")
    assert words in owner.send("/operators/reset", email=email).text


@pytest.mark.parametrize(("shape", "is_page"), [("", True), (".json", False)])
def test_a_failure_is_a_page_unless_a_program_asks(
    console: Console, monkeypatch: pytest.MonkeyPatch, shape: str, is_page: bool
) -> None:
    browser = console.log_in()

    def fail(*_: object) -> None:
        raise ValueError("a fault")

    monkeypatch.setattr("roster_service.accounts.operator_sessions.list_sessions", fail)
    answer = browser.get(f"/account{shape}")
    assert (answer.status_code, answer.is_json) == (500, not is_page)
    assert (answer.headers["X-Request-ID"] in answer.text) is is_page
    assert answer.headers["X-Frame-Options"] == "DENY"


@pytest.mark.shows(
    "Console",
    "A session ends on every worker: by logout, time, a new password or the end of the account.",
)
@pytest.mark.parametrize("reason", ["logged out", "idle", "old", "disabled", "new password", "ended elsewhere"])
def test_a_session_ends(console: Console, reason: str) -> None:
    email = f"{reason.replace(' ', '-')}@operators.example"
    add_operator(console.engine, email, OperatorRole.OWNER, SECRET)
    browser = console.open()
    browser.log_in(email)
    assert browser.get("/account").status_code == 200
    cookie = browser.client.get_cookie("roster_console", path=ROOT)
    assert cookie is not None
    with console.engine.begin() as connection:
        own = (
            operator_sessions.c.operator_id
            == sa.select(operators.c.id).where(operators.c.email == email).scalar_subquery()
        )
        if reason in ("idle", "old"):
            column = {"idle": "used_at", "old": "created_at"}[reason]
            connection.execute(sa.update(operator_sessions).where(own).values({column: "2026-01-01"}))
        elif reason == "disabled":
            set_operator_enabled(connection, TESTER, email, enabled=False)
    if reason == "logged out":
        browser.send("/logout")
    elif reason == "new password":
        console.log_in().send("/operators/reset", email=email)
    elif reason == "ended elsewhere":
        other = console.open()
        other.log_in(email)
        other.send("/account/sessions")
    replayed = console.open()
    replayed.client.set_cookie("roster_console", cookie.value, path=ROOT)
    assert replayed.get("/account").status_code == 303


def test_an_owner_ends_no_password_of_her_own(console: Console) -> None:
    owner, own = console.log_in(), name_operator(OperatorRole.OWNER)
    refused = owner.send("/operators/reset", email=own.upper())
    assert (refused.status_code, "Your password and this session would end at once" in refused.text) == (422, True)
    assert owner.get("/operators").text.count("New password link</button>") == (
        owner.get("/operators.csv").text.count("@") - 1
    )
    assert console.open().log_in(own).status_code == 303


def test_a_login_deletes_the_sessions_that_have_ended(console: Console) -> None:
    """Their addresses and browsers are personal data that nobody needs any more."""
    email = "two-sessions@operators.example"
    add_operator(console.engine, email, OperatorRole.VIEWER, SECRET)
    console.open().log_in(email)
    own = operator_sessions.c.operator_id == (
        sa.select(operators.c.id).where(operators.c.email == email).scalar_subquery()
    )
    with console.engine.begin() as connection:
        connection.execute(sa.update(operator_sessions).where(own).values(used_at="2026-01-01"))
    console.open().log_in(email)
    with console.engine.connect() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(operator_sessions).where(own)) == 1


# What PostgreSQL takes for no text, on pages that ask the database for it.
NULS = (
    *("/runs?feed=%00", "/runs/1/changes?after=%00", "/access?district=%00", "/changes?operator=a%00b&vendor="),
    *("/disclosures?caller=%00", "/roster.csv?kind=users&filter=%00", "/quality/orphans?school=%00", "/feeds?a=&a=%00"),
)
NO_PATHS = ("/feeds/a~00b", "/vendors/1/grants/a%00b", "/vendors/1/grants/a%00b.json")


def test_a_value_with_a_nul_is_refused(console: Console) -> None:
    browser = console.log_in()
    found = {path: browser.get(path).status_code for path in NULS}
    found["form"] = console.open().log_in("a\0b").status_code
    assert {path: status for path, status in found.items() if status != 400} == {}
    assert [path for path in NO_PATHS if browser.get(path).status_code != 404] == []


def test_an_editor_cannot_become_an_owner(console: Console) -> None:
    editor = console.log_in(OperatorRole.EDITOR)
    email = name_operator(OperatorRole.EDITOR)
    assert editor.send("/operators/role", email=email, role="owner").status_code == 403
    with console.engine.connect() as connection:
        assert connection.scalar(sa.select(operators.c.role).where(operators.c.email == email)) == "editor"


def test_a_page_with_a_slash_at_its_end_leads_to_its_other_shapes(console: Console) -> None:
    browser = console.log_in()
    for path in ("", "/", "/vendors/"):
        [shape] = re.findall(r'href="/console(/[^"]*[.]json)"', browser.get(path).text)
        assert browser.get(shape).status_code == 200, (path, shape)
        assert shape in ("/index.json", "/vendors.json")
    refused = browser.send("/operators/reset", email="nobody@operators.example")
    assert 'href="/console/operators.json"' in refused.text
