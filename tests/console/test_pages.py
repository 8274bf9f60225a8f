"""The frame of every page, and the words of its values."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from roster_service.console.filters import FILTERS, to_instant
from roster_service.console.login import ROOT
from roster_service.console.screens import SCREENS
from roster_service.console.views.runs import STEP_WORDS
from roster_service.db.run_history import STEPS
from tests.console.conftest import Console
from tests.console.links import find_addresses
from tests.console.screenshots import STATES


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
        ("words", (None,), "none"),
        ("words", (True,), "yes"),
        ("words", (["a", None, "b"],), "a, b"),
        ("words", ({"a_limit": 5, "b": None},), "a limit 5"),
        ("words", ({"b": None},), "none"),
    ],
)
def test_a_value_is_shown_in_words(name: str, given: tuple[object, ...], shown: str) -> None:
    assert FILTERS[name](*given) == shown


def test_an_instant_is_one_word_in_utc() -> None:
    shown = to_instant("2026-11-23T03:15:00+01:00")
    assert shown == '<time datetime="2026-11-23T02:15:00+00:00">2026-11-23 02:15 UTC</time>'


def test_every_step_of_a_run_has_words() -> None:
    assert tuple(STEP_WORDS) == STEPS


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
