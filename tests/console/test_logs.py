"""The screens of disclosures, usage, changes, access and settings: the same rows as the logs have, and no secret."""

from __future__ import annotations

import csv
import io
import re
from datetime import UTC, date, datetime

import psycopg2
import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from roster_service.access_log.causes import NOTHING_FOUND
from roster_service.access_log.entries import Entry, PersonHasher
from roster_service.access_log.writer import write_entries
from roster_service.accounts import clients, vendors
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.change_log.actors import Actor, ActorKind
from roster_service.change_log.changes import list_changes
from roster_service.db.tables import audit
from roster_service.errors import Problem
from roster_service.feeds.roster_state import read_database_id
from roster_service.settings import Settings
from roster_service.web.error_handlers import DATABASE, handle_database_error
from sync_scripts.access_log_days import fold_days
from tests.access_log.test_writer import kill_worker
from tests.actors import TESTER
from tests.console.conftest import SECRET, Browser, Console
from tests.console.test_statements import read

FORMULA = '=HYPERLINK("https://evil.example")'


@pytest.fixture(scope="module")
def owner(console: Console) -> Browser:
    """The browser of an owner, after a vendor was shown a page of 60 records of two people, one by one."""
    hasher = PersonHasher(SECRET)
    with console.engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, "shown@logs.example", "Shown")
        number = vendors.find_vendor(connection, "shown@logs.example").id
        for minute in range(60):
            person = "even" if minute % 2 == 0 else "odd"
            row = {
                "at": f"2026-11-20T10:{minute:02}:00Z",
                "vendor_id": number,
                "caller": "client-of-logs",
                "method": "GET",
                "path": "/users/{sourcedId}",
                "records": 1,
                "request_id": f"request-{minute:02}",
                "address": "192.0.2.1",
                "people": hasher.hash_people([person]),
                "parts": 0,
            }
            connection.execute(sa.insert(audit).values(row))
        actor = Actor(ActorKind.OPERATOR, "owner@operators.example", FORMULA)
        vendors.set_vendor_enabled(connection, actor, "shown@logs.example", enabled=False)
    return console.log_in()


SEARCHES = {
    "of a vendor, by pages": ("?vendor=shown@logs.example", [*range(59, 9, -1)], True),
    "the second page": ("?vendor=shown@logs.example&page=2", [*range(9, -1, -1)], False),
    "beyond the last page": ("?vendor=shown@logs.example&page=9", [], False),
    "of an unknown vendor": ("?vendor=nobody", [], False),
    "of a person": ("?person=even", [*range(58, -1, -2)], False),
    "of a person who was not shown": ("?person=other", [], False),
    "of a day": ("?caller=client-of-logs&since=2026-11-21", [], False),
    "with a day that is none": ("?caller=client-of-logs&since=soon&page=x", [*range(59, 9, -1)], True),
    "of an address": ("?address=192.0.2.1&page=2", [*range(9, -1, -1)], False),
}


@pytest.mark.parametrize(("query", "expected", "more"), SEARCHES.values(), ids=SEARCHES)
def test_disclosures_are_found(owner: Browser, query: str, expected: list[int], more: bool) -> None:
    rows = owner.get(f"/disclosures.json{query}").json["rows"]
    assert [int(row["request_id"][-2:]) for row in rows["rows"]] == expected
    assert rows["more"] is more
    assert owner.get(f"/disclosures{query}").status_code == 200


@pytest.mark.shows("Access log", "Rows of killed workers are there for `roster audit` and the console at once.")
def test_rows_of_killed_workers_are_there_at_once(own_console: Console) -> None:
    console, owner = own_console, own_console.log_in()
    with console.engine.connect() as connection:
        folder = console.home / "access-log" / read_database_id(connection)
    killed = kill_worker(console.engine, folder, "killed", 3)
    rows = owner.get("/disclosures.json?caller=key-0").json["rows"]["rows"]
    assert {row["request_id"] for row in rows} == set(killed)


def test_the_file_of_disclosures_has_every_page(owner: Browser) -> None:
    text = owner.get("/disclosures.csv?vendor=shown@logs.example&page=2").text
    assert len(list(csv.DictReader(io.StringIO(text)))) == 60


def test_a_day_of_disclosures_says_so(console: Console, owner: Browser) -> None:
    """How many answers it has, from when to when."""
    with console.engine.begin() as connection:
        row = {"vendor_id": 1, "caller": "client-of-a-day", "method": "GET", "path": "/users", "records": 2, "parts": 0}
        people = PersonHasher(SECRET).hash_people(["of a day"])
        for hour in (9, 17):
            own = {"at": f"2026-10-01T{hour:02}:00:00Z", "request_id": f"hour-{hour}", "people": people}
            connection.execute(sa.insert(audit).values({**row, **own}))
    fold_days(console.engine, date(2026, 10, 3))
    [found] = owner.get("/disclosures.json?person=of a day").json["rows"]["rows"]
    assert (found["by"], found["answers"], found["records"]) == ("day", 2, 4)
    assert (found["request_id"], found["last_request_id"]) == ("hour-9", "hour-17")
    assert ": 2 answers of the day" in owner.get("/disclosures?person=of a day").text
    assert ": 2 answers of the day" not in owner.get("/disclosures?person=even").text


def test_the_change_log_is_that_of_the_command_line(console: Console, owner: Browser) -> None:
    with console.engine.connect() as connection:
        found = list_changes(connection, vendor="shown@logs.example", feed=None, operator=None, since=None)
    rows = owner.get("/changes.json?vendor=shown@logs.example").json["rows"]["rows"]
    assert [(row["id"], row["verb"], row["reason"]) for row in rows] == [
        (it.id, it.verb, it.reason) for it in reversed(found)
    ]
    assert "vendor disable" in owner.get("/changes").text


