"""From a name to the first call of a vendor: the form, the link that makes the secret, and what the pages then say."""

from __future__ import annotations

import base64
import dataclasses
import html
import logging
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.accounts import vendors
from roster_service.accounts.secret_links import LINK_PATH, use_link
from roster_service.auth.credentials.secrets import hash_secret
from roster_service.change_log.actors import OperatorRole
from roster_service.db.tables import changes, oauth_clients
from tests.console.conftest import Browser, Console
from tests.console.test_statements import read
from tests.vendor.client import VendorClient, add_account

# What the form sends for all records of the chosen schools.
ALL = {"staff": "all", "guardians": "yes"}
FORM: dict[str, Any] = {
    "name": "Reader",
    "product": "students-teachers",
    "version": "v1p2",
    "district": ["shv-district"],
    "school": ["spr-district\tspr-elementary"],
    "withhold": ["email", "birthDate"],
    **ALL,
}


def add(browser: Browser, email: str, **changed: Any) -> tuple[str, str]:
    """Sends the form. Returns the text of the answer, and the path of the link, blank if there is none."""
    answer = browser.send("/vendors/new/add", csrf_of="/vendors/new", email=email, **{**FORM, **changed})
    found = re.search(rf"{LINK_PATH}/[\w-]+", answer.text)
    return html.unescape(answer.text), found[0] if found else ""


def read_row(console: Console, email: str) -> Any:
    """The row of the only client of a vendor."""
    with console.engine.connect() as connection:
        vendor = vendors.find_vendor(connection, email)
        return connection.execute(sa.select(oauth_clients).where(oauth_clients.c.vendor_id == vendor.id)).one()


def ask_token(console: Console, client_id: str, secret: str) -> int:
    """The status of a request for a token."""
    login = base64.b64encode(f"{client_id}:{secret}".encode()).decode()
    form = {"grant_type": "client_credentials"}
    headers = {"Authorization": f"Basic {login}"}
    return console.vendors.test_client().post("/oauth/token", data=form, headers=headers).status_code


