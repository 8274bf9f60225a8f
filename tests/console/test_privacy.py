"""The overview of privacy: its sentences against SQL written apart."""

from __future__ import annotations

import re

import sqlalchemy as sa

from roster_service.change_log.actors import OperatorRole
from tests.console.conftest import Browser, Console
from tests.console.test_statements import read


def test_the_overview_says_what_the_log_and_the_rights_have(console: Console, browser: Browser) -> None:
    page = read(browser.get("/privacy").text)
    assert "In the last 30 days, no vendor was shown records of people." in page
    assert "No answer had records of people." in page
    for path, vendor in (("/schools", "north"), ("/students", "south"), ("/demographics", "springfield")):
        assert console.client.call("v1p2", path, vendor=vendor).status == 200
    console.vendors.extensions["roster_access_log"].flush()
    page = read(browser.get("/privacy").text)
    with console.engine.connect() as connection:
        shown = connection.scalars(
            sa.text(
                "SELECT DISTINCT v.email FROM audit a JOIN vendors v ON v.id = a.vendor_id"
                " WHERE a.path LIKE '%/students' OR a.path LIKE '%/demographics' ORDER BY 1"
            )
        ).all()
        birth = connection.scalars(
            sa.text(
                "SELECT DISTINCT v.name FROM vendors v JOIN visible_orgs o ON o.vendor_id = v.id AND o.granted"
                " JOIN oauth_clients c ON c.vendor_id = v.id AND c.enabled"
                " WHERE v.enabled AND EXISTS (SELECT FROM unnest(c.scopes) s WHERE s LIKE '%demographics.readonly')"
            )
        ).all()
        kept = connection.execute(sa.text("SELECT name FROM vendors WHERE NOT flags @> ARRAY['contacts']")).scalars()
        first = next(iter(kept), None)
    assert shown == ["south@vendors.example", "springfield@vendors.example"]
    assert "In the last 30 days, 2 vendors were shown records of people (" in page
    assert "springfield@vendors.example was shown birth dates, sex" in page
    assert "south@vendors.example was shown names, usernames and grades" in page
    assert f"{len(birth)} vendors may read birth dates" in page
    assert all(re.search(rf"{re.escape(name)} ?, through", page) for name in birth)
    assert first is None or "phone, sms" in page


def test_people_who_are_kept_from_a_vendor_are_counted_beside_what_is_withheld(
    console: Console, browser: Browser
) -> None:
    email = "south@vendors.example"
    assert browser.send("/people/keep", person="shv-student-1", vendor=email, reason="an order").status_code == 303
    rows = browser.get("/privacy.json").json["kept"]
    assert {row["vendor"]: row["people"] for row in rows if row["people"]} == {"south": 1}
    assert 'data-label="People kept from it"><a href=' in browser.get("/privacy").text


def test_a_person_who_is_hidden_is_counted_for_owners_alone(console: Console, browser: Browser) -> None:
    assert "Nobody is erased or hidden." in read(browser.get("/privacy").text)
    assert browser.send("/people/hide", person="spr-student-3").status_code == 303
    assert "0 people are erased, and 1 person is hidden." in read(browser.get("/privacy").text)
    viewer = console.log_in(OperatorRole.VIEWER)
    assert "Erased and hidden people" not in viewer.get("/privacy").text
    assert viewer.get("/privacy.json").json["hidden"] is None
