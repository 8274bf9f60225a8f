"""`roster feed`: the feeds, from whose exports the sync loads the roster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from sqlalchemy import Connection, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from roster_service.cli.console import as_json, make_table, open_connection, show
from roster_service.db.tables import feeds, sync_runs
from roster_service.errors import CommandError

# Each format has a script `sync_scripts.load_NAME`. A test compares this list with the formats there.
FORMATS = ("oneroster", "clever", "sds")


@dataclass(frozen=True)
class Feed:
    """A feed, and the end of its last run."""

    name: str
    format: str
    path: str | None
    enabled: bool
    # The limits beyond which a run is held, in percent of the records of a type; None: the service's settings.
    hold_tombstones_percent: int | None
    hold_changes_percent: int | None
    last_run: str | None


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
    """Add the export source NAME."""
    with open_connection() as connection:
        row = {"name": name, "format": format_, "path": None if path is None else str(path.resolve())}
        added = connection.execute(upsert(feeds).values(row).on_conflict_do_nothing().returning(feeds.c.id))
        if added.one_or_none() is None:
            raise CommandError(f"there is a feed {name} already")
        [shown] = [item for item in list_feeds(connection) if item.name == name]
    show(shown, as_json, lambda _: f"added the feed {name}")


@feed.command("set")
@click.argument("name")
@click.option("--path", type=click.Path(path_type=Path), help="Where its export lies each night.")
@click.option(
    "--hold-tombstones", type=Percent(), help="Hold its runs that would tombstone more percent of a type than this."
)
@click.option("--hold-changes", type=Percent(), help="Hold its runs that would change more percent of a type.")
@click.option("--enable/--disable", "enabled", default=None, help="Whether it is loaded at night.")
@as_json
def feed_set(
    name: str,
    path: Path | None,
    hold_tombstones: int | str | None,
    hold_changes: int | str | None,
    enabled: bool | None,
    as_json: bool,
) -> None:
    """Change settings of the feed NAME. Settings without an option stay as they are."""
    wanted = {
        "path": None if path is None else str(path.resolve()),
        "hold_tombstones_percent": hold_tombstones,
        "hold_changes_percent": hold_changes,
        "enabled": enabled,
    }
    values = {
        column: None if value == Percent.default_word else value
        for column, value in wanted.items()
        if value is not None
    }
    if not values:
        raise CommandError("there is nothing to set; name an option, as --help lists them")
    with open_connection() as connection:
        if connection.execute(update(feeds).where(feeds.c.name == name).values(values)).rowcount == 0:
            raise CommandError(f"there is no feed {name}")
        [shown] = [item for item in list_feeds(connection) if item.name == name]
    show(shown, as_json, lambda _: make_table([_to_row(shown)], ""))


@feed.command("list")
@as_json
def feed_list(as_json: bool) -> None:
    """List the feeds and when each was last loaded."""
    with open_connection() as connection:
        found = list_feeds(connection)
    show(found, as_json, lambda _: make_table([_to_row(item) for item in found], "there are no feeds"))


def _to_row(item: Feed) -> dict[str, str]:
    return {
        "name": item.name,
        "format": item.format,
        "path": item.path or "-",
        "enabled": "yes" if item.enabled else "no",
        "hold tombstones": _to_percent(item.hold_tombstones_percent),
        "hold changes": _to_percent(item.hold_changes_percent),
        "last run": item.last_run or "never",
    }


def _to_percent(number: int | None) -> str:
    return Percent.default_word if number is None else f"{number}%"


def list_feeds(connection: Connection) -> list[Feed]:
    """Lists all feeds, ordered by name."""
    last = select(func.max(sync_runs.c.finished_at)).where(sync_runs.c.feed_id == feeds.c.id).scalar_subquery()
    rows = connection.execute(select(feeds, last.label("last_run")).order_by(feeds.c.name))
    return [
        Feed(
            row.name,
            row.format,
            row.path,
            row.enabled,
            row.hold_tombstones_percent,
            row.hold_changes_percent,
            row.last_run and row.last_run.isoformat(timespec="seconds"),
        )
        for row in rows
    ]
