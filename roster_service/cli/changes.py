"""`roster changes`: the change log."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime
from typing import Any, TextIO

import click

from roster_service.change_log.log import Change, list_changes
from roster_service.cli.terminal import as_json, csv_option, make_table, open_connection, show
from roster_service.feeds.private_files import write_private_csv

COLUMNS = tuple(field.name for field in dataclasses.fields(Change))


@click.command()
@click.option("--vendor", metavar="EMAIL", help="Only changes of this vendor, its grants, clients and keys.")
@click.option("--feed", metavar="NAME", help="Only changes of this feed and its runs.")
@click.option("--operator", metavar="NAME", help="Only changes by this operator, or by this user@host.")
@click.option("--since", type=click.DateTime(["%Y-%m-%d"]), help="Only from this day on, in UTC.")
@csv_option
@as_json
def changes(
    vendor: str | None,
    feed: str | None,
    operator: str | None,
    since: datetime | None,
    csv_file: TextIO | None,
    as_json: bool,
) -> None:
    """Show the change log: when, who, what, on what, the values before and after, and the reason."""
    start = None if since is None else since.replace(tzinfo=UTC)
    with open_connection() as connection:
        found = list_changes(connection, vendor=vendor, feed=feed, operator=operator, since=start)
    if csv_file is not None:
        lines = ([_to_cell(value) for value in dataclasses.asdict(change).values()] for change in found)
        write_private_csv(csv_file, COLUMNS, lines)
        return
    show(found, as_json, lambda _: make_table([_to_row(change) for change in found], "there were no changes"))


def _to_cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value


def _to_row(item: Change) -> dict[str, str]:
    return {
        "at": item.at,
        "by": item.actor,
        "change": item.verb,
        "of": item.subject,
        "before": _describe(item.before),
        "after": _describe(item.after),
        "reason": item.reason or "-",
    }


def _describe(state: dict[str, Any] | None) -> str:
    if state is None:
        return "(none)"
    return ", ".join(f"{name} {json.dumps(value, ensure_ascii=False)}" for name, value in state.items()) or "-"