def test_no_cell_of_a_file_is_a_formula(owner: Browser) -> None:
    text = owner.get("/changes.csv?vendor=shown@logs.example").text
    reasons = [row["reason"] for row in csv.DictReader(io.StringIO(text))]
    assert f"'{FORMULA}" in reasons


def test_settings_are_shown_without_secrets(owner: Browser) -> None:
    page = owner.get("/system").text
    assert "ROSTER_SECRET_KEY" in page
    assert SECRET not in page
    shown = owner.get("/system.json").json["settings"]
    assert len(shown) == len(Settings.__dataclass_fields__)
    is_default = [it["source"] == "default" for it in shown]
    assert is_default == sorted(is_default)
    lights = {it["name"]: it["word"] for it in owner.get("/system.json").json["lights"]}
    asking = [
        it["meaning"].partition(";")[0] for it in owner.get("/system.json").json["lights"] if it["word"] == "look"
    ]
    things = "1 thing needs" if len(asking) == 1 else f"{len(asking)} things need"
    assert f"{things} attention: {'; '.join(asking[:3])}" in page
    assert lights["Address"] == "look"


def test_refused_requests_are_on_the_pages_of_usage_and_of_the_vendor(own_console: Console) -> None:
    console, owner = own_console, own_console.log_in()
    with console.engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, "refused@logs.example", "Refused")
        number = vendors.find_vendor(connection, "refused@logs.example").id
        scopes = [Scope("v1p2", ScopeName.FULL)]
        made = clients.add_client(connection, TESTER, "refused@logs.example", "tests", scopes)
    form = {"grant_type": "client_credentials", "client_secret": "wrong"}
    http = console.vendors.test_client()
    for client_id in (made.client_id, made.client_id, "client-of-nobody"):
        assert http.post("/oauth/token", data={**form, "client_id": client_id}).status_code == 401
    console.vendors.extensions["roster_access_log"].flush()
    cause = f"401 {Problem.CREDENTIALS.value}"
    assert "2 of its requests in 30 days" in owner.get(f"/vendors/{number}/credentials").text
    words = f"from 127.0.0.1: the secret or password of tests was wrong or missing ({cause}, POST /oauth/token)."
    first = owner.get(f"/vendors/{number}").text
    assert f'href="/console/vendors/{number}/requests">2 refused today</a> (UTC)' in first
    assert "The last refused request came " in first
    assert "the secret or password of tests was wrong or missing. Let the vendor check the secret" in first
    page = owner.get(f"/vendors/{number}/requests").text
    assert cause in page
    assert (
        "Today (UTC): 2 refused; 2 refused in 30 days, with requests for a token, which the usage does not count."
        in page
    )
    assert words in page
    refused = "3 requests were refused in all, those with wrong secrets and of unknown callers among them."
    first = owner.get("").text
    assert (
        f"No vendor has sent a request with a token or key that the service recognized today (UTC). {refused}" in first
    )
    usage = owner.get("/disclosures/usage").text
    assert "No vendor has sent a request with a token or key that the service recognized in these days." in usage
    assert 'href="/console/disclosures/usage#refused">Usage by vendor' in first
    request_id = re.search('id" title="([^"]+)">', page.partition('id="refused"')[2])
    assert request_id is not None
    found = owner.get(f"/find.json?q={request_id[1]}").json["groups"]
    assert [(it["title"], [result["path"] for result in it["results"]]) for it in found] == [
        ("Requests", [f"/vendors/{number}/requests"])
    ]
    rows = owner.get("/disclosures/usage.json").json["refused"]
    assert {(row["caller"], row["requests"]) for row in rows} >= {(made.client_id, 2), ("unknown", 1)}
    assert cause in owner.get("/disclosures/usage").text


def test_the_answer_to_an_operator_ends_an_outage(owner: Browser, caplog: pytest.LogCaptureFixture) -> None:
    DATABASE.add_failure("of the tests")
    assert owner.get("/system").status_code == 200
    assert "the database answers again" in [record.getMessage() for record in caplog.records]


def test_a_login_at_the_database_that_fails_has_the_words_of_the_server(
    console: Console, caplog: pytest.LogCaptureFixture
) -> None:
    """No statement was sent, so they quote no value."""
    refused = psycopg2.OperationalError('FATAL:  password authentication failed for user "roster_serving"\nmore')
    for statement in (None, "SELECT 'Quetzalcoatl'"):
        with console.app.test_request_context("/"):
            handle_database_error(OperationalError(statement, {}, refused))
        DATABASE.end()
    said = [record.getMessage() for record in caplog.records if "does not answer" in record.getMessage()]
    assert ["password authentication failed" in line for line in said] == [True, False]
    assert "None" not in "".join(said)


def test_a_filter_that_found_nothing_is_on_the_page_of_requests_and_no_refusal(
    console: Console, owner: Browser
) -> None:
    with console.engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, "empty@logs.example", "Empty")
        number = vendors.find_vendor(connection, "empty@logs.example").id
        path = "/ims/oneroster/v1p1/users"
        entry = Entry(
            datetime.now(UTC), number, "client-1", None, "GET", path, 200, 9, 0, NOTHING_FOUND, "1", ["grades"]
        )
        write_entries(connection, [entry])
    page = read(owner.get(f"/vendors/{number}/requests").text)
    assert "No request was refused in the last 30 days." in page
    assert "Answers without a record" in page.partition("No request was refused")[2]
    assert "there, grades is 03" in page.replace("`", "")
    assert "none refused today" in read(owner.get(f"/vendors/{number}").text)
