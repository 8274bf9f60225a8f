"""The exit codes of the sync scripts: one table from outcomes and errors to codes and their descriptions."""

from __future__ import annotations

import contextlib
import enum
import json
import sys
from collections.abc import Iterable, Iterator

import click

from roster_service.errors import (
    CommandError,
    DatabaseUnavailableError,
    RosterServiceError,
    SettingError,
    StorageError,
    describe_fault,
)
from roster_service.feeds.held_runs import HELD
from roster_service.feeds.run_outcomes import MISSING, STALE
from roster_service.feeds.sync_lock import LockedError
from sync_scripts.engine.progress import survive_lost_output
from sync_scripts.engine.report import Report
from sync_scripts.engine.run_record import describe_cause, translate_database_errors
from sync_scripts.reading.completeness import IncompleteExportError, MissingExportError
from sync_scripts.reading.registry import OtherFormatError
from sync_scripts.reading.rejections import SHOWN, RefusedExportError


class ExitCode(enum.IntEnum):
    """The exit codes. `MEANINGS` has them from the best to the worst."""

    LOADED = 0
    PARTIAL = 1
    REFUSED = 2
    HELD = 3
    LOCKED = 4
    UNAVAILABLE = 5
    FAILED = 6
    STALE = 7
    INCOMPLETE = 8


# From the best to the worst. Code: (its name in JSON, its meaning).
MEANINGS = {
    ExitCode.LOADED: ("loaded", "loaded, nothing to change, or, at night, a paused feed or no path"),
    ExitCode.STALE: (
        "stale",
        "an export has been the same for too many days, or there is none (`missing`); the roster stays",
    ),
    ExitCode.PARTIAL: ("partial", "loaded, but for single rows that are rejected; their records stay as they were"),
    ExitCode.INCOMPLETE: ("incomplete", "an export may still be incomplete; nothing was changed, try again later"),
    ExitCode.REFUSED: ("refused", "the export (or the command line) is refused; nothing was changed"),
    ExitCode.HELD: (
        "held",
        "too much would vanish or change, or is rejected; nothing was changed until the run is approved",
    ),
    ExitCode.LOCKED: ("locked", "another run is under way; nothing was changed"),
    ExitCode.UNAVAILABLE: ("unavailable", "a setting is wrong, or the database cannot be used"),
    ExitCode.FAILED: (
        "failed",
        "a run, which changed nothing, or a step broke off: a full disk, or a fault of the program",
    ),
}
# The first that fits counts.
CODES: dict[type[RosterServiceError], ExitCode] = {
    MissingExportError: ExitCode.STALE,
    RefusedExportError: ExitCode.REFUSED,
    CommandError: ExitCode.REFUSED,
    IncompleteExportError: ExitCode.INCOMPLETE,
    LockedError: ExitCode.LOCKED,
    SettingError: ExitCode.UNAVAILABLE,
    DatabaseUnavailableError: ExitCode.UNAVAILABLE,
    StorageError: ExitCode.FAILED,
}
# The codes after which the roster is that of the export.
GOOD_CODES = frozenset({ExitCode.LOADED, ExitCode.PARTIAL})
# The end of --help; \b keeps click from joining the lines.
HELP = "\b\nExit codes:\n" + "\n".join(f"  {code:d}  {meaning}" for code, (_, meaning) in MEANINGS.items())


def find_worst(codes: Iterable[ExitCode]) -> ExitCode:
    """The worst of some codes."""
    order = list(MEANINGS)
    return max(codes, key=order.index)


def choose_exit_code(report: Report) -> ExitCode:
    """The exit code of a run without an error."""
    if report.outcome == HELD:
        return ExitCode.HELD
    if report.outcome == STALE:
        return ExitCode.STALE
    return ExitCode.PARTIAL if report.rejected else ExitCode.LOADED


def choose_error_code(error: BaseException) -> ExitCode:
    """The exit code of an error; an unexpected error is a fault of the program."""
    return next((code for kind, code in CODES.items() if isinstance(error, kind)), ExitCode.FAILED)


def name_error(error: BaseException) -> str:
    """The outcome in JSON of a run that an error ends: the name of its exit code, which a missing export shares."""
    return MISSING if isinstance(error, MissingExportError) else MEANINGS[choose_error_code(error)][0]


def describe_error(error: BaseException) -> dict[str, object]:
    """An error as one object for json.dumps. It quotes no value of an export."""
    described = {"outcome": name_error(error), "message": describe_cause(error)}
    if isinstance(error, RefusedExportError):
        rejections = [rejection.to_json() for rejection in error.findings.first[:SHOWN]]
        # The format that the export has in place of its own: the console offers to load it so.
        other = {"other_format": error.format} if isinstance(error, OtherFormatError) else {}
        return {**described, "total": error.findings.total, "rejections": rejections, **other}
    return dict(described)


def print_fault(error: BaseException) -> None:
    """Prints the place of a fault in the program on standard error; nothing for the service's own errors, which are no
    faults."""
    if not isinstance(error, RosterServiceError):
        with survive_lost_output():
            click.echo(describe_fault(error), err=True)


@contextlib.contextmanager
def exit_on_error(*, as_json: bool) -> Iterator[None]:
    """Ends the script with a code of the table if the block raises an error or an operator interrupts it. Prints a
    message and no traceback, because a traceback may quote a row. `as_json`: the message is one JSON object on standard
    output; else it is text on standard error.
    """
    try:
        with translate_database_errors():
            yield
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  (every error has a code)
        with survive_lost_output():
            if as_json:
                click.echo(json.dumps(describe_error(error), ensure_ascii=False))
            else:
                click.echo(_to_text(error), err=True)
        print_fault(error)
        sys.exit(choose_error_code(error))


def _to_text(error: BaseException) -> str:
    if choose_error_code(error) == ExitCode.REFUSED and isinstance(error, RefusedExportError):
        total = error.findings.total
        hint = f"; {error.hint}" if isinstance(error, OtherFormatError) else ""
        return f"refused for {total} {'reason' if total == 1 else 'reasons'}; nothing was changed\n{error}{hint}"
    message = describe_cause(error)
    return message if choose_error_code(error) != ExitCode.FAILED else f"failed: {message}; nothing was changed"
