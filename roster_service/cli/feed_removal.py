"""`roster feed remove`: the end of a feed and of its records."""

from __future__ import annotations

import json
from typing import Any

import click

from roster_service.access.feeds import remove_feed
from roster_service.cli.run_report import describe_report
from roster_service.cli.terminal import (
    as_json,
    confirm,
    dry_run_option,
    find_actor,
    open_connection,
    read_settings,
    reason_option,
    yes_option,
)


@click.command("remove")
@click.argument("name")
@click.option("--now", is_flag=True, help="Delete its records at once, after you have typed its name.")
@yes_option
@dry_run_option
@reason_option
@as_json
def feed_remove(name: str, now: bool, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Remove the feed NAME, with its held runs. Its records are marked as deleted, and the purge deletes them after
    ROSTER_RETENTION_DAYS; until then, `roster feed add` and a load bring them back."""
    confirm(f"This deletes all records of {name} for good.", name, is_confirmed=yes or dry_run or not now)
    with open_connection() as connection:
        report = remove_feed(connection, find_actor(), name, now=now, dry_run=dry_run)
    click.echo(json.dumps(report, ensure_ascii=False) if as_json else _describe(report))


def _describe(report: Any) -> str:
    if report["dry_run"]:
        return describe_report(report)
    counts = report["counts"].values()
    purged, marked = (sum(count[key] for count in counts) for key in ("purged", "tombstoned"))
    days = read_settings().retention_days
    later = f"{marked:,} records are marked as deleted; the purge deletes them in {days} days"
    words = f"{purged:,} records are deleted" if purged else later
    return f"removed the feed {report['feed']}: {words} (run {report['run']})"
