"""`roster feed`: the feeds, from whose exports the sync loads the roster, with pauses, checks and removal."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import sqlalchemy as sa

from roster_service.cli import terminal
from roster_service.cli.run_report import describe_report, preview_run
from roster_service.db.instants import find_today
from roster_service.errors import CommandError
from roster_service.feeds import feeds
from roster_service.feeds.feed_conditions import list_conditions
from roster_service.feeds.feed_states import FeedState, Pause, find_feed
from roster_service.feeds.feeds import FORMATS, Feed, find_remains, pause_feed, remove_feed, resume_feed

# The value of `--marker` and `--words` that removes it.
NONE = "none"
# A mapping of words has some dozens of short lines.
MOST_WORDS_BYTES = 2**20


class Percent(click.ParamType):  # type: ignore[type-arg] # generic in new versions of click only
    """A whole number from 0 to 100, or `default`, which removes the feed's own number."""

    name = "PERCENT|default"
    default_word = "default"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """Returns the number, or `default`."""
        if value == self.default_word:
            return self.default_word
        if not str(value).isascii() or not str(value).isdigit() or int(value) > 100:
            self.fail(f"{value!r} is no whole number from 0 to 100, nor {self.default_word}", param, ctx)
        return int(value)


@click.group()
def feed() -> None:
    """The SIS exports that the roster is loaded from."""


@feed.command("add")
@click.argument("name")
@click.option("--format", "format_", type=click.Choice(FORMATS), required=True, help="The CSV family of its exports.")
@click.option("--path", type=click.Path(path_type=Path), help="Where its export lies each night: a folder or a zip.")
@terminal.change_options
def feed_add(name: str, format_: str, path: Path | None, as_json: bool) -> None:
    """Add the export source NAME, or take a removed feed back.

    A removed feed comes back with the records that are not purged yet.
    """
    with terminal.open_change() as (connection, actor):
        feeds.add_feed(connection, actor, name, format_, path)
        shown = _find(connection, name)
    terminal.show(shown, as_json, lambda _: f"added the feed {name}")


@feed.command("set")
@click.argument("name")
@click.option("--path", type=click.Path(path_type=Path), help="Where its export lies each night.")
@click.option(
    "--hold-tombstones", type=Percent(), help="Hold its runs that would tombstone more percent of a type than this."
)
@click.option("--hold-changes", type=Percent(), help="Hold its runs that would change more percent of a type.")
@click.option("--hold-rejected", type=Percent(), help="Hold its runs that would reject more percent of a file's rows.")
@click.option(
    "--marker",
    metavar="FILE|none",
    help="The file that the SIS writes last, in or beside its export.",
)
@click.option("--enable/--disable", "enabled", default=None, help="Whether it is loaded at night.")
@click.option("--strict/--lenient", "strict", default=None, help="Whether its exports are refused for any deviation.")
@click.option(
    "--words",
    metavar="FILE|none",
    help="The CSV file that maps words of the SIS to words of OneRoster; `roster feed check` checks it.",
)
@terminal.change_options
def feed_set(
    name: str,
    path: Path | None,
    hold_tombstones: int | str | None,
    hold_changes: int | str | None,
    hold_rejected: int | str | None,
    marker: str | None,
    enabled: bool | None,
    strict: bool | None,
    words: str | None,
    as_json: bool,
) -> None:
    """Change settings of the feed NAME.

    Settings without an option stay as they are.
    """
    wanted = {
        "path": None if path is None else str(path.absolute()),
        "hold_tombstones_percent": hold_tombstones,
        "hold_changes_percent": hold_changes,
        "hold_rejected_percent": hold_rejected,
        "marker": marker,
        "enabled": enabled,
        "strict": strict,
        "words": words if words in (None, NONE) else _read_words(Path(str(words))),
    }
    values = {
        column: None if value in (Percent.default_word, NONE) else value
        for column, value in wanted.items()
        if value is not None
    }
    if not values:
        raise CommandError("there is nothing to set; name an option, as --help lists them")
    with terminal.open_change() as (connection, actor):
        feeds.change_feed(connection, actor, name, values)
        shown = _find(connection, name)
    terminal.show_table(shown, as_json, [_to_row(shown)], "")


@feed.command("rename")
@click.argument("name")
@click.argument("new")
@terminal.change_options
def feed_rename(name: str, new: str, as_json: bool) -> None:
    """Give the feed NAME the name NEW.

    Its records and runs stay with it; change --feed where a script names it. A feed whose name is part of the ids of
    its records cannot be renamed.
    """
    with terminal.open_change() as (connection, actor):
        feeds.rename_feed(connection, actor, name, new)
        shown = _find(connection, new)
    terminal.show(shown, as_json, lambda _: f"the feed {name} is called {new} now")


