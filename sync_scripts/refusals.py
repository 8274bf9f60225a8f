"""Why an export, or a row of it, is refused: each reason has a place a person can go to and mend."""

from __future__ import annotations

import csv
import dataclasses
import functools
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TextIO

from roster_service.errors import RosterServiceError

# So many are printed, and so many are kept to be stored and written down; the total says how many there are.
SHOWN, KEPT = 20, 10_000
VALUE_LENGTH = 80


@dataclass(frozen=True)
class Refusal:
    """One reason and its place: `line` counts from 1, the header's; `column` is its header; None: no such place."""

    file: str
    reason: str
    line: int | None = None
    column: str | None = None
    # What was found there, where it may be shown.
    value: str | None = None

    def to_json(self) -> dict[str, object]:
        """One object, ready for json.dumps; a long value is cut."""
        return {**dataclasses.asdict(self), "value": self.value and cut_value(self.value)}

    def __str__(self) -> str:
        place = [self.file]
        if self.line is not None:
            place.append(f"line {self.line}")
        if self.column is not None:
            place.append(f"column {self.column}")
        value = "" if self.value is None else f" (found {cut_value(self.value)!r})"
        return f"{', '.join(place)}: {self.reason}{value}"


@dataclass(frozen=True)
class Findings:
    """Refusals of one check: all of them counted, the first `KEPT` kept. Findings add up."""

    total: int = 0
    first: tuple[Refusal, ...] = ()

    @classmethod
    def of(cls, refusals: Iterable[Refusal]) -> Findings:
        """Findings of every given refusal; holds only the first ones, however many there are."""
        total, first = 0, []
        for refusal in refusals:
            total += 1
            if total <= KEPT:
                first.append(refusal)
        return cls(total, tuple(first))

    @classmethod
    def sum(cls, parts: Iterable[Findings]) -> Findings:
        """All findings of the parts, in their order."""
        return functools.reduce(operator.add, parts, cls())

    def in_order(self) -> Findings:
        """The same findings in the order of lines."""
        return Findings(self.total, tuple(sorted(self.first, key=lambda refusal: refusal.line or 0)))

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
    """Writes the findings that are kept as CSV; without findings, the header alone."""
    writer = csv.writer(out)
    writer.writerow(REJECTS_HEADER)
    for refusal in findings.first:
        told = refusal.to_json()
        writer.writerow(["" if told[name] is None else told[name] for name in REJECTS_HEADER])
    out.flush()
