"""What every screen, command and mail says of a feed after the runs that an operator meets: the same words and the
same colour, and nothing that is not so."""

from __future__ import annotations

import dataclasses
import html
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from werkzeug.test import TestResponse

from roster_service.console.filters import to_segment
from roster_service.db.tables import feeds, sync_runs, users
from roster_service.feeds.run_outcomes import OUTCOMES
from roster_service.feeds.runs import discard_run
from roster_service.settings import Settings
from sync_scripts.engine import nightly_feeds
from sync_scripts.engine.load import Options, load
from sync_scripts.engine.nightly_feeds import NightlySync, load_feeds
from sync_scripts.engine.run_record import Approval
from sync_scripts.notifications.announcement import Announcement
from tests.actors import TESTER
from tests.cli.conftest import run_roster
from tests.console.conftest import Browser, Console
from tests.console.links import list_links
from tests.postgres.loaded import EXPORTS, FEEDS
from tests.sync.export_changes import cell_of, header, raw, without_rows

NOW = 1_000_000_000.0
DAY = 86_400.0
PUBLIC = "https://roster.example"


@dataclass
class FeedRuns:
    """The runs of one feed. `announced`: in all of them."""

    console: Console
    settings: Settings
    export: Path
    name: str
    announced: list[Announcement] = field(default_factory=list)

    def sleep(self, written: float = NOW - DAY) -> None:
        """One nightly sync, with an export that was written then."""
        for file in self.export.glob("*"):
            os.utime(file, times=(written, written))
        sync = NightlySync(
            self.console.engine,
            self.settings,
            lambda _event: None,
            lambda _seconds: None,
            lambda: NOW,
            lambda _zone: date(2026, 12, 20),
        )
        load_feeds(sync)

    def add(self) -> None:
        """Adds the feed, as a command does."""
        with self.console.engine.begin() as connection:
            connection.execute(
                sa.insert(feeds).values(name=self.name, format="oneroster", path=str(self.export), state="added")
            )

    def load(self, **options: Any) -> None:
        """A load by hand, of the export or of the kept one."""
        load(self.console.engine, self.name, self.export, options=Options(self.settings, **options))

    def find_run(self) -> Any:
        """The latest run."""
        rows = sa.select(sync_runs).join(feeds).where(feeds.c.name == self.name).order_by(sync_runs.c.id.desc())
        with self.console.engine.connect() as connection:
            return connection.execute(rows.limit(1)).one()

    def bend(self, **settings: Any) -> None:
        """Other settings from now on."""
        self.settings = dataclasses.replace(self.settings, **settings)


def refuse_first(feed_runs: FeedRuns) -> None:
    header("orgs", "name", "title")(feed_runs.export)
    feed_runs.add()
    feed_runs.sleep()


def hold_first(feed_runs: FeedRuns) -> None:
    feed_runs.bend(hold_least_records=3)
    cell_of("users", f"{feed_runs.name}-student-5", "enabledUser", "maybe")(feed_runs.export)
    feed_runs.add()
    feed_runs.sleep()


def hold_first_by_hand(feed_runs: FeedRuns) -> None:
    feed_runs.bend(hold_least_records=3)
    cell_of("users", f"{feed_runs.name}-student-5", "enabledUser", "maybe")(feed_runs.export)
    feed_runs.load()


def approve_with_rejected_rows(feed_runs: FeedRuns) -> None:
    hold_first(feed_runs)
    held = feed_runs.find_run()
    feed_runs.announced.clear()
    options = Options(feed_runs.settings, approval=Approval(held.id, TESTER), source=held.source)
    load(feed_runs.console.engine, feed_runs.name, Path(held.kept_export), options=options)


def reject_rows(feed_runs: FeedRuns) -> None:
    feed_runs.add()
    cell_of("users", f"{feed_runs.name}-student-5", "enabledUser", "maybe")(feed_runs.export)
    feed_runs.sleep()


def deliver_the_same(feed_runs: FeedRuns) -> None:
    feed_runs.add()
    feed_runs.sleep()
    with feed_runs.console.engine.begin() as connection:
        connection.execute(sa.text("UPDATE sync_runs SET started_at = started_at - interval '6 days'"))
    feed_runs.sleep()


def deliver_none(feed_runs: FeedRuns) -> None:
    feed_runs.add()
    feed_runs.sleep()
    feed_runs.export.rename(feed_runs.export.with_name("elsewhere"))
    feed_runs.sleep()