def _read_words(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(MOST_WORDS_BYTES + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
        raise CommandError(f"{path} cannot be read: {reason}") from None
    if len(text) > MOST_WORDS_BYTES or "\0" in text:
        raise CommandError(f"{path} is no mapping of words")
    return text


@feed.command("list")
@terminal.as_json
def feed_list(as_json: bool) -> None:
    """List the feeds: their settings, latest and last good runs, and what is to be said of each."""
    with terminal.open_connection() as connection:
        found = feeds.list_feeds(connection, terminal.read_settings().time_zone)
    conditions = {item.name: list_conditions(item, terminal.read_settings()) for item in found}
    shown = [terminal.to_plain(item) | {"conditions": terminal.to_plain(conditions[item.name])} for item in found]
    rows = [
        _to_row(item) | {"why": "; ".join(condition.sentence for condition in conditions[item.name])} for item in found
    ]
    terminal.show_table(shown, as_json, rows, "there are no feeds")


def _find(connection: sa.Connection, name: str) -> Feed:
    return feeds.find_listed(connection, name, terminal.read_settings().time_zone)


def _to_row(item: Feed) -> dict[str, str]:
    return {
        "name": item.name,
        "format": item.format,
        "path": item.path or "-",
        "enabled": item.state if item.state == FeedState.REMOVED else "yes" if item.enabled else "no",
        "hold tombstones": _to_percent(item.hold_tombstones_percent),
        "hold changes": _to_percent(item.hold_changes_percent),
        "hold rejected": _to_percent(item.hold_rejected_percent),
        "paused": item.pause or "-",
        "reading": "strict" if item.strict else "lenient",
        "last run": terminal.show_instant(item.last_run, "never"),
        "outcome": item.last_outcome or "-",
        "last good run": terminal.show_instant(item.last_good_run, "never"),
        "age": _to_age(item.age_seconds),
        "held run": "-" if item.held_run is None else str(item.held_run),
    }


def _to_age(seconds: int | None) -> str:
    if seconds is None:
        return "-"
    hours = seconds // 3600
    return f"{hours} h" if hours < 48 else f"{hours // 24} d"


def _to_percent(number: int | None) -> str:
    return Percent.default_word if number is None else f"{number}%"


@dataclass(frozen=True)
class FeedCheck:
    """What the next run would say: its notices, and the causes for which it would reject rows."""

    feed: str
    notices: list[str]
    causes: list[dict[str, Any]]


@feed.command("check")
@click.argument("name")
@terminal.as_json
def feed_check(name: str, as_json: bool) -> None:
    """Check the mapping of words and the export of the feed NAME, and change nothing.

    Shows the tolerated deviations, mapped words among them, and the causes of rejected rows, such as words that no
    mapping explains.
    """
    with terminal.open_connection() as connection:
        found = find_feed(connection, name)
        if found.path is None:
            raise CommandError(f"the feed {name} has no path; `roster feed set {name} --path PATH` gives it one")
        report = preview_run(connection, found.format, name, found.path)
    terminal.show(FeedCheck(name, report["notices"], report["causes"]), as_json, _describe_check)


def _describe_check(check: FeedCheck) -> str:
    causes = [
        {key: str(cause[key] or "-") for key in ("file", "column", "line", "rows", "reason")} for cause in check.causes
    ]
    return "\n".join((*check.notices, terminal.make_table(causes, "no row would be rejected")))


DAY = click.DateTime(["%Y-%m-%d"])


@feed.command("pause")
@click.argument("name")
@click.option(
    "--from", "first", type=DAY, default=None, help="The first day, YYYY-MM-DD, in ROSTER_TIME_ZONE; by default today."
)
@click.option("--until", "last", type=DAY, required=True, help="The last day.")
@click.option(
    "--reason",
    required=True,
    callback=terminal.remember_reason,
    help="Why; shown on the page of the feed, in announcements, and by `roster changes`.",
)
@terminal.as_json
def feed_pause(name: str, first: datetime | None, last: datetime, reason: str, as_json: bool) -> None:
    """Load nothing of the feed NAME from one day to another.

    Vendors go on reading the roster as it is.
    """
    today = find_today(terminal.read_settings().time_zone)
    pause = Pause(today if first is None else first.date(), last.date(), reason)
    with terminal.open_change() as (connection, actor):
        pause_feed(connection, actor, name, pause, today)
    shown = {"feed": name, "first": str(pause.first), "last": str(pause.last), "reason": reason}
    terminal.show(shown, as_json, lambda _: f"the feed {name} is paused {pause.describe()}")


@feed.command("resume")
@click.argument("name")
@terminal.change_options
def feed_resume(name: str, as_json: bool) -> None:
    """End the pause of the feed NAME, also one to come."""
    with terminal.open_change() as (connection, actor):
        resume_feed(connection, actor, name)
    terminal.show({"feed": name}, as_json, lambda _: f"the feed {name} has no pause any more")


# What a removal does with records, by the key of their count in its report. One that deletes them marks none.
_ENDS = {"purged": "deleted", "tombstoned": "marked as deleted"}


@feed.command("remove")
@click.argument("name")
@click.option("--now", is_flag=True, help="Delete its records at once.")
@terminal.confirmed_change_options
def feed_remove(name: str, now: bool, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Remove the feed NAME, with its held runs, after you have typed its name.

    Its records are marked as deleted: vendors get them as `tobedeleted` until the purge deletes them after
    ROSTER_RETENTION_DAYS; until then, `roster feed add` and a load bring them back. Vendors' grants of its districts
    end with the records.
    """
    effect = "deletes all records of" if now else "marks all records of"
    terminal.confirm(f"This {effect} {name} {'for good' if now else 'as deleted'}.", name, is_confirmed=yes or dry_run)
    with terminal.open_connection() as connection:
        report = remove_feed(connection, terminal.find_actor(), name, now=now, dry_run=dry_run)
    with terminal.open_connection() as connection:
        remains = "" if dry_run else find_remains(connection, name, terminal.read_settings()).describe(name)
    click.echo(json.dumps(report, ensure_ascii=False) if as_json else _describe_removal(report, remains))


def _describe_removal(report: Any, remains: str) -> str:
    if report["dry_run"]:
        return describe_report(report)
    counts = report["counts"].values()
    sums = {words: sum(count[key] for count in counts) for key, words in _ENDS.items()}
    done = next((f": {_count(number)} {words}" for words, number in sums.items() if number), "")
    summary = f"removed the feed {report['feed']}{done} (run {report['run']}); {remains}"
    return "\n".join([summary, *report["notices"]])


def _count(records: int) -> str:
    return "1 record is" if records == 1 else f"{records:,} records are"
