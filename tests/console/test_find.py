"""The search box: what a text finds, by kind, and that it is on every page."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
import sqlalchemy as sa

from roster_service.change_log.actors import OperatorRole
from roster_service.console.screens import SECTIONS, list_menu
from tests.console.conftest import Browser, Console


@pytest.fixture(scope="module", autouse=True)
def more(console: Console) -> None:
    """A Hangul and a hyphenated name in place of two others, a person who left, and a request in the access log."""
    with console.engine.begin() as connection:
        connection.execute(sa.text("UPDATE users SET status = 'tobedeleted' WHERE sourced_id = 'shv-student-2'"))
        for own_id, given, family in (("spr-teacher-2", "민준", "김"), ("spr-aide-1", "Ava", "Smith-Jones")):
            connection.execute(
                sa.text("UPDATE users SET given_name = :given, family_name = :family WHERE sourced_id = :id"),
                {"given": given, "family": family, "id": own_id},
            )
        connection.execute(
            sa.text(
                "INSERT INTO audit (at, vendor_id, caller, method, path, records, request_id, people, parts) "
                "VALUES (now(), 1, 'app', 'GET', '/ims/oneroster/rostering/v1p2/users', 5, 'abcdef0123456789', '', 0)"
            )
        )


def find(browser: Browser, text: str) -> dict[str, list[str]]:
    """The names that a text finds, by group; each result leads to a page."""
    groups: Any = browser.get(f"/find.json?{urlencode({'q': text})}").json
    page = browser.get(f"/find?{urlencode({'q': text})}").text
    for group in groups["groups"]:
        for result in group["results"]:
            assert browser.get(result["path"].partition("#")[0]).status_code == 200
            assert f'href="/console{result["path"]}"'.replace("&", "&amp;") in page
    return {group["title"]: [result["text"] for result in group["results"]] for group in groups["groups"]}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("zo bri", {"People": ["Zoë O'Brien", "Zoë O’Brien"]}, id="beginnings of words, without accents"),
        pytest.param("O'BRIEN zoe", {"People": ["Zoë O'Brien", "Zoë O’Brien"]}, id="in any order and case"),
        pytest.param("李", {}, id="one letter of a name is too short"),
        pytest.param("李 娜", {"People": ["李 娜"]}, id="a name of two letters"),
        pytest.param("محم", {"People": ["محمد الفاسي"]}, id="Arabic"),
        pytest.param("민준 김", {"People": ["민준 김"]}, id="Hangul"),
        pytest.param("smith jon", {"People": ["Ava Smith-Jones"]}, id="both parts of a hyphenated name"),
        pytest.param("smith-jo", {"People": ["Ava Smith-Jones"]}, id="a hyphenated name with its hyphen"),
        pytest.param("jones av", {"People": ["Ava Smith-Jones"]}, id="the second part of a hyphenated name"),
        pytest.param("chimie", {"Classes": ["Chimie d'été"]}, id="a class"),
        pytest.param("springfield high", {"Schools": ["Springfield High School"]}, id="a school"),
        pytest.param("elementary@vend", {"Vendors": ["elementary"], "Clients": ["tests"]}, id="the e-mail of a vendor"),
        pytest.param("shelby", {"Districts": ["Shelbyville School District"], "Feeds": ["shelbyville"]}, id="a feed"),
        pytest.param(
            "duplicates",
            {
                "Checks": [
                    "Birth dates that too many people have",
                    "Columns with one value for all",
                    "People with the same e-mail",
                    "People with the same identifier",
                ]
            },
            id="checks by what they find",
        ),
        pytest.param("run 2", {"Runs": ["Run 2"]}, id="a run"),
        pytest.param("abcdef0123456789", {"Requests": ["GET /ims/oneroster/rostering/v1p2/users"]}, id="a request"),
        pytest.param("shv-student-2", {"People": ["shv-student-2"]}, id="the whole id of somebody who left"),
        pytest.param("nobody at all", {}, id="nothing"),
        pytest.param("'; DROP TABLE users; --", {}, id="hostile"),
        pytest.param("   ", {}, id="blank"),
    ],
)
def test_a_text_finds_what_it_names(browser: Browser, text: str, found: dict[str, list[str]]) -> None:
    assert {title: sorted(names) for title, names in find(browser, text).items()} == found


def test_a_result_names_no_id_before_its_name(browser: Browser) -> None:
    [group] = browser.get("/find.json?q=Conor").json["groups"]
    assert group["results"][0]["text"] == "Conor O'Brien"
    assert "spr-student-2" not in group["results"][0]["detail"]


@pytest.mark.parametrize("role", OperatorRole)
def test_the_box_and_the_five_words_are_on_every_page_of_the_menu(console: Console, role: OperatorRole) -> None:
    browser = console.log_in(role)
    menu = list_menu(role)
    assert tuple(menu) == ("Tonight", "Roster", "Vendors", "Privacy", "Settings") == tuple(SECTIONS)
    for word, screens in menu.items():
        for screen in screens:
            page = browser.get(screen.path).text
            # The search finds people.
            assert ('id="find"' in page) == (role is not OperatorRole.OBSERVER)
            assert page.count(f'aria-current="{"page" if screen is screens[0] else "true"}">{word}</a>') >= 1
