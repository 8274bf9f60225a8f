"""What the pages state about access, disclosure and erasure is true, in the words that a person reads."""

from __future__ import annotations

import html
import re
from urllib.parse import urlencode

import pytest

from roster_service.accounts import clients, vendor_rights, vendors
from roster_service.auth.scopes import read_scopes
from tests.actors import TESTER
from tests.cli.conftest import run_roster
from tests.console.conftest import SECRET, Browser, Console

SCOPED, OPEN, GRANTLESS, CLOSED = (f"{name}@statements.example" for name in ("scoped", "open", "grantless", "closed"))
PUPIL, DISTRICT, OTHER = "spr-student-1", "spr-district", "shv-district"
CORE = "v1p2/roster-core.readonly"


def read(page: str) -> str:
    """The text of a page, as a person reads it."""
    without_links = re.sub(r"</?(?:bdi|strong|code)>", "", page)
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", without_links)))


@pytest.fixture(scope="module", autouse=True)
def numbers(console: Console) -> dict[str, int]:
    """The numbers of vendors: one with birth dates by a scope and no flag, one of another district, one without
    grants, and a disabled one."""
    made = {}
    with console.engine.begin() as connection:
        for email, more in ((SCOPED, ["v1p2/roster-demographics.readonly"]), (OPEN, []), (CLOSED, [])):
            vendors.add_vendor(connection, TESTER, email, email)
            clients.add_client(connection, TESTER, email, f"app of {email}", read_scopes([CORE, *more]))
            district = OTHER if email == OPEN else DISTRICT
            vendor_rights.grant(connection, TESTER, email, district, ())
        vendors.add_vendor(connection, TESTER, GRANTLESS, GRANTLESS)
        vendors.set_vendor_enabled(connection, TESTER, CLOSED, enabled=False)
        for email in (SCOPED, OPEN, GRANTLESS, CLOSED):
            made[email] = vendors.find_vendor(connection, email).id
    return made


@pytest.mark.parametrize(
    ("email", "said", "not_said"),
    [
        pytest.param(SCOPED, "birth dates, sex, race and ethnicity", "nothing:", id="birth dates by a scope"),
        pytest.param(OPEN, "names, usernames and grades", "birth dates", id="no demographics"),
        pytest.param(GRANTLESS, "nothing: no district or school is granted", "names", id="no grant"),
        pytest.param(CLOSED, "nothing: the vendor is disabled", "names", id="disabled"),
    ],
)
def test_the_vendors_page_and_the_vendor_say_what_a_vendor_gets(
    browser: Browser, numbers: dict[str, int], email: str, said: str, not_said: str
) -> None:
    row = next(it for it in browser.get("/vendors").text.split("<tr>") if f">{email}</span>" in it)
    assert said in read(row)
    assert not_said not in read(row)
    page = read(browser.get(f"/vendors/{numbers[email]}").text)
    section = page.partition("What it gets of people")[2].partition("Parts of a student")[0]
    if email == SCOPED:
        assert f"Birth dates app of {SCOPED} " in section
    else:
        assert ("Birth dates not at all" in section) == (email == OPEN)
        assert ("Nothing: " in section) == (email != OPEN)


def test_the_table_of_schools_names_the_vendors_that_get_a_part(browser: Browser) -> None:
    page = browser.get("/access?part=birthDate").text
    heads = page.partition("<thead>")[2].partition("</thead>")[0]
    assert {email for email in (SCOPED, OPEN, GRANTLESS, CLOSED) if email in heads} == {SCOPED}
    assert "seen by a vendor that gets birth dates" in read(page)


@pytest.mark.parametrize(
    ("email", "said"),
    [
        pytest.param(OPEN, "the vendor has no grant where the person is", id="another district"),
        pytest.param(CLOSED, "the vendor is disabled", id="disabled"),
        pytest.param(SCOPED, "birth dates, sex, race and ethnicity", id="birth dates by a scope"),
    ],
)
def test_the_page_of_a_pupil_says_why_a_vendor_sees_and_does_not_see(browser: Browser, email: str, said: str) -> None:
    page = browser.get(f"/records/{PUPIL}").text
    row = next(it for it in page.split("<tr>") if f">{email}</span>" in it)
    assert said in read(row.partition("</tr>")[0])


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        pytest.param("spr-student-1", "Answers that had records of Zoë O'Brien", id="an id"),
        pytest.param("O'Brien, Zoe Maeve", "Answers that had records of Zoë O'Brien", id="a name"),
        pytest.param("zoe obrien", "Nobody in the roster has the id or name zoe obrien", id="a name that nobody has"),
        pytest.param("Zoë O'Brien", "Choose a person", id="two of a name"),
        pytest.param("spr-student-l", "Nobody in the roster has the id or name spr-student-l", id="mistyped"),
        pytest.param("spr-student", "Choose a person", id="several"),
        pytest.param("spr-guardian-1", "No records of", id="somebody who was not shown"),
    ],
)
def test_disclosures_are_those_of_a_person_who_is_known(
    console: Console, browser: Browser, typed: str, said: str
) -> None:
    answer = console.client.call("v1p2", "/demographics/spr-student-1", vendor="springfield")
    assert answer.status == 200
    console.vendors.extensions["roster_access_log"].flush()
    page = read(browser.get(f"/disclosures?{urlencode({'person': typed})}").text)
    assert said in page
    assert ("birth dates, sex, race and ethnicity" in page) == said.startswith("Answers")
    assert ("Records, and what was in them" in page) == said.startswith("Answers")
    (console.home / "secret_key").write_text(SECRET)
    url = console.engine.url.render_as_string(hide_password=False)
    printed = run_roster(url, console.home, "audit", "--person", typed)
    assert printed.exit_code == (0 if said.startswith(("Answers", "No records")) else 2)
    assert ("these answers had records of Zoë O'Brien (spr-student-1)" in printed.stdout) == said.startswith("Answers")
    assert "/disclosures?person=spr-student-1" in browser.get("/records/spr-student-1").text


def test_a_removed_feed_says_what_vendors_still_get_and_how_to_end_it(own_console: Console, in_process: None) -> None:
    console, browser = own_console, own_console.log_in()

    def ask() -> list[str]:
        answer = console.client.call("v1p2", "/users", vendor="springfield")
        # The grants of a district end with its records, and the tokens with the grants.
        return [it["status"] for it in answer.records] if answer.status == 200 else []

    def count_grantless() -> int:
        return read(browser.get("/vendors").text).count("nothing: no district or school is granted")

    got, before = len(ask()), count_grantless()
    assert got
    for now in (False, True):
        form = {"typed": "springfield", **({"now": "yes"} if now else {})}
        assert browser.send("/feeds/springfield/removal/remove", **form).status_code == 303
        pages = [read(browser.get(f"/feeds/springfield{path}").text) for path in ("", "/removal")]
        statuses = ask()
        assert statuses == ([] if now else ["tobedeleted"] * got)
        said = "as tobedeleted, with all fields that they got before, until the purge deletes them, on "
        assert all((said in page) == bool(statuses) for page in pages)
        assert not any("to delete them now" in page for page in pages), "each page leads to the form, or has it"
        assert all(("It has no records, and no vendor gets anything of it." in page) == now for page in pages)
        assert ("Delete its records now" in pages[0]) == bool(statuses)
        # Some vendors had grants of this feed alone.
        assert (count_grantless() > before) == now
