"""Why an export is refused: each reason has a place a person can go to and mend."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from roster_service.errors import RosterServiceError

# So many are shown; the total says how many there are.
SHOWN = 20
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
    """Refusals of one check: all of them counted, the first `SHOWN` kept. Findings add up."""

    total: int = 0
    first: tuple[Refusal, ...] = ()

    @classmethod
    def of(cls, refusals: Iterable[Refusal]) -> Findings:
        """Findings of every given refusal; holds only the first ones, however many there are."""
        total, first = 0, []
        for refusal in refusals:
            total += 1
            if total <= SHOWN:
                first.append(refusal)
        return cls(total, tuple(first))

    def __add__(self, other: Findings) -> Findings:
        return Findings(self.total + other.total, (self.first + other.first)[:SHOWN])

    def __bool__(self) -> bool:
        return self.total > 0


class RefusedExportError(RosterServiceError):
    """The export is refused as a whole and nothing was changed; `findings` says why."""

    def __init__(self, findings: Findings) -> None:
        hidden = findings.total - len(findings.first)
        lines = [str(refusal) for refusal in findings.first] + ([f"... and {hidden} more"] if hidden else [])
        super().__init__("\n".join(lines))
        self.findings = findings


def refuse_if(findings: Findings) -> None:
    """Raises RefusedExportError where there are findings."""
    if findings:
        raise RefusedExportError(findings)


def cut_value(value: str) -> str:
    """A value, or the beginning of a long one."""
    return value if len(value) <= VALUE_LENGTH else value[: VALUE_LENGTH - 1] + "…"
