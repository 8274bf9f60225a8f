"""`roster sync`: the runs of the sync. This module approves and discards held runs; `sync_runs` shows runs."""

from __future__ import annotations

from typing import Any

import click
from sqlalchemy import Connection, Row, select

from roster_service.cli import sync_runs as runs
from roster_service.cli.console import as_json, open_connection, show
from roster_service.cli.scripts import run_script
from roster_service.cli.sync_changes import sync_changes
from roster_service.cli.sync_preview import sync_preview
from roster_service.db.held_runs import APPROVED, HELD, close_held, drop_export
from roster_service.db.tables import feeds, sync_runs
from roster_service.errors import CommandError


@click.group()
def sync() -> None:
    """The runs of the nightly sync."""


@sync.command("approve")
@click.argument("run", type=int)
@as_json
def sync_approve(run: int, as_json: bool) -> None:
    """Apply the held RUN with the export that was held. If it would now delete or change more records than it showed,
    it is held again, as a new run."""
    with open_connection() as connection:
        held = _find_held(connection, run)
        done = run_script(
            connection,
            f"load_{held.format}",
            *("--feed", held.name, "--approves", str(run), *(["--json"] if as_json else []), "--", held.kept_export),
        )
        # The outcome in the database decides, because other failures could give the same exit code.
        is_approved = _find(connection, run).outcome == APPROVED
    if not is_approved:
        raise CommandError(f"the run {run} was not applied:\n{done.stderr or done.stdout}")
    click.echo(done.stdout, nl=False)
    click.echo(done.stderr, nl=False, err=True)


@sync.command("discard")
@click.argument("run", type=int)
@as_json
def sync_discard(run: int, as_json: bool) -> None:
    """Discard the held RUN, and delete its export."""
    with open_connection() as connection:
        held = _find_held(connection, run)
        kept = close_held(connection, sync_runs.c.id == run, "discarded", "discarded by an operator")
    for export in kept:
        drop_export(export)
    show({"run": run, "outcome": "discarded"}, as_json, lambda _: f"discarded the run {run} of the feed {held.name}")


def _find(connection: Connection, run: int) -> Row[Any, Any, Any, Any]:
    rows = select(sync_runs.c.outcome, sync_runs.c.kept_export, feeds.c.name, feeds.c.format).join(
        feeds, feeds.c.id == sync_runs.c.feed_id
    )
    found = connection.execute(rows.where(sync_runs.c.id == run)).one_or_none()
    if found is None:
        raise CommandError(f"there is no run {run}")
    return found


def _find_held(connection: Connection, run: int) -> Row[Any, Any, Any, Any]:
    found = _find(connection, run)
    if found.outcome != HELD:
        raise CommandError(f"the run {run} is not held; it is {found.outcome}")
    return found


for command in (*runs.COMMANDS, sync_changes, sync_preview):
    sync.add_command(command)
