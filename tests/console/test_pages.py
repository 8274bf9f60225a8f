"""The frame of every page, and the words of its values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from zoneinfo import ZoneInfo

import pytest

from roster_service.console.filters import FILTERS, to_instant
from roster_service.console.login import ROOT
from roster_service.console.screens import SCREENS
from roster_service.console.views.runs import STEP_WORDS
from roster_service.feeds.run_history import STEPS
from roster_service.settings import Settings
from sync_scripts.nightly import run_nightly
from tests.console.conftest import Console
from tests.console.links import find_addresses
from tests.console.screenshots import STATES
from tests.contract.conftest import Served


@pytest.mark.parametrize(
    ("name", "given", "shown"),
    [
        ("age", (None,), "never"),
        ("age", (0,), "just now"),
        ("age", (1,), "1 second ago"),
        ("age", (2 * 86_400,), "2 days ago"),
        ("counted", (0, "row"), "0 rows"),
        ("counted", (1, "row"), "1 row"),
        ("counted", (2000, "row"), "2,000 rows"),
        ("counted", (2, "person", "people"), "2 people"),
        ("day", ("2026-11-05",), "5 Nov 2026"),
        ("day", ("2026-11-23T02:15:00+00:00",), "23 Nov 2026"),
        ("words", (None,), "none"),
        ("words", (True,), "yes"),
        ("words", (["a", None, "b"],), "a, b"),
        ("words", ({"a_limit": 5, "b": None},), "a limit 5"),
        ("words", ({"b": None},), "none"),
    ],
)
def test_a_value_is_shown_in_words(name: str, given: tuple[object, ...], shown: str) -> None:
    assert FILTERS[name](*given) == shown


def test_an_instant_is_one_word_in_the_time_zone() -> None:
    shown = to_instant(ZoneInfo("America/Chicago"), "2026-11-23T03:15:00+01:00")
    assert shown == '<time datetime="2026-11-23T02:15:00+00:00">22 Nov 2026, 20:15</time>'


# What a person reads of a page, but for JSON and the stamps of the interfaces, which are values of filters.
SHOWN = re.compile(r"<pre.*?</pre>|dateLastModified</th><td>[^<]*|<[^>]*>", re.DOTALL)


def test_every_page_shows_days_and_instants_as_people_read_them(make_console: Callable[..., Console]) -> None:
    browser = make_console(time_zone=ZoneInfo("Asia/Kolkata")).log_in()
    pages: dict[str, str] = {}

    def get(address: str) -> str:
        pages[address] = SHOWN.sub("", text := browser.get(address.removeprefix(ROOT)).text)
        return text

    find_addresses(get, SCREENS, most=100)
    assert all("Times are in Asia/Kolkata." in page for page in pages.values())
    assert any(re.search(r"\d [A-Z][a-z]{2} 20\d\d, \d\d:\d\d", page) for page in pages.values())
    found = {address: re.findall(r".{0,30}\d{4}-\d\d-\d\d.*", page) for address, page in pages.items()}
    assert {address: texts for address, texts in found.items() if texts} == {}


# Of the screens before the menu had five words, which operators may have kept.
ADDRESSES = (
    *("", "/runs", "/feeds", "/roster", "/quality", "/vendors", "/access", "/disclosures", "/disclosures/usage"),
    *("/changes", "/people", "/operators", "/system", "/account"),
    *(f"/roster?kind={kind}" for kind in ("academicSessions", "courses", "demographics", "enrollments")),
)


def test_an_address_that_was_once_given_is_answered(console: Console) -> None:
    browser = console.log_in()
    assert {path: answer.status for path in ADDRESSES if (answer := browser.get(path)).status_code != 200} == {}


def test_every_step_of_a_run_has_words() -> None:
    assert tuple(STEP_WORDS) == STEPS


def test_the_system_says_what_the_sync_announces(console: Console) -> None:
    """And not what the process of the console would, whose settings name no channel."""
    browser = console.log_in()
    assert "The first nightly sync shows over which channels" in browser.get("/system").text
    run_nightly(console.engine, Settings(home=console.home), lambda _event: None)
    assert "The last nightly sync announced nothing" in browser.get("/system").text
    channels = {"webhook_url": "http://127.0.0.1:1", "smtp_url": "smtp://127.0.0.1:1", "mail_to": "a@x.example"}
    run_nightly(console.engine, Settings(home=console.home, **channels), lambda _event: None)
    assert "The last nightly sync announced by e-mail and webhook" in browser.get("/system").text


def test_no_two_screens_have_the_same_title(console: Console) -> None:
    browser = console.log_in()
    pages: dict[str, str] = {}

    def get(address: str) -> str:
        pages[address] = browser.get(address.removeprefix(ROOT)).text
        return pages[address]

    found = find_addresses(get, SCREENS, most=100)
    shown = {name: get(addresses[0]) for name, addresses in found.items() if addresses}
    titles = {name: re.search(r"<title>(.*?)</title>", page, re.DOTALL) for name, page in shown.items()}
    words = Counter(title and title[1] for title in titles.values())
    assert None not in words
    assert [title for title, count in words.items() if count > 1] == []


def test_no_page_is_lacking_in_every_state_of_the_pictures() -> None:
    assert set.intersection(*(set(state.lacks) for state in STATES.values())) == set()


@pytest.mark.parametrize(
    ("settings", "is_led"),
    [
        ({"console": "127.0.0.1:8123"}, True),
        ({"console": "off"}, False),
        # Vendors read the page of a public address.
        ({"console": "127.0.0.1:8123", "public_url": "https://roster.example"}, False),
    ],
    ids=["local", "off", "public"],
)
def test_the_page_at_the_root_leads_to_the_console_where_there_is_one(
    make_served: Callable[..., Served], settings: dict[str, str], is_led: bool
) -> None:
    app = make_served(**settings).app
    page = app.test_client().get("/", base_url=settings.get("public_url"), headers={"Accept": "text/html"}).text
    assert ('href="http://127.0.0.1:8123/console"' in page) is is_led
    assert app.test_client().get("/console/login", base_url=settings.get("public_url")).status_code == 404