def deliver_late(feed_runs: FeedRuns) -> None:
    feed_runs.add()
    feed_runs.sleep()
    cell_of("users", f"{feed_runs.name}-student-1", "givenName", "New")(feed_runs.export)
    feed_runs.sleep(written=NOW - 60)


def deliver_last_week(feed_runs: FeedRuns) -> None:
    feed_runs.bend(hold_least_records=15)
    feed_runs.add()
    feed_runs.sleep()
    cell_of("users", f"{feed_runs.name}-student-1", "givenName", "Old")(feed_runs.export)
    feed_runs.sleep(written=NOW - 8 * DAY)


def deliver_half(feed_runs: FeedRuns) -> None:
    feed_runs.add()
    feed_runs.sleep()
    raw("users.csv", lambda data: data[: data.rstrip().rindex(b"\n") + 9])(feed_runs.export)
    feed_runs.sleep()


def hold_again(feed_runs: FeedRuns) -> None:
    feed_runs.bend(hold_least_records=3)
    feed_runs.add()
    feed_runs.sleep()
    without_rows("enrollments", *(f"{feed_runs.name}-enr-{number:02}" for number in range(1, 9)))(feed_runs.export)
    feed_runs.sleep()
    feed_runs.announced.clear()
    with feed_runs.console.engine.begin() as connection:
        discard_run(connection, TESTER, feed_runs.find_run().id)
    feed_runs.sleep()


@dataclass(frozen=True)
class Situation:
    """`prepare`: makes it; `outcome`: of its last run; `words`: what must be said of it; `announced`: whether a mail
    goes out; `lacks`: what no page may say."""

    prepare: Callable[[FeedRuns], None]
    outcome: str
    words: str
    announced: bool = True
    lacks: Sequence[str] = ()


FIRST = ("the roster as it was before", "the next sync")
LOADED = ("all other rows were loaded",)
SITUATIONS: Mapping[str, Situation] = {
    "first-refused": Situation(
        refuse_first, "refused", "orgs.csv, line 1, column name: is missing in the header", lacks=FIRST[:1]
    ),
    "first-held": Situation(hold_first, "held", "1 of 15 rows of users.csv are rejected", lacks=FIRST[:1]),
    "by-hand": Situation(hold_first_by_hand, "held", "1 of 15 rows of users.csv are rejected", False, lacks=FIRST),
    "approved": Situation(
        approve_with_rejected_rows, "partial", "3 rows were rejected: users.csv, column enabledUser", False
    ),
    "rejected": Situation(
        reject_rows, "partial", "3 rows were rejected: users.csv, column enabledUser: 1 row, in line 6"
    ),
    "stale": Situation(deliver_the_same, "stale", "the export has been the same for 6 days"),
    "missing": Situation(deliver_none, "missing", "there is no export at ", lacks=LOADED),
    "incomplete": Situation(
        deliver_late, "incomplete", "export was written to 60 seconds ago, and may be incomplete", lacks=LOADED
    ),
    "older": Situation(deliver_last_week, "held", "the export was written on 1 Sep 2001, 01:46, before the one"),
    "cut": Situation(deliver_half, "refused", "users.csv, line 16: the file ends inside this row"),
    "again": Situation(hold_again, "held", "8 of 17 enrollments would vanish, more than 10%"),
}


