"""`roster sync preview`: the report of a run before anything is applied."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import sqlalchemy as sa

from roster_service.cli.run_report import describe_report
from roster_service.cli.terminal import as_json, open_connection
from roster_service.db.tables import feeds
from roster_service.errors import CommandError
from roster_service.feeds.feed_states import FeedState
from roster_service.feeds.feeds import FORMATS
from roster_service.feeds.scripts import run_script


@click.command("preview")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--feed", required=True, metavar="NAME", help="The feed that the export belongs to.")
@click.option("--format", "format_", type=click.Choice(FORMATS), help="The CSV family, for a feed that is new.")
@click.option(
    "--csv",
    "csv_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write all changes with their values as CSV into FILE, which only its owner can read.",
)
@as_json
def sync_preview(path: Path, feed: str, format_: str | None, csv_path: Path | None, as_json: bool) -> None:
    """Show the run that would load the export at PATH, and change nothing: the records of each type, notices, the
    causes of rejected rows, and what would vanish by school and class."""
    with open_connection() as connection:
        changes = [] if csv_path is None else ["--changes", str(csv_path)]
        report = preview_run(connection, _choose_format(connection, feed, format_), feed, path, *changes)
    click.echo(json.dumps(report, ensure_ascii=False) if as_json else describe_report(report))


def preview_run(connection: sa.Connection, format_: str, feed: str, path: str | Path, *options: str) -> dict[str, Any]:
    """Returns the report, as its loader prints it, of a dry run of the export at `path`. Raises CommandError with the
    reasons if the export would not be loaded."""
    done = run_script(connection, f"load_{format_}", "--feed", feed, "--dry-run", "--json", *options, "--", path)
    report: dict[str, Any] = _read_report(done.stdout) or {}
    if report.get("dry_run") is None:
        raise CommandError(f"the export would not be loaded:\n{_describe_refusal(report) or done.stderr}")
    return report


def _choose_format(connection: sa.Connection, feed: str, given: str | None) -> str:
    known = connection.scalar(sa.select(feeds.c.format).where(feeds.c.name == feed, feeds.c.state != FeedState.TRIED))
    if known is None and given is None:
        raise CommandError(f"there is no feed {feed}; name its --format to preview its first run")
    if known and given not in (None, known):
        raise CommandError(f"the feed {feed} takes {known}, not {given}")
    return str(known or given)


def _read_report(text: str) -> Any:
    """The JSON object that a loader printed; None if it printed none."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def _describe_refusal(report: dict[str, Any]) -> str:
    """The message of an error, or the reasons of a refused export, a line each."""
    lines = [
        ", ".join(
            str(part)
            for part in (
                rejection["file"],
                rejection["line"] and f"line {rejection['line']}",
                rejection["column"] and f"column {rejection['column']}",
            )
            if part
        )
        + f": {rejection['reason']}"
        for rejection in report.get("refusals", [])
    ]
    hidden = report.get("total", 0) - len(lines)
    return "\n".join([*lines, *([f"... and {hidden:,} more"] if hidden > 0 else [])]) or report.get("message", "")
