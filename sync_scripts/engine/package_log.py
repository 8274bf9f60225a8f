"""The log of one package, for `--report`: which files were imported, which were rejected, and why.

It is one JSON object, and quotes no value of the package.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

import click

from sync_scripts.engine.exit_codes import (
    GOOD_CODES,
    MEANINGS,
    ExitCode,
    choose_exit_code,
    describe_error,
    name_error,
)
from sync_scripts.engine.report import Report
from sync_scripts.reading.manifest import ABSENT
from sync_scripts.reading.rejections import NO_FINDINGS, SHOWN, Findings, RefusedExportError


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
        code = ExitCode.FAILED if report is None else choose_exit_code(report)
        outcome = MEANINGS[code][0]
        message = None if report is None else report.message
        findings = NO_FINDINGS if report is None else report.findings
        if error is not None:
            outcome = name_error(error)
            findings = error.findings if isinstance(error, RefusedExportError) else NO_FINDINGS
            message = None if findings else str(describe_error(error)["message"])
        is_loaded = report is not None and not report.dry_run and code in GOOD_CODES
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
