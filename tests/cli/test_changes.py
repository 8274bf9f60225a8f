"""The change log: each command that changes something leaves one row, and `roster changes` shows it."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from sqlalchemy.exc import DBAPIError

from roster_service.change_log.actors import find_system_user
from roster_service.cli import main
from roster_service.cli.demo import CREDENTIALS_FILE, EMAIL, EXPORT
from roster_service.cli.terminal import open_connection
from roster_service.db.tables import changes, vendors
from roster_service.settings import Settings
from sync_scripts import load_oneroster
from sync_scripts.engine.load import Options, load
from tests.cli.conftest import Roster, make_environment
from tests.deliveries.dropbox import use_drop_box
from tests.deliveries.test_sending import HOST_KEY
from tests.postgres.loaded import load_first
from tests.sync.conftest import EXPORTS, SPRINGFIELD, lend_engine
from tests.sync.export_changes import cell_of, without_rows

# Loaders keep copies of exports in the data folder.
pytestmark = pytest.mark.usefixtures("own_home")

Answer = Callable[..., Any]
VENDOR, OPERATOR, REASON = "reading@vendor.example", "ann@district.example", "ticket 4711"


def list_changing(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[str]:
    """The commands below a group that may change something: those that take a reason."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from list_changing(command, (*words, name))
        elif any(parameter.name == "reason" for parameter in command.params):
            yield " ".join((*words, name))


class Changer:
    """Runs commands that change something, and holds each to the rows that it leaves."""

    def __init__(self, answer: Answer, engine: sa.Engine) -> None:
        self.commands: set[str] = set()
        self._answer = answer
        self._engine = engine

    def __call__(self, command: str, *arguments: str, leaves: tuple[str, ...] | None = None) -> Any:
        """`leaves`: the verbs of the rows; by default one row, of the command itself."""
        self.commands.add(command)
        newest = max((row.id for row in self._read()), default=0)
        reason = () if "--reason" in arguments else ("--reason", REASON)
        result = self._answer(*command.split(), *arguments, *reason)
        rows = [row for row in self._read() if row.id > newest]
        assert [row.verb for row in rows] == list(leaves or (command,))
        actor = find_system_user(None)
        assert {(row.actor_kind, row.actor, row.reason) for row in rows} == {("system user", actor.name, REASON)}
        return result

    def _read(self) -> list[Any]:
        with self._engine.connect() as connection:
            return list(connection.execute(sa.select(changes).order_by(changes.c.id)))


def hold(engine: sa.Engine, export: Path, home: Path) -> str:
    """Loads an export without a record that the feed has, and returns the number of the run, which is held."""
    report = load(engine, "springfield", export, options=Options(Settings(home=home, hold_least_records=5)))
    assert report.outcome == "held"
    return str(report.run)


