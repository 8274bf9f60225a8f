"""`roster feed pause` and `roster feed resume`: days on which the sync loads nothing of a feed."""

from __future__ import annotations

from datetime import datetime

import click

from roster_service.cli.terminal import as_json, open_change, reason_option, remember_reason, show
from roster_service.feeds.feeds import pause_feed, resume_feed
from roster_service.feeds.pauses import Pause, find_today

DAY = click.DateTime(["%Y-%m-%d"])


@click.command("pause")
@click.argument("name")
@click.option("--from", "first", type=DAY, default=None, help="The first day, YYYY-MM-DD; by default today.")
@click.option("--until", "last", type=DAY, required=True, help="The last day.")
@click.option(
    "--reason",
    required=True,
    callback=remember_reason,
    help="Why; shown with the feed, in the refusals of loads, and by `roster changes`.",
)
@as_json
def feed_pause(name: str, first: datetime | None, last: datetime, reason: str, as_json: bool) -> None:
    """Load nothing of the feed NAME from one day to another. Vendors go on reading the roster as it is."""
    pause = Pause(find_today() if first is None else first.date(), last.date(), reason)
    with open_change() as (connection, actor):
        pause_feed(connection, actor, name, pause)
    shown = {"feed": name, "first": str(pause.first), "last": str(pause.last), "reason": reason}
    show(shown, as_json, lambda _: f"the feed {name} is paused {pause.describe()}")


@click.command("resume")
@click.argument("name")
@reason_option
@as_json
def feed_resume(name: str, as_json: bool) -> None:
    """End the pause of the feed NAME, also one to come."""
    with open_change() as (connection, actor):
        resume_feed(connection, actor, name)
    show({"feed": name}, as_json, lambda _: f"the feed {name} is loaded again by the next sync")
