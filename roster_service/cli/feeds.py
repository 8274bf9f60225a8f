"""`roster feed`: the SIS exports that the service is loaded from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click
from sqlalchemy import Connection, func, select
from sqlalchemy.dialects.postgresql import insert as upsert

from roster_service.cli.console import as_json, make_table, open_accounts, show
from roster_service.db.tables import feeds, sync_runs
from roster_service.errors import CommandError

# Each has a script `sync_scripts.load_NAME`; a test holds this to the families there.
FORMATS = ("oneroster", "clever", "sds")


@dataclass(frozen=True)
class Feed:
    """An export source, and when it was last loaded."""

    name: str
    format: str
    path: str | None
    enabled: bool
    last_run: str | None


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
    with open_accounts() as connection:
        row = {"name": name, "format": format_, "path": None if path is None else str(path.resolve())}
        added = connection.execute(upsert(feeds).values(row).on_conflict_do_nothing().returning(feeds.c.id))
        if added.one_or_none() is None:
            raise CommandError(f"there is a feed {name} already")
        [shown] = [item for item in list_feeds(connection) if item.name == name]
    show(shown, as_json, lambda _: f"added the feed {name}")


@feed.command("list")
@as_json
def feed_list(as_json: bool) -> None:
    """List the feeds and when each was last loaded."""
    with open_accounts() as connection:
        found = list_feeds(connection)
    show(found, as_json, lambda _: make_table([_to_row(item) for item in found], "there are no feeds"))


def _to_row(item: Feed) -> dict[str, str]:
    return {
        "name": item.name,
        "format": item.format,
        "path": item.path or "-",
        "enabled": "yes" if item.enabled else "no",
        "last run": item.last_run or "never",
    }


def list_feeds(connection: Connection) -> list[Feed]:
    """Every feed, by name."""
    last = select(func.max(sync_runs.c.finished_at)).where(sync_runs.c.feed_id == feeds.c.id).scalar_subquery()
    rows = connection.execute(select(feeds, last.label("last_run")).order_by(feeds.c.name))
    return [
        Feed(row.name, row.format, row.path, row.enabled, row.last_run and row.last_run.isoformat(timespec="seconds"))
        for row in rows
    ]
