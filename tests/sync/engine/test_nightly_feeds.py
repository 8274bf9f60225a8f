"""A night's loads: exports that are not settled, stale or missing, paused feeds, and what is announced of all this."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa

from roster_service.db.instants import describe_day, find_today
from roster_service.db.tables import feeds, sync_runs
from roster_service.errors import CommandError
from roster_service.feeds.exclusions import renew_statistics
from roster_service.feeds.feed_states import Pause, store_pause
from roster_service.feeds.runs import discard_run
from roster_service.settings import Settings
from sync_scripts.engine import nightly_feeds
from sync_scripts.engine.exit_codes import ExitCode
from sync_scripts.engine.load import Options, load
from sync_scripts.engine.nightly_feeds import ATTEMPTS, REMIND_DAYS, NightlySync, find_day_before, load_feeds
from sync_scripts.engine.run_record import Approval
from sync_scripts.notifications.announcement import Announcement, AnnouncementKind
from sync_scripts.reading.completeness import IncompleteExportError
from tests.actors import TESTER
from tests.postgres.loaded import load_first
from tests.sync.export_changes import cell_of, zipped

TODAY = date(2026, 12, 20)
LONG_AGO = 1_000_000_000.0


@dataclass
class Runs:
    """Runs on one database with a clock of their own, and what they reported and announced."""

    engine: sa.Engine
    announced: list[Announcement] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    clock: float = LONG_AGO
    slept: list[float] = field(default_factory=list)
    when_asleep: Callable[[], None] = lambda: None
    today: date = TODAY
    settings: Settings = field(default_factory=Settings)
    over: list[set[str]] = field(default_factory=list)
    is_webhook_away: bool = False

    def run(self) -> list[ExitCode]:
        """One night; its exit codes, feed by feed."""
        self.events.clear()
        self.announced.clear()
        self.over.clear()

        def sleep(seconds: float) -> None:
            if seconds:
                self.slept.append(seconds)
                self.clock += seconds
                self.when_asleep()

        sync = NightlySync(
            self.engine, self.settings, self.events.append, sleep, lambda: self.clock, lambda _zone: self.today
        )
        return load_feeds(sync)

    @property
    def outcomes(self) -> dict[str, str]:
        """The outcome of each feed in the last night."""
        return {event["feed"]: event["outcome"] for event in self.events if "outcome" in event}

    @property
    def stored(self) -> list[tuple[str, str | None]]:
        """The outcome and the message of every run."""
        with self.engine.connect() as connection:
            rows = connection.execute(sa.select(sync_runs.c.outcome, sync_runs.c.message).order_by(sync_runs.c.id))
            return [(row[0], row[1]) for row in rows]

    @property
    def last_run(self) -> int:
        """The number of the last run."""
        with self.engine.connect() as connection:
            return int(connection.scalar(sa.select(sa.func.max(sync_runs.c.id))) or 0)

    @property
    def kinds(self) -> list[str]:
        """What the last night announced."""
        return [announcement.kind for announcement in self.announced]


@pytest.fixture
def runs(engine: sa.Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Runs:
    """Runs without feeds."""
    made = Runs(engine, settings=Settings(home=tmp_path / "home"))

    def note(_settings: Settings, announcement: Announcement, over: Collection[str] | None) -> dict[str, str]:
        made.announced.append(announcement)
        made.over.append(set(over or ()))
        return {"webhook": "the webhook was not sent (OSError)"} if made.is_webhook_away else {}

    monkeypatch.setattr(nightly_feeds, "announce", note)
    return made


def add_feed(runs: Runs, name: str, path: Path, **values: object) -> None:
    """A feed whose export was written long ago."""
    set_age(path, LONG_AGO - 86_400)
    with runs.engine.begin() as connection:
        connection.execute(sa.insert(feeds).values(name=name, format="oneroster", path=str(path), **values))


def set_age(path: Path, written: float) -> None:
    """Gives every file of an export the same time."""
    for file in path.iterdir() if path.is_dir() else ():
        os.utime(file, times=(written, written))


def test_an_incomplete_export_goes_behind_the_others(runs: Runs, springfield: Path, shelbyville: Path) -> None:
    add_feed(runs, "first", springfield)
    add_feed(runs, "second", shelbyville)
    set_age(springfield, LONG_AGO - 100)
    assert runs.run() == [ExitCode.LOADED, ExitCode.LOADED]
    said = [(event["feed"], event["outcome"]) for event in runs.events if "outcome" in event]
    assert said == [("first", "waiting"), ("second", "done"), ("first", "done")]
    assert runs.slept == [200]


def test_an_export_that_is_written_all_the_time_is_not_loaded(runs: Runs, springfield: Path) -> None:
    add_feed(runs, "springfield", springfield)
    runs.when_asleep = lambda: set_age(springfield, runs.clock)
    runs.when_asleep()
    assert runs.run() == [ExitCode.INCOMPLETE]
    assert runs.slept == [300] * (ATTEMPTS - 1)
    assert runs.outcomes == {"springfield": "incomplete"}
    assert runs.kinds == ["incomplete"]
    assert runs.stored == [("incomplete", runs.announced[0].message)]


def test_a_marker_is_awaited(runs: Runs, springfield: Path) -> None:
    add_feed(runs, "springfield", springfield, marker="DONE")
    runs.when_asleep = lambda: (springfield.parent / "DONE").touch()
    assert runs.run() == [ExitCode.LOADED]
    assert len(runs.slept) == 1


def append_line(export: Path) -> None:
    with (export / "orgs.csv").open("a") as file:
        file.write("\n")


def cut_users(export: Path) -> None:
    text = (export / "users.csv").read_bytes()
    (export / "users.csv").write_bytes(text[: len(text) // 2])


def remove_users(export: Path) -> None:
    (export / "users.csv").unlink()


def overwrite(export: Path) -> None:
    """As a copy over the old file begins; it is longer, so the directory of the old one stays."""
    with export.open("r+b") as file:
        file.write(b"another zip" * 20)


def replace_by_no_zip(export: Path) -> None:
    (export.parent / "new.zip").write_bytes(b"the beginning of a zip")
    (export.parent / "new.zip").rename(export)


# How somebody changes an export, and whether it is a zip.
CHANGES = {
    "a line more": (append_line, False),
    "users.csv is cut": (cut_users, False),
    "users.csv is gone": (remove_users, False),
    "a zip is overwritten": (overwrite, True),
    "another file has the name of a zip": (replace_by_no_zip, True),
}


@pytest.mark.parametrize("at", ["before staging", "after staging"])
@pytest.mark.parametrize(("change", "is_zip"), CHANGES.values(), ids=CHANGES)
def test_an_export_that_changes_while_it_is_read_is_not_loaded(
    engine: sa.Engine,
    springfield: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path], None],
    is_zip: bool,
    at: str,
) -> None:
    """Whatever fails first because of the change."""
    from sync_scripts.engine import load as engine_module

    path = zipped(springfield, tmp_path / "export.zip") if is_zip else springfield
    real = engine_module.stage_export

    def stage(*arguments: Any) -> Any:
        if at == "before staging":
            change(path)
        staged = real(*arguments)
        if at == "after staging":
            change(path)
        return staged

    monkeypatch.setattr(engine_module, "stage_export", stage)
    with pytest.raises(IncompleteExportError, match="changed while it was read"):
        load(engine, "springfield", path)
    with engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT count(*) FROM orgs")) == 0
        assert connection.scalars(sa.select(sync_runs.c.outcome)).all() == ["incomplete"]


def test_an_export_that_stays_the_same_is_stale_after_some_days(runs: Runs, springfield: Path) -> None:
    add_feed(runs, "springfield", springfield)
    codes = []
    for _ in range(5):
        codes += runs.run()
        with runs.engine.begin() as connection:
            connection.execute(sa.text("UPDATE sync_runs SET started_at = started_at - interval '1 day'"))
    assert codes == [ExitCode.LOADED] * 3 + [ExitCode.STALE] * 2
    assert runs.stored[-1] == ("stale", "the export has been the same for 4 days")
    assert runs.events[-1]["message"] == "the export has been the same for 4 days"
    assert runs.kinds == []
    cell_of("users", "spr-student-1", "givenName", "New")(springfield)
    set_age(springfield, LONG_AGO - 3600)
    assert runs.run() == [ExitCode.LOADED]
    assert runs.kinds == [AnnouncementKind.RECOVERED]


def test_an_export_with_rejected_rows_becomes_stale_too(runs: Runs, springfield: Path) -> None:
    """A run looks at its rows again, because what they name may be there by now."""
    runs.settings = dataclasses.replace(runs.settings, stale_days=1)
    add_feed(runs, "springfield", springfield)
    codes = []
    # Another value of a rejected row changes nothing in the roster, and is another export.
    for value in ("maybe", "perhaps", "perhaps"):
        cell_of("users", "spr-student-5", "enabledUser", value)(springfield)
        set_age(springfield, LONG_AGO - 3600)
        codes += runs.run()
        with runs.engine.begin() as connection:
            connection.execute(sa.text("UPDATE sync_runs SET started_at = started_at - interval '1 day'"))
    assert codes == [ExitCode.PARTIAL, ExitCode.PARTIAL, ExitCode.STALE]
    words = "the export has been the same for 1 day; 3 rows were rejected: users.csv, column enabledUser: 1 row"
    assert str(runs.stored[-1][1]).startswith(words)
    with runs.engine.connect() as connection:
        assert connection.scalars(sa.select(sync_runs.c.rejected)).all() == [3, 3, 3]


def test_a_missing_export_is_stale_and_the_roster_stays(runs: Runs, springfield: Path) -> None:
    add_feed(runs, "springfield", springfield)
    assert runs.run() == [ExitCode.LOADED]
    elsewhere = springfield.rename(springfield.with_name("elsewhere"))
    assert runs.run() == [ExitCode.STALE]
    assert runs.outcomes == {"springfield": "missing"}
    assert runs.kinds == ["missing"]
    assert runs.stored[-1] == ("missing", f"there is no export at {springfield}")
    assert runs.announced[0].message == f"there is no export at {springfield}"
    elsewhere.rename(springfield)
    assert runs.run() == [ExitCode.LOADED]
    assert runs.kinds == [AnnouncementKind.RECOVERED]
    with runs.engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT count(*) FROM users WHERE status = 'tobedeleted'")) == 0


def test_a_problem_is_announced_once_and_so_is_its_end(runs: Runs, springfield: Path) -> None:
    add_feed(runs, "springfield", springfield)
    good = (springfield / "users.csv").read_bytes()
    found = []
    for content in (good, b"x\n", b"x\n", None, None, good, good):
        (springfield / "users.csv").unlink(missing_ok=True)
        if content is not None:
            (springfield / "users.csv").write_bytes(content)
        set_age(springfield, LONG_AGO - 3600)
        runs.run()
        found.append(runs.kinds)
    assert found == [[], ["refused"], [], [], [], [AnnouncementKind.RECOVERED], []]


def test_a_held_run_is_announced_with_its_number_and_page_and_again_after_a_discard(
    runs: Runs, springfield: Path
) -> None:
    runs.settings = dataclasses.replace(runs.settings, hold_least_records=1, public_url="https://roster.example")
    add_feed(runs, "springfield", springfield)
    runs.run()
    lines = (springfield / "enrollments.csv").read_text().splitlines(keepends=True)
    (springfield / "enrollments.csv").write_text("".join(lines[:2]))
    set_age(springfield, LONG_AGO - 3600)
    assert runs.run() == [ExitCode.HELD]
    (announced,) = runs.announced
    assert (announced.kind, announced.feed) == ("held", "springfield")
    assert "enrollments would vanish" in announced.message
    assert announced.run == runs.events[-1]["run"]
    assert announced.page == f"https://roster.example/console/runs/{announced.run}"
    assert runs.run() == [ExitCode.HELD]
    assert runs.kinds == []
    with runs.engine.begin() as connection:
        discard_run(connection, TESTER, runs.last_run)
    assert runs.run() == [ExitCode.HELD]
    assert runs.kinds == ["held"]


def test_an_announcement_that_fails_changes_nothing_but_the_output(runs: Runs, springfield: Path) -> None:
    add_feed(runs, "springfield", springfield.with_name("nowhere"))
    runs.is_webhook_away = True
    assert runs.run() == [ExitCode.STALE]
    assert runs.events[-1]["message"] == "the webhook was not sent (OSError)"


MAIL = {"smtp_url": "smtp://127.0.0.1:9", "mail_to": "data@b.example"}
HOOK = {"webhook_url": "http://127.0.0.1:9"}


def hold(runs: Runs, springfield: Path) -> None:
    """A night that loads, and one whose run is held."""
    runs.settings = dataclasses.replace(runs.settings, hold_least_records=1)
    add_feed(runs, "springfield", springfield)
    assert runs.run() == [ExitCode.LOADED]
    shorten(springfield, 10)
    assert runs.run() == [ExitCode.HELD]


def shorten(springfield: Path, rows: int) -> None:
    """Leaves so many rows in the enrollments of an export."""
    lines = (springfield / "enrollments.csv").read_text().splitlines(keepends=True)
    (springfield / "enrollments.csv").write_text("".join(lines[: rows + 1]))
    set_age(springfield, LONG_AGO - 3600)


def pass_days(runs: Runs, days: int) -> None:
    """Lets the last announcement be so many days older."""
    with runs.engine.begin() as connection:
        older = feeds.c.alerted_at - timedelta(days=days)
        connection.execute(sa.update(feeds).values(alerted_at=older))


def test_a_held_run_that_gets_worse_is_announced_with_what_it_was_before(runs: Runs, springfield: Path) -> None:
    hold(runs, springfield)
    assert [it.message for it in runs.announced] == ["7 of 17 enrollments would vanish, more than 10%"]
    assert (runs.run(), runs.kinds) == ([ExitCode.HELD], [])
    shorten(springfield, 2)
    assert runs.run() == [ExitCode.HELD]
    [announced] = runs.announced
    now, before = announced.message.split(". Before, as announced on ")
    assert (announced.kind, now) == ("held", "15 of 17 enrollments would vanish, more than 10%")
    assert before.endswith(": 7 of 17 enrollments would vanish, more than 10%")
    assert announced.run == runs.last_run
    assert (runs.run(), runs.kinds) == ([ExitCode.HELD], [])
    assert [outcome for outcome, _ in runs.stored] == ["done", "replaced", "replaced", "replaced", "held"]


def test_a_held_run_that_waits_is_announced_again_after_some_days(runs: Runs, springfield: Path) -> None:
    hold(runs, springfield)
    found = []
    for _ in range(2 * REMIND_DAYS):
        pass_days(runs, 1)
        runs.run()
        found.append(runs.kinds)
    quiet: list[list[str]] = [[]] * (REMIND_DAYS - 1)
    assert found == [*quiet, ["held"], *quiet, ["held"]]
    assert (
        "7 of 17 enrollments would vanish, more than 10%. It still waits, as announced on" in runs.announced[0].message
    )


@pytest.mark.parametrize("kind", ["held", "missing"])
def test_a_problem_is_announced_over_channels_that_are_set_up_later(runs: Runs, springfield: Path, kind: str) -> None:
    if kind == "held":
        hold(runs, springfield)
    else:
        add_feed(runs, "springfield", springfield.with_name("nowhere"))
        runs.run()
    assert (runs.kinds, runs.over) == ([kind], [set()])
    before = runs.settings
    found = []
    # A channel that fails gets it in another night; one that is set up anew is told nothing that is over.
    for added, is_away in (
        (MAIL, False),
        (MAIL, False),
        (MAIL | HOOK, True),
        (MAIL | HOOK, False),
        (MAIL | HOOK, False),
    ):
        runs.settings, runs.is_webhook_away = dataclasses.replace(before, **added), is_away  # type: ignore[arg-type]
        runs.run()
        assert runs.kinds == [kind] * len(runs.over)
        found += runs.over or [set()]
    assert found == [{"e-mail"}, set(), {"webhook"}, {"webhook"}, set()]


@pytest.mark.parametrize("left_out", ["paused", "disabled", "without a path"])
def test_a_held_run_of_a_feed_that_no_nightly_sync_loads_is_announced(
    runs: Runs, springfield: Path, left_out: str
) -> None:
    hold(runs, springfield)
    with runs.engine.begin() as connection:
        # As after an upload that is held.
        connection.execute(sa.update(feeds).values(alerted=None))
        if left_out == "paused":
            store_pause(connection, "springfield", Pause(date.min, date.max, "x"))
        else:
            connection.execute(sa.update(feeds).values({"disabled": {"enabled": False}}.get(left_out, {"path": None})))
    found = []
    for days in (0, 1, REMIND_DAYS):
        pass_days(runs, days)
        runs.run()
        found.append(runs.kinds)
    assert found == [["held"], [], ["held"]]
    with runs.engine.begin() as connection:
        store_pause(connection, "springfield", None)
    options = Options(dataclasses.replace(runs.settings, home=runs.settings.home), allow_mass_delete=True)
    load(runs.engine, "springfield", springfield, options=options)
    with runs.engine.begin() as connection:
        connection.execute(sa.update(feeds).values(path=None))
    assert (runs.run(), runs.kinds) == ([], [AnnouncementKind.RECOVERED])
    assert (runs.run(), runs.kinds) == ([], [])


DAYS = {
    "two days before": (-2, "done", []),
    "the day before": (-1, "done", [AnnouncementKind.PAUSE]),
    "the first day": (0, "paused", []),
    "the last day": (10, "paused", [AnnouncementKind.PAUSE]),
    "the day after": (11, "done", []),
}
# (day, day of the last sync), from the first day of a pause on, and what is said then.
SAID = {
    "the first day, after a sync two days before": ((0, -2), "from {} to {}, nothing is loaded: x"),
    "the first day, after a sync on the day before": ((0, -1), None),
    "the day after, after a sync on the first day": ((11, 0), "the pause has ended on {1}"),
    "the day after, after a sync on the last day": ((11, 10), None),
    "the last day, after a sync before the pause": ((10, -5), "the pause ends today; the next night loads again"),
}


@pytest.mark.parametrize("path", [None, "given"])
@pytest.mark.parametrize(("days", "words"), SAID.values(), ids=SAID)
def test_what_a_missed_sync_was_to_say_of_a_pause_is_said_by_the_next_one(
    runs: Runs, springfield: Path, days: tuple[int, int], words: str | None, path: str | None
) -> None:
    add_feed(runs, "springfield", springfield)
    if path is None:
        with runs.engine.begin() as connection:
            # Somebody uploads its exports.
            connection.execute(sa.update(feeds).values(path=None))
    renew_statistics(runs.engine)
    before = find_day_before(runs.engine, runs.settings.time_zone)
    assert before is not None
    first = before - timedelta(days=days[1])
    last = first + timedelta(days=10)
    with runs.engine.begin() as connection:
        store_pause(connection, "springfield", Pause(first, last, "x"))
    runs.today = first + timedelta(days=days[0])
    runs.run()
    said = [] if words is None else [words.format(describe_day(first), describe_day(last))]
    assert [it.message for it in runs.announced if it.kind is AnnouncementKind.PAUSE] == said


@pytest.mark.parametrize(("day", "outcome", "kinds"), DAYS.values(), ids=DAYS)
def test_a_paused_feed_is_not_loaded_and_its_pause_is_announced(
    runs: Runs, springfield: Path, day: int, outcome: str, kinds: list[AnnouncementKind]
) -> None:
    add_feed(runs, "springfield", springfield)
    # The day on which the database renewed its statistics last, if any, is a real one: nothing was missed since.
    runs.today = find_today(runs.settings.time_zone)
    first = runs.today - timedelta(days=day)
    with runs.engine.begin() as connection:
        store_pause(connection, "springfield", Pause(first, first + timedelta(days=10), "rollover"))
    assert runs.run() == [ExitCode.LOADED]
    assert runs.outcomes == {"springfield": outcome}
    assert runs.kinds == kinds
    with runs.engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT count(*) FROM orgs")) == (0 if outcome == "paused" else 4)


def test_a_load_by_hand_is_refused_during_a_pause(engine: sa.Engine, springfield: Path) -> None:
    load_first(engine, "springfield", springfield)
    with engine.begin() as connection:
        store_pause(connection, "springfield", Pause(date.min, date.max, "rollover"))
    with pytest.raises(CommandError, match=r"paused from .*; `roster feed resume springfield`"):
        load(engine, "springfield", springfield)
    assert load(engine, "springfield", springfield, options=Options(dry_run=True)).outcome == "unchanged"
    east, west = ZoneInfo("Pacific/Kiritimati"), ZoneInfo("Etc/GMT+12")
    with engine.begin() as connection:
        day = find_today(east)
        store_pause(connection, "springfield", Pause(day, day, "rollover"))
    # The days are those of the district: it is never the same day in these two.
    assert load(engine, "springfield", springfield, options=Options(Settings(time_zone=west))).outcome == "unchanged"
    with pytest.raises(CommandError, match="paused"):
        load(engine, "springfield", springfield, options=Options(Settings(time_zone=east)))
    with engine.begin() as connection:
        store_pause(connection, "springfield", None)
    assert load(engine, "springfield", springfield).outcome == "unchanged"


REJECTED = {
    "above the limit": (1, None, 1, "held"),
    "the feed's own limit": (1, 50, 1, "partial"),
    "few rows": (50, None, 1, "partial"),
    "few rows, and every one": (50, None, 1000, "held"),
}


@pytest.mark.parametrize(("least", "own", "rows", "outcome"), REJECTED.values(), ids=REJECTED)
def test_rejected_rows_hold_a_run(
    runs: Runs, springfield: Path, least: int, own: int | None, rows: int, outcome: str
) -> None:
    runs.settings = dataclasses.replace(runs.settings, hold_least_records=least)
    add_feed(runs, "springfield", springfield, hold_rejected_percent=own)
    head, *lines = (springfield / "demographics.csv").read_text().splitlines(keepends=True)
    bad = [line.replace(line.split(",")[3], "no day", 1) for line in lines[:rows]]
    (springfield / "demographics.csv").write_text("".join([head, *bad, *lines[rows:]]))
    set_age(springfield, LONG_AGO - 3600)
    runs.run()
    assert runs.outcomes == {"springfield": outcome}
    if outcome == "held":
        assert "rows of demographics.csv are rejected, more than 5%" in runs.events[-1]["message"]


def test_a_feed_of_an_unknown_format_stops_no_other(runs: Runs, springfield: Path) -> None:
    add_feed(runs, "a", springfield)
    add_feed(runs, "b", springfield)
    with runs.engine.begin() as connection:
        connection.execute(sa.update(feeds).where(feeds.c.name == "a").values(format="papyrus"))
    assert runs.run() == [ExitCode.REFUSED, ExitCode.LOADED]
    assert runs.stored[0] == ("refused", "the feed a takes papyrus, which this version does not know")


SHARES = {"below the share": (50, []), "above it": (5, ["partial"])}


@pytest.mark.parametrize(("percent", "kinds"), SHARES.values(), ids=SHARES)
def test_rejected_rows_are_announced_above_a_share(
    runs: Runs, springfield: Path, percent: int, kinds: list[str]
) -> None:
    runs.settings = dataclasses.replace(runs.settings, rejected_percent=percent)
    add_feed(runs, "springfield", springfield)
    cell_of("users", "spr-student-5", "enabledUser", "maybe")(springfield)
    set_age(springfield, LONG_AGO - 3600)
    assert runs.run() == [ExitCode.PARTIAL]
    assert runs.kinds == kinds
    words = "3 rows were rejected: users.csv, column enabledUser: 1 row, in line 6: must be true or false"
    [(outcome, message)] = runs.stored
    assert (outcome, (message or "").startswith(words)) == ("partial", True)


WRITTEN = {
    "last week": (-7 * 86_400, "held"),
    "an hour before": (-3600, "done"),
    "a day later": (86_400, "done"),
}


@pytest.mark.parametrize("is_zip", [False, True], ids=["a folder", "a zip"])
@pytest.mark.parametrize(("seconds", "outcome"), WRITTEN.values(), ids=WRITTEN)
def test_an_export_that_is_older_than_the_last_one_is_held(
    runs: Runs, springfield: Path, seconds: int, outcome: str, is_zip: bool
) -> None:
    runs.settings = dataclasses.replace(runs.settings, hold_least_records=15)
    path = springfield.with_name("export.zip") if is_zip else springfield

    def deliver(written: float) -> None:
        set_age(springfield, written)
        if is_zip:
            shutil.make_archive(str(path.with_suffix("")), "zip", springfield)
            os.utime(path, times=(LONG_AGO - 3600, LONG_AGO - 3600))

    add_feed(runs, "springfield", springfield)
    deliver(LONG_AGO - 86_400 * 8)
    with runs.engine.begin() as connection:
        connection.execute(sa.update(feeds).values(path=str(path)))
    runs.run()
    cell_of("users", "spr-student-1", "givenName", "Old")(springfield)
    deliver(LONG_AGO - 86_400 * 8 + seconds)
    runs.run()
    assert runs.outcomes == {"springfield": outcome}
    if outcome == "held":
        assert "before the one that was loaded last, of 1 Sep 2001, " in runs.announced[0].message
        with runs.engine.connect() as connection:
            row = connection.execute(sa.select(sync_runs).where(sync_runs.c.outcome == "held")).one()
        approved = Options(runs.settings, approval=Approval(row.id, TESTER))
        assert load(runs.engine, "springfield", Path(row.kept_export), options=approved).outcome == "done"