@pytest.fixture
def feed_runs(
    own_console: Console, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> FeedRuns:
    """A feed with an export of its own, and no other feed that is loaded at night."""
    console, name = own_console, request.node.callspec.id
    export = Path(shutil.copytree(EXPORTS / FEEDS["springfield"], tmp_path / "export"))
    for file in export.glob("*.csv"):
        own = file.read_bytes().replace(b"spr-", f"{name}-".encode()).replace(b"17-0042", f"17-{name}".encode())
        file.write_bytes(own)
    with console.engine.begin() as connection:
        connection.execute(feeds.update().values(enabled=False))
    settings = Settings(
        home=console.home, hold_least_records=10_000, public_url=PUBLIC, console="127.0.0.1:8001", time_zone=UTC
    )
    made = FeedRuns(console, settings, export, name)

    def note(_settings: Settings, announcement: Announcement, _over: Any) -> Mapping[str, str]:
        made.announced.append(announcement)
        return {}

    monkeypatch.setattr(nightly_feeds, "announce", note)
    return made


@dataclass(frozen=True)
class Pages:
    """The pages of a browser while nothing changes: each is opened once."""

    browser: Browser
    opened: dict[str, TestResponse] = field(default_factory=dict)

    def get(self, path: str) -> TestResponse:
        """The answer at a path."""
        if path not in self.opened:
            self.opened[path] = self.browser.get(path)
        return self.opened[path]


def show(browser: Browser | Pages, path: str) -> str:
    """The text of a page as people read it."""
    page = browser.get(path)
    assert page.status_code == 200, path
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", page.text)).split())


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS)
def test_all_screens_commands_and_mails_say_the_same_of_a_situation(feed_runs: FeedRuns, situation: Situation) -> None:
    situation.prepare(feed_runs)
    run, console = feed_runs.find_run(), feed_runs.console
    browser, outcome = Pages(console.log_in()), OUTCOMES[situation.outcome]
    assert (run.outcome, situation.words in run.message) == (situation.outcome, True), run.message
    sentence = outcome.describe(run.message)
    place = f"/feeds/{to_segment(feed_runs.name)}"
    assert "Nothing needs you" not in show(browser, "")
    for path in ("", "/feeds", place, f"/runs/{run.id}", f"/runs?feed={feed_runs.name}"):
        page = browser.get(path)
        # Of a held run, the list has the first reason, and the pages list each.
        reasons = run.message.split("; ") if outcome.word == "held" else [run.message]
        for reason in reasons[:1] if path.startswith("/runs?") else reasons:
            # A page may begin a sentence with it.
            assert reason[1:] in show(browser, path), path
        assert f'<span class="state {outcome.colour}">{outcome.word}</span>' in page.text, path
    shown = ["", place, f"/runs/{run.id}", f"/runs/{run.id}/rejected"]
    shown += [f"/runs/{run.id}/held"] if situation.outcome == "held" else []
    for path in shown:
        text = show(browser, path)
        assert [words for words in situation.lacks if words in text] == [], path
        assert "As CSV: ." not in text
        own = (it for it in list_links(browser.get(path).text) if it.startswith("/console"))
        links = [it.removeprefix("/console").partition("#")[0] for it in own]
        assert [it for it in links if browser.get(it).status_code != 200] == [], path
    url = console.engine.url.render_as_string(hide_password=False)
    listed = json.loads(run_roster(url, console.home, "feed", "list", "--json").stdout)
    [feed] = [it for it in listed if it["name"] == feed_runs.name]
    assert [(it["word"], it["cause"]) for it in feed["conditions"] if it["run"] == run.id] == [
        (outcome.word, run.message)
    ]
    runs = json.loads(run_roster(url, console.home, "sync", "list", "--feed", feed_runs.name, "--json").stdout)
    assert [(it["outcome"], it["message"]) for it in runs if it["run"] == run.id] == [(run.outcome, run.message)]
    assert [it.kind for it in feed_runs.announced] == ([situation.outcome] if situation.announced else [])
    for mail in feed_runs.announced:
        assert (
            f"Feed: {feed_runs.name}\nRun: {run.id}\nPage: {PUBLIC}/console/runs/{run.id}\n\n{sentence}\n" in mail.text
        )
        assert mail.subject == f"Roster Service: {feed_runs.name} is {outcome.word}: {outcome.meaning}"


@pytest.mark.parametrize("name", ["first-held", "by-hand", "first-refused"])
def test_a_first_load_that_waits_says_what_vendors_see(
    feed_runs: FeedRuns, name: str, request: pytest.FixtureRequest
) -> None:
    """Nothing: the roster has no record of the feed."""
    feed_runs.name = name + "-see"
    for file in feed_runs.export.glob("*.csv"):
        file.write_bytes(
            file.read_bytes().replace(f"{request.node.callspec.id}-".encode(), f"{feed_runs.name}-".encode())
        )
    SITUATIONS[name].prepare(feed_runs)
    with feed_runs.console.engine.connect() as connection:
        own = sa.select(sa.func.count()).where(users.c.sourced_id.startswith(f"{feed_runs.name}-"))
        assert connection.scalar(own) == 0
    run = feed_runs.find_run()
    if run.outcome == "held":
        browser = feed_runs.console.log_in()
        assert "Nothing was loaded: vendors see no record of this feed yet." in show(browser, f"/runs/{run.id}/held")
        rejected = show(browser, f"/runs/{run.id}/rejected")
        # The user of the rejected enrollment is in the rejected rows, its class only in the export.
        assert "class 100%_sure: Statistics, Section 1 not in the roster" in rejected
