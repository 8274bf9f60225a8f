"""`roster feed remove`: the end of a feed and of its records."""

from __future__ import annotations

import json
from typing import Any

import click

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
from roster_service.feeds.feeds import describe_remains, remove_feed

# What a removal does with records, by the key of their count in its report. One that deletes them marks none.
_ENDS = {"purged": "deleted", "tombstoned": "marked as deleted"}


@click.command("remove")
@click.argument("name")
@click.option("--now", is_flag=True, help="Delete its records at once.")
@yes_option
@dry_run_option
@reason_option
@as_json
def feed_remove(name: str, now: bool, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Remove the feed NAME, with its held runs, after you have typed its name. Its records are marked as deleted:
    vendors get them as `tobedeleted` until the purge deletes them after ROSTER_RETENTION_DAYS; until then, `roster feed
    add` and a load bring them back. Vendors' grants of its districts end with the records."""
    effect = "deletes all records of" if now else "marks all records of"
    confirm(f"This {effect} {name} {'for good' if now else 'as deleted'}.", name, is_confirmed=yes or dry_run)
    with open_connection() as connection:
        report = remove_feed(connection, find_actor(), name, now=now, dry_run=dry_run)
    with open_connection() as connection:
        remains = "" if dry_run else describe_remains(connection, name, read_settings().retention_days)
    click.echo(json.dumps(report, ensure_ascii=False) if as_json else _describe(report, remains))


def _describe(report: Any, remains: str) -> str:
    if report["dry_run"]:
        return describe_report(report)
    counts = report["counts"].values()
    sums = {words: sum(count[key] for count in counts) for key, words in _ENDS.items()}
    done = next((f": {_count(number)} {words}" for words, number in sums.items() if number), "")
    summary = f"removed the feed {report['feed']}{done} (run {report['run']}); {remains}"
    return "\n".join([summary, *report["notices"]])


def _count(records: int) -> str:
    return "1 record is" if records == 1 else f"{records:,} records are"
