"""The agreement of a vendor in the console: what the form saves and refuses, and what the pages say."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa
from werkzeug.test import TestResponse

from roster_service.accounts import clients, vendor_rights, vendors
from roster_service.accounts.kept_people import keep_from_vendor, list_kept
from roster_service.accounts.parts import PARTS
from roster_service.accounts.transparency import set_published
from roster_service.auth.scopes import PRESETS, Scope, ScopeName
from roster_service.change_log.actors import OperatorRole
from roster_service.db.instants import find_today
from roster_service.db.tables import oauth_clients
from roster_service.roster.withheld import WithheldField
from tests.actors import TESTER
from tests.console.conftest import Browser, Console

EMAIL, HOSTILE = "agreed@console.example", '<script>alert(1)</script>"><b>x'
# Where another day may be than in UTC.
ZONE = ZoneInfo("America/Chicago")
FIRST_DAY, LAST_DAY = (find_today(ZONE) + timedelta(days=days) for days in (-9, 9))
FORM = {
    "title": HOSTILE,
    "purpose": "Reading",
    "element": ["names", "email"],
    "district": ["spr-district"],
    "first_day": str(FIRST_DAY),
    "last_day": str(LAST_DAY),
    "zone": ZONE.key,
    "contact": "privacy@vendor.example",
    "deletion": "in 60 days",
    "typed": EMAIL,
}


@pytest.fixture
def page(console: Console) -> str:
    """The path of the page of a vendor that may see a district, with a flag that no agreement allows."""
    with console.engine.begin() as connection:
        connection.execute(sa.text("DELETE FROM vendors WHERE email = :email"), {"email": EMAIL})
        vendors.add_vendor(connection, TESTER, EMAIL, "Agreed")
        vendor_rights.grant(connection, TESTER, EMAIL, "spr-district", (), list(vendor_rights.PermissionFlag))
        return f"/vendors/{vendors.find_vendor(connection, EMAIL).id}/agreement"


def open_form(browser: Browser, page: str) -> str:
    """The version of the agreement of which a page has the form."""
    version = re.search(r'name="version" value="(\w*)"', browser.get(page).text)
    assert version is not None
    return version[1]


def save(browser: Browser, page: str, **changed: Any) -> TestResponse:
    """Looks at what the form changes, and saves it."""
    form = {**FORM, "version": open_form(browser, page), **changed}
    shown = browser.send(f"{page}/effect", **form)
    seen = re.search(r'name="seen" value="(\w+)"', shown.text)
    assert seen is not None, shown.text
    return browser.send(f"{page}/save", **form, seen=seen[1])


def test_what_ends_is_shown_before_it_is_saved(console: Console, page: str) -> None:
    owner, email = console.log_in(), ["names", "classes", "email"]
    with console.engine.begin() as connection:
        clients.add_client(connection, TESTER, EMAIL, "reader", [Scope("v1p2", ScopeName.CORE)])
    form = {**FORM, "element": email}
    before = owner.get(page).text
    assert "Show what it changes" in before
    assert "Save the agreement</button>" not in before
    shown = owner.send(f"{page}/effect", **form).text
    ends = re.findall(r"<li><bdi>(.*?)</bdi>", shown)
    assert {"pronouns, by reader", "sex, by POST /v1/students"} < {*ends}
    assert not any("e-mail" in words or "names, usernames" in words for words in ends)
    assert "No agreement" in shown
    for sent in (form, {**form, "seen": "0" * 64}):
        refused = owner.send(f"{page}/save", **sent)
        assert (refused.status_code, "first look at what it changes now" in refused.text) == (422, True)
    # What the form has shown is no more what it would do.
    seen = re.search(r'name="seen" value="(\w+)"', shown)
    assert seen is not None
    later = owner.send(f"{page}/save", **{**form, "element": email[:2]}, seen=seen[1])
    assert (later.status_code, "e-mail addresses" in later.text) == (422, True)
    assert save(owner, page, element=email).status_code == 303
    again = owner.send(f"{page}/effect", **form, version=open_form(owner, page)).text
    assert "Nothing ends that Agreed gets now" in again
    viewer = console.log_in(OperatorRole.VIEWER)
    assert viewer.send(f"{page}/effect", **form).status_code == 403
    assert "Nothing is saved yet" not in viewer.get(f"{page}?title=x").text


def test_a_form_that_lay_open_takes_nothing_back(console: Console, page: str) -> None:
    owner, colleague = console.log_in(), console.log_in()
    for contact in ("first@vendor.example", "second@vendor.example"):
        shown = open_form(owner, page)
        assert save(colleague, page, contact=contact).status_code == 303
        for step in ("effect", "save"):
            refused = owner.send(f"{page}/{step}", **FORM, version=shown)
            assert (refused.status_code, "has changed since this page was shown" in refused.text) == (422, True)
        assert contact in owner.get(page).text
    assert shown != open_form(owner, page)


def test_the_page_of_a_pupil_says_that_the_agreement_may_withhold_a_part(console: Console, page: str) -> None:
    owner = console.log_in()
    with console.engine.begin() as connection:
        clients.add_client(connection, TESTER, EMAIL, "reader", [Scope("v1p2", ScopeName.CORE)])
    save(owner, page, element=["names", "classes"])
    rows = owner.get("/records/spr-student-1.json").json["person"]["grid"]
    [cells] = [row["cells"] for row in rows if row["vendor"] == EMAIL]
    assert (cells[1]["state"], cells[1]["reason"]) == (
        "withheld",
        "by the list of the vendor, the default of the service, or its agreement",
    )


def test_an_agreement_is_saved_shown_and_taken_away(console: Console, page: str) -> None:
    owner = console.log_in()
    assert "gets all that is granted to it, without an end" in owner.get(page).text
    save(owner, page)
    shown = owner.get(page).text
    days = (LAST_DAY - find_today(ZONE)).days
    assert f"The agreement of Agreed is saved: it holds, for {days} more days" in shown
    assert HOSTILE not in shown
    assert "the flag contacts does not count" in shown
    assert "names, usernames and grades, e-mail addresses" in shown
    vendor = owner.get(page.removesuffix("/agreement")).text
    assert "It gets what is granted <em>and</em>" in vendor
    assert "And what its" in vendor
    for forms in ("/grants", "/grants/spr-district"):
        assert "bounds what it gets" in owner.get(page.removesuffix("/agreement") + forms).text
    [kept] = [it for it in owner.get("/privacy.json").json["kept"] if it["vendor"] == "Agreed"]
    assert kept["by"].endswith("by its agreement")
    assert "birthDate" in kept["fields"]
    tonight = owner.get("").text
    assert "Agreements to look at" in tonight
    assert "ends soon" in tonight
    owner.send(f"{page}/remove", typed=EMAIL)
    assert "has no agreement any more" in owner.get(page).text


def test_an_agreement_that_begins_later_is_left_to_begin(console: Console, page: str) -> None:
    owner = console.log_in()
    save(owner, page, first_day=str(LAST_DAY))
    [task] = [it for it in owner.get("/index.json").json["agreements"] if it["subject"] == "Agreed"]
    assert (task["word"], task["remedy"]) == ("begins later", "let it begin, or save one that holds now")


def test_a_form_that_is_refused_comes_back_with_its_values(console: Console, page: str) -> None:
    owner = console.log_in()
    for changed, said in (
        ({"last_day": "soon"}, "last day is a date"),
        ({"element": ["email"]}, "elements lack names"),
        ({"schools": "nowhere"}, "o school with the sourcedId"),
        ({"typed": "another"}, "Type"),
    ):
        refused = owner.send(f"{page}/save", **{**FORM, **changed}).text
        assert said in refused, changed
        assert 'value="Reading"' in refused, changed
        assert 'value="email" checked' in refused, changed
    assert "No agreement" in owner.get(page).text


def test_an_ended_agreement_is_said_on_the_pages_of_the_vendor(console: Console, page: str) -> None:
    owner = console.log_in()
    save(owner, page)
    with console.engine.begin() as connection:
        connection.execute(sa.text("UPDATE agreements SET starts_at = 'epoch', ends_at = '2020-07-01 05:00Z'"))
    for path in (page, page.removesuffix("/agreement")):
        assert "ended on 2020-06-30" in owner.get(path).text, path
    viewer = console.log_in(OperatorRole.VIEWER)
    assert "<form" not in viewer.get(page).text.partition("<main")[2]


def test_what_a_new_version_counts_otherwise_is_reviewed(console: Console, page: str) -> None:
    owner = console.log_in()
    save(owner, page)
    assert "counts other rights" not in owner.get("").text
    with console.engine.begin() as connection:
        connection.execute(sa.text("UPDATE agreements SET fields = fields || ARRAY['birthDate']"))
    tonight = owner.get("").text
    assert ("counts other rights" in tonight, "ave it again to end birthDate" in tonight) == (True, True)


# What makes a link useless, with the words that say so.
CLOSED = {
    "nothing": ("SELECT 1", None),
    "an ended agreement": (
        "UPDATE agreements SET starts_at = 'epoch', ends_at = '2020-07-01 05:00Z'",
        "ended on 2020-06-30, so nobody could use the link",
    ),
    "a disabled vendor": (
        f"UPDATE vendors SET enabled = false WHERE email = '{EMAIL}'",
        f"{EMAIL} is disabled, so nobody",
    ),
}


@pytest.mark.parametrize(("change", "words"), CLOSED.values(), ids=CLOSED)
def test_a_leaked_secret_ends_also_where_no_link_makes_the_next_one(
    console: Console, page: str, change: str, words: str | None
) -> None:
    """The page offers no link then; a page of before still does."""
    owner, credentials = console.log_in(), page.replace("/agreement", "/credentials")
    with console.engine.begin() as connection:
        client = clients.add_client(connection, TESTER, EMAIL, "reader", [Scope("v1p2", ScopeName.CORE)]).client_id
    assert save(owner, page, element=[*PARTS], keys="locker").status_code == 303
    with console.engine.begin() as connection:
        connection.execute(sa.text(change))
    shown = owner.get(credentials).text
    offers = ("Make a link", "End it now, and make a link", "End the secret now, and show the new one")
    assert [offer in shown for offer in offers] == [words is None, words is None, True]
    said = owner.send(f"{credentials}/leaked", client=client, reason="leaked").text + owner.get(credentials).text
    assert words is None or words in said
    assert "Every secret of" in said
    with console.engine.connect() as connection:
        is_over = oauth_clients.c.secret_expires_at <= sa.func.now()
        assert connection.scalar(sa.select(is_over).where(oauth_clients.c.client_id == client)) is True


def test_the_wizard_begins_as_a_copy_of_the_account(console: Console, page: str) -> None:
    """With everything but an e-mail, schools, keys, and the agreement."""
    owner, name = console.log_in(), "guardians"
    with console.engine.begin() as connection:
        vendor_rights.change_withheld(connection, TESTER, EMAIL, [WithheldField.SMS])
        clients.add_client(connection, TESTER, EMAIL, "reader", PRESETS[name].list_scopes("v1p2"))
        keep_from_vendor(connection, vendors.find_vendor(connection, EMAIL).id, "spr-student-1")
    found = re.search(r'href="/console(/vendors/new\?[^"]+)"', owner.get(page).text)
    assert found is not None
    form = owner.get(unescape(found[1])).text
    assert f'type="hidden" name="copied" value="{EMAIL}"' in form
    made = owner.send("/vendors/new/add", name="Other", email="other@vendor.example", product="students", copied=EMAIL)
    assert made.status_code == 200
    with console.engine.connect() as connection:
        assert [it.vendor for it in list_kept(connection)] == [EMAIL, "other@vendor.example"]
    assert 'id="name" name="name" type="text" value="Agreed"' in form
    assert 'id="email" name="email" type="email" value=""' in form
    assert f'name="product" value="{name}" checked' in form
    assert 'name="withhold" value="phone" checked' in form
    assert 'name="withhold" value="email" checked' not in form
    assert form.count('name="flag"') == len(re.findall(r'name="flag" value="\w+" checked', form))
    assert not re.search(r'name="(district|school)" value="[^"]+" checked', form)


def test_a_form_writes_the_public_list(console: Console, page: str) -> None:
    """With the rights of the console's role."""
    owner = console.log_in()
    with console.engine.begin() as connection:
        set_published(connection, TESTER, published=True)
    save(owner, page)
    bodies = sa.text("SELECT body FROM published_vendors WHERE district_id = 'spr-district'")
    with console.engine.connect() as connection:
        [body] = [body for body in connection.scalars(bodies) if body["name"] == "Agreed"]
    assert body["purpose"] == "Reading"
    with console.engine.begin() as connection:
        set_published(connection, TESTER, published=False)


