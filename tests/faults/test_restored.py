"""A roster that was restored from a backup while workers ran: nothing that a client has of before is said to hold."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.accounts import agreements
from roster_service.accounts.known_agreements import Agreement
from roster_service.accounts.vendors import find_vendor
from roster_service.db.engine import make_engine
from roster_service.db.postgres_programs import INSTALLATION, WHEEL
from roster_service.roster.person_parts import PersonPart
from sync_scripts.engine.load import load
from tests.accounts.agreed import TODAY, WHOLE
from tests.actors import TESTER
from tests.cli.conftest import run_roster
from tests.conditions import wait_for
from tests.docs.pages import read_section
from tests.postgres.databases import administer
from tests.sync.export_changes import cell_of

from .services import DISTRICT, Service, fill, serving

PROGRAMS = Path(str(distribution(WHEEL).locate_file(INSTALLATION)), "bin")
# A record, a page of the collection, a page of its known order, and what is empty.
PATHS = ("/users/spr-student-1", "/users?limit=3", "/users?limit=3&offset=3", "/users?filter=givenName='Nobody'")
STUDENT = "spr-student-1"
TRIES = 3


@dataclass(frozen=True)
class Roster:
    """A served roster, its backup, and what an operator does with both."""

    service: Service
    engine: sa.Engine
    server_url: str
    url: str
    load_run: Path
    home: Path

    def load(self, name: str) -> None:
        """The nightly sync, on an export in which the student has this name."""
        cell_of("users", STUDENT, "givenName", name)(self.load_run)
        load(self.engine, "springfield", self.load_run)

    def back_up(self) -> None:
        """Takes a dump, without all that the documentation leaves out."""
        left_out = re.findall(r"--exclude-table-data=\w+", read_section("docs/run.md", "Backup and restore"))
        assert left_out
        run_program("pg_dump", "--format=custom", f"--file={self.home / 'dump'}", *left_out, self.url)

    def restore(self, *, waits: bool = True) -> None:
        """Puts the dump in the place of the database, under the running service; waits until it answers again."""
        self.engine.dispose()
        name = sa.make_url(self.url).database
        administer(self.server_url, f"DROP DATABASE {name} WITH (FORCE)", f"CREATE DATABASE {name}")
        run_program("pg_restore", "--exit-on-error", f"--dbname={self.url}", str(self.home / "dump"))
        if waits:
            # The tokens may be of an earlier restore.
            wait_for(lambda: {self.service.ask("v1p1", path).status for path in PATHS * TRIES} <= {200, 401})
            self.service.get_tokens()

    def ask(self, tags: Mapping[str, str] | None = None) -> dict[str, tuple[int, str, str]]:
        """(status, entity tag, revision) by path, of an answer that every worker has given more than once."""
        found = {}
        for path in PATHS:
            headers = {} if tags is None else {"If-None-Match": tags[path]}
            for _ in range(TRIES):
                reply = self.service.ask("v1p1", path, headers)
                found[path] = (reply.status, reply.headers["ETag"], reply.headers["X-Roster-Revision"])
        return found

    @property
    def name(self) -> str:
        """The student's name, as it is served."""
        return str(self.service.ask("v1p1", PATHS[0]).json["user"]["givenName"])

    def describe(self, statement: str, **values: Any) -> None:
        """What somebody does by hand."""
        with self.engine.begin() as connection:
            connection.execute(sa.text(statement), values)

    def read(self, statement: str) -> Mapping[str, Any]:
        """A row of the database."""
        with self.engine.connect() as connection:
            return dict(connection.execute(sa.text(statement)).one()._mapping)


