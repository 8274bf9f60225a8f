"""`roster feed remove` and `roster demo remove`: what they ask, show and delete."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from roster_service.accounts import clients, vendor_rights, vendors
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.cli import main
from roster_service.cli.demo import CREDENTIALS_FILE, EMAIL, EXPORT, FEED, prepare_demo
from roster_service.db.instants import describe_day, find_today
from roster_service.roster.visible_orgs import FeedGrant
from roster_service.schemas.versions import V1P2
from roster_service.settings import Settings
from sync_scripts.engine.load import load
from sync_scripts.purge import purge
from tests.actors import TESTER
from tests.cli.conftest import Roster, make_environment
from tests.postgres.loaded import load_first
from tests.sync.conftest import EXPORTS, SHELBYVILLE, SPRINGFIELD

pytestmark = pytest.mark.usefixtures("scripts_in_process")
Answer = Callable[..., Any]
OTHER = "reading@vendor.example"


def test_a_removed_feed_is_listed_and_can_be_taken_back(answer: Answer, roster: Roster, engine: sa.Engine) -> None:
    load_first(engine, "springfield", EXPORTS / SPRINGFIELD)
    shown = roster("feed", "remove", "springfield", "--dry-run").stdout
    assert "would vanish or change, by school" in shown
    assert answer("feed", "list")[0]["state"] == "added"
    removed = roster("feed", "remove", "springfield", "--yes").stdout
    assert "records are marked as deleted" in removed
    assert "vendors still get its " in removed
    assert "as `tobedeleted`, with all fields that they got before, until the purge deletes them, on " in removed
    assert answer("feed", "list")[0]["state"] == "removed"
    assert "removed" in roster("feed", "list").stdout
    assert answer("district", "list") == []
    refused = roster("feed", "set", "springfield", "--disable")
    assert (refused.exit_code, "`roster feed add springfield` takes it back" in refused.stderr) == (1, True)
    assert answer("feed", "add", "springfield", "--format", "oneroster")["state"] == "added"
    [listed] = answer("feed", "list")
    assert (listed["is_emptied"], [it["word"] for it in listed["conditions"]]) == (True, ["not loaded", "no path"])
    assert listed["conditions"][0]["cause"].startswith("it was removed and taken back, and its export must be loaded")
    assert answer("sync", "list")[0]["message"] == "the feed was removed"
    load(engine, "springfield", EXPORTS / SPRINGFIELD)
    [listed] = answer("feed", "list")
    assert (listed["is_emptied"], [it["word"] for it in listed["conditions"]]) == (False, ["done", "no path"])


def test_a_removed_feed_without_records_has_none(answer: Answer, roster: Roster) -> None:
    """Neither marked nor deleted ones."""
    words = "it has no records, and no vendor gets anything of it"
    answer("feed", "add", "empty", "--format", "oneroster")
    assert roster("feed", "remove", "empty", "--yes").stdout == f"removed the feed empty (run 1); {words}\n"
    assert roster("feed", "remove", "empty", "--now", "--yes").stdout == f"removed the feed empty (run 2); {words}\n"


@pytest.mark.parametrize(
    ("typed", "options", "is_removed"),
    [
        pytest.param("springfield\n", (), True, id="the name is typed"),
        pytest.param("y\n", (), False, id="another word is typed"),
        pytest.param("", (), False, id="nobody types"),
        pytest.param("", ("--yes",), True, id="for scripts"),
    ],
)
@pytest.mark.parametrize("now", [("--now",), ()], ids=["at once", "after the retention"])
def test_a_feed_is_removed_only_after_a_confirmation(
    engine: sa.Engine,
    database_url: str,
    tmp_path: Path,
    typed: str,
    options: tuple[str, ...],
    is_removed: bool,
    now: tuple[str, ...],
) -> None:
    load_first(engine, "springfield", EXPORTS / SPRINGFIELD)
    environment = make_environment(database_url=database_url, home=str(tmp_path))
    arguments = ["feed", "remove", "springfield", *now, *options]
    done = CliRunner().invoke(main, arguments, env=environment, input=typed)
    assert done.exit_code == (0 if is_removed else 1)
    assert ("it has no records, and no vendor gets anything of it" in done.stdout) == (is_removed and bool(now))
    listed = CliRunner().invoke(main, ["feed", "list", "--json"], env=environment)
    # A removed feed without records is history: `roster sync list` has its runs.
    left = [] if now else ["removed"]
    assert [it["state"] for it in json.loads(listed.stdout)] == (left if is_removed else ["added"])


def test_the_last_day_of_a_grant_is_that_of_the_district() -> None:
    marked = datetime(2026, 11, 20, 2, 30, tzinfo=UTC)
    grant = FeedGrant(1, OTHER, "spr-district", "Springfield", marked)
    assert grant.describe_end(7, ZoneInfo("America/Chicago")).endswith(
        "purge deletes it, on 26 Nov 2026 or in the night after it"
    )
    assert grant.describe_end(7, UTC).endswith("purge deletes it, on 27 Nov 2026 or in the night after it")


def test_grants_end_with_the_records_of_their_district(answer: Answer, roster: Roster, engine: sa.Engine) -> None:
    """A later district with the same id, of any feed, is opened by an operator."""
    load_first(engine, "springfield", EXPORTS / SPRINGFIELD)
    roster("vendor", "add", OTHER, "--name", "Reading")
    answer("vendor", "grant", OTHER, "--district", "17-0042")
    words = f"{OTHER} may no longer see Springfield Unified School District (spr-district)"
    last = find_today(Settings().time_zone) + timedelta(days=Settings().retention_days)
    purged = f"{words} once the purge deletes it, on {describe_day(last)} or in the night after it"
    # Until the purge, the vendor reads the tombstones.
    removals = [
        (("--now", "--dry-run"), words, 1),
        (("--dry-run",), purged, 1),
        (("--yes",), purged, 1),
        (("--now", "--dry-run"), words, 1),
        (("--now", "--yes"), words, 0),
    ]
    for options, said, grants in removals:
        lines = [line.strip() for line in roster("feed", "remove", "springfield", *options).stdout.splitlines()]
        assert (options, lines.count(said)) == (options, 1)
        assert len(answer("vendor", "show", OTHER)["grants"]) == grants
    load(engine, "later", EXPORTS / SPRINGFIELD)
    assert answer("vendor", "show", OTHER)["grants"] == []
    answer("vendor", "grant", OTHER, "--district", "17-0042")
    assert answer("feed", "remove", "later", "--yes")["notices"] == [purged]
    purge(engine, 0)
    assert answer("vendor", "show", OTHER)["grants"] == []
    ends = [it for it in answer("changes") if it["verb"] == "vendor revoke"]
    assert [(it["subject"], it["reason"]) for it in ends] == [(OTHER, None), (OTHER, "the purge deleted the district")]


@pytest.fixture
def demo(engine: sa.Engine, roster: Roster, tmp_path: Path) -> Path:
    """A small demo, as `roster run` leaves it, beside a feed and a vendor of others."""
    export = Path(shutil.copytree(EXPORTS / SPRINGFIELD, tmp_path / EXPORT.name))
    load(engine, FEED, export)
    with engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, EMAIL, "Demo vendor")
        vendor_rights.grant(connection, TESTER, EMAIL, "17-0042", ())
        clients.add_client(connection, TESTER, EMAIL, "demo", [Scope(V1P2.prefix, ScopeName.CORE)])
    (tmp_path / CREDENTIALS_FILE).write_text("{}")
    load(engine, "shelbyville", EXPORTS / SHELBYVILLE)
    roster("vendor", "add", OTHER, "--name", "Reading")
    return export


def test_the_demo_goes_and_nothing_else(answer: Answer, roster: Roster, engine: sa.Engine, demo: Path) -> None:
    districts = [it for it in answer("district", "list") if it["feed"] != FEED]
    removed = answer("demo", "remove")
    assert (removed["feed"], removed["vendor"], removed["records"] > 50) == (FEED, EMAIL, True)
    assert answer("district", "list") == districts
    assert [vendor["email"] for vendor in answer("vendor", "list")] == [OTHER]
    assert answer("client", "list") == []
    assert "there is no demo" in roster("demo", "remove").stderr


@pytest.mark.parametrize("gone", [("vendor", "remove", EMAIL), ("feed", "remove", FEED, "--now")])
def test_the_rest_of_a_demo_goes(answer: Answer, roster: Roster, demo: Path, gone: tuple[str, ...]) -> None:
    assert roster(*gone, "--yes").exit_code == 0
    answer("demo", "remove")
    assert [vendor["email"] for vendor in answer("vendor", "list")] == [OTHER]
    assert FEED not in [feed["name"] for feed in answer("feed", "list")]


def test_credentials_that_cannot_be_read_are_not_shown(engine: sa.Engine, demo: Path, tmp_path: Path) -> None:
    """As after a loss of power, or those of an older version."""
    for text in ("", "{}"):
        (tmp_path / CREDENTIALS_FILE).write_text(text)
        assert prepare_demo(engine, "", Settings(home=tmp_path)) is None


def test_a_demo_feed_with_another_export_is_not_deleted(
    roster: Roster, engine: sa.Engine, demo: Path, tmp_path: Path
) -> None:
    mine = Path(shutil.copytree(demo, tmp_path / "mine"))
    (mine / "demographics.csv").write_text((mine / "demographics.csv").read_text().replace("female", "male"))
    load(engine, FEED, mine)
    refused = roster("demo", "remove")
    assert (refused.exit_code, "has records of another export" in refused.stderr) == (1, True)
    with engine.connect() as connection:
        assert vendors.find_vendor(connection, EMAIL)