def test_an_owner_requires_agreements_and_publishes_the_list(console: Console, page: str) -> None:
    owner, head = console.log_in(), page.removesuffix("/agreement")
    none = r"gets what is granted to it\. \d+ vendors have none: .*<bdi>Agreed</bdi>"
    assert re.search(none, owner.get("/system").text)
    for action, answer, before, after in (
        ("require", "yes", "gets what is granted to it.", "gets nothing."),
        ("require", "no", "gets nothing.", "gets what is granted to it."),
        ("publish", "yes", "Nobody but operators can see", "Everybody can see which vendors get what: <a href="),
        ("publish", "no", "Everybody can see which vendors get what: <a href=", "Nobody but operators can see"),
    ):
        for typed in ("", "no" if answer == "yes" else "yes"):
            refused = owner.send(f"/system/{action}", answer=answer, typed=typed)
            assert (refused.status_code, before in refused.text) == (422, True)
        assert owner.send(f"/system/{action}", answer=answer, typed=answer).status_code == 303
        shown = owner.get("/system").text
        assert (before in shown, after in shown) == (False, True)
        assert ("is required, and there is none" in owner.get(head).text) == ((action, answer) == ("require", "yes"))
    with console.engine.connect() as connection:
        logged = connection.scalars(sa.text("SELECT verb FROM changes ORDER BY id DESC LIMIT 4")).all()
    assert [*logged] == [*(["agreement publish"] * 2), *(["agreement require"] * 2)]
    editor = console.log_in(OperatorRole.EDITOR)
    assert editor.send("/system/require", answer="no", typed="no").status_code == 403