@pytest.mark.shows("Credentials", "A link that makes a client secret counts once, and GET changes nothing.")
def test_one_save_makes_all_of_a_vendor_and_the_link_makes_its_secret(
    console: Console, browser: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    email = "reader@wizard.example"
    letter, link = add(browser, email)
    assert (
        re.search(
            r"It sees [^.]*Shelbyville[^.]*, without e-mail addresses, phone numbers, birth dates\.", read(letter)
        )
        is not None
    )
    with console.engine.connect() as connection:
        vendor = vendors.find_vendor(connection, email)
    assert {(it.district_id, it.school_id) for it in vendor.grants} == {
        ("shv-district", None),
        ("spr-district", "spr-elementary"),
    }
    assert {"email", "birthDate"} <= set(vendor.withheld)
    page = read(browser.get(f"/vendors/{vendor.id}").text)
    lacks = "no e-mail addresses, no guardians but those with another role, no birth dates"
    assert f"{lacks}; no request yet, none refused today (UTC)." in page
    page = read(browser.get(f"/vendors/{vendor.id}/credentials").text)
    assert "1 client for OneRoster and no API key. No request has come yet." in page
    assert "Link not used yet" in page
    assert "Secret not made yet" in page
    assert "No valid key" in page
    caller = console.vendors.test_client()
    before = read_row(console, email)
    for _ in range(3):
        shown = caller.get(link)
        assert (shown.status_code, shown.headers["Cache-Control"]) == (200, "no-store")
        assert shown.headers["Referrer-Policy"] == "no-referrer"
    assert read_row(console, email) == before, "a scanner of mail opens links"
    assert link.rpartition("/")[2] not in str(before)
    made = caller.post(link)
    assert made.status_code == 200
    [secret] = re.findall(r"secret-[\w-]{43}", made.text)
    assert ask_token(console, before.client_id, secret) == 200
    after = read_row(console, email)
    assert (after.secret_hash, after.version) == (hash_secret(secret), before.version + 1)
    assert caller.post(link).status_code == 410
    again = caller.get(link)
    assert (again.status_code, secret in again.text) == (410, False)
    assert f"The secret of {before.client_id} was made" in read(again.text)
    assert "Link used " in read(browser.get(f"/vendors/{vendor.id}/credentials").text)
    with console.engine.connect() as connection:
        row = connection.execute(sa.select(changes).order_by(changes.c.id.desc()).limit(1)).one()
    assert (row.actor_kind, row.actor, row.verb, row.subject) == ("vendor", email, "client use-link", before.client_id)
    assert secret not in str(row)
    lines = [f"{record.getMessage()} {vars(record)}" for record in caplog.records]
    assert any("/client-secrets/{token}" in line for line in lines)
    assert [line for line in lines if secret in line or link.rpartition("/")[2] in line] == []
    assert "client use-link" in browser.get("/changes").text


def test_where_an_agreement_is_required_the_letter_says_that_nothing_is_given_yet(
    console: Console, browser: Browser
) -> None:
    require = sa.text("UPDATE vendor_defaults SET agreement_required = :required")
    with console.engine.begin() as connection:
        connection.execute(require, {"required": True})
    letter, _ = add(browser, "required@wizard.example")
    with console.engine.begin() as connection:
        connection.execute(require, {"required": False})
    said = "It gets nothing now: the agreement of the vendor is required, and there is none."
    assert (said in read(letter), "It sees" in letter, "is ready: send" in letter) == (True, False, False)


def test_the_summary_of_a_vendor_is_what_plain_sql_counts(console: Console, browser: Browser) -> None:
    with console.engine.connect() as connection:
        listed = vendors.list_vendors(connection)
        for vendor in listed:
            schools, pupils = connection.execute(
                sa.text(
                    "WITH seen AS (SELECT DISTINCT o.sourced_id, o.type FROM vendor_grants g JOIN orgs o"
                    " ON o.district_id = g.district_id AND (g.school_id IS NULL OR g.school_id = o.sourced_id)"
                    " WHERE g.vendor_id = :id AND o.status = 'active')"
                    " SELECT (SELECT count(*) FROM seen WHERE type = 'school'),"
                    " (SELECT count(DISTINCT u.sourced_id) FROM users u JOIN user_roles r ON r.user_id = u.sourced_id"
                    " JOIN seen ON seen.sourced_id = r.org_id WHERE u.status = 'active' AND r.role = 'student')"
                ),
                {"id": vendor.id},
            ).one()
            page = read(browser.get(f"/vendors/{vendor.id}").text)
            counted = f"{schools} school{'s' if schools != 1 else ''}, {pupils} pupil{'s' if pupils != 1 else ''}"
            assert counted in page, (vendor.email, counted)
    assert len(listed) > 3


ENDS = {
    "an end": "UPDATE oauth_clients SET link_ends_at = now() - interval '1 second' WHERE client_id = :id",
    "a disabled client": "UPDATE oauth_clients SET enabled = false WHERE client_id = :id",
    "a disabled vendor": "UPDATE vendors SET enabled = false WHERE id = "
    "(SELECT vendor_id FROM oauth_clients WHERE client_id = :id)",
    "a newer link": "UPDATE oauth_clients SET link_hash = '\\x00' WHERE client_id = :id",
    "a removed client": "DELETE FROM oauth_clients WHERE client_id = :id",
}


@pytest.mark.parametrize("reason", ENDS)
def test_a_link_ends(console: Console, browser: Browser, reason: str) -> None:
    email = f"{reason.replace(' ', '-')}@wizard.example"
    _, link = add(browser, email)
    with console.engine.begin() as connection:
        connection.execute(sa.text(ENDS[reason]), {"id": read_row(console, email).client_id})
    caller = console.vendors.test_client()
    for answer in (caller.get(link), caller.post(link)):
        assert answer.status_code in (404, 410)
        assert "secret-" not in answer.text
    assert caller.post(f"{LINK_PATH}/link-guessed").status_code == 404


@pytest.mark.shows("Credentials", "A link that makes a client secret counts once, and GET changes nothing.")
def test_of_two_who_press_at_once_one_gets_a_secret(console: Console, browser: Browser) -> None:
    _, link = add(browser, "twice@wizard.example")
    token = link.rpartition("/")[2]
    counting = console.vendors.extensions["roster_counting_engine"]

    def press(_: int) -> bool:
        with counting.begin() as connection:
            return use_link(connection, token, "10.0.0.1") is not None

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(press, range(4))) == [False, False, False, True]


REFUSED = {
    "no name": ({"name": ""}, "A vendor needs a name and an e-mail"),
    "no product": ({"product": ""}, "Choose what the product of the vendor reads"),
    "an unknown version": ({"version": "v9"}, "Choose what the product of the vendor reads"),
    "an unknown district": ({"district": ["nowhere"]}, "There is no district"),
    "a school of another district": ({"school": ["spr-district\tshv-north"]}, "There is no school"),
}


@pytest.mark.parametrize(("changed", "said"), REFUSED.values(), ids=REFUSED)
def test_a_refused_form_makes_nothing_and_keeps_the_text(
    console: Console, browser: Browser, changed: dict[str, Any], said: str
) -> None:
    email = "refused@wizard.example"
    text, link = add(browser, email, **changed)
    assert (said in text, link) == (True, "")
    assert f'value="{email}"' in text
    with console.engine.connect() as connection:
        assert email not in {it.email for it in vendors.list_vendors(connection)}


