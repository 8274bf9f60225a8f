"""The command line of the loaders, the same for every family of formats."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import click
from rich.console import Console

from roster_service.change_log.actors import Actor, find_system_user
from roster_service.roster.upgrades import open_roster_engine
from roster_service.settings import Settings
from sync_scripts.engine.exit_codes import HELP, choose_exit_code, exit_on_error
from sync_scripts.engine.load import load
from sync_scripts.engine.options import Options
from sync_scripts.engine.output import survive_lost_output
from sync_scripts.engine.package_log import write_package_log
from sync_scripts.engine.progress import Notify, notify_steps, show_load_steps
from sync_scripts.engine.report import Report
from sync_scripts.engine.run_record import Approval
from sync_scripts.reading.completeness import CompletenessRule, IncompleteExportError
from sync_scripts.reading.registry import Family
from sync_scripts.reading.rejections import Findings, RefusedExportError, write_rejects

WAIT = click.option("--wait", is_flag=True, help="Wait for another run of the feed instead of ending with code 4.")
# Characters per line of a report that does not go to a terminal.
WIDTH = 120


def read_actor(text: str | None) -> Actor:
    """Returns the actor that a command handed down as the text of `Actor.to_text`; without it, the system user."""
    return find_system_user(None) if text is None else Actor.read(text)


def make_command(family: Family) -> click.Command:
    """The command that loads exports of a family."""
    words = (
        f"Load the {family.title} at PATH, a folder or a zip.\n\n"
        "Records of the feed that a bulk export no longer has are marked `tobedeleted`. A row that fails a check is "
        "rejected, and its record stays as it was; an export that cannot be read is refused as a whole. "
        "A feed that does not exist yet is added."
    )

    @click.command(epilog=HELP, help=words)
    @click.option("--feed", "feed_name", required=True, metavar="NAME", help="The feed that the export belongs to.")
    @click.option("--dry-run", is_flag=True, help="Report the changes without applying them.")
    @click.option(
        "--allow-mass-delete", is_flag=True, help="Do not hold the run, however many records it deletes or changes."
    )
    @click.option("--strict", is_flag=True, help="Refuse the export for any deviation from its format.")
    @click.option(
        "--rejects",
        # Click opens it before the load, so a file that cannot be opened changes nothing.
        type=click.File("w", encoding="utf-8", lazy=False),
        metavar="FILE",
        help="Write the rejections as CSV, with the values, which are not printed.",
    )
    @click.option(
        "--report",
        "log_file",
        type=click.File("w", encoding="utf-8", lazy=False),
        metavar="FILE",
        help="Write the log of the package as JSON: its outcome, and the files that were imported and rejected.",
    )
    @click.option("--now", is_flag=True, help="Load the export even if somebody wrote to it some minutes ago.")
    @click.option("--reason", help="Why; `roster changes` shows it, if the feed is new or with --allow-mass-delete.")
    @WAIT
    @click.option("--approves", type=int, hidden=True)
    @click.option("--actor", "actor_text", hidden=True)
    # What the run calls its export, for a copy of one.
    @click.option("--source", hidden=True)
    # `roster sync preview` shows the report, and has options for these.
    @click.option("--changes", type=click.File("w", encoding="utf-8", lazy=False), hidden=True)
    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
    @click.argument("path", type=click.Path(path_type=Path))
    def main(
        feed_name: str,
        dry_run: bool,
        allow_mass_delete: bool,
        strict: bool,
        rejects: TextIO | None,
        log_file: TextIO | None,
        now: bool,
        reason: str | None,
        wait: bool,
        approves: int | None,
        actor_text: str | None,
        source: str | None,
        changes: TextIO | None,
        as_json: bool,
        path: Path,
    ) -> None:
        with exit_on_error(as_json=as_json):
            settings = Settings.from_environ(os.environ)
            # With --json the output is one object; with --approves, `roster sync approve` shows the result.
            quiet = as_json or approves is not None
            with (
                write_package_log(log_file, path, feed_name) as log,
                open_roster_engine(settings) as engine,
                _reject_into(rejects) as found,
                _show_progress(quiet=quiet) as notify,
            ):
                actor = find_system_user(reason) if actor_text is None else Actor.read(actor_text)
                approval = None if approves is None else Approval(approves, actor)
                options = Options(
                    settings,
                    dry_run=dry_run,
                    allow_mass_delete=allow_mass_delete,
                    changes=changes,
                    strict=strict,
                    approval=approval,
                    wait=wait,
                    actor=actor,
                    source=source,
                    notify=notify_steps(notify, feed_name),
                )
                # A dry run of an incomplete export shows what it is missing.
                if not (now or dry_run or approves is not None):
                    _require_complete(settings, path)
                report = load(engine, feed_name, path, family=family, options=options)
                found.append(report.findings)
                log.report = report
        with survive_lost_output():
            _print(report, as_json=as_json)
        sys.exit(choose_exit_code(report))

    return main


def _require_complete(settings: Settings, path: Path) -> None:
    try:
        CompletenessRule(settings.export_age_minutes).require_complete(path, time.time())
    except IncompleteExportError as error:
        raise IncompleteExportError(f"{error}; `--now` loads it at once", error.seconds) from None


def _show_progress(*, quiet: bool) -> contextlib.AbstractContextManager[Notify]:
    return contextlib.nullcontext(lambda _event: None) if quiet else show_load_steps(sys.stderr)


@contextlib.contextmanager
def _reject_into(out: TextIO | None) -> Iterator[list[Findings]]:
    """Yields a list for findings, and at the end writes them to `out`, or the reasons of a refused export. The run has
    ended by then, so a write error is printed and does not change the exit code."""
    found: list[Findings] = []
    try:
        yield found
    except RefusedExportError as error:
        found.append(error.findings)
        raise
    finally:
        if out is not None:
            try:
                write_rejects(out, Findings.sum(found))
            except OSError as error:
                click.echo(f"{out.name} cannot be written: {error.strerror}", err=True)


def _print(report: Report, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(report.to_json(), ensure_ascii=False))
        return
    Console(width=None if sys.stdout.isatty() else WIDTH).print(report.to_grid())
    for notice in report.notices:
        click.echo(notice)
    if report.findings:
        rows = "1 row is" if report.rejected == 1 else f"{report.rejected:,} rows are"
        click.echo(f"{rows} rejected:\n{report.findings}", err=True)
    if report.message and not report.dry_run:
        hint = f"`roster sync approve {report.run}` applies it, `roster sync discard {report.run}` forgets it"
        click.echo(f"held: {report.message}; {hint}", err=True)
    elif report.message:
        click.echo(f"would be held: {report.message}", err=True)