def run_program(name: str, *arguments: str) -> None:
    """Runs a program of PostgreSQL's."""
    done = subprocess.run([PROGRAMS / name, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def roster(
    make_database: Callable[[], str], server_url: str, load_runs: tuple[Path, Path], tmp_path: Path
) -> Iterator[Roster]:
    """A roster, served by one worker."""
    url = make_database()
    engine = make_engine(url)
    credentials = fill(engine)
    with serving(url, credentials, tmp_path, workers=1) as service:
        service.get_tokens()
        yield Roster(service, engine, server_url, url, load_runs[0], tmp_path)
    engine.dispose()


STATE = "SELECT revision, as_of, deletions_since FROM roster_state"


def test_an_entity_tag_of_before_is_not_known_after_a_restore(roster: Roster) -> None:
    """Also where nobody said that there was one."""
    roster.back_up()
    roster.load("Second")
    before = roster.ask()
    tags = {path: tag for path, (_, tag, _) in before.items()}
    assert {status for status, _, _ in roster.ask(tags).values()} == {304}
    roster.restore()
    roster.load("Third")
    after = roster.ask(tags)
    # The sync noticed that it published on another table than the sync before.
    assert not {revision for _, _, revision in after.values()} & {revision for _, _, revision in before.values()}
    assert {status for status, _, _ in after.values()} == {200}
    assert roster.name == "Third"


def test_a_restored_roster_has_a_revision_that_never_was(roster: Roster) -> None:
    """The same roster but for its records, as after a clock that was set back: then the operator's word tells them
    apart."""
    roster.back_up()
    roster.load("Second")
    tags = {path: tag for path, (_, tag, _) in roster.ask().items()}
    state = roster.read(STATE)
    seen = set()
    for _ in range(2):
        roster.restore()
        roster.describe(f"UPDATE users SET given_name = 'Third' WHERE sourced_id = '{STUDENT}'")
        roster.describe(
            "UPDATE roster_state SET revision = :revision, as_of = :as_of, deletions_since = :deletions_since", **state
        )
        assert run_roster(roster.url, roster.home, "db", "restored").exit_code == 0
        roster.service.get_tokens()
        answers = roster.ask(tags)
        assert {status for status, _, _ in answers.values()} == {200}
        assert roster.name == "Third"
        seen |= {int(revision) for _, _, revision in answers.values()}
    assert len(seen) == 2
    assert min(seen) > state["revision"] + 1_000_000


def test_deltas_of_before_have_to_be_pulled_in_full(roster: Roster) -> None:
    """Whoever pulled before the restore may have records that are in no roster any more."""
    roster.back_up()
    roster.load("Second")
    pulled = roster.read(STATE)["as_of"]
    roster.restore()
    assert run_roster(roster.url, roster.home, "db", "restored").exit_code == 0
    state = roster.read(STATE)
    assert pulled < state["deletions_since"] == state["as_of"]
    roster.load("Third")
    assert roster.read(STATE)["as_of"] > state["deletions_since"]


ALWAYS = (PersonPart.NAMES, PersonPart.CLASSES)
NARROW = replace(WHOLE, elements=ALWAYS, districts=(DISTRICT,), metadata_keys=())


def test_no_answer_goes_beyond_the_agreement_of_the_backup(roster: Roster) -> None:
    """Not by a token of a wider one that was saved after it, nor by that of the same count of changes."""
    email = roster.service.credentials.account.email

    def save(agreement: Agreement) -> int:
        with roster.engine.begin() as connection:
            agreements.set_agreement(connection, TESTER, email, agreement)
            return find_vendor(connection, email).grant_version

    save(NARROW)
    roster.service.get_tokens()
    assert "email" not in roster.service.ask("v1p1", PATHS[0]).json["user"]
    roster.back_up()
    wide = save(replace(NARROW, elements=(*ALWAYS, PersonPart.EMAIL)))
    assert roster.service.ask("v1p1", PATHS[0]).status == 401
    roster.service.get_tokens()
    assert "email" in roster.service.ask("v1p1", PATHS[0]).json["user"]
    roster.restore(waits=False)
    assert run_roster(roster.url, roster.home, "db", "restored").exit_code == 0
    wait_for(lambda: roster.service.ask("v1p1", PATHS[0]).status == 401)
    roster.describe("UPDATE vendors SET grant_version = :number", number=wide)
    for interface in ("v1p1", "students"):
        answers = [roster.service.ask(interface, PATHS[0]) for _ in range(TRIES)]
        assert {"email" in answer.body.decode() for answer in answers} == {False}
        assert {answer.status for answer in answers} == ({401} if interface == "v1p1" else {200})
    roster.service.get_tokens()
    assert "email" not in roster.service.ask("v1p1", PATHS[0]).json["user"]
    # An end that came while the backup lay there is an end.
    roster.describe("UPDATE agreements SET ends_at = now() - interval '1 day', starts_at = 'epoch'")
    roster.back_up()
    save(replace(NARROW, last_day=TODAY + timedelta(days=99)))
    roster.service.get_tokens()
    roster.restore(waits=False)
    wait_for(lambda: roster.service.ask("token").json.get("error") == "unauthorized_client")
    assert roster.service.ask("v1p1", PATHS[0]).status == 401
