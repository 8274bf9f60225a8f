"""`roster feed`: the feeds, from whose exports the sync loads the roster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from sqlalchemy import Connection, exists, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from roster_service.cli.console import as_json, make_table, open_connection, show
from roster_service.db.feed_names import require_feed_name
from roster_service.db.feed_states import FeedState, find_feed
from roster_service.db.figures import GOOD_OUTCOMES
from roster_service.db.held_runs import HELD
from roster_service.db.pauses import Pause, find_today, make_pause
from roster_service.db.run_history import TYPES
from roster_service.db.sync_lock import INTERRUPTED, RUNNING, find_interrupted, try_sync_lock
from roster_service.db.tables import ROSTER_TABLES, feeds, sync_runs
from roster_service.errors import CommandError

# Each format has a script `sync_scripts.load_NAME`. A test compares this list with the formats there.
FORMATS = ("oneroster", "clever", "sds")
# The value of `--marker` and `--words` that removes it.
NONE = "none"
# A mapping of words has some dozens of short lines.
MOST_WORDS_BYTES = 2**20


@dataclass(frozen=True)
class Feed:
    """A feed, and its latest runs."""

    name: str
    format: str
    path: str | None
    enabled: bool
    # `added` or `removed`.
    state: str
    # The limits beyond which a run is held, in percent of the records of a type; None: the service's settings.
    hold_tombstones_percent: int | None
    hold_changes_percent: int | None
    hold_rejected_percent: int | None
    marker: str | None
    # The days and the reason of a pause, also of one to come.
    pause: str | None
    # Whether the sync refuses its exports for any deviation.
    strict: bool
    # Whether it has a mapping of words.
    words: bool
    last_run: str | None
    # The outcome of the latest run, which may still be running; None before the first.
    last_outcome: str | None
    # The end of the last run after which the roster was that of the export, and the seconds since.
    last_good_run: str | None
    age_seconds: int | None
    # The number of the run that waits for a decision.
    held_run: int | None


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
@as_json
def feed_add(name: str, format_: str, path: Path | None, as_json: bool) -> None:
    """Add the export source NAME. This takes a removed feed back, with the records that are not purged yet."""
    require_feed_name(name)
    with open_connection() as connection:
        row = {"format": format_, "path": None if path is None else str(path.resolve())}
        anew = row | {"state": FeedState.ADDED, "enabled": True}
        added = upsert(feeds).values(name=name, **anew)
        # The row of a removed feed, and of one that a loader has tried, is taken.
        taken = added.on_conflict_do_update(
            index_elements=[feeds.c.name], set_=anew, where=feeds.c.state != FeedState.ADDED
        )
        if connection.execute(taken.returning(feeds.c.id)).one_or_none() is None:
            raise CommandError(f"there is a feed {name} already")
        shown = _find_shown(connection, name)
    show(shown, as_json, lambda _: f"added the feed {name}")


@feed.command("set")
@click.argument("name")
@click.option("--path", type=click.Path(path_type=Path), help="Where its export lies each night.")
@click.option(
    "--hold-tombstones", type=Percent(), help="Hold its runs that would tombstone more percent of a type than this."
)
@click.option("--hold-changes", type=Percent(), help="Hold its runs that would change more percent of a type.")
@click.option("--hold-rejected", type=Percent(), help="Hold its runs that would reject more percent of a type's rows.")
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
    if strict or words is not None:
        # The next run reads everything: lines that were loaded before may have deviations, or newly mapped words.
        values |= {"last_digest": None, "fingerprinted": False}
    with open_connection() as connection:
        connection.execute(update(feeds).where(feeds.c.id == find_feed(connection, name).id).values(values))
        shown = _find_shown(connection, name)
    show(shown, as_json, lambda _: make_table([_to_row(shown)], ""))


@feed.command("rename")
@click.argument("name")
@click.argument("new")
@as_json
def feed_rename(name: str, new: str, as_json: bool) -> None:
    """Give the feed NAME the name NEW. Its records and runs stay with it; change --feed where a script names it. A feed
    whose name is part of the ids of its records cannot be renamed."""
    require_feed_name(new)
    with open_connection() as connection:
        if not try_sync_lock(connection):
            raise CommandError("a sync is under way; rename the feed when it has ended")
        renamed = find_feed(connection, name)
        if connection.scalar(select(exists().where(feeds.c.name == new))):
            raise CommandError(f"there is a feed {new} already, or a run of one")
        _refuse_named_ids(connection, renamed.id, name)
        connection.execute(update(feeds).where(feeds.c.id == renamed.id).values(name=new))
        shown = _find_shown(connection, new)
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


def _find_shown(connection: Connection, name: str) -> Feed:
    return next(item for item in list_feeds(connection) if item.name == name)


def _refuse_named_ids(connection: Connection, feed_id: int, name: str) -> None:
    """Raises CommandError if ids of records begin with the name of their feed (sync_scripts/formats/ids.py): under
    another name the next run would mark these records as deleted and add all of them anew."""
    for table in ROSTER_TABLES:
        named = table.c.sourced_id.startswith(f"{name}:", autoescape=True)
        if connection.scalar(select(exists().where(table.c.feed_id == feed_id, named))):
            raise CommandError(f"the feed {name} keeps its name, because the ids of its {TYPES[table.name]} have it")


@feed.command("list")
@as_json
def feed_list(as_json: bool) -> None:
    """List the feeds: their settings, the latest run of each and its outcome, the last good run, and a held one."""
    with open_connection() as connection:
        found = list_feeds(connection)
    show(found, as_json, lambda _: make_table([_to_row(item) for item in found], "there are no feeds"))


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


def _describe_pause(pause: Pause | None) -> str | None:
    return None if pause is None or pause.last < find_today() else pause.describe()


def _to_age(seconds: int | None) -> str:
    if seconds is None:
        return "-"
    hours = seconds // 3600
    return f"{hours} h" if hours < 48 else f"{hours // 24} d"


def _to_percent(number: int | None) -> str:
    return Percent.default_word if number is None else f"{number}%"


def list_feeds(connection: Connection) -> list[Feed]:
    """Lists all feeds, also removed ones, ordered by name."""
    interrupted = find_interrupted(connection)
    of_feed = select(func.max(sync_runs.c.finished_at)).where(sync_runs.c.feed_id == feeds.c.id)
    good = of_feed.where(sync_runs.c.outcome.in_(GOOD_OUTCOMES)).scalar_subquery()
    newest = of_feed.with_only_columns(func.max(sync_runs.c.id))
    last = sync_runs.alias()
    columns = (
        of_feed.scalar_subquery().label("last_run"),
        last.c.id.label("last_id"),
        last.c.outcome.label("last_outcome"),
        good.label("last_good_run"),
        func.extract("epoch", func.now() - good).label("age"),
        newest.where(sync_runs.c.outcome == HELD).scalar_subquery().label("held_run"),
    )
    both = feeds.outerjoin(last, last.c.id == newest.scalar_subquery())
    listed = select(feeds, *columns).select_from(both).where(feeds.c.state != FeedState.TRIED)
    rows = connection.execute(listed.order_by(feeds.c.name))
    return [
        Feed(
            row.name,
            row.format,
            row.path,
            row.enabled,
            row.state,
            row.hold_tombstones_percent,
            row.hold_changes_percent,
            row.hold_rejected_percent,
            row.marker,
            _describe_pause(make_pause(row.pause_from, row.pause_until, row.pause_reason)),
            row.strict,
            row.words is not None,
            row.last_run and row.last_run.isoformat(timespec="seconds"),
            INTERRUPTED if row.last_outcome == RUNNING and row.last_id in interrupted else row.last_outcome,
            row.last_good_run and row.last_good_run.isoformat(timespec="seconds"),
            None if row.age is None else int(row.age),
            row.held_run,
        )
        for row in rows
    ]
