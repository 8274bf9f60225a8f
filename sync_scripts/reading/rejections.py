"""Why an export, or a row of it, is refused: each reason has a place a person can go to and mend.

What is printed goes into logs, and names places alone. What stands there, which may be a pupil's name, is written into
the database and into the file of `--rejects`.
"""

from __future__ import annotations

import csv
import functools
import operator
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from typing import IO, TextIO

from roster_service.errors import RosterServiceError

# So many are printed, and so many are kept to be stored and written down; the total says how many there are.
SHOWN, KEPT = 20, 10_000
VALUE_LENGTH = 80


@dataclass(frozen=True)
class Rejection:
    """One reason and its place: `line` counts from 1, the header's; `column` is its header, or its number where the
    header is none that the file has; None: no such place. No reason quotes what stands there."""

    file: str
    reason: str
    line: int | None = None
    column: str | None = None
    # What was found there, where it may be kept.
    value: str | None = None

    def to_json(self) -> dict[str, object]:
        """What is printed, as one object, ready for json.dumps."""
        return {"file": self.file, "line": self.line, "column": self.column, "reason": self.reason}

    def to_row(self) -> dict[str, object]:
        """What is kept; a long value is cut."""
        return {**self.to_json(), "value": self.value and cut_value(self.value)}

    def __str__(self) -> str:
        place = [self.file]
        if self.line is not None:
            place.append(f"line {self.line}")
        if self.column is not None:
            place.append(f"column {self.column}")
        return f"{', '.join(place)}: {self.reason}"


@dataclass(frozen=True)
class Findings:
    """Refusals of one check: all of them counted, the first `KEPT` kept. Findings add up."""

    total: int = 0
    first: tuple[Rejection, ...] = ()

    @classmethod
    def of(cls, rejections: Iterable[Rejection]) -> Findings:
        """Findings of every given refusal; holds only the first ones, however many there are."""
        total, first = 0, []
        for rejection in rejections:
            total += 1
            if total <= KEPT:
                first.append(rejection)
        return cls(total, tuple(first))

    @classmethod
    def sum(cls, parts: Iterable[Findings]) -> Findings:
        """All findings of the parts, in their order."""
        return functools.reduce(operator.add, parts, cls())

    def sort_by_line(self) -> Findings:
        """The same findings in the order of lines."""
        return Findings(self.total, tuple(sorted(self.first, key=lambda rejection: rejection.line or 0)))

    def __add__(self, other: Findings) -> Findings:
        return Findings(self.total + other.total, (self.first + other.first)[:KEPT])

    def __bool__(self) -> bool:
        return self.total > 0

    def __str__(self) -> str:
        shown = self.first[:SHOWN]
        hidden = self.total - len(shown)
        return "\n".join([*map(str, shown), *([f"... and {hidden} more"] if hidden else [])])


NO_FINDINGS = Findings()


class RefusedExportError(RosterServiceError):
    """The export is refused as a whole and nothing was changed; `findings` says why."""

    def __init__(self, findings: Findings) -> None:
        super().__init__(str(findings))
        self.findings = findings


def refuse_if(findings: Findings) -> None:
    """Raises RefusedExportError where there are findings."""
    if findings:
        raise RefusedExportError(findings)


def cut_value(value: str) -> str:
    """A value, or the beginning of a long one."""
    return value if len(value) <= VALUE_LENGTH else value[: VALUE_LENGTH - 1] + "…"


REJECTS_HEADER = ("file", "line", "column", "value", "reason")


def write_rejects(out: TextIO, findings: Findings) -> None:
    """Writes the findings that are kept as CSV, for the file's owner alone; without findings, the header alone."""
    _keep_private(out)
    writer = csv.writer(out)
    writer.writerow(REJECTS_HEADER)
    for rejection in findings.first:
        kept = rejection.to_row()
        writer.writerow(["" if kept[name] is None else kept[name] for name in REJECTS_HEADER])
    out.flush()


def _keep_private(out: IO[str]) -> None:
    """Lets nobody but its owner read a file. A device or a pipe is as its owner has made it."""
    if stat.S_ISREG(os.fstat(out.fileno()).st_mode):
        os.fchmod(out.fileno(), stat.S_IRUSR | stat.S_IWUSR)
