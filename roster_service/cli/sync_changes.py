"""`roster sync changes`: the records that a run changed, field by field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

import click

from roster_service.cli.terminal import as_json, csv_option, make_table, open_connection, show
from roster_service.feeds.change_history import CSV_COLUMNS, ChangedRecord, find_changes
from roster_service.feeds.private_files import write_private_csv
from roster_service.feeds.run_history import TYPES

# How many changes of each type are printed.
SHOWN = 10


@click.command("changes")
@click.argument("run", type=int)
@click.option("--type", "kind", type=click.Choice(tuple(TYPES.values())), help="Only records of this type.")
@csv_option
@as_json
def sync_changes(run: int, kind: str | None, csv_file: TextIO | None, as_json: bool) -> None:
    """Show the records that RUN added, changed, revived, and marked as deleted, each with the values of its changed
    fields before and after."""
    with open_connection() as connection:
        history = find_changes(connection, run)
        if history is not None and history.missing:
            runs = ", ".join(map(str, history.missing))
            click.echo(f"roster: records added by run {run} and changed by run {runs} are not listed", err=True)
        if csv_file is not None:
            changes = iter(()) if history is None else history.read(connection, kind)
            write_private_csv(csv_file, CSV_COLUMNS, (line for change in changes for line in change.list_lines()))
            return
        is_listed = not as_json
        counts = {} if history is None else history.count(connection, kind)
        found = [] if history is None else list(history.read(connection, kind, SHOWN if is_listed else None))
    show(found, as_json, lambda _: describe_changes(counts, found))


def describe_changes(counts: dict[str, dict[str, int]], found: Sequence[ChangedRecord]) -> str:
    """Returns the counts of changes, and the first changes of each type, as two tables."""
    if not counts:
        return "no record changed"
    names = ("added", "changed", "revived", "tombstoned")
    summary = [{"type": kind, **{name: f"{count.get(name, 0):,}" for name in names}} for kind, count in counts.items()]
    lines = [
        dict(zip(CSV_COLUMNS, map(_to_text, line), strict=True)) for change in found for line in change.list_lines()
    ]
    total = sum(sum(count.values()) for count in counts.values())
    hidden = f"\n... and {total - len(found):,} more; `--csv FILE` writes all" if total > len(found) else ""
    return f"{make_table(summary, '')}\n\n{make_table(lines, '')}{hidden}"


def _to_text(cell: str) -> str:
    return cell or "-"