@pytest.mark.shows(
    "Operators",
    "Every command that changes something leaves one row of the change log in its transaction; a refused one none.",
)
def test_each_command_that_changes_something_leaves_one_row(
    answer: Answer, engine: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scripts_in_process: None
) -> None:
    monkeypatch.setenv("ROSTER_HOLD_LEAST_RECORDS", "5")
    change = Changer(answer, engine)
    change("feed add", "springfield", "--format", "oneroster")
    export = Path(shutil.copytree(EXPORTS / SPRINGFIELD, tmp_path / "export"))
    load(engine, "springfield", export)
    change("vendor add", VENDOR, "--name", "Reading")
    change("vendor grant", VENDOR, "--district", "17-0042", "--flag", "contacts")
    change("vendor revoke", VENDOR, "--flag", "contacts")
    change("client add", "--vendor", VENDOR, "--name", "other", "--scope", "roster.readonly")
    change("show", "spr-student-1", "--as", VENDOR)
    change("delivery preview", VENDOR, "--preset", "st-math", "--out", str(tmp_path / "out.zip"))
    use_drop_box(monkeypatch)
    place = ("--host", "sftp.example.org", "--user", "us", "--host-key", HOST_KEY, "--key-file", __file__)
    digest = change("delivery add", "math", VENDOR, "--preset", "st-math", *place)["digest"]
    change("delivery approve", "math", digest)
    change("delivery set", "math", "--hour", "sync")
    change("delivery stop", "math")
    change("delivery start", "math")
    change("delivery remove", "math", "--yes")
    change("export", "users", "--as", VENDOR, "--out", str(tmp_path / "out.ndjson"))
    change("vendor limits", VENDOR, "--per-second", "5")
    change("vendor set-withheld", VENDOR, "email", "--yes")
    change("vendor set-withheld-default", "agents", "--yes")
    agreed = ("--school", "spr-high", "--element", "names", "--element", "classes", "--last-day", "2999-06-30")
    texts = ("--title", "a", "--purpose", "b", "--contact", "c", "--deletion", "d", "--first-day", "2026-01-01")
    change("agreement set", VENDOR, *agreed, *texts, "--yes")
    change("agreement remove", VENDOR, "--yes")
    change("agreement require", "no", "--yes")
    change("agreement publish", "no", "--yes")
    change("person answer", "spr-student-1")
    change("deletion ask", "--yes", "spr-student-1", "--vendor", VENDOR, "--due", "2999-01-01")
    change("deletion answer", "1")
    copied = ("vendor add", "vendor set-withheld", "vendor limits", "client add")
    change("vendor copy", VENDOR, "copy@vendor.example", leaves=copied)
    change("vendor set-password", VENDOR)
    change("vendor rotate-key", VENDOR)
    change("vendor disable", VENDOR)
    change("vendor enable", VENDOR, "--yes")
    client = change("client add", "--vendor", VENDOR, "--name", "app", "--scope", "roster.readonly")["client_id"]
    change("client rotate-secret", client)
    change("client end-old-secret", client)
    change("client disable", client)
    change("client enable", client, "--yes")
    change("client set-scopes", client, "--scope", "roster-core.readonly", "--yes")
    change("client remove", client, "--yes")
    change("keys rotate")
    without_rows("demographics", "spr-student-4")(export)
    change("sync discard", hold(engine, export, tmp_path))
    change("sync approve", hold(engine, export, tmp_path))
    cell_of("users", "spr-student-1", "givenName", "Another")(export)
    change("sync undo", str(load(engine, "springfield", export, options=Options(Settings(home=tmp_path))).run))
    change("person erase", "spr-student-1", "--yes")
    change("person lift", "spr-student-1", "--yes")
    change("person hide", "spr-student-2", "--yes")
    change("person show", "spr-student-2", "--yes")
    change("person hide", "spr-student-3", "--from", VENDOR, "--yes")
    change("person show", "spr-student-3", "--from", VENDOR, "--yes")
    change("feed set", "springfield", "--disable")
    change("feed pause", "springfield", "--until", "2099-08-31", "--reason", REASON)
    change("feed resume", "springfield")
    change("feed rename", "springfield", "spring")
    change("feed remove", "spring", "--yes")
    change("district remove", "17-0042", "--yes", leaves=("district remove", "feed remove"))
    change("operator add", OPERATOR, "--name", "Ann", "--role", "owner")
    change("operator add", "bob@district.example", "--name", "Bob", "--role", "owner")
    change("operator set-role", OPERATOR, "viewer")
    change("operator disable", OPERATOR)
    change("operator enable", OPERATOR)
    change("operator reset", OPERATOR)
    change("operator remove", OPERATOR, "--yes")
    change("vendor remove", VENDOR, "--yes")
    change("db restored")
    load(engine, "demo", Path(shutil.copytree(EXPORTS / "shelbyville-1.2", tmp_path / EXPORT.name)))
    change("vendor add", EMAIL, "--name", "Demo")
    (tmp_path / CREDENTIALS_FILE).write_text("{}")
    change("demo remove", leaves=("feed remove", "vendor remove"))
    assert change.commands == set(list_changing(main))


@pytest.mark.shows(
    "Operators",
    "Every command that changes something leaves one row of the change log in its transaction; a refused one none.",
)
def test_a_command_that_takes_no_reason_can_change_nothing(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in make_environment(database_url=database_url).items():
        monkeypatch.delenv(name) if value is None else monkeypatch.setenv(name, value)
    with pytest.raises(DBAPIError, match="read-only"), open_connection() as connection:
        connection.execute(vendors.insert().values(name="A vendor", email=VENDOR))


@pytest.mark.shows(
    "Operators",
    "Every command that changes something leaves one row of the change log in its transaction; a refused one none.",
)
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("vendor", "grant", VENDOR, "--district", "17-0042"), id="unknown vendor"),
        pytest.param(("client", "disable", "client-x"), id="unknown client"),
        pytest.param(("feed", "set", "nowhere", "--disable"), id="unknown feed"),
        pytest.param(("operator", "disable", OPERATOR), id="unknown operator"),
        pytest.param(("vendor", "add", "no address", "--name", "x"), id="bad address"),
    ],
)
def test_a_refused_command_leaves_no_row(roster: Roster, answer: Answer, arguments: tuple[str, ...]) -> None:
    assert roster(*arguments).exit_code == 1
    assert answer("changes") == []


