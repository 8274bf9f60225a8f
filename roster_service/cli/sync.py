"""`roster sync`: the runs of the sync. This module approves and discards held runs; `sync_runs` shows runs."""

from __future__ import annotations

import os
import sys

import click

from roster_service.cli import sync_runs as runs
from roster_service.cli.sync_changes import sync_changes
from roster_service.cli.sync_preview import sync_preview
from roster_service.cli.terminal import (
    as_json,
    find_actor,
    open_change,
    open_connection,
    read_settings,
    reason_option,
    show,
)
from roster_service.feeds.held_runs import drop_export
from roster_service.feeds.runs import approve_run, discard_run
from roster_service.people import add_new_ids


@click.group()
def sync() -> None:
    """The runs of the nightly sync."""


@sync.command("run")
@click.option("--jobs", type=int, help="How many feeds to load at the same time, in place of ROSTER_SYNC_JOBS.")
@click.option("--wait", is_flag=True, help="Wait for other runs of the feeds.")
def sync_run(jobs: int | None, wait: bool) -> None:
    """Load the export of every enabled feed, purge, and warm up, as the timer does each night."""
    given = [*(() if jobs is None else ("--jobs", str(jobs))), *(("--wait",) if wait else ())]
    # In place of this process, so that its output, its signals and its exit code are those of the script.
    os.execv(sys.executable, [sys.executable, "-m", "sync_scripts.nightly", *given])  # noqa: S606  (our own script)


@sync.command("approve")
@click.argument("run", type=int)
@click.option(
    "--excluded",
    "named",
    multiple=True,
    metavar="REFERENCE=NEWID",
    help="The new id of an erased or hidden person, who stays out under both, for a run with other ids; repeatable.",
)
@click.option("--others-gone", is_flag=True, help="All other erased and hidden people are not in the export.")
@reason_option
@as_json
def sync_approve(run: int, named: tuple[str, ...], others_gone: bool, as_json: bool) -> None:
    """Apply the held RUN with the export that was held. If it would now delete or change more records than it showed,
    it is held again, as a new run."""
    if named or others_gone:
        with open_change() as (connection, actor):
            add_new_ids(connection, actor, dict(map(_split_pair, named)), read_settings(), others_gone=others_gone)
    with open_connection() as connection:
        done = approve_run(connection, find_actor(), run, as_json=as_json, has_named=bool(named or others_gone))
    click.echo(done.stdout, nl=False)
    click.echo(done.stderr, nl=False, err=True)


def _split_pair(text: str) -> tuple[str, str]:
    old, _, new = text.partition("=")
    if not (old and new):
        raise click.BadParameter(f"{text} is not REFERENCE=NEWID")
    return old, new


@sync.command("discard")
@click.argument("run", type=int)
@reason_option
@as_json
def sync_discard(run: int, as_json: bool) -> None:
    """Discard the held RUN, and delete its export."""
    with open_change() as (connection, actor):
        name, kept = discard_run(connection, actor, run)
    for export in kept:
        drop_export(export)
    show({"run": run, "outcome": "discarded"}, as_json, lambda _: f"discarded the run {run} of the feed {name}")


for command in (*runs.COMMANDS, sync_changes, sync_preview):
    sync.add_command(command)
