"""Rules of grants in the console: boxes become filters and come back, and the effect is shown before it is saved."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.accounts import vendor_rights, vendors
from roster_service.accounts.kept_people import keep_from_vendor
from roster_service.accounts.vendors import Grant
from roster_service.db.tables import classes, vendor_grants
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.sharing_rules import Rules, Staff
from tests.actors import TESTER
from tests.console.conftest import Browser, Console
from tests.console.test_statements import read

DISTRICT = "spr-district"
ALL = {"staff": "all", "guardians": "yes"}
WORDS = "grade 3, mathematics; the teachers of these classes; no guardians"
BOXES: dict[str, Any] = {"grade": ["03"], "subject": ["Mathematics"], "staff": "classes"}
RULES = Rules("grades~'03'", "subjects~'Mathematics'", Staff.CLASSES, guardians=False)


def add_vendor(console: Console, name: str) -> tuple[int, str]:
    """The number of a new vendor, and the path of its grants of the district."""
    email = f"{name}@sharing.example"
    with console.engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, email, name)
        number = vendors.find_vendor(connection, email).id
    return number, f"/vendors/{number}/grants/{DISTRICT}"


def read_grants(console: Console, number: int) -> tuple[Grant, ...]:
    """The grants of a vendor."""
    with console.engine.connect() as connection:
        return vendors.find_vendor_by_id(connection, number).grants


def list_checked(page: str) -> set[tuple[str, str]]:
    """(name, value) of the boxes that a page has checked."""
    inputs = re.findall(r"<input [^>]*>", page)
    return {
        (re.findall(r'name="([^"]*)"', it)[0], html.unescape(re.findall(r'value="([^"]*)"', it)[0]))
        for it in inputs
        if " checked" in it
    }


def test_rules_are_set_by_boxes_shown_again_and_changed(console: Console, browser: Browser) -> None:
    number, path = add_vendor(console, "boxes")
    assert browser.send_shown(path, "set", extent="whole", **BOXES).status_code == 303
    assert [(it.school_id, it.rules) for it in read_grants(console, number)] == [(None, RULES)]
    page = browser.get(path).text
    checked = {("extent", "whole"), ("grade", "03"), ("subject", "Mathematics"), ("staff", "classes")}
    assert list_checked(page) == checked
    assert f"Now the vendor sees 3 students of the district: only {WORDS}." in read(page)
    other = {"extent": "some", "school": ["spr-high"], "classes": "classCode='CHEM-1.1'", **ALL}
    assert browser.send_shown(path, "set", **other).status_code == 303
    changed = Rules(None, "classCode='CHEM-1.1'", Staff.ALL, guardians=True)
    assert [(it.school_id, it.rules) for it in read_grants(console, number)] == [("spr-high", changed)]
    page = browser.get(path).text
    assert list_checked(page) == {("extent", "some"), ("school", "spr-high"), *ALL.items()}
    assert 'name="classes" value="classCode=&#39;CHEM-1.1&#39;"' in page
    assert browser.send_shown(path, "set", extent="whole", **ALL).status_code == 303
    assert [it.rules for it in read_grants(console, number)] == [None]


def test_a_form_without_rules_does_not_widen_a_grant_with_rules(console: Console, browser: Browser) -> None:
    number, path = add_vendor(console, "old")
    browser.send_shown(path, "set", extent="whole", **BOXES)
    sent = browser.send_shown(path, "set", extent="whole")
    assert (sent.status_code, "Choose which staff" in sent.text) == (422, True)
    assert [it.rules for it in read_grants(console, number)] == [RULES]


def test_the_effect_is_shown_and_nothing_is_saved(console: Console, browser: Browser) -> None:
    number, path = add_vendor(console, "effect")
    browser.send_shown(path, "set", extent="whole", **ALL)
    sent = browser.send(f"{path}/effect", extent="some", school=["spr-elementary"], **BOXES, reason="asked by phone")
    assert (sent.status_code, 'value="asked by phone"' in sent.text) == (200, True)
    assert "asked by phone" not in browser.get(f"{path}?extent=whole&reason=asked+by+phone").text
    page = read(sent.text)
    before = browser.get(f"{path}.json?extent=whole").json["now"]
    assert f"This choice opens 3 students; now the vendor sees {before} of the district: {before - 3} fewer." in page
    assert f"It sees only {WORDS}." in page
    assert "Nothing is saved yet. This choice opens" in page
    # What is swapped, and left out of a form that was kept, has no button: its element ends before.
    swapped = sent.text.partition('id="effect"')[2].partition("Set the access")[0]
    assert swapped.count("</div>") == swapped.count("<div") + 1
    assert re.search(rf"students {before} 3 0 {before - 3}", page)
    assert "It no longer sees, such as: " in page
    school = {("extent", "some"), ("school", "spr-elementary"), ("staff", "classes")}
    assert list_checked(sent.text) == {*school, ("grade", "03"), ("subject", "Mathematics")}
    query = "extent=some&school=spr-elementary&grade=03&subject=Mathematics&staff=classes"
    live = browser.get(f"{path}.json?{query}").json
    assert [it["then"] for it in live["preview"]["counts"]][:2] == [3, 1]
    assert [it.rules for it in read_grants(console, number)] == [None]
    assert "Unknown" not in page


def test_who_is_kept_from_the_vendor_is_not_counted(console: Console, browser: Browser) -> None:
    number, path = add_vendor(console, "kept")
    browser.send_shown(path, "set", extent="whole", **ALL)
    before = browser.get(f"{path}.json").json["now"]
    with console.engine.begin() as connection:
        keep_from_vendor(connection, number, "spr-student-6")
    found = browser.get(f"{path}.json?extent=some&school=spr-high").json
    assert found["now"] == before - 1


def test_the_effect_counts_what_the_vendor_can_get(console: Console, browser: Browser) -> None:
    _, path = add_vendor(console, "gets")
    form = {"extent": "whole", "students": "grades~'3'", **ALL}
    page = read(browser.send(f"{path}/effect", **form).text)
    assert "No student of the roster has the grade 3: the grades of the roster are 03, " in page
    assert "Guardians do not count: no client, delivery or key of the vendor may read them." in page
    with console.engine.begin() as connection:
        vendor_rights.set_flags(connection, TESTER, "gets@sharing.example", [PermissionFlag.CONTACTS])
    page = read(browser.send(f"{path}/effect", **form).text)
    assert "do not count" not in page
    query = "district=spr-district&staff=none&guardians=yes&version=v1p2"
    for product, counts in (
        ("students", False),
        ("students&flag=contacts", True),
        ("students-teachers", False),
        ("everything", True),
    ):
        kinds = {
            it["kind"] for it in browser.get(f"/vendors/new.json?{query}&product={product}").json["preview"]["counts"]
        }
        assert ("guardians" in kinds) == counts, product


def test_rules_that_open_nothing_are_saved_once_that_is_confirmed(console: Console, browser: Browser) -> None:
    number, path = add_vendor(console, "nothing")
    form = {"extent": "whole", "students": "grades~'99'", **ALL}
    sent = browser.send_shown(path, "set", **form)
    assert (sent.status_code, 'name="even_nothing"' in sent.text) == (422, True)
    assert read_grants(console, number) == ()
    assert browser.send_shown(path, "set", **form, even_nothing="yes").status_code == 303
    assert len(read_grants(console, number)) == 1


@pytest.mark.parametrize("form", [{"students": "noSuchField='x'"}, {"grade": ["03"], "students": "grades~'03'"}])
def test_a_wrong_rule_is_explained_in_the_effect(console: Console, browser: Browser, form: dict[str, Any]) -> None:
    _, path = add_vendor(console, f"wrong-{len(form)}")
    sent = browser.send(f"{path}/effect", extent="whole", **ALL, **form)
    assert sent.status_code == 200
    assert re.search(r"noSuchField|use one of them", read(sent.text))


def test_boxes_are_those_of_the_chosen_schools(console: Console, browser: Browser) -> None:
    _, path = add_vendor(console, "options")
    rules = browser.get(f"{path}.json?extent=some&school=spr-elementary&staff=all").json["rules"]
    assert [box["words"] for box in rules["grades"]] == ["grade 3"]
    with console.engine.connect() as connection:
        known = sa.select(sa.func.unnest(classes.c.subjects)).where(classes.c.school_id == "spr-elementary")
        assert {box["value"] for box in rules["subjects"]} == set(connection.scalars(known))
    assert len(browser.get(f"{path}.json").json["rules"]["grades"]) > 1


def test_the_wizard_adds_a_vendor_with_rules_and_shows_them_before(console: Console, browser: Browser) -> None:
    form = {
        "name": "Reader",
        "email": "reader@sharing.example",
        "product": "students",
        "flag": ["contacts"],
        "school": [f"{DISTRICT}\tspr-elementary"],
        "withhold": ["email"],
        **BOXES,
    }
    sent = browser.send("/vendors/new/effect", csrf_of="/vendors/new", **form)
    assert sent.status_code == 200
    assert f"This choice opens 3 students: it sees only {WORDS}. Nothing is saved yet." in read(sent.text)
    kept = {(name, value) for name in ("flag", "school", "withhold", "grade", "subject") for value in form[name]}
    assert list_checked(sent.text) == {*kept, ("product", "students"), ("staff", "classes")}
    assert 'value="reader@sharing.example"' in sent.text
    with console.engine.connect() as connection:
        assert vendors.list_vendors(connection, vendors.vendors.c.email == form["email"]) == []
    assert browser.send("/vendors/new/add", csrf_of="/vendors/new", **form).status_code == 200
    with console.engine.connect() as connection:
        [made] = vendors.find_vendor(connection, "reader@sharing.example").grants
    assert (made.school_id, made.rules) == ("spr-elementary", RULES)


def test_a_vendor_whose_rules_open_nothing_is_not_added(console: Console, browser: Browser) -> None:
    form = {"name": "No", "email": "no@sharing.example", "product": "students", "district": [DISTRICT], **ALL}
    with console.engine.connect() as connection:
        count = sa.select(sa.func.count()).select_from(vendor_grants)
        before = connection.scalar(count)
        sent = browser.send("/vendors/new/add", csrf_of="/vendors/new", **form, title="no such class")
        assert (sent.status_code, "even if they open nothing" in sent.text) == (422, True)
        assert connection.scalar(count) == before
        assert vendors.list_vendors(connection, vendors.vendors.c.email == form["email"]) == []
