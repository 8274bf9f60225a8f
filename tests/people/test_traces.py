"""What is left of a person, in the database and in the data folder, after an erasure and after a purge."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from flask.testing import FlaskClient

from roster_service.accounts import clients, vendor_rights, vendors
from roster_service.accounts.agreements import set_agreement
from roster_service.app import create_app
from roster_service.auth.credentials.signing_keys import ensure_signing_key
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.feeds.exclusions import renew_statistics
from roster_service.feeds.export_previews import drop_previews_with
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.versions import VERSIONS
from roster_service.settings import Settings
from sync_scripts.access_log_days import fold_days
from sync_scripts.engine.load import Options, load
from sync_scripts.purge import purge
from sync_scripts.reading.registry import CLEVER
from sync_scripts.retention import delete_expired, delete_old_orderings
from tests.accounts.agreed import WHOLE
from tests.actors import TESTER
from tests.cli.conftest import run_roster
from tests.conftest import close_app
from tests.dump import dump_folder, dump_tables, find_traces
from tests.sync.conftest import SPRINGFIELD
from tests.sync.export_changes import Bend, Rows, both, cell_of, raw, rows_of, with_row, without_rows, zipped

ID = "planted-student-7"
PLANTED = (ID, "planted.user", "Plantedgiven", "Plantedfamily", "PLANTED-1001", "Plantedmiddle", "planted-enr")
VENDOR, ENDED = "reading@vendor.example", "ended@vendor.example"
SECRET_KEY = "a secret key of the tests, long enough to be one"


@dataclass(frozen=True)
class Service:
    """A service that has a planted person in every place that may hold one, and two of its workers."""

    engine: sa.Engine
    url: str
    home: Path
    export: Path
    workers: tuple[FlaskClient, FlaskClient]
    headers: dict[str, dict[str, str]]

    def load(self, **settings: int) -> str:
        """Loads the export as it is now, and returns the outcome."""
        options = Options(Settings(home=self.home, secret_key=SECRET_KEY, **settings))  # type: ignore[arg-type]
        return load(self.engine, "springfield", self.export, options=options).outcome

    def roster(self, *arguments: str) -> str:
        """Runs `roster ARGUMENTS` and returns what it printed."""
        (self.home / "secret_key").write_text(SECRET_KEY)
        done = run_roster(self.url, self.home, *arguments)
        assert done.exit_code == 0, done.stderr
        return done.stdout

    def find(self) -> set[tuple[str, str]]:
        """The places that have a planted value."""
        return find_traces(dump_tables(self.engine) | dump_folder(self.home), PLANTED)

    def list_disclosures(self) -> list[dict[str, Any]]:
        """The disclosures that had records of the planted person."""
        for worker in self.workers:
            worker.application.extensions["roster_access_log"].flush()
        found: list[dict[str, Any]] = json.loads(self.roster("audit", "--person", ID, "--json"))
        return found

    def ask(self) -> set[tuple[str, int, bool]]:
        """(path, status, whether a planted value is in the answer) from both workers, whose caches are warm."""
        found = set()
        for worker in self.workers:
            for path, headers in self.headers.items():
                answer = worker.get(path, headers=headers)
                # A refusal names the id that was asked for.
                text = answer.text if answer.status_code == 200 else answer.text.replace(ID, "")
                found.add((path, answer.status_code, any(value in text for value in PLANTED)))
            answer = worker.post("/v1/students", json={"districtlea": "17-0042"}, headers=self.headers_of_v1(worker))
            found.add(("/v1/students", answer.status_code, "Plantedgiven" in answer.text))
        return found

    def headers_of_v1(self, worker: FlaskClient) -> dict[str, str]:
        """The headers of a vendor that has logged in."""
        key = (self.home.parent / "key").read_text()
        headers = {"x-api-key": key}
        login = {"email": VENDOR, "password": "the password of the tests"}
        token = worker.post("/v1/login", json=login, headers=headers).json
        assert token is not None
        return headers | {"Authorization": f"Bearer {token['token']}"}


def rename(file: str) -> Bend:
    """Gives the pupil spr-student-1 the planted id, wherever a file names the pupil."""
    return raw(f"{file}.csv", lambda data: re.sub(rb"spr-student-1\b", ID.encode(), data))


def forget(file: str) -> Bend:
    """Removes the planted pupil from a file."""

    def change(rows: Rows) -> None:
        rows[:] = [[cell.replace(f"{ID},", "") for cell in row] for row in rows if ID not in row]

    return rows_of(file, change)


PLANT = both(
    *map(rename, ("users", "enrollments", "demographics")),
    cell_of("users", ID, "givenName", "Plantedgiven"),
    cell_of("users", ID, "familyName", "Plantedfamily"),
    cell_of("users", ID, "username", "planted.user"),
    cell_of("users", ID, "userIds", "{LDAP:planted.user}"),
    cell_of("users", ID, "email", "planted.user@example.org"),
    cell_of("users", ID, "identifier", "PLANTED-1001"),
    # A pupil who has the planted person as an agent.
    cell_of("users", "spr-student-3", "agentSourcedIds", f"{ID},spr-guardian-1"),
)


@pytest.fixture
def service(
    engine: sa.Engine, database_url: str, tmp_path: Path, copy_export: Callable[[str], Path]
) -> Iterator[Service]:
    """The service after some syncs."""
    home = tmp_path / "home"
    export = copy_export(SPRINGFIELD)
    PLANT(export)
    settings = Settings(secret_key=SECRET_KEY, home=home)
    with engine.begin() as connection:
        ensure_signing_key(connection, SECRET_KEY)
        login = vendors.add_vendor(connection, TESTER, VENDOR, "Reading", "the password of the tests")
        scopes = [Scope(version.prefix, name) for version in VERSIONS for name in ScopeName]
        client = clients.add_client(connection, TESTER, VENDOR, "app", scopes)
    (tmp_path / "key").write_text(login.api_key)
    apps = [create_app(settings, database_url) for _ in range(2)]
    made = Service(engine, database_url, home, export, (apps[0].test_client(), apps[1].test_client()), {})
    assert made.load() == "done"
    with engine.begin() as connection:
        vendor_rights.grant(connection, TESTER, VENDOR, "17-0042", (), tuple(PermissionFlag))
    # What runs keep: changed fields, rejected rows, and the export of a held run.
    cell_of("users", ID, "middleName", "Plantedmiddle")(export)
    with_row("enrollments", sourcedId="planted-enr", classSourcedId="nowhere", schoolSourcedId="spr-high",
             userSourcedId=ID, role="student")(export)  # fmt: skip
    cell_of("demographics", ID, "sex", "Plantedgiven")(export)
    assert made.load() == "done"
    bent = zipped(export, tmp_path / "bent.zip")
    with_row("enrollments", sourcedId="one-more", classSourcedId=ID, schoolSourcedId="spr-high",
             userSourcedId="spr-student-3", role="student")(export)  # fmt: skip
    # The rejected row has the name of the person.
    cell_of("users", ID, "enabledUser", "maybe")(export)
    without_rows("users", "spr-student-5")(export)
    # The sample of a change has the id of the person, as an agent before.
    cell_of("users", "spr-student-3", "agentSourcedIds", "spr-guardian-1")(export)
    # An upload that waits.
    shutil.copytree(export, home / "previews" / "0123" / "export")
    assert made.load(hold_least_records=5) == "held"
    with zipfile.ZipFile(bent) as files:
        files.extractall(export)
    made.roster("feed", "add", "other", "--format", "oneroster", "--reason", f"for {ID} and others")
    # An ended agreement, letters, and requests to delete, one of them open, with an answer that names the person.
    with engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, ENDED, "Ended")
        set_agreement(connection, TESTER, ENDED, replace(WHOLE, districts=("spr-district",)))
        connection.execute(sa.text("UPDATE agreements SET starts_at = 'epoch', ends_at = '2020-07-01 05:00Z'"))
    made.roster("deletion", "ask", "--yes", ID, "--vendor", ENDED, "--due", "2999-01-01")
    made.roster("deletion", "answer", "1", "--words", "Plantedgiven Plantedfamily is deleted")
    made.roster("deletion", "ask", "--yes", ID, "--vendor", ENDED, "--due", "2999-01-01")
    made.roster("person", "answer", ID)
    for version in VERSIONS:
        own = " ".join(str(it) for it in scopes if it.version == version.prefix)
        pair = (client.client_id, client.client_secret)
        asked = {"grant_type": "client_credentials", "scope": own}
        token = made.workers[0].post("/oauth/token", data=asked, auth=pair).json
        assert token is not None
        for path in PATHS:
            made.headers[version.root + path] = {"Authorization": f"Bearer {token['access_token']}"}
    made.roster("feed", "pause", "other", "--until", "2999-01-01", "--reason", "for Plantedfamily, Plantedgiven P.")
    made.ask()
    renew_statistics(engine)
    yield made
    for app in apps:
        close_app(app)


PATHS = (
    *(f"/users/{ID}", f"/demographics/{ID}", "/students"),
    *("/users?sort=familyName&offset=1", "/enrollments?sort=role&offset=1"),
)
PLACES = {
    *("users", "user_roles", "user_agents", "enrollments", "demographics"),
    *("ordering_chunks", "sync_rejections", "sync_changes", "sync_runs", "changes", "deletion_requests"),
    *("feeds", "pg_stats"),
}


@pytest.mark.shows(
    "Access log",
    "`roster audit --person` lists exactly the answers with records of the person, an erased one too.",
)
@pytest.mark.shows(
    "Erased people",
    "After `roster person erase`, no table, no file of the data folder and no worker has anything of the person.",
)
def test_an_erased_person_leaves_no_trace_and_is_seen_nowhere(service: Service) -> None:
    before = service.find()
    # Each place had the person, so the search can fail.
    assert {place for place, _ in before} >= PLACES
    assert all(any(place.startswith(folder) for place, _ in before) for folder in ("held/", "previews/"))
    assert {value for _, value in before} == set(PLANTED)
    assert {("sync_rejections", value) for value in (ID, "Plantedfamily", "planted-enr")} <= before
    assert all(status == 200 and is_shown for _, status, is_shown in service.ask())
    disclosures = service.list_disclosures()
    assert {row["vendor"] for row in disclosures} == {VENDOR}
    service.roster("person", "erase", ID, "--yes", "--reason", "order 4711 of the court")
    assert service.find() == set()
    # The vendor has to answer, of whom nobody can tell.
    requests = json.loads(service.roster("deletion", "list", "--json"))
    assert [(it["number"], it["state"], it["person"], it["words"]) for it in requests] == [
        (2, "open", None, ""),
        (1, "answered", None, ""),
    ]
    assert service.list_disclosures() == disclosures
    # Once they are of a day, too.
    fold_days(service.engine, datetime.now(UTC).date() + timedelta(days=2))
    of_days = service.list_disclosures()
    assert {row["by"] for row in of_days} == {"day"}
    assert {(row["caller"], row["path"]) for row in of_days} == {(row["caller"], row["path"]) for row in disclosures}
    assert service.find() == set()
    assert service.ask() == {(path, 404 if ID in path else 200, False) for path in (*service.headers, "/v1/students")}
    # The next syncs bring the person again, changed and unchanged.
    assert service.load() in ("done", "unchanged")
    cell_of("users", ID, "phone", "555")(service.export)
    assert service.load() in ("done", "unchanged")
    # As each night.
    renew_statistics(service.engine)
    assert service.find() == set()
    assert not any(is_shown for _, _, is_shown in service.ask())
    service.roster("person", "lift", ID, "--yes")
    assert service.load() == "done"
    assert {place for place, _ in service.find()} >= {"users", "user_roles", "enrollments", "user_agents"}


@pytest.mark.shows(
    "Erased people",
    "The same holds after the purge of a tombstone, but for what an operator typed.",
)
def test_a_purged_person_leaves_no_trace(service: Service) -> None:
    """After the days that the settings keep rejected rows and changes."""
    service.roster("sync", "discard", "3")
    drop_previews_with(service.home, lambda _folder: True, lambda _said: False)
    both(*map(forget, ("users", "enrollments", "demographics")))(service.export)
    assert service.load(change_days=30) == "done"
    with service.engine.begin() as connection:
        for table in ("users", "enrollments", "demographics"):
            connection.execute(
                sa.text(f"UPDATE {table} SET date_last_modified = date_last_modified - interval '8 days'")
            )
        connection.execute(sa.text("UPDATE sync_runs SET started_at = started_at - interval '31 days'"))
        connection.execute(sa.text("UPDATE orderings SET made_at = made_at - interval '2 days'"))
    purge(service.engine, 7)
    delete_expired(service.engine, Settings(home=service.home))
    delete_old_orderings(service.engine)
    renew_statistics(service.engine)
    # A reason, and the words of an answer, were typed by an operator, and name the person.
    assert {place for place, _ in service.find()} - {"pg_stats"} == {"changes", "deletion_requests", "feeds"}


@pytest.mark.shows(
    "Erased people",
    "After `roster person erase`, no table, no file of the data folder and no worker has anything of the person.",
)
def test_no_id_that_is_made_of_an_erased_one_stays(
    engine: sa.Engine, database_url: str, tmp_path: Path, copy_export: Callable[[str], Path]
) -> None:
    """Of an enrollment that was purged before, and of one that an operator has looked at as a vendor."""
    export, home, own = copy_export("shelbyville-clever"), tmp_path / "home", "PL7"
    home.mkdir()
    (home / "secret_key").write_text(SECRET_KEY)
    students, seats = export / "students.csv", export / "enrollments.csv"
    students.write_text(students.read_text().replace("\n20,1,", f"\n20,{own},"))
    left = f"20,102,{own}\n"
    seats.write_text(seats.read_text().replace("20,100,1\n", f"20,100,{own}\n") + left)

    def run() -> None:
        options = Options(Settings(home=home, secret_key=SECRET_KEY))
        assert load(engine, "shelby", export, family=CLEVER, options=options).outcome == "done"

    run()
    seats.write_text(seats.read_text().replace(left, ""))
    run()
    purge(engine, -1)
    with engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, VENDOR, "Reading")
        vendor_rights.grant(connection, TESTER, VENDOR, "shelby:district", ())
        clients.add_client(connection, TESTER, VENDOR, "app", [Scope("v1p2", ScopeName.CORE)])
    for arguments in (
        ("show", f"shelby:enrollment:100:{own}", "--as", VENDOR),
        ("person", "erase", f"shelby:student:{own}", "--yes"),
    ):
        before = find_traces(dump_tables(engine), [own])
        done = run_roster(database_url, home, *arguments)
        assert done.exit_code == 0, done.output
    assert {place for place, _ in before} >= {"sync_changes", "enrollments"}
    renew_statistics(engine)
    assert find_traces(dump_tables(engine) | dump_folder(home), [own]) == set()