@pytest.mark.shows("Operators", "A row of the change log has no secret, password or key.")
def test_a_row_has_the_values_before_and_after_and_no_secret(answer: Answer, engine: sa.Engine) -> None:
    load_first(engine, "springfield", EXPORTS / SPRINGFIELD)
    login = answer("vendor", "add", VENDOR, "--name", "Reading")
    answer("vendor", "grant", VENDOR, "--district", "17-0042", "--school", "spr-high", "--reason", REASON)
    made = answer("client", "add", "--vendor", VENDOR, "--name", "app", "--scope", "roster.readonly")
    rotated = answer("client", "rotate-secret", made["client_id"])
    added, granted, *_ = answer("changes", "--vendor", VENDOR.upper())
    assert (added["before"], added["after"]["name"]) == (None, "Reading")
    grants = {"before": {"grants": []}, "after": {"grants": [["spr-district", "spr-high"]]}}
    assert {name: granted[name] for name in grants} == grants
    assert (granted["kind"], granted["subject"], granted["reason"]) == ("vendor", VENDOR, REASON)
    stored = json.dumps(answer("changes"))
    for secret in (login["api_key"], login["password"], made["client_secret"], rotated["client_secret"]):
        assert secret not in stored


def test_changes_are_listed_by_vendor_feed_actor_and_day(answer: Answer, roster: Roster, engine: sa.Engine) -> None:
    answer("vendor", "add", VENDOR, "--name", "Reading")
    answer("client", "add", "--vendor", VENDOR, "--name", "app", "--scope", "roster.readonly")
    answer("feed", "add", "north", "--format", "oneroster")
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE changes SET at = '2026-01-31' WHERE verb = 'feed add'"))

    def verbs(*options: str) -> list[str]:
        return [it["verb"] for it in answer("changes", *options)]

    assert verbs() == ["feed add", "vendor add", "client add"]
    assert verbs("--vendor", VENDOR) == ["vendor add", "client add"]
    assert verbs("--feed", "north") == ["feed add"]
    assert verbs("--operator", find_system_user(None).name) == verbs()
    assert verbs("--operator", OPERATOR) == []
    assert verbs("--since", "2026-02-01") == ["vendor add", "client add"]
    rows = list(csv.DictReader(io.StringIO(roster("changes", "--csv").stdout)))
    assert [row["verb"] for row in rows] == verbs()
    assert "client add" in roster("changes").stdout


def test_loads_leave_a_row_if_they_add_a_feed_or_are_exempt_from_holding(
    answer: Answer, engine: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And neither a dry run, nor a refused load, nor one that changes nothing."""
    export = Path(shutil.copytree(EXPORTS / SPRINGFIELD, tmp_path / "export"))
    lend_engine(monkeypatch, engine)
    seen: list[tuple[str, ...]] = []

    def load_by(*options: str, outcome: str) -> list[dict[str, Any]]:
        """Loads the export, and returns the rows that this leaves, the oldest first."""
        command = ["--feed", "springfield", str(export), "--now", "--json", "--reason", REASON, *options]
        assert json.loads(CliRunner().invoke(load_oneroster.main, command).stdout)["outcome"] == outcome
        rows = answer("changes")
        new = [row for row in rows if (row["at"], row["verb"]) not in seen]
        seen.extend((row["at"], row["verb"]) for row in new)
        assert {(row["actor"], row["reason"]) for row in new} <= {(find_system_user(None).name, REASON)}
        return new

    users = (export / "users.csv").read_text()
    (export / "users.csv").write_text("no header\n")
    assert load_by("--allow-mass-delete", outcome="refused") == []
    (export / "users.csv").write_text(users)
    assert load_by("--dry-run", outcome="done") == []
    [added] = load_by(outcome="done")
    assert (added["verb"], added["subject"], added["before"]) == ("feed add", "springfield", None)
    assert added["after"]["state"] == "added"
    assert load_by("--allow-mass-delete", outcome="unchanged") == []
    without_rows("enrollments", "spr-enr-01")(export)
    assert load_by(outcome="done") == []
    without_rows("demographics", "spr-student-4")(export)
    [exempt] = load_by("--allow-mass-delete", outcome="done")
    assert (exempt["verb"], exempt["kind"], exempt["feed"]) == ("sync allow-mass-delete", "run", "springfield")
    assert (exempt["before"], exempt["after"]) == ({"outcome": "running"}, {"outcome": "done"})
