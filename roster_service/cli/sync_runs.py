"""`roster sync list`, `show` and `rejected`: the runs of the sync, and the rows that they rejected."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TextIO

import click

from roster_service.cli.run_report import describe_report, name_count
from roster_service.cli.terminal import as_json, csv_option, make_table, open_connection, show, to_texts
from roster_service.explore.rejected_rows import label_rows
from roster_service.feeds.private_files import write_private_csv
from roster_service.feeds.rejected_rows import (
    RejectedRow,
    count_rejected_rows,
    explain_missing,
    list_names,
    read_rejected_rows,
)
from roster_service.feeds.run_history import Run, RunDetails, find_run, list_runs

# How many runs are listed beside the held ones; how many rejected rows `rejected` and `show` print.
LISTED, SHOWN, SAMPLES = 20, 20, 5
# The types of records by which a person knows a row.
ABOUT = ("users", "classes")
# The columns of CSV are those of the loaders' `--rejects`.
CSV_COLUMNS = tuple(field.name for field in dataclasses.fields(RejectedRow) if field.name != "cause")


@dataclasses.dataclass(frozen=True)
class ShownRun(RunDetails):
    """A run with the first of its rejected rows, without their values: a report goes into mails and logs."""

    samples: list[dict[str, object]]


@click.command("list")
@click.option("--feed", metavar="NAME", help="Only the runs of this feed.")
@as_json
def sync_list(feed: str | None, as_json: bool) -> None:
    """Show every held run, and the latest others."""
    with open_connection() as connection:
        found = list_runs(connection, feed, LISTED)
    show(found, as_json, lambda _: make_table([_to_row(item) for item in found], "there were no runs"))


@click.command("status", hidden=True)
@click.pass_context
@as_json
def sync_status(context: click.Context, as_json: bool) -> None:
    """The former name of `roster sync list`."""
    click.echo(
        "roster: `roster sync status` is called `roster sync list`; the next version drops the old name", err=True
    )
    context.invoke(sync_list, as_json=as_json)


@click.command("show")
@click.argument("run", type=int)
@as_json
def sync_show(run: int, as_json: bool) -> None:
    """Show RUN: its outcome, the records of each type, the seconds of its steps, notices, and the causes of rejected
    rows."""
    with open_connection() as connection:
        found = find_run(connection, run)
        samples = [_hide_values(row) for row in read_rejected_rows(connection, run, SAMPLES)]
    shown = ShownRun(**{field.name: getattr(found, field.name) for field in dataclasses.fields(found)}, samples=samples)
    show(shown, as_json, lambda item: describe_report(dataclasses.asdict(item)))


@click.command("rejected")
@click.argument("run", type=int)
@csv_option
@as_json
def sync_rejected(run: int, csv_file: TextIO | None, as_json: bool) -> None:
    """Show the rejected rows of RUN with their values: where each is, why it was rejected, and whether by itself or
    because it refers to a rejected row. Each says whom and what it is about; CSV has the ids of these records."""
    with open_connection() as connection:
        rejected = find_run(connection, run).refused
        stored = count_rejected_rows(connection, run)
        is_listed = csv_file is None and not as_json
        stored_rows = list(read_rejected_rows(connection, run, SHOWN if is_listed else None))
        # A file has what the loader knew, so that it is the same as that of `--rejects`.
        rows = stored_rows if csv_file is not None else label_rows(connection, run, stored_rows)
    missing = explain_missing(rejected, stored)
    if csv_file is not None:
        write_private_csv(csv_file, CSV_COLUMNS, map(_to_line, rows))
        if missing:
            click.echo(missing, err=True)
        return
    show(rows, as_json, lambda _: _describe_rejected(rows, stored, missing))


def _hide_values(row: RejectedRow) -> dict[str, object]:
    return _leave_out(row, "value", "sourcedId", "records")


def _leave_out(row: RejectedRow, *names: str) -> dict[str, object]:
    return {name: cell for name, cell in vars(row).items() if name not in names}


def _name_people(row: RejectedRow) -> str:
    """The record of a row, and the users and classes that it names, by their names or else their ids."""
    return ", ".join(
        record.label or record.sourcedId
        for record in row.records
        if record.type in ABOUT or (record.own and record.label)
    )


def _to_line(row: RejectedRow) -> list[object]:
    return [list_names(row.records) if name == "records" else getattr(row, name) for name in CSV_COLUMNS]


def _describe_rejected(rows: Sequence[RejectedRow], stored: int, missing: str) -> str:
    texts = [to_texts({**_leave_out(row, "records"), "about": _name_people(row)}) for row in rows]
    lines = [make_table(texts, missing or "no row was rejected")]
    if stored > len(rows):
        lines.append(f"... and {stored - len(rows):,} more; `--csv FILE` writes all")
    return "\n".join([*lines, *([missing] if rows and missing else [])])


def _to_row(item: Run) -> dict[str, str]:
    totals: dict[str, int] = {}
    for counts in item.counts.values():
        for name, count in counts.items():
            totals[name_count(name)] = totals.get(name_count(name), 0) + count
    listed = ", ".join(f"{count:,} {name}" for name, count in totals.items() if count)
    return {
        "run": str(item.run),
        "feed": item.feed,
        "outcome": item.outcome,
        "started": item.started,
        "finished": item.finished or "-",
        "records": listed or "-",
        "message": item.message or "",
    }


COMMANDS = (sync_list, sync_status, sync_show, sync_rejected)
