"""`roster feed`: the feeds, from whose exports the sync loads the roster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from roster_service.cli.feed_check import feed_check
from roster_service.cli.feed_pauses import feed_pause, feed_resume
from roster_service.cli.feed_removal import feed_remove
from roster_service.cli.terminal import (
    as_json,
    make_table,
    open_change,
    open_connection,
    read_settings,
    reason_option,
    show,
    to_plain,
)
from roster_service.errors import CommandError
from roster_service.feeds import feeds
from roster_service.feeds.feed_conditions import list_conditions
from roster_service.feeds.feed_states import FeedState
from roster_service.feeds.feeds import FORMATS, Feed

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
@reason_option
@as_json
def feed_add(name: str, format_: str, path: Path | None, as_json: bool) -> None:
    """Add the export source NAME. This takes a removed feed back, with the records that are not purged yet."""
    with open_change() as (connection, actor):
        shown = feeds.add_feed(connection, actor, name, format_, path)
    show(shown, as_json, lambda _: f"added the feed {name}")


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
@reason_option
@as_json
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
    """Change settings of the feed NAME. Settings without an option stay as they are."""
    wanted = {
        "path": None if path is None else str(path.resolve()),
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
    with open_change() as (connection, actor):
        shown = feeds.change_feed(connection, actor, name, values)
    show(shown, as_json, lambda _: make_table([_to_row(shown)], ""))


@feed.command("rename")
@click.argument("name")
@click.argument("new")
@reason_option
@as_json
def feed_rename(name: str, new: str, as_json: bool) -> None:
    """Give the feed NAME the name NEW. Its records and runs stay with it; change --feed where a script names it. A feed
    whose name is part of the ids of its records cannot be renamed."""
    with open_change() as (connection, actor):
        shown = feeds.rename_feed(connection, actor, name, new)
    show(shown, as_json, lambda _: f"the feed {name} is called {new} now")


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
@as_json
def feed_list(as_json: bool) -> None:
    """List the feeds: their settings, the latest run of each and its outcome, the last good run, a held one, and what
    is to be said of each."""
    with open_connection() as connection:
        found = feeds.list_feeds(connection)
    conditions = {item.name: list_conditions(item, read_settings()) for item in found}
    if as_json:
        shown = [to_plain(item) | {"conditions": to_plain(conditions[item.name])} for item in found]
        show(shown, as_json, str)
        return
    rows = [
        _to_row(item) | {"why": "; ".join(condition.sentence for condition in conditions[item.name])} for item in found
    ]
    show(rows, as_json, lambda _: make_table(rows, "there are no feeds"))


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
        "last run": item.last_run or "never",
        "outcome": item.last_outcome or "-",
        "last good run": item.last_good_run or "never",
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


for _command in (feed_check, feed_pause, feed_resume, feed_remove):
    feed.add_command(_command)
