"""Each way by which something can leave for a vendor: every page and command beside what really leaves."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.accounts import clients, secret_links, vendors
from roster_service.accounts.parts import PARTS, list_received
from roster_service.app import make_serving_engine
from roster_service.db.roles import DatabaseRole, make_role_urls
from roster_service.db.tables import oauth_clients
from roster_service.errors import CommandError
from roster_service.explore.access import list_access
from roster_service.explore.person_grid import COLUMNS, make_grid
from roster_service.explore.vendor_view import show_as
from roster_service.explore.who_sees import Seeing, explain
from roster_service.settings import Settings
from tests.actors import TESTER
from tests.cli.conftest import run_roster
from tests.console.conftest import SECRET, Browser, Console
from tests.console.test_statements import read
from tests.console.ways import (
    CASES,
    DISTRICT,
    GUARDIAN,
    PUPIL,
    QUICK,
    SCHOOL,
    TEACHER,
    VENDOR,
    World,
    add_client,
    add_world,
    begin,
    find_all,
    find_of_person,
    get_all,
    let_leave,
    list_open,
    plant_delivery,
    plant_earlier_secret,
    plant_key,
    plant_link,
    plant_secret,
    remove_vendors,
)
from tests.extent import EXTENT, Extent, cases
from tests.verdicts import list_verdicts

# Somebody whom a record names.
NAMED = re.compile(r'"(agents|guardians)": \[\{|"agentSourcedIds": "\w')


@pytest.fixture(scope="module", autouse=True)
def alone(console: Console) -> None:
    """No other vendor; everybody has metadata."""
    begin(console)


@pytest.fixture
def world(console: Console) -> World:
    """The vendor without any way."""
    remove_vendors(console)
    return add_world(console)


@dataclass(frozen=True)
class Everybody:
    """A vendor for each case, and what was asked once of all of them, before anything left. `url`: of the database;
    `pages`: the texts of pages, and `parsed` their JSON, by path; `stated`: the parts that each vendor gets, by e-mail;
    `shown`: for some people and a school the vendors that see it; `rows`: of the list of vendors; `notice`: the e-mails
    in the annual notice; `printed`: what `roster access` prints of all schools, `of_pupil` of the pupil, and `seeing`
    the vendors in its last line."""

    console: Console
    browser: Browser
    serving: sa.Engine
    worlds: Mapping[str, World]
    pages: Mapping[str, str]
    parsed: Mapping[str, Any]
    stated: Mapping[str, set[str]]
    shown: Mapping[str, set[str]]
    rows: Mapping[str, Any]
    notice: set[str]
    printed: Sequence[Any]
    of_pupil: Sequence[Any]
    seeing: set[str]


@pytest.fixture(scope="module")
def everybody(make_console: Callable[..., Console]) -> Iterator[Everybody]:
    """The vendors of all cases that this run tries, in one roster."""
    console = make_console()
    begin(console)
    worlds = {}
    for number, (name, (plant, change)) in enumerate(CASES.items()):
        if EXTENT is Extent.SAMPLE and name not in QUICK:
            continue
        worlds[name] = plant(add_world(console, number))
        change(worlds[name])
    browser, url = console.log_in(), console.engine.url.render_as_string(hide_password=False)

    def ask(*arguments: str) -> Any:
        done = run_roster(url, console.home, *arguments, "--json")
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    people, school = (PUPIL, GUARDIAN, TEACHER), f"/records/{SCHOOL}"
    paths = (*(f"/records/{person}" for person in people), school, f"/records/{PUPIL}/answer", "/access", "/privacy")
    with console.engine.connect() as connection:
        stated = {email: set(parts) for email, parts in list_received(connection).items()}
        urls = make_role_urls(connection, None)
        shown = {id_: {it.vendor for it in list_verdicts(connection, id_) if it.shown} for id_ in (*people, SCHOOL)}
    listed = (browser.get(f"/vendors.json?page={page}").json["vendors"]["rows"] for page in itertools.count(1))
    in_words = run_roster(url, console.home, "access", "--person", PUPIL).stdout
    serving = make_serving_engine(urls[DatabaseRole.SERVING], Settings())
    yield Everybody(
        console=console,
        browser=browser,
        serving=serving,
        worlds=worlds,
        pages={path: browser.get(path).text for path in paths},
        parsed={path: browser.get(f"{path}.json").json for path in paths},
        stated=stated,
        shown=shown,
        rows={row["email"]: row for rows in itertools.takewhile(bool, listed) for row in rows},
        notice={row["email"] for row in csv.DictReader(io.StringIO(browser.get("/access.csv").text))},
        printed=ask("access"),
        of_pupil=ask("access", "--person", PUPIL),
        seeing=set(re.findall(r"[\w-]+@[\w.]+", in_words.partition("these vendors see")[2])),
    )
    serving.dispose()


@pytest.mark.parametrize("case", cases({name: name for name in CASES}, quick=QUICK))
def test_every_page_and_command_says_what_leaves(everybody: Everybody, case: str) -> None:
    planted, console = everybody.worlds[case], everybody.console
    email, number = planted.vendor, planted.find_number()
    url = console.engine.url.render_as_string(hide_password=False)
    page = read(everybody.browser.get(f"/vendors/{number}").text)
    received = json.loads(run_roster(url, console.home, "vendor", "show", email, "--json").stdout)["received"]
    with console.engine.begin() as connection:
        settings = Settings(secret_key=SECRET, home=console.home)
        looks = show_as(connection, everybody.serving, TESTER, PUPIL, email, None, settings)

    held = get_all(planted)
    leaves, sent, names_agent = find_all(planted, held)
    of_pupil = find_of_person(planted, held, PUPIL)

    assert everybody.stated[email] == leaves
    assert set(received) == leaves
    assert {part for row in everybody.printed if row["vendor"] == email for part in row["parts"]} == leaves
    # A volunteer is named without the scope of guardians.
    if planted.delivery is None:
        names_agent = bool(NAMED.search(json.dumps([view.body for view in looks])))
    named = {"guardians"} if names_agent else set()
    printed = {part for row in everybody.of_pupil if row["vendor"] == email for part in row["parts"]}
    assert printed == leaves | named
    assert (email in everybody.seeing) == bool(leaves)
    assert set(everybody.rows[email]["gets"]) == {PARTS[name].words for name in everybody.stated[email]}
    assert (email in everybody.notice) == bool(leaves)
    assert ("it gets nothing: " in page) == (not leaves)
    assert (", no guardians but those with another role" in page) == (bool(leaves) and "guardians" not in leaves)
    assert ("Guardians but those with another role not at all" in page) == (bool(leaves) and "guardians" not in leaves)
    assert any(view.body is not None for view in looks) == bool(leaves)
    grids = {id_: everybody.parsed[f"/records/{id_}"]["person"]["grid"] for id_ in (PUPIL, GUARDIAN, TEACHER)}
    sees = {id_ for id_, grid in grids.items() for row in grid if row["vendor"] == email and row["sees"]}
    shown = {id_ for id_, seeing in everybody.shown.items() if email in seeing}
    assert (PUPIL in sees, PUPIL in shown) == (bool(leaves), bool(leaves))
    schools = [row for row in everybody.parsed["/access"]["rows"]["rows"] if str(number) in row["seen"]]
    assert len(schools) == (2 if leaves else 0)
    [kept] = [it for it in everybody.parsed["/privacy"]["kept"] if it["id"] == number]
    assert kept["gets_birth_dates"] == ("birthDate" in leaves)
    for person in (PUPIL, GUARDIAN, TEACHER):
        if planted.delivery is not None or planted.account is not None:
            assert (person in shown) == (person in sent), person
    if planted.delivery is not None:
        assert shown == {id_ for id_ in everybody.shown if id_ in sent}
        assert (GUARDIAN in sees) == (GUARDIAN in sent)
        verdicts = everybody.parsed[f"/records/{SCHOOL}"]["verdicts"]
        assert any(it["shown"] for it in verdicts if it["vendor"] == email) == (SCHOOL in sent)

    # A parent's answer.
    answer = everybody.parsed[f"/records/{PUPIL}/answer"]["answer"]
    company = next((it for it in answer["companies"] if it["email"] == email), None)
    assert list_open(company) == of_pupil
    assert (company is None) == (not of_pupil)
    assert (planted.name in answer["others"]) == (not of_pupil)
    paper = everybody.pages[f"/records/{PUPIL}/answer"].split("<section")
    own = [read(section) for section in paper if email in section]
    way = "in files that are sent to it" if planted.delivery is not None else "when its product asks for it"
    assert [way in section for section in own] == [True] * bool(of_pupil)


def test_a_page_of_all_counts_the_vendors_that_it_lists(everybody: Everybody) -> None:
    count, pages = len(everybody.worlds), {path: read(page) for path, page in everybody.pages.items()}
    for person in (PUPIL, GUARDIAN):
        sees = sum(row["sees"] for row in everybody.parsed[f"/records/{person}"]["person"]["grid"])
        assert f"{sees} of {count} vendors may see this person" in pages[f"/records/{person}"]
        assert 0 < sees < count
    seeing = {it["vendor"] for it in everybody.parsed[f"/records/{SCHOOL}"]["verdicts"] if it["shown"]}
    assert f"{len(seeing)} vendors may see it" in pages[f"/records/{SCHOOL}"]
    assert "2 of 4 schools are seen by a vendor" in pages["/access"]
    gets = sum(it["gets_birth_dates"] for it in everybody.parsed["/privacy"]["kept"])
    assert f"{gets} vendors may read birth dates" in pages["/privacy"]
    open_to = sum(bool(it["may_get"]) for it in everybody.parsed[f"/records/{PUPIL}/answer"]["answer"]["companies"])
    assert f"{open_to} companies may get something now." in pages[f"/records/{PUPIL}/answer"]


@pytest.mark.parametrize(("plant", "leaves"), [(add_client, False), (plant_secret, True)])
def test_a_page_of_the_only_vendor_says_whether_anything_leaves(
    console: Console, browser: Browser, world: World, plant: Callable[[World], World], leaves: bool
) -> None:
    plant(world)
    paths = (f"/records/{PUPIL}", f"/records/{SCHOOL}", "/access", "/privacy", f"/records/{PUPIL}/answer")
    person, school, access, privacy, answer = (read(browser.get(path).text) for path in paths)
    assert f"{int(leaves)} of 1 vendor may see this person" in person
    assert ("no vendor may see it" in school) == (not leaves)
    assert f"{2 if leaves else 0} of 4 schools are seen by a vendor" in access
    assert ("No vendor may read birth dates" in privacy) == (not leaves)
    assert ("1 company may get something now." if leaves else "No company may get anything now.") in answer
    url = console.engine.url.render_as_string(hide_password=False)
    printed = run_roster(url, console.home, "access", "--person", PUPIL).stdout
    assert ("these vendors see" in printed) == leaves
    assert ("no vendor sees" in printed) == (not leaves)


def test_the_open_ways_leave_something(console: Console, world: World) -> None:
    """So that the test above compares no two empty answers."""
    for plant in (plant_secret, plant_earlier_secret, plant_link):
        assert {"names", "birthDate", "guardians"} <= let_leave(plant(world))[0]
    found, ids, _ = let_leave(plant_key(world))
    assert ("birthDate" in found, {PUPIL, GUARDIAN, TEACHER} <= ids) == (True, True)
    found, ids, _ = let_leave(plant_delivery("oneroster-1.2")(world))
    assert {"names", "birthDate", "guardians", "demographicMetadata"} <= found
    assert {PUPIL, GUARDIAN, SCHOOL} <= ids


def plant_secret_and_delivery(world: World) -> World:
    """Of one client."""
    made = plant_delivery("oneroster-1.2")(world)
    made.run("UPDATE oauth_clients SET secret_expires_at = NULL")
    return made


NOBODY = "Nobody gets anything as"


@pytest.mark.parametrize("plant", [plant_secret, plant_secret_and_delivery])
@pytest.mark.parametrize("stops", [False, True])
@pytest.mark.parametrize("form", ["secret", "leaked"])
def test_nobody_gets_anything_after_a_leak_only_where_that_is_so(
    console: Console, browser: Browser, world: World, plant: Callable[[World], World], stops: bool, form: str
) -> None:
    """The page before, the page or the letter after, and what leaves."""
    planted = plant(world)
    with console.engine.connect() as connection:
        number = vendors.find_vendor(connection, VENDOR).id
    has_files = planted.delivery is not None
    asked = browser.get(f"/vendors/{number}/credentials").text
    leaked = read(asked.partition("Leaked: end it now")[2].partition("</form>")[0])
    assert (NOBODY in leaked) == (not has_files)
    assert ("Stop its delivery too: nightly to sftp.example.org" in leaked) == has_files
    more = {"stop_deliveries": "yes"} if stops else {}
    path = f"/vendors/{number}/credentials/{form}"
    said = read(browser.send(path, client=planted.client_id, grace="0", reason="leaked", **more).text)
    goes = has_files and not stops
    going = "Its files still go, because they need no secret: nightly to sftp.example.org."
    assert (going in said) == goes
    assert ("Stopped: nightly to sftp.example.org." in said) == (has_files and stops)
    if form == "leaked":
        assert ("Nobody reads anything as reader" in said) == has_files
        assert (f"{NOBODY} reader" in said) == (not has_files)
    # Without what the vendor made since.
    assert bool(let_leave(replace(planted, link=None))[0]) == goes


@pytest.mark.parametrize("stops", [False, True])
@pytest.mark.parametrize("command", ["rotate-secret", "disable", "remove"])
def test_a_command_that_ends_a_client_names_its_files(
    console: Console, world: World, command: str, stops: bool
) -> None:
    planted = plant_secret_and_delivery(world)
    url = console.engine.url.render_as_string(hide_password=False)
    options = {"rotate-secret": ["--grace-hours", "0"], "remove": ["--yes"]}.get(command, [])
    options += ["--stop-deliveries"] if stops else []
    said = run_roster(url, console.home, "client", command, planted.client_id, *options).stdout
    going = "Its files still go, because they need no secret: nightly to sftp.example.org."
    assert (going in said) == (command == "rotate-secret" and not stops)
    assert ("Files that cannot be sent any more" in said) == (command != "rotate-secret" and not stops)
    assert ("Stopped: nightly to sftp.example.org." in said) == stops
    assert ("`roster delivery stop nightly` stops it" in said) == (not stops)
    assert bool(let_leave(planted)[0]) == (command == "rotate-secret" and not stops)


def test_a_command_names_no_file_of_others(console: Console, world: World) -> None:
    plant_secret_and_delivery(world)
    other = plant_secret(world)
    url = console.engine.url.render_as_string(hide_password=False)
    said = run_roster(url, console.home, "client", "disable", other.client_id)
    assert said.stdout == f"{other.client_id} is disabled\n"


def test_a_vendor_that_is_disabled_or_removed_takes_its_ways_along_by_name(console: Console, world: World) -> None:
    plant_key(plant_secret_and_delivery(world))
    plant_link(world)
    url = console.engine.url.render_as_string(hide_password=False)

    def say(*words: str) -> str:
        return run_roster(url, console.home, *words).stdout

    assert "reader of App, until" in say("credential", "list", "--vendor", VENDOR)
    assert "links that nobody" not in say("credential", "list", "--vendor", "other@ways.example")
    assert "Files that cannot be sent any more" in say("vendor", "disable", VENDOR)
    assert "Its deliveries go on as they were: nightly to sftp.example.org." in say("vendor", "enable", VENDOR, "--yes")
    assert "API keys (1), deliveries (1)" in say("vendor", "remove", VENDOR, "--dry-run")


def test_a_file_of_some_roles_names_the_agents_who_are_in_it(console: Console, world: World) -> None:
    """A guardian who has another role: of a teacher, the file for Apple has a row; of an aide, none."""
    planted, found = plant_delivery("apple")(world), dict[str, set[bool]]()
    roles = {"aide": "'aide'", "teacher": "'teacher'", "first": "CASE ordinal WHEN 1 THEN 'aide' ELSE 'teacher' END"}
    planted.run(f"INSERT INTO user_agents (user_id, ordinal, agent_id) VALUES ('{PUPIL}', 90, '{TEACHER}')")
    for name, role in roles.items():
        planted.run(f"UPDATE user_roles SET role = {role} WHERE user_id = '{TEACHER}'")
        with console.engine.connect() as connection:
            [own] = [it for it in list_verdicts(connection, TEACHER) if (it.vendor, it.kind) == (VENDOR, "user")]
            [row] = [row for row in make_grid(explain(connection, PUPIL)) if row.vendor == VENDOR]
        [files] = get_all(planted).files
        [pupil] = [row for row in files["users"] if row["sourcedId"] == PUPIL]
        cell = row.cells[list(COLUMNS).index("Guardians")]
        found[name] = {
            TEACHER in pupil["agentSourcedIds"].split(","),
            cell.state is Seeing.SEES,
            TEACHER in {row["sourcedId"] for row in files["users"]},
            own.shown,
        }
    planted.run("DELETE FROM user_agents WHERE ordinal = 90")
    assert found == {"aide": {False}, "teacher": {True}, "first": {False}}


def test_the_parts_of_a_person_are_those_of_the_records_that_leave(console: Console, world: World) -> None:
    """A file has no demographics that are marked as deleted, though it has the pupil."""
    planted = plant_delivery("oneroster-1.2")(world)
    marked = f"demographics SET status = '{{}}' WHERE sourced_id = '{PUPIL}'"
    planted.run(f"UPDATE {marked.format('tobedeleted')}")
    with console.engine.connect() as connection:
        rows = list_access(connection, vendor=VENDOR, school=None, person=PUPIL)
    [files] = get_all(planted).files
    planted.run(f"UPDATE {marked.format('active')}")
    assert PUPIL not in {row["sourcedId"] for row in files["demographics"]}
    assert {("names" in row.parts, "birthDate" in row.parts) for row in rows} == {(True, False)}


def test_a_leak_ends_the_link_that_nobody_has_used(console: Console, world: World) -> None:
    planted = plant_link(world)
    planted.run("UPDATE oauth_clients SET secret_expires_at = NULL")
    with console.engine.begin() as connection:
        clients.rotate_secret(connection, TESTER, planted.client_id, timedelta(0))
        assert secret_links.use_link(connection, str(planted.link), None) is None


def test_what_lies_beside_an_open_way_is_named(console: Console, browser: Browser, world: World) -> None:
    """The words say by which way; a link of a vendor that was added right now is one, and its secret is none."""
    form = {
        "email": "new@ways.example", "name": "New", "product": "demographics", "version": "v1p2",
        "district": [DISTRICT], "staff": "all", "guardians": "yes",
    }  # fmt: skip
    assert "The link" in browser.send("/vendors/new/add", **form).text
    plant_delivery("apple")(world)
    with console.engine.connect() as connection:
        received = list_received(connection)
        number = vendors.find_vendor(connection, "new@ways.example").id
    assert set(received["new@ways.example"]["birthDate"]) == {"New, by a link that nobody has used"}
    assert set(received[VENDOR]["names"]) == {"the delivery nightly"}
    assert "birthDate" not in received[VENDOR]
    assert "not made yet" in read(browser.get(f"/vendors/{number}/credentials").text)
    assert ", through New, by a link that nobody has used" in read(browser.get("/privacy").text)
    grid = read(browser.get(f"/records/{PUPIL}").text)
    assert "sees by the delivery nightly" in grid
    assert "2 of 2 vendors may see this person: App, New" in grid


@pytest.mark.parametrize("what", ["client", "vendor"])
def test_what_is_disabled_finds_no_open_link_again(console: Console, browser: Browser, world: World, what: str) -> None:
    """Its link ends when it is disabled, not on the day on which it would have ended, and enabling it says so."""
    planted = plant_link(world)
    with console.engine.connect() as connection:
        number = vendors.find_vendor(connection, VENDOR).id
    url = console.engine.url.render_as_string(hide_password=False)
    name = planted.client_id if what == "client" else VENDOR
    ended = "The link of reader, which nobody has used, has ended; the vendor needs a new one."
    for change in (["disable"], ["enable", "--yes"]):
        done = run_roster(url, console.home, what, change[0], name, *change[1:])
        assert (done.exit_code, ended in done.stdout) == (0, True), done.output
        with console.engine.begin() as connection:
            [link] = secret_links.list_links(connection, oauth_clients.c.client_id == planted.client_id)
            assert (link.has_ended, datetime.fromisoformat(link.ends_at) <= datetime.now(UTC)) == (True, True)
            assert secret_links.use_link(connection, str(planted.link), None) is None
    page = f"/vendors/{number}" if what == "vendor" else f"/vendors/{number}/credentials"
    form = {"enabled": "no"} | ({} if what == "vendor" else {"client": planted.client_id})
    # Twice, as by a double click: the second one opens nothing again.
    for _ in range(2):
        sent = browser.send(f"{page}/enable" if what == "vendor" else f"{page}/client-enable", **form)
    assert ended in read(browser.get(sent.headers["Location"].removeprefix("/console")).text)
    with console.engine.begin() as connection, pytest.raises(CommandError, match="enable it first"):
        secret_links.make_link(connection, TESTER, planted.client_id)
    assert "Make a link" not in browser.get(f"/vendors/{number}/credentials").text