def add_with_secret(console: Console, browser: Browser, email: str) -> tuple[int, str, str]:
    """Adds a vendor, which makes its secret. Returns its number, the id of its client, and the secret."""
    _, link = add(browser, email)
    [secret] = re.findall(r"secret-[\w-]{43}", console.vendors.test_client().post(link).text)
    with console.engine.connect() as connection:
        number = vendors.find_vendor(connection, email).id
    return number, read_row(console, email).client_id, secret


def test_a_leaked_secret_ends_at_once(console: Console, browser: Browser) -> None:
    number, client_id, secret = add_with_secret(console, browser, "leaked@wizard.example")
    link = re.search(r'href="/console([^"]*)">End a leaked secret', browser.get(f"/find?q={client_id}").text)
    assert link is not None
    opened = browser.get(link[1]).text.partition('<details class="risky" id="leaked" open>')[2].partition("</form>")[0]
    assert f'name="client" value="{client_id}"' in opened
    assert "End a leaked secret" not in console.log_in(OperatorRole.VIEWER).get(f"/find?q={client_id}").text
    shown = browser.send(f"/vendors/{number}/credentials/secret", client=client_id, grace="0", reason="leaked")
    ended = "Every earlier secret of the client has ended, with all its tokens."
    assert ended in shown.text
    assert (
        ended
        not in browser.send(f"/vendors/{number}/credentials/secret", client=client_id, grace="24", reason="yearly").text
    )
    [new] = set(re.findall(r"secret-[\w-]{43}", shown.text))
    assert (ask_token(console, client_id, secret), ask_token(console, client_id, new)) == (401, 200)


def test_a_leaked_secret_ends_at_once_and_a_link_makes_the_next_one(console: Console, browser: Browser) -> None:
    number, client_id, secret = add_with_secret(console, browser, "leaked-link@wizard.example")
    shown = browser.send(f"/vendors/{number}/credentials/leaked", client=client_id, reason="leaked").text
    assert ("Every secret of the client has ended" in shown, "secret-" in shown) == (True, False)
    assert "/ims/oneroster/rostering/v1p2" in shown
    assert "does not expire" not in browser.get(f"/vendors/{number}/credentials").text
    assert ask_token(console, client_id, secret) == 401
    [link] = set(re.findall(rf"{LINK_PATH}/link-[\w-]+", shown))
    [new] = set(re.findall(r"secret-[\w-]{43}", console.vendors.test_client().post(link).text))
    assert ask_token(console, client_id, new) == 200


def test_leaked_keys_end_at_once(console: Console, browser: Browser) -> None:
    """With the tokens that they got, which the new key would open again."""
    account = add_account(console.engine, "keys", {"spr-district": ()})
    client = VendorClient(console.vendors)
    token = client.token(account)
    ended = "Every earlier key of the vendor has ended, with all its tokens."
    found = {}
    for grace in ("24", "0"):
        page = browser.send(f"/vendors/{account.id}/credentials/key", grace=grace).text
        [key] = set(re.findall(r"key-[0-9a-f]{8}-[\w-]{43}", page))
        with_new_key = dataclasses.replace(account, api_key=key)
        status = client.students(with_new_key, token, {"districtlea": "17-0042"}).status
        found[grace] = ended in page, status
    assert found == {"24": (False, 200), "0": (True, 401)}


def test_a_viewer_makes_no_vendor(console: Console) -> None:
    viewer = console.log_in(OperatorRole.VIEWER)
    assert viewer.get("/vendors/new").status_code == 403
    assert "/vendors/new" not in viewer.get("/vendors").text


def test_districts_of_one_name_have_more_than_their_name(console: Console, browser: Browser) -> None:
    rename = sa.text("UPDATE orgs SET name = :name WHERE sourced_id = 'shv-district' RETURNING identifier")
    with console.engine.begin() as connection:
        identifier = connection.scalar(rename, {"name": "Springfield Unified School District"})
        students = connection.scalar(
            sa.text(
                "SELECT count(DISTINCT u.sourced_id) FROM users u JOIN user_roles r ON r.user_id = u.sourced_id"
                " JOIN orgs o ON o.sourced_id = r.org_id WHERE o.district_id = 'shv-district' AND r.role = 'student'"
                " AND u.status = 'active'"
            )
        )
        vendor = vendors.find_vendor(connection, "both@vendors.example")
    said = f"Springfield Unified School District ({identifier}, feed shelbyville, {students} students)"
    for path in ("/vendors", "/vendors/new", f"/vendors/{vendor.id}", f"/vendors/{vendor.id}/grants"):
        assert said in read(browser.get(path).text), path
    with console.engine.begin() as connection:
        connection.execute(rename, {"name": "Shelbyville School District"})
    assert "feed shelbyville" not in read(browser.get("/vendors").text)
