"""`roster sync`: the runs of the sync, the rows that they rejected, and the decision about a held run."""

from __future__ import annotations

import dataclasses
import functools
import os
import sys
from collections.abc import Callable, Sequence
from typing import TextIO

import click
import sqlalchemy as sa

from roster_service.cli import terminal
from roster_service.cli.run_report import describe_report, sync_changes, sync_preview
from roster_service.explore.rejected_rows import label_rows
from roster_service.feeds import rejected_rows
from roster_service.feeds.held_runs import drop_export
from roster_service.feeds.private_files import write_private_csv
from roster_service.feeds.rejected_rows import RejectedRow
from roster_service.feeds.run_history import Run, RunDetails, find_run, list_runs
from roster_service.feeds.runs import approve_run, discard_run, find_held
from roster_service.feeds.undo import require_undo, undo_run
from roster_service.people import add_new_ids


@click.group()
def sync() -> None:
    """The runs of the nightly sync."""


@sync.command("run")
@click.option("--jobs", type=int, help="How many feeds to load at the same time, in place of ROSTER_SYNC_JOBS.")
@click.option("--wait", is_flag=True, help="Wait for other runs of the feeds.")
def sync_run(jobs: int | None, wait: bool) -> None:
    """Load the export of every enabled feed, purge, and warm up, as the timer does."""
    given = [*(() if jobs is None else ("--jobs", str(jobs))), *(("--wait",) if wait else ())]
    # In place of this process, so that its output, its signals and its exit code are those of the script.
    os.execv(sys.executable, [sys.executable, "-m", "sync_scripts.nightly", *given])  # noqa: S606  (our own script)


NAMED = click.option(
    "--excluded",
    "named",
    multiple=True,
    metavar="REFERENCE=NEWID",
    help="The new id, for a run with other ids, of a person who is erased, hidden or kept from a vendor; repeatable.",
)
OTHERS_GONE = click.option("--others-gone", is_flag=True, help="All other such people are not in the export.")


@sync.command("approve")
@click.argument("run", type=int)
@NAMED
@OTHERS_GONE
@terminal.change_options
def sync_approve(run: int, named: tuple[str, ...], others_gone: bool, as_json: bool) -> None:
    """Apply the held RUN with the export that was held.

    If it would now delete or change more records than it showed, it is held again, as a new run.
    """
    has_named = _name_people_again(lambda connection: find_held(connection, run), named, others_gone=others_gone)
    home = terminal.read_settings().home
    with terminal.open_connection() as connection:
        done = approve_run(connection, terminal.find_actor(), run, home, as_json=as_json, has_named=has_named)
    click.echo(done.stdout, nl=False)
    click.echo(done.stderr, nl=False, err=True)


def _name_people_again(
    require: Callable[[sa.Connection], object], named: tuple[str, ...], *, others_gone: bool
) -> bool:
    """Stores the new ids of excluded and kept people, if a command has any. `require`: raises CommandError for a run
    of which they are not asked. Returns whether the operator has said something of these people."""
    if not (named or others_gone):
        return False
    with terminal.open_change() as (connection, actor):
        require(connection)
        terminal.require_key(connection)
        add_new_ids(connection, actor, dict(map(_split_pair, named)), terminal.read_settings(), others_gone=others_gone)
    return True


def _split_pair(text: str) -> tuple[str, str]:
    old, _, new = text.partition("=")
    if not (old and new):
        raise click.BadParameter(f"{text} is not REFERENCE=NEWID")
    return old, new


@sync.command("discard")
@click.argument("run", type=int)
@terminal.change_options
def sync_discard(run: int, as_json: bool) -> None:
    """Discard the held RUN, and delete its export."""
    with terminal.open_change() as (connection, actor):
        name, kept = discard_run(connection, actor, run)
    for export in kept:
        drop_export(export, terminal.read_settings().home)
    terminal.show(
        {"run": run, "outcome": "discarded"}, as_json, lambda _: f"discarded the run {run} of the feed {name}"
    )


