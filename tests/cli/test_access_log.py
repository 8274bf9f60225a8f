"""`roster usage` and `roster audit`: what they print."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.access_log.entries import HASH_BYTES, Disclosure, Entry, PersonHasher
from roster_service.access_log.writer import write_entries, write_rows
from roster_service.accounts import vendors
from roster_service.db.tables import audit, orgs
from roster_service.errors import Problem
from roster_service.feeds.roster_state import read_database_id
from sync_scripts.access_log_days import fold_days
from tests.access_log.test_writer import kill_worker
from tests.cli.conftest import Roster

Answer = Callable[..., Any]
EMAIL = "reading@example.com"
SECRET_KEY = "a secret key of the tests, long enough to be one"
HASHER = PersonHasher(SECRET_KEY)
# An id with signs that mean something to SQL and to a shell.
NASTY = "O'Brien\"; -- %(x)s :y \\"


@pytest.fixture(autouse=True)
def requests(answer: Answer, engine: sa.Engine, tmp_path: Path) -> None:
    """Three requests of one vendor on two days, and one of another; each with records of two people."""
    (tmp_path / "secret_key").write_text(SECRET_KEY)
    ids = [answer("vendor", "add", email, "--name", "x")["id"] for email in (EMAIL, "other@example.com")]
    calls = [(1, ids[0], 200), (2, ids[0], 200), (2, ids[0], 403), (2, ids[1], 200)]
    district = {"feed_id": 1, "status": "active", "date_last_modified": "2026-01-01", "type": "district"}
    named = {"sourced_id": "district-2", "name": "The District 2", "district_id": "district-2"}
    with engine.begin() as connection:
        connection.execute(sa.insert(orgs).values(district | named))
        for day, vendor, status in calls:
            at, records = datetime(2026, 11, day, 23, 59, tzinfo=UTC), 3 if status == 200 else 0
            caller, address = f"key-{vendor}", f"192.0.2.{day}"
            write_entries(connection, [Entry(at, vendor, caller, address, "GET", "/x", status, 10, records)])
            if status == 200:
                shown = Disclosure(
                    at=at,
                    vendor_id=vendor,
                    caller=caller,
                    address=address,
                    method="GET",
                    path="/x",
                    scope=f"v1p2/roster.readonly v1p2/roster-{vendor}.readonly",
                    districts=["everywhere", f"district-{vendor}"],
                    filter="givenName='*'",
                    records=records,
                    people=HASHER.hash_people([f"{NASTY}-{day}", NASTY]),
                    parts=6,
                    request_id="r",
                )
                write_rows(connection, [shown.make_line()])


@pytest.mark.parametrize(
    ("command", "options", "count"),
    [
        ("usage", [], 4),
        ("usage", ["--vendor", EMAIL], 3),
        ("usage", ["--vendor", EMAIL, "--since", "2026-11-02"], 2),
        ("audit", [], 3),
        ("audit", ["--vendor", EMAIL], 2),
        ("audit", ["--since", "2026-11-02"], 2),
        ("audit", ["--since", "2026-11-03"], 0),
        ("audit", ["--client", "key-1"], 2),
        ("audit", ["--address", "192.0.2.2"], 2),
        ("audit", ["--scope", "v1p2/roster.readonly"], 3),
        ("audit", ["--scope", "v1p2/roster-2.readonly"], 1),
        ("audit", ["--scope", "v1p2/roster"], 0),
        ("audit", ["--district", "everywhere", "--client", "key-1"], 2),
        ("audit", ["--district", "district-2"], 1),
        ("audit", ["--district", "The District 2"], 1),
        ("audit", ["--person", NASTY], 3),
        ("audit", ["--person", NASTY, "--vendor", EMAIL], 2),
        ("audit", ["--person", NASTY, "--since", "2026-11-02", "--client", "key-1"], 1),
        ("audit", ["--person", f"{NASTY}-1"], 1),
    ],
)
def test_rows_of_a_vendor_from_a_day_on(
    answer: Answer, roster: Roster, command: str, options: list[str], count: int
) -> None:
    assert len(answer(command, *options)) == count
    printed = roster(command, *options, "--csv").stdout.splitlines()
    assert len(printed) - 1 == count or (printed, count) == ([""], 0)


def test_a_district_that_neither_the_roster_nor_the_log_has_is_refused(roster: Roster) -> None:
    refused = roster("audit", "--district", "district")
    assert refused.exit_code == 1
    assert "no district with the sourcedId, identifier or name 'district'" in refused.stderr


def test_a_row_says_what_there_is_to_know(answer: Answer) -> None:
    assert answer("usage", "--vendor", "other@example.com") == [
        {
            "day": "2026-11-02",
            "vendor": "other@example.com",
            "endpoint": "GET /x",
            "status": "2xx",
            "requests": 1,
            "records": 3,
            "bytes": 10,
        }
    ]
    assert answer("audit", "--vendor", "other@example.com") == [
        {
            "at": "2026-11-02T23:59:00.000+00:00",
            "vendor": "other@example.com",
            "caller": "key-2",
            "address": "192.0.2.2",
            "method": "GET",
            "path": "/x",
            "scope": "v1p2/roster.readonly v1p2/roster-2.readonly",
            "districts": ["everywhere", "district-2"],
            "filter": "givenName='*'",
            "records": 3,
            "request_id": "r",
            "by": "page",
            "answers": 1,
            "last_at": "2026-11-02T23:59:00.000+00:00",
            "last_request_id": "r",
            "parts": ["email", "phone"],
        }
    ]


def test_a_row_of_a_day_says_so(answer: Answer, roster: Roster, engine: sa.Engine) -> None:
    """In every form of the answer, with how many responses it has."""
    pages = answer("audit", "--person", NASTY)
    fold_days(engine, date(2026, 11, 20))
    days = answer("audit", "--person", NASTY)
    assert sorted(days, key=itemgetter("at", "vendor")) == [
        {**row, "by": "day"} for row in sorted(pages, key=itemgetter("at", "vendor"))
    ]
    assert roster("audit", "--person", NASTY, "--csv").stdout.count(",day,1,2026-11-0") == 3
    printed = roster("audit", "--person", NASTY).stdout
    assert "no longer in the roster; 3 rows are of a day, of which at least one answer had them" in printed


@pytest.fixture
def refusals(answer: Answer, engine: sa.Engine) -> None:
    """Five refused requests: three with valid credentials, one that names a client, one that names nobody."""
    email = "refused@example.com"
    number = answer("vendor", "add", email, "--name", "x")["id"]
    preset = ("--name", "c", "--scope", "v1p2/roster.readonly")
    client = answer("client", "add", "--vendor", email, *preset)["client_id"]
    calls = [
        *((day, number, client, 403, Problem.NO_GRANT) for day in (3, 1, 2)),
        (2, None, client, 401, Problem.CREDENTIALS),
        (2, None, "client-of-nobody", 401, Problem.CREDENTIALS),
    ]
    with engine.begin() as connection:
        for day, vendor, caller, status, problem in calls:
            at, address = datetime(2026, 11, day, 12, tzinfo=UTC), f"192.0.2.{day}"
            write_entries(connection, [Entry(at, vendor, caller, address, "GET", "/x", status, 10, 0, problem.value)])


@pytest.mark.usefixtures("requests", "refusals")
def test_a_removed_vendor_keeps_its_name_in_each_list(answer: Answer) -> None:
    lists = (("audit",), ("usage",), ("usage", "--refused"))
    before = [[row["vendor"] for row in answer(*words)] for words in lists]
    emails = {vendor for found in before for vendor in found} - {"unknown"}
    for email in emails:
        answer("vendor", "remove", email, "--yes")
    after = [sorted(row["vendor"] for row in answer(*words)) for words in lists]
    names = {email: f"{email} (removed)" for email in emails}
    assert after == [sorted(names.get(vendor, vendor) for vendor in found) for found in before]
    assert all(after)


@pytest.mark.usefixtures("refusals")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param(
            [],
            [
                ("refused@example.com", 403, "no grant", 3, 3),
                ("refused@example.com", 401, "id, secret or password missing or wrong", 1, 2),
                ("unknown", 401, "id, secret or password missing or wrong", 1, 2),
            ],
            id="all",
        ),
        pytest.param(
            ["--vendor", "refused@example.com", "--since", "2026-11-03"],
            [("refused@example.com", 403, "no grant", 1, 3)],
            id="of a vendor from a day on",
        ),
        pytest.param(["--vendor", EMAIL], [], id="of a vendor without any"),
    ],
)
def test_refused_requests_are_shown_by_cause(
    answer: Answer, roster: Roster, options: list[str], expected: list[tuple[Any, ...]]
) -> None:
    """The latest first, with the time and the address of the last one."""
    command = ("usage", "--refused", *options)
    rows = answer(*command)
    assert [(row["vendor"], row["status"], row["cause"], row["requests"]) for row in rows] == [
        row[:-1] for row in expected
    ]
    assert [(row["last_at"], row["addresses"][0]) for row in rows] == [
        (f"2026-11-{day:02}T12:00:00.000+00:00", f"192.0.2.{day}") for *_, day in expected
    ]
    assert ("of-nobody" in str(rows), [row["caller"] for row in rows if row["vendor"] == "unknown"][:1]) == (
        False,
        ["unknown"] if not options else [],
    )
    table = roster(*command).stdout
    assert all(row["cause"] in table for row in rows) if rows else "no request was refused" in table
    assert len(roster(*command, "--csv").stdout.splitlines()) == len(rows) + 1


@pytest.mark.parametrize("command", ["usage", "audit"])
def test_a_table_for_people_and_refusals(roster: Roster, command: str) -> None:
    assert EMAIL in roster(command).stdout
    assert roster(command, "--vendor", "no@example.com").exit_code == 1
    assert roster(command, "--csv", "--json").exit_code == 2
    assert roster(command, "--since", "yesterday").exit_code == 2


@pytest.mark.shows(
    "Access log",
    "A row has people as keyed hashes alone; with another key the command says that it finds nobody.",
)
@pytest.mark.parametrize(
    ("people", "said"),
    [
        pytest.param(
            PersonHasher("another").hash_people(["someone"]),
            "3 were made with another ROSTER_SECRET_KEY",
            id="other key",
        ),
        pytest.param(b"", "", id="nobody"),
    ],
)
def test_a_search_for_a_person_says_which_rows_it_leaves_out(
    roster: Roster, engine: sa.Engine, people: bytes, said: str
) -> None:
    with engine.begin() as connection:
        connection.execute(sa.update(audit).values(people=people))
    done = roster("audit", "--person", NASTY, "--json")
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    assert ("3 rows of the access log do not tell whom they had" in done.stderr) is bool(said)


@pytest.mark.parametrize("person", [f"{NASTY}-3", "", "Nobody Atall"])
def test_a_person_whom_nobody_knows_is_no_answer(roster: Roster, person: str) -> None:
    done = roster("audit", "--person", person)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"nobody in the roster has the id or name {person}; the sourcedId alone finds who was erased" in done.stderr


@pytest.mark.parametrize("is_hash", [False, True])
def test_the_bytes_of_a_hash_that_span_two_others_are_no_person(
    roster: Roster, engine: sa.Engine, is_hash: bool
) -> None:
    wanted, half = HASHER.hash_id("wanted"), HASH_BYTES // 2
    spanning = HASHER.check + bytes(half) + wanted + bytes(HASH_BYTES - half)
    with engine.begin() as connection:
        connection.execute(sa.update(audit).values(people=spanning + (wanted if is_hash else b"")))
    done = roster("audit", "--person", "wanted")
    assert (done.exit_code, "these answers had records of wanted, no longer in the roster" in done.stdout) == (
        0 if is_hash else 2,
        is_hash,
    )


@pytest.mark.shows("Access log", "Rows of killed workers are there for `roster audit` and the console at once.")
def test_rows_of_killed_workers_are_there_without_a_request(answer: Answer, engine: sa.Engine, tmp_path: Path) -> None:
    with engine.connect() as connection:
        folder = tmp_path / "access-log" / read_database_id(connection)
    killed = kill_worker(engine, folder, "killed", 3)
    assert set(killed) < {row["request_id"] for row in answer("audit")}
    assert list(folder.iterdir()) == []


def test_it_is_said_if_rows_of_killed_workers_cannot_be_moved(
    roster: Roster, engine: sa.Engine, tmp_path: Path
) -> None:
    with engine.connect() as connection:
        folder = tmp_path / "access-log" / read_database_id(connection)
    folder.parent.mkdir()
    folder.write_text("a file where the folder should be")
    done = roster("audit")
    assert (done.exit_code, "rows that ended workers have left" in done.stderr) == (0, True)


def test_no_cell_is_a_formula(roster: Roster, engine: sa.Engine) -> None:
    roster("vendor", "add", "=sum@vendor.example", "--name", "x")
    with engine.begin() as connection:
        number = vendors.find_vendor(connection, "=sum@vendor.example").id
        write_entries(connection, [Entry(datetime.now(UTC), number, "c", None, "GET", "/x", 200, 10, 0)])
    assert "'=sum@vendor.example" in roster("usage", "--csv").stdout
