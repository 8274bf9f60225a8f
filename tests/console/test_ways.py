"""Each way by which something can leave for a vendor, alone: every page and command beside what really leaves."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.accounts import clients, secret_links, vendor_rights, vendors
from roster_service.accounts.parts import PARTS, list_received
from roster_service.auth.scopes import ScopeName, read_scopes
from roster_service.db.tables import oauth_clients
from roster_service.deliveries.accounts import add_delivery, approve_file, stop_delivery
from roster_service.deliveries.sender import Sender
from roster_service.errors import CommandError
from roster_service.explore.who_sees import list_verdicts
from roster_service.roster.vocabulary import GUARDIAN_ROLES
from roster_service.schemas.file_presets import PRESETS
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.sharing_rules import Rules, Staff
from roster_service.schemas.versions import VERSIONS
from roster_service.settings import Settings
from tests.accounts.test_parts import LEA, MEMBERS, ask_rostering, ask_vendor_interface
from tests.actors import TESTER
from tests.cli.conftest import run_roster
from tests.console.conftest import SECRET, Browser, Console
from tests.console.test_statements import read
from tests.deliveries.conftest import Rows, read_zip
from tests.deliveries.dropbox import DropBox
from tests.deliveries.test_sending import HOST_KEY, PASSWORD
from tests.vendor.client import Account, VendorClient

VENDOR, DISTRICT = "app@ways.example", "shv-district"
PUPIL, GUARDIAN, TEACHER, SCHOOL = "shv-student-1", "shv-guardian-1", "shv-teacher-1", "shv-north"
EVERY = tuple(f"{version.prefix}/{name}" for version in VERSIONS for name in ScopeName)
CORE = tuple(f"{version.prefix}/{ScopeName.CORE}" for version in VERSIONS)
HOUR = timedelta(hours=1)
# Somebody whom a record names.
NAMED = re.compile(r'"(agents|guardians)": \[\{|"agentSourcedIds": "\w')
# The columns of files that show a part, where their headers are not those of the interface.
# Of a file, preferred names have the headers of OneRoster 1.2.
COLUMNS = MEMBERS | {"preferredNames": ("preferredGivenName", "preferredFamilyName")}


@dataclass(frozen=True)
class World:
    """A vendor that is granted a district, and what it holds."""

    console: Console
    client_id: str = ""
    secret: str | None = None
    link: str | None = None
    account: Account | None = None
    delivery: str | None = None

    def run(self, statement: str) -> None:
        with self.console.engine.begin() as connection:
            connection.execute(sa.text(statement))


@pytest.fixture(scope="module", autouse=True)
def alone(console: Console) -> None:
    """No other vendor; everybody has metadata."""
    (console.home / "secret_key").write_text(SECRET)
    with console.engine.begin() as connection:
        for vendor in vendors.list_vendors(connection):
            vendors.remove_vendor(connection, TESTER, vendor.email)
        for table in ("users", "demographics"):
            connection.execute(sa.text(f"UPDATE {table} SET metadata = jsonb_build_object('locker', '7')"))


@pytest.fixture
def world(console: Console) -> World:
    """The vendor without any way."""
    with console.engine.begin() as connection:
        for vendor in vendors.list_vendors(connection):
            vendors.remove_vendor(connection, TESTER, vendor.email)
        vendors.add_vendor(connection, TESTER, VENDOR, "App")
        vendors.end_keys(connection, vendors.find_vendor(connection, VENDOR).id)
        vendor_rights.grant(connection, TESTER, VENDOR, DISTRICT, (), tuple(PermissionFlag))
    return World(console)


def add_client(world: World, scopes: tuple[str, ...] = EVERY, expires_at: datetime | None = None) -> World:
    """With a client. Its secret has ended unless an end is given."""
    with world.console.engine.begin() as connection:
        given = (connection, TESTER, VENDOR, "reader", read_scopes(scopes))
        made = clients.add_client(*given, expires_at=expires_at or datetime.now(UTC) - HOUR)
    return replace(world, client_id=made.client_id, secret=made.client_secret)


def plant_secret(world: World) -> World:
    return add_client(world, expires_at=datetime.now(UTC) + HOUR)


def plant_earlier_secret(world: World) -> World:
    """The newest one has ended, and nobody has it; the one before it has a grace."""
    made = plant_secret(world)
    with world.console.engine.begin() as connection:
        clients.rotate_secret(connection, TESTER, made.client_id, HOUR, expires_at=datetime.now(UTC) - HOUR)
    return made


def plant_link(world: World) -> World:
    made = add_client(world)
    with world.console.engine.begin() as connection:
        return replace(made, link=secret_links.make_link(connection, TESTER, made.client_id))


def plant_key(world: World) -> World:
    with world.console.engine.begin() as connection:
        password = vendors.change_password(connection, TESTER, VENDOR, None)
        key = vendors.replace_key(connection, TESTER, VENDOR, timedelta(0)).api_key
        number = vendors.find_vendor(connection, VENDOR).id
    return replace(world, account=Account(number, VENDOR, key, str(password)))


def plant_delivery(preset: str, scopes: tuple[str, ...] = EVERY) -> Callable[[World], World]:
    def plant(world: World) -> World:
        made = add_client(world, scopes)
        row = {
            "client_id": made.client_id, "preset": preset, "host": "sftp.example.org", "port": 22, "username": "us",
            "folder": "in", "host_key": HOST_KEY, "secret": PASSWORD, "has_private_key": False, "in_place": False,
        }  # fmt: skip
        with world.console.engine.begin() as connection:
            add_delivery(connection, TESTER, "nightly", VENDOR, row, Settings(secret_key=SECRET))
        return replace(made, delivery="nightly")

    return plant


def stop(world: World) -> None:
    with world.console.engine.begin() as connection:
        stop_delivery(connection, TESTER, "nightly", stopped=True)


def remove_client(world: World) -> None:
    with world.console.engine.begin() as connection:
        clients.remove_client(connection, TESTER, world.client_id)


def narrow(world: World) -> None:
    with world.console.engine.begin() as connection:
        clients.change_scopes(connection, TESTER, world.client_id, read_scopes(("v1p2/roster-core.readonly",)))


def disable_client(world: World) -> None:
    with world.console.engine.begin() as connection:
        clients.disable_client(connection, TESTER, world.client_id)


def disable_vendor(world: World) -> None:
    with world.console.engine.begin() as connection:
        vendors.set_vendor_enabled(connection, TESTER, VENDOR, enabled=False)


def revoke(world: World) -> None:
    with world.console.engine.begin() as connection:
        vendor_rights.revoke(connection, TESTER, VENDOR, DISTRICT)


def rule(rules: Rules) -> Callable[[World], None]:
    def change(world: World) -> None:
        with world.console.engine.begin() as connection:
            vendor_rights.grant(connection, TESTER, VENDOR, DISTRICT, (), rules=rules)

    return change


def leave(_world: World) -> None:
    pass


def say(statement: str) -> Callable[[World], None]:
    return lambda world: world.run(statement)


RULES = {
    "no guardians by rule": rule(Rules(None, None, Staff.ALL, guardians=False)),
    "no staff by rule": rule(Rules(None, None, Staff.NONE, guardians=True)),
    "a few by rule": rule(Rules("grades~'09,10'", None, Staff.CLASSES, guardians=False)),
}
OF_ALL = {"open": leave, "of a disabled vendor": disable_vendor, "without a grant": revoke}
OF_CLIENTS = {**OF_ALL, "of a disabled client": disable_client, "of a removed client": remove_client}
END_SECRET = say("UPDATE oauth_clients SET secret_expires_at = now()")
WAYS: dict[str, tuple[Callable[[World], World], dict[str, Callable[[World], None]]]] = {
    "a secret": (plant_secret, {**OF_CLIENTS, **RULES, "ended": END_SECRET}),
    "an earlier secret": (
        plant_earlier_secret, {"open": leave, "ended": say("UPDATE oauth_clients SET previous_secret_ends_at = now()")}
    ),
    "a link": (
        plant_link,
        {
            **OF_CLIENTS,
            "ended": say("UPDATE oauth_clients SET link_ends_at = now()"),
            "used, and its secret ended": say("UPDATE oauth_clients SET link_used_at = now()"),
        },
    ),
    "a key": (plant_key, {**OF_ALL, **RULES, "ended": say("UPDATE api_keys SET expires_at = now()")}),
    **{
        f"a delivery of {preset}": (
            plant_delivery(preset), {**OF_CLIENTS, **RULES, "stopped": stop, "of other scopes": narrow}
        )
        for preset in PRESETS
    },
    "a delivery with few scopes": (plant_delivery("oneroster-1.2", CORE), {"open": leave}),
    "nothing": (add_client, {"open": leave}),
}  # fmt: skip


def find_sent(files: dict[str, Rows]) -> set[str]:
    """The parts that the rows of files show."""
    people, demographics = files["users"], files.get("demographics", [])
    found = {
        name
        for name, headers in COLUMNS.items()
        for it in (*people, *demographics)
        if any(it.get(one) for one in headers)
    }
    roles = {(row["userSourcedId"], row["role"]) for row in files.get("roles", ())}
    roles |= {(row["sourcedId"], row["role"]) for row in people if "role" in row}
    guardians = {person for person, role in roles if role in GUARDIAN_ROLES}
    found |= {"guardians"} if guardians else set()
    found |= {"classes"} if files.get("classes") else set()
    for rows, of_guardians, of_others in (
        (people, "guardianMetadata", "studentMetadata"), (demographics, "", "demographicMetadata")
    ):  # fmt: skip
        for row in rows:
            if any(value for header, value in row.items() if header.startswith("metadata.")):
                found.add(of_guardians if row["sourcedId"] in guardians else of_others)
    return found


def let_leave(world: World) -> tuple[set[str], set[str], bool]:
    """The parts that leave by all that the vendor holds, the ids of the people and schools in it, and whether a file
    names an agent of the pupil."""
    found, ids, names_agent = set[str](), set[str](), False
    secret = world.secret
    if world.link is not None:
        with world.console.engine.begin() as connection:
            secret = secret_links.use_link(connection, world.link, None) or secret
    app = world.console.vendors
    if secret is not None:
        for version, scopes in itertools.groupby(EVERY, lambda scope: scope.partition("/")[0]):
            with_token = (world.client_id, secret)
            form = {"grant_type": "client_credentials", "scope": " ".join(scopes)}
            answer = app.test_client().post("/oauth/token", data=form, auth=with_token)
            if answer.status_code == 200:
                found |= ask_rostering(app, with_token, version, form["scope"].split())
    if world.account is not None:
        key = {"x-api-key": world.account.api_key}
        login = {"email": VENDOR, "password": world.account.password}
        if app.test_client().post("/v1/login", json=login, headers=key).status_code == 200:
            found |= ask_vendor_interface(app, world.account, tuple(PermissionFlag))
            asked = VendorClient(app)
            sent = {"districtlea": LEA, "include": list(PermissionFlag)}
            page = asked.students(world.account, asked.token(world.account), sent)
            ids |= {*re.findall(r'"sourcedId": ?"([^"]+)"', json.dumps(page.json))}
    if world.delivery is not None:
        box = DropBox()
        sender = Sender(world.console.engine, Settings(secret_key=SECRET, home=world.console.home), box.connect)
        try:
            made = sender.deliver(world.delivery)
            with world.console.engine.begin() as connection:
                approve_file(connection, TESTER, world.delivery, str(made.digest))
            sender.deliver(world.delivery)
        except CommandError:
            pass
        for content in box.files.values():
            files = read_zip(content)
            found |= find_sent(files)
            ids |= {row["sourcedId"] for rows in files.values() for row in rows if "sourcedId" in row}
            of_pupil = [row for row in files["users"] if row["sourcedId"] == PUPIL]
            names_agent |= any(row.get("agentSourcedIds") for row in of_pupil)
    return found, ids, names_agent


CASES = [
    pytest.param(plant, change, id=f"{way}, {state}")
    for way, (plant, states) in WAYS.items()
    for state, change in states.items()
]


@pytest.mark.parametrize(("plant", "change"), CASES)
def test_every_page_and_command_says_what_leaves(
    console: Console,
    browser: Browser,
    world: World,
    plant: Callable[[World], World],
    change: Callable[[World], None],
) -> None:
    planted = plant(world)
    change(planted)
    url = console.engine.url.render_as_string(hide_password=False)

    def ask(*arguments: str) -> Any:
        done = run_roster(url, console.home, *arguments, "--json")
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    with console.engine.connect() as connection:
        stated = set(list_received(connection)[VENDOR])
        number = vendors.find_vendor(connection, VENDOR).id
        shown = {
            id_: any(it.shown for it in list_verdicts(connection, id_)) for id_ in (PUPIL, GUARDIAN, TEACHER, SCHOOL)
        }
    words = {PARTS[name].words for name in stated}
    pages = {
        path: read(browser.get(path).text)
        for path in (f"/records/{PUPIL}", f"/records/{GUARDIAN}", f"/records/{SCHOOL}", "/access", "/privacy")
    }
    listed = browser.get("/vendors.json").json["vendors"]["rows"]
    notice = browser.get("/access.csv").text
    page = read(browser.get(f"/vendors/{number}").text)
    printed = ask("access", "--vendor", VENDOR)
    of_pupil = ask("access", "--person", PUPIL)
    in_words = run_roster(url, console.home, "access", "--person", PUPIL).stdout
    received = ask("vendor", "show", VENDOR)["received"]
    is_student_known = planted.account is not None or planted.client_id in str(ask("client", "list"))
    looks = ask("show", PUPIL, "--as", VENDOR) if is_student_known else []

    leaves, sent, names_agent = let_leave(planted)

    assert stated == leaves
    assert set(received) == leaves
    assert {part for row in printed for part in row["parts"]} == leaves
    # A volunteer is named without the scope of guardians, but not in a file of 1.1, if no role of the export says so.
    if planted.delivery is None:
        names_agent = bool(NAMED.search(json.dumps([view["body"] for view in looks])))
    named = {"guardians"} if names_agent else set()
    assert {part for row in of_pupil for part in row["parts"]} == leaves | named
    assert ("these vendors see" in in_words) == bool(leaves)
    assert [set(row["gets"]) for row in listed] == [words]
    assert (VENDOR in notice) == bool(leaves)
    assert ("it gets nothing: " in page) == (not leaves)
    assert (", no guardians but those with another role" in page) == (bool(leaves) and "guardians" not in leaves)
    assert ("Guardians but those with another role not at all" in page) == (bool(leaves) and "guardians" not in leaves)
    assert any(view["body"] is not None for view in looks) == bool(leaves)
    assert f"{1 if leaves else 0} of 1 vendor may see this person" in pages[f"/records/{PUPIL}"]
    assert f"{2 if leaves else 0} of 4 schools are seen by a vendor" in pages["/access"]
    assert ("No vendor may read birth dates" in pages["/privacy"]) == ("birthDate" not in leaves)
    assert shown[PUPIL] == bool(leaves)
    for person in (PUPIL, GUARDIAN, TEACHER):
        if planted.delivery is not None or planted.account is not None:
            assert shown[person] == (person in sent), person
    if planted.delivery is not None:
        assert shown == {id_: id_ in sent for id_ in shown}
        assert f"{int(GUARDIAN in sent)} of 1 vendor may see this person" in pages[f"/records/{GUARDIAN}"]
        assert ("no vendor may see it" in pages[f"/records/{SCHOOL}"]) == (SCHOOL not in sent)


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
    assert "Its deliveries go on: nightly to sftp.example.org." in say("vendor", "enable", VENDOR)
    assert "API keys (1), deliveries (1)" in say("vendor", "remove", VENDOR, "--dry-run")


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
    for change in (["disable"], ["enable", *(["--yes"] if what == "client" else [])]):
        done = run_roster(url, console.home, what, change[0], name, *change[1:])
        assert (done.exit_code, ended in done.stdout) == (0, True), done.output
        with console.engine.begin() as connection:
            [link] = secret_links.list_links(connection, oauth_clients.c.client_id == planted.client_id)
            assert (link.has_ended, datetime.fromisoformat(link.ends_at) <= datetime.now(UTC)) == (True, True)
            assert secret_links.use_link(connection, str(planted.link), None) is None
    page = f"/vendors/{number}" if what == "vendor" else f"/vendors/{number}/credentials"
    form = {"enabled": "no"} if what == "vendor" else {"client": planted.client_id}
    sent = browser.send(f"{page}/enable" if what == "vendor" else f"{page}/client-enable", **form)
    assert ended in read(browser.get(sent.headers["Location"].removeprefix("/console")).text)
    with console.engine.begin() as connection, pytest.raises(CommandError, match="enable it first"):
        secret_links.make_link(connection, TESTER, planted.client_id)
    assert "Make a link" not in browser.get(f"/vendors/{number}/credentials").text
