"""Hiding, showing and erasing people in the console: what the pages say, and what vendors then get."""

from __future__ import annotations

import pytest

from roster_service.change_log.actors import OperatorRole
from tests.console.conftest import Browser, Console
from tests.console.test_statements import read

PUPIL, OTHER = "spr-student-1", "spr-student-2"


def is_served(console: Console, person: str) -> bool:
    """Whether a vendor gets a person."""
    status = console.client.call("v1p2", f"/users/{person}", vendor="springfield").status
    assert status in (200, 404)
    return status == 200


def test_a_hidden_pupil_is_listed_says_so_and_is_shown_again(console: Console, browser: Browser) -> None:
    assert "Nobody is hidden or erased." in read(browser.get("/people").text)
    assert f"/people?person={PUPIL}" in browser.get(f"/records/{PUPIL}").text
    assert f"Zoë O'Brien ({PUPIL}), in the roster" in read(browser.get(f"/people?person={PUPIL}").text)
    refused = browser.send("/people/hide", person=PUPIL, typed="spr-student-l")
    assert (refused.status_code, is_served(console, PUPIL)) == (422, True)
    assert browser.send("/people/hide", person=PUPIL, typed=PUPIL, reason="a family").status_code == 303
    page = read(browser.get("/people").text)
    assert "Hidden: " in page
    assert f"{PUPIL} hidden" in page
    assert not is_served(console, PUPIL)
    said = f"{PUPIL}, hidden: no vendor gets anything of this person"
    assert said in read(browser.get(f"/records/{PUPIL}").text)
    viewer = read(console.log_in(OperatorRole.VIEWER).get(f"/records/{PUPIL}").text)
    assert "hidden" not in viewer
    assert f"The roster has no record {PUPIL}" in viewer
    assert browser.send("/people/show", person=PUPIL).status_code == 303
    page = read(browser.get("/people").text)
    assert f"{PUPIL} is no longer hidden. The next sync brings the person back." in page
    assert "Nobody is hidden or erased." in page


def test_an_erased_pupil_is_listed_by_a_hash_and_lifted(console: Console, browser: Browser) -> None:
    assert browser.send("/people/erase", person=OTHER, typed=OTHER).status_code == 303
    page = browser.get("/people").text
    assert "Erased: " in page
    assert OTHER not in page
    assert not is_served(console, OTHER)
    assert f"{OTHER}, erased: no vendor" in read(browser.get(f"/records/{OTHER}").text)
    [row] = browser.get("/people.json").json["rows"]["rows"]
    assert browser.send("/people/lift", person=row["reference"]).status_code == 303
    assert "Nobody is hidden or erased." in read(browser.get("/people").text)


@pytest.mark.parametrize("name", ["hide", "erase"])
def test_somebody_whom_nobody_knows_is_refused(browser: Browser, name: str) -> None:
    sent = browser.send(f"/people/{name}", person="spr-student-l", typed="spr-student-l")
    assert sent.status_code == 422
    assert "Nobody in the roster has the id or name spr-student-l; the sourcedId alone finds who was erased" in read(
        sent.text
    )
