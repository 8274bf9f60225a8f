"""Hiding, showing and erasing people in the console: what the pages say, and what vendors then get."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from roster_service.accounts.vendors import find_vendor
from roster_service.change_log.actors import OperatorRole
from roster_service.console.filters import to_segment
from roster_service.db.tables import users
from tests.console.conftest import Browser, Console
from tests.console.hostile import add_people
from tests.console.test_statements import read

PUPIL, OTHER, THIRD = "spr-student-1", "spr-student-2", "spr-student-3"


def is_served(console: Console, person: str) -> bool:
    """Whether a vendor gets a person."""
    status = console.client.call("v1p2", f"/users/{person}", vendor="springfield").status
    assert status in (200, 404)
    return status == 200


def test_a_hidden_pupil_is_listed_says_so_and_is_shown_again(console: Console, browser: Browser) -> None:
    assert "Nobody is hidden or erased." in read(browser.get("/people").text)
    assert f'href="/console/records/{PUPIL}"' in browser.get("/people?person=Zo%C3%AB").text
    assert 'action="/console/people/hide"' in browser.get(f"/records/{PUPIL}").text
    assert browser.send("/people/hide", person=PUPIL, reason="a family").status_code == 303
    page = read(browser.get("/people").text)
    assert "Hidden: " in page
    assert f"{PUPIL} hidden" in page
    assert not is_served(console, PUPIL)
    said = read(browser.get(f"/records/{PUPIL}").text)
    assert f"{PUPIL} is hidden. No vendor gets anything of this person now." in said
    assert "Show again" in said
    other = console.log_in(OperatorRole.VIEWER)
    for place in (f"/find?q={PUPIL}", f"/roster?search={PUPIL}&kind=users"):
        text = browser.get(place).text
        assert (f'href="/console/records/{PUPIL}"' in text, "hidden" in read(text)) == (True, True), place
        text = other.get(place).text
        assert (f'href="/console/records/{PUPIL}"' in text, "hidden" in read(text)) == (False, False), place
        near = browser.get(place.replace(PUPIL, PUPIL[:-1])).text
        assert (f'href="/console/records/{PUPIL}"' in near, "is hidden" in read(near)) == (False, False), place
    asked = f"/disclosures?person={PUPIL}"
    assert f"had records of {PUPIL}, who is hidden" in read(browser.get(asked).text)
    answered = read(other.get(asked).text)
    assert ("who is hidden" in answered, f"Nobody in the roster has the id or name {PUPIL}" in answered) == (
        False,
        True,
    )
    viewer = read(other.get(f"/records/{PUPIL}").text)
    assert "hidden" not in viewer
    assert f"The roster has no record {PUPIL}" in viewer
    assert browser.send("/people/show", person=PUPIL).status_code == 303
    page = read(browser.get("/people").text)
    assert f"{PUPIL} is no longer hidden. The next load of the feed brings the person back, if the export" in page
    assert "Nobody is hidden or erased." in page


def test_a_pupil_is_kept_from_one_vendor_and_comes_back(console: Console, browser: Browser) -> None:
    email, client = "both@vendors.example", console.client

    def list_seeing() -> list[str]:
        """With new tokens: the change ends older ones. Whom it hides is a departure for the vendor."""
        seeing = []
        for name in ("both", "springfield"):
            token = client.ask_token(client.form(name, scope="v1p2/roster.readonly")).json["access_token"]
            found = client.call("v1p2", f"/users/{THIRD}", bearer=token)
            if found.json["user"]["status"] == "active":
                seeing.append(name)
        return seeing

    assert list_seeing() == ["both", "springfield"]
    sent = browser.send("/people/keep", person=THIRD, vendor=email, reason="an order of a court")
    assert (sent.status_code, sent.headers["Location"]) == (303, f"/console/records/{THIRD}")
    page = browser.get(f"/records/{THIRD}").text
    assert "Kept from both, whatever is granted." in read(page)
    assert 'action="/console/people/return"' in page
    assert list_seeing() == ["springfield"]
    with console.engine.connect() as connection:
        row = connection.execute(sa.select(users.c.given_name, users.c.family_name).where(users.c.sourced_id == THIRD))
        name = " ".join(row.one())
        number = find_vendor(connection, email).id
    assert f"1 person is kept from this vendor, whatever is granted: {name} ({THIRD})." in read(
        browser.get(f"/vendors/{number}").text
    )
    again = browser.send("/people/keep", person=THIRD, vendor=email)
    assert (again.status_code, f"is already kept from {email}" in read(again.text)) == (422, True)
    assert browser.send("/people/return", person=THIRD, vendor=email).status_code == 303
    assert list_seeing() == ["both", "springfield"]
    viewer = console.log_in(OperatorRole.VIEWER)
    assert "Keep from one vendor" not in viewer.get(f"/records/{THIRD}").text


def test_who_else_may_be_meant_stands_above_what_takes_a_person_out(console: Console, browser: Browser) -> None:
    own, _, other = add_people(console.engine, [("Mia", "Erased"), ("Lea", "Erased"), ("Mia", "Other")], "erased")
    said = {person: read(browser.get(f"/records/{to_segment(person)}/erasure").text) for person in (own, other)}
    assert said[own].count("Somebody else may be meant: Lea Erased") == 1
    assert said[own].index("may be meant") < said[own].index("Erase for good")
    assert "may be meant" not in said[other]
    page = read(browser.get(f"/records/{to_segment(own)}").text)
    said_once = "Somebody else may be meant: Lea Erased"
    assert (page.count(said_once), page.index(said_once) < page.index("Hiding takes the person")) == (1, True)
    seen = read(console.log_in(OperatorRole.VIEWER).get(f"/records/{to_segment(own)}").text)
    assert said_once not in seen


def test_an_erasure_leaves_nothing_of_the_person_in_the_statistics_of_the_database(
    console: Console, browser: Browser
) -> None:
    [person] = add_people(console.engine, [("Ada", "Sampled")], "sampled")
    with console.engine.begin() as connection:
        connection.exec_driver_sql("ANALYZE users")

    def is_sampled() -> bool:
        bounds = "SELECT 1 FROM pg_stats WHERE tablename = 'users' AND histogram_bounds::text LIKE '%%Sampled%%'"
        with console.engine.connect() as connection:
            return connection.exec_driver_sql(bounds).first() is not None

    assert is_sampled()
    assert browser.send(f"/records/{to_segment(person)}/erasure/erase", typed=person).status_code == 303
    assert not is_sampled()
    [row] = browser.get("/people.json").json["rows"]["rows"]
    assert browser.send("/people/lift", person=row["reference"]).status_code == 303


def test_an_erased_pupil_is_listed_by_a_hash_and_lifted(console: Console, browser: Browser) -> None:
    step = f"/records/{OTHER}/erasure"
    said = read(browser.get(step).text)
    assert "No held run has the person" in said
    assert "a lift of the erasure brings none of it back" in said
    assert "cannot be taken back" not in said
    refused = browser.send(f"{step}/erase", person=OTHER, typed="spr-student-l")
    assert (refused.status_code, is_served(console, OTHER)) == (422, True)
    assert browser.send(f"{step}/erase", person=OTHER, typed=OTHER).status_code == 303
    page = browser.get("/people").text
    assert "Erased: " in page
    assert OTHER not in page
    assert not is_served(console, OTHER)
    assert f"{OTHER} is erased. No vendor gets anything of this person now." in read(
        browser.get(f"/records/{OTHER}").text
    )
    [row] = browser.get("/people.json").json["rows"]["rows"]
    assert browser.send("/people/lift", person=row["reference"]).status_code == 303
    assert "Nobody is hidden or erased." in read(browser.get("/people").text)


@pytest.mark.parametrize(("path", "status"), [("/people/hide", 422), ("/records/spr-student-l/erasure/erase", 404)])
def test_somebody_whom_nobody_knows_is_refused(browser: Browser, path: str, status: int) -> None:
    sent = browser.send(path, person="spr-student-l", typed="spr-student-l")
    assert sent.status_code == status
    assert "Nobody in the roster has the id or name spr-student-l; the sourcedId alone finds who was erased" in read(
        sent.text
    )
