"""`roster feed pause` and `roster feed resume`: days on which the sync loads nothing of a feed."""

from __future__ import annotations

from datetime import datetime

import click

from roster_service.cli.console import as_json, open_connection, show
from roster_service.db.pauses import Pause, find_today, store_pause
from roster_service.errors import CommandError

DAY = click.DateTime(["%Y-%m-%d"])


@click.command("pause")
@click.argument("name")
@click.option("--from", "first", type=DAY, default=None, help="The first day, YYYY-MM-DD; by default today.")
@click.option("--until", "last", type=DAY, required=True, help="The last day.")
@click.option("--reason", required=True, help="Why; shown with the feed and in the refusals of loads.")
@as_json
def feed_pause(name: str, first: datetime | None, last: datetime, reason: str, as_json: bool) -> None:
    """Load nothing of the feed NAME from one day to another. Vendors go on reading the roster as it is."""
    pause = Pause(find_today() if first is None else first.date(), last.date(), reason)
    if pause.last < max(pause.first, find_today()):
        raise CommandError("the last day of a pause is neither before its first day nor before today")
    with open_connection() as connection:
        store_pause(connection, name, pause)
    shown = {"feed": name, "first": str(pause.first), "last": str(pause.last), "reason": reason}
    show(shown, as_json, lambda _: f"the feed {name} is paused {pause.describe()}")


@click.command("resume")
@click.argument("name")
@as_json
def feed_resume(name: str, as_json: bool) -> None:
    """End the pause of the feed NAME, also one to come."""
    with open_connection() as connection:
        store_pause(connection, name, None)
    show({"feed": name}, as_json, lambda _: f"the feed {name} is loaded again by the next sync")
