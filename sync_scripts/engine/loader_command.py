"""The command line of the loaders, the same for every family of formats, and the log of one package, for `--report`.

The log is one JSON object, and quotes no value of the package.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

import click
import sqlalchemy as sa
from rich.console import Console

from roster_service.change_log.actors import Actor, find_system_user
from roster_service.db.tables import feeds
from roster_service.feeds.data_quality import Doubt, list_doubts, store_counts
from roster_service.feeds.feed_conditions import explain_no_path
from roster_service.feeds.held_runs import HELD
from roster_service.feeds.run_history import ABSENT
from roster_service.roster.revisions import open_roster_engine
from roster_service.settings import Settings
from sync_scripts.engine import exit_codes
from sync_scripts.engine.exit_codes import ExitCode
from sync_scripts.engine.load import load
from sync_scripts.engine.progress import Notify, notify_steps, show_load_steps, survive_lost_output
from sync_scripts.engine.report import Report
from sync_scripts.engine.run import Options
from sync_scripts.engine.run_record import Approval
from sync_scripts.reading.completeness import CompletenessRule, IncompleteExportError
from sync_scripts.reading.registry import Family
from sync_scripts.reading.rejections import NO_FINDINGS, SHOWN, Findings, RefusedExportError, write_rejects


@dataclass
class PackageLog:
    """The log of the package at `path`, for a feed. `report`: of a run without an error."""

    path: Path
    feed: str
    begun: datetime = field(default_factory=lambda: datetime.now(UTC))
    report: Report | None = None

    def describe(self, error: BaseException | None) -> dict[str, Any]:
        """The log as one object for json.dumps. `error`: which ended the run, or None."""
        report = self.report
        code = ExitCode.FAILED if report is None else exit_codes.choose_exit_code(report)
        outcome = exit_codes.MEANINGS[code][0]
        message = None if report is None else report.message
        findings = NO_FINDINGS if report is None else report.findings
        if error is not None:
            outcome = exit_codes.name_error(error)
            findings = error.findings if isinstance(error, RefusedExportError) else NO_FINDINGS
            message = None if findings else str(exit_codes.describe_error(error)["message"])
        is_loaded = report is not None and not report.dry_run and code in exit_codes.GOOD_CODES
        imported = (
            [file.file for file in report.files if file.mode != ABSENT] if report is not None and is_loaded else []
        )
        return {
            "package": self.path.resolve().name,
            "date": self.begun.isoformat(timespec="seconds").replace("+00:00", "Z"),
            "feed": self.feed,
            "format": None if report is None else report.format,
            "run": None if report is None else report.run,
            "dry_run": report is not None and report.dry_run,
            "outcome": outcome,
            "message": message,
            "imported": imported,
            "rejected": [
                {"file": file, "whole": file not in imported, "reasons": reasons}
                for file, reasons in _group(findings).items()
            ],
        }


def _group(findings: Findings) -> dict[str, list[dict[str, object]]]:
    """The reasons by file, each with its first line and the number of its rows: root causes, then the first of all
    others. A reason that concerns no row has no rows."""
    known = [(cause.file, cause.line, cause.column, cause.reason, cause.rows) for cause in findings.list_causes()]
    others = [rejection for rejection in findings.first if rejection.cause is None or rejection.is_consequence]
    rows = Counter((other.file, other.column, other.reason) for other in others if (other.line or 0) > 1)
    first = {(other.file, other.column, other.reason): other.line for other in reversed(others)}
    known += [(*key[:1], line, *key[1:], rows[key]) for key, line in reversed(first.items())]
    found: dict[str, list[dict[str, object]]] = {}
    for file, line, column, reason, count in known:
        reasons = found.setdefault(file, [])
        if len(reasons) < SHOWN:
            reasons.append({"line": line, "column": column, "reason": reason, "rows": count})
    return found


@contextlib.contextmanager
def write_package_log(out: TextIO | None, path: Path, feed: str) -> Iterator[PackageLog]:
    """Yields the log of a package, and writes it to `out` when the block ends, also by an error. The run has ended by
    then, so a write error is printed and does not change the exit code."""
    log = PackageLog(path, feed)
    error: BaseException | None = None
    try:
        yield log
    except BaseException as caught:
        error = caught
        raise
    finally:
        if out is not None:
            try:
                out.write(json.dumps(log.describe(error), ensure_ascii=False, indent=2) + "\n")
                out.flush()
            except OSError as failure:
                click.echo(f"{out.name} cannot be written: {failure.strerror}", err=True)


WAIT = click.option("--wait", is_flag=True, help="Wait for another run of the feed instead of ending with code 4.")
# Characters per line of a report that does not go to a terminal.
WIDTH = 120


def read_actor(text: str | None) -> Actor:
    """Returns the actor that a command handed down as the text of `Actor.to_text`; without it, the system user."""
    return find_system_user(None) if text is None else Actor.read(text)


def make_command(family: Family) -> click.Command:
    """The command that loads exports of a family."""
    words = (
        f"Load the {family.title}, at PATH, a folder or a zip.\n\n"
        "Records of the feed that a bulk export no longer has are marked `tobedeleted`. A row that fails a check is "
        "rejected, and its record stays as it was; an export that cannot be read is refused as a whole. "
        "A feed that does not exist yet is added."
    )

    @click.command(epilog=exit_codes.HELP, help=words)
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
    @click.option("--undoes", type=int, hidden=True)
    @click.option("--has-named", is_flag=True, hidden=True)
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
        undoes: int | None,
        has_named: bool,
        actor_text: str | None,
        source: str | None,
        changes: TextIO | None,
        as_json: bool,
        path: Path,
    ) -> None:
        with exit_codes.exit_on_error(as_json=as_json):
            settings = Settings.read(os.environ)
            is_copy = approves is not None or undoes is not None
            # With --json the output is one object; of a copy, `roster sync approve` and `undo` show the result.
            quiet = as_json or is_copy
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
                    undoes=undoes,
                    has_named=has_named,
                    keeps_copy=True,
                    wait=wait,
                    actor=actor,
                    source=source,
                    notify=notify_steps(notify, feed_name),
                )
                # A dry run of an incomplete export shows what it is missing.
                if not (now or dry_run or is_copy):
                    _require_complete(settings, path)
                report = load(engine, feed_name, path, family=family, options=options)
                found.append(report.findings)
                log.report = report
                hint = None if quiet or dry_run else _find_hint(engine, feed_name, path)
                doubts = _count_quality(engine, report)
        with survive_lost_output():
            _print(report, hint, doubts, as_json=as_json)
        sys.exit(exit_codes.choose_exit_code(report))

    return main


def _find_hint(engine: sa.Engine, name: str, path: Path) -> str | None:
    """What to do so that the nightly sync loads the feed, too; None if it does."""
    with engine.connect() as connection:
        known = connection.scalar(sa.select(feeds.c.path).where(feeds.c.name == name))
    return None if known else f"{name}: {explain_no_path(name, str(path.absolute()))}"


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


def _count_quality(engine: sa.Engine, report: Report) -> Sequence[Doubt]:
    """What the checks of data quality doubt in the roster of a run that has changed it. They are counted here, because
    after a load by hand the next night is far. The nightly sync counts what fails here."""
    if report.revision is None:
        return ()
    try:
        store_counts(engine, report.feed)
        with engine.connect() as connection:
            return list_doubts(connection, report.feed)
    except sa.exc.SQLAlchemyError:
        return ()


def _print(report: Report, hint: str | None, doubts: Sequence[Doubt], *, as_json: bool) -> None:
    if report.dry_run and report.preview is not None:
        doubts = [Doubt.preview(report.feed, report.preview["quality"])]
    if as_json:
        found = {check: number for doubt in doubts for check, number in doubt.found.items()}
        click.echo(json.dumps({**report.to_json(), "doubts": found}, ensure_ascii=False))
        return
    Console(width=None if sys.stdout.isatty() else WIDTH).print(report.to_grid())
    for notice in (*report.notices, *([] if hint is None else [hint])):
        click.echo(notice)
    for doubt in doubts:
        if doubt.found:
            click.echo(f"look at these values{'' if report.dry_run else ', which are loaded'}: {doubt.describe()}")
    if report.findings:
        rows = "1 row is" if report.rejected == 1 else f"{report.rejected:,} rows are"
        click.echo(f"{rows} rejected:\n{report.findings}", err=True)
    if report.outcome == HELD and not report.dry_run:
        hint = f"`roster sync approve {report.run}` applies it, `roster sync discard {report.run}` forgets it"
        click.echo(f"held: {report.message}; {hint}", err=True)
    elif report.message and not report.dry_run:
        click.echo(f"{report.outcome}: {report.message}", err=True)
    elif report.message:
        click.echo(f"would be held: {report.message}", err=True)