@sync.command("undo")
@click.argument("run", type=int)
@NAMED
@OTHERS_GONE
@terminal.change_options
def sync_undo(run: int, named: tuple[str, ...], others_gone: bool, as_json: bool) -> None:
    """Take the RUN back, the last one that changed its feed.

    It loads the export before it, with new stamps. Erased people stay out, and the undone export is held if it comes
    again.
    """
    home = terminal.read_settings().home
    require = functools.partial(require_undo, run=run, home=home)
    has_named = _name_people_again(require, named, others_gone=others_gone)
    with terminal.open_connection() as connection:
        done = undo_run(connection, terminal.find_actor(), run, home, as_json=as_json, has_named=has_named)
    click.echo(done.stdout, nl=False)
    click.echo(done.stderr, nl=False, err=True)


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


@sync.command("list")
@click.option("--feed", metavar="NAME", help="Only the runs of this feed.")
@terminal.as_json
def sync_list(feed: str | None, as_json: bool) -> None:
    """Show every held run, and the latest others."""
    with terminal.open_connection() as connection:
        found = list_runs(connection, feed, LISTED)
    terminal.show_table(found, as_json, map(_to_row, found), "there were no runs")


@sync.command("show")
@click.argument("run", type=int)
@terminal.as_json
def sync_show(run: int, as_json: bool) -> None:
    """Show RUN: outcome, records of each type, steps, notices, causes of rejected rows."""
    with terminal.open_connection() as connection:
        found = find_run(connection, run)
        samples = [_hide_values(row) for row in rejected_rows.read_rejected_rows(connection, run, SAMPLES)]
    shown = ShownRun(**{field.name: getattr(found, field.name) for field in dataclasses.fields(found)}, samples=samples)
    terminal.show(shown, as_json, lambda item: describe_report(dataclasses.asdict(item)))


@sync.command("rejected")
@click.argument("run", type=int)
@terminal.csv_option
@terminal.as_json
def sync_rejected(run: int, csv_file: TextIO | None, as_json: bool) -> None:
    """Show the rejected rows of RUN with their values.

    Each row has its place, the reason, whether it fails by itself or because it refers to a rejected row, and whom and
    what it is about. CSV has the ids of these records.
    """
    with terminal.open_connection() as connection:
        rejected = find_run(connection, run).rejected
        stored = rejected_rows.count_rejected_rows(connection, run)
        is_listed = csv_file is None and not as_json
        stored_rows = list(rejected_rows.read_rejected_rows(connection, run, SHOWN if is_listed else None))
        # A file has what the loader knew, so that it is the same as that of `--rejects`.
        rows = stored_rows if csv_file is not None else label_rows(connection, run, stored_rows)
    missing = rejected_rows.explain_missing(rejected, stored)
    if csv_file is not None:
        write_private_csv(csv_file, CSV_COLUMNS, map(_to_line, rows))
        if missing:
            click.echo(missing, err=True)
        return
    terminal.show(rows, as_json, lambda _: _describe_rejected(rows, stored, missing))


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
    return [rejected_rows.list_names(row.records) if name == "records" else getattr(row, name) for name in CSV_COLUMNS]


def _describe_rejected(rows: Sequence[RejectedRow], stored: int, missing: str) -> str:
    texts = [terminal.to_texts({**_leave_out(row, "records"), "about": _name_people(row)}) for row in rows]
    lines = [terminal.make_table(texts, missing or "no row was rejected")]
    if stored > len(rows):
        lines.append(f"... and {stored - len(rows):,} more; `--csv FILE` writes all")
    return "\n".join([*lines, *([missing] if rows and missing else [])])


def _to_row(item: Run) -> dict[str, str]:
    totals: dict[str, int] = {}
    for counts in item.counts.values():
        for name, count in counts.items():
            totals[name] = totals.get(name, 0) + count
    listed = ", ".join(f"{count:,} {name}" for name, count in totals.items() if count)
    return {
        "run": str(item.run),
        "feed": item.feed,
        "outcome": item.outcome,
        "started": terminal.show_instant(item.started),
        "finished": terminal.show_instant(item.finished),
        "records": listed or "-",
        "message": item.message or "",
    }


for command in (sync_changes, sync_preview):
    sync.add_command(command)
