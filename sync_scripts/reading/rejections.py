"""The reasons for which the sync refuses an export or rejects a row of it. Each reason has a place that a person can
find and correct.

Printed reasons go into logs, so they name only places. The values, such as a pupil's name, go only into the database
and into the file of `--rejects`.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TextIO

from roster_service.errors import RosterServiceError
from roster_service.feeds.private_files import write_private_csv
from roster_service.feeds.rejected_rows import KEPT, NamedRecord, list_names

# How many reasons are printed. `KEPT` of them are kept for the database and for `--rejects`; the total counts all.
SHOWN = 20
VALUE_LENGTH = 80


@dataclass(frozen=True)
class Rejection:
    """One reason and its place. `line`: from 1, which is the header; `column`: the header, or the number of the column
    where the file declares no such header; None: the reason has no such place. `reason` never quotes a value. `value`:
    the text at this place, where the sync may store it; `sourced_id`: the id in the row, None for a reason that
    concerns no row; `cause`: the number of the cause among the causes of the findings, from 0, None for a reason that
    is in no group; `is_consequence`: whether the row is rejected only because it refers to a rejected row; `records`:
    that the row names, its own first; `is_shifted`: whether the row has too few or too many cells, so that each may be
    that of another column."""

    file: str
    reason: str
    line: int | None = None
    column: str | None = None
    value: str | None = None
    sourced_id: str | None = None
    cause: int | None = None
    is_consequence: bool = False
    records: tuple[NamedRecord, ...] = ()
    is_shifted: bool = False

    def to_json(self) -> dict[str, object]:
        """The printed part, as one object for json.dumps."""
        return {"file": self.file, "line": self.line, "column": self.column, "reason": self.reason}

    def to_row(self) -> dict[str, object]:
        """The stored columns; a long value is cut."""
        return {
            **self.to_json(),
            "value": self.value and cut_value(self.value),
            "sourced_id": self.sourced_id and cut_value(self.sourced_id),
            "cause": self.cause,
            "is_consequence": self.is_consequence,
            "records": [record.to_json() for record in self.records],
        }

    def __str__(self) -> str:
        place = [self.file]
        if self.line is not None:
            place.append(f"line {self.line}")
        if self.column is not None:
            place.append(f"column {self.column}")
        # The file is the subject of a reason of the whole of it, as of `is missing`.
        colon = "" if len(place) == 1 and self.reason.startswith("is ") else ":"
        return f"{', '.join(place)}{colon} {self.reason}"


@dataclass(frozen=True)
class Cause:
    """The rows of a file that are rejected for the same reason in the same column: a root cause. `column`: None for
    converted rows; `line`: the first of their lines; `consequences`: the number of rows that are rejected because they
    refer to these."""

    file: str
    column: str | None
    reason: str
    rows: int
    line: int | None
    consequences: int = 0

    def to_json(self) -> dict[str, object]:
        """The cause as one object for json.dumps."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        count = "1 row" if self.rows == 1 else f"{self.rows:,} rows"
        place = (
            "" if self.line is None else f", in line {self.line}" if self.rows == 1 else f", first in line {self.line}"
        )
        rows = "1 row that refers" if self.consequences == 1 else f"{self.consequences:,} rows that refer"
        those = "it" if self.rows == 1 else "them"
        follow = f"; rejected with {those}: {rows} to {those}" if self.consequences else ""
        column = "" if self.column is None else f", column {self.column}"
        return f"{self.file}{column}: {count}{place}: {self.reason}{follow}"


@dataclass(frozen=True)
class Findings:
    """The rejections of one or more checks: the count of all, and the `first` `KEPT` of them. `causes`: the groups of
    the root causes, most rows first as they are printed; `Rejection.cause` is an index of them. Findings can be
    added."""

    total: int = 0
    first: tuple[Rejection, ...] = ()
    causes: tuple[Cause, ...] = ()

    @classmethod
    def of(cls, rejections: Iterable[Rejection]) -> Findings:
        """The findings of all given rejections; reads the iterable once and holds only the first `KEPT` in memory."""
        total, first = 0, []
        for rejection in rejections:
            total += 1
            if total <= KEPT:
                first.append(rejection)
        return cls(total, tuple(first))

    @classmethod
    def sum(cls, parts: Iterable[Findings]) -> Findings:
        """The findings of all parts, in the order of the parts."""
        return functools.reduce(operator.add, parts, cls())

    def __add__(self, other: Findings) -> Findings:
        known = len(self.causes)
        added = (
            rejection if rejection.cause is None else replace(rejection, cause=rejection.cause + known)
            for rejection in other.first
        )
        first = sorted((*self.first, *added), key=lambda rejection: rejection.is_consequence)
        return Findings(self.total + other.total, tuple(first[:KEPT]), self.causes + other.causes)

    def __bool__(self) -> bool:
        return self.total > 0

    def list_causes(self) -> list[Cause]:
        """The causes, those that reject the most rows first."""
        return sorted(self.causes, key=lambda cause: -cause.rows - cause.consequences)

    def summarize(self) -> str:
        """The gravest cause in one line, and the number of the others. There must be a finding."""
        causes = self.list_causes()
        others = (len(causes) or self.total) - 1
        more = f" (and {others:,} more {'reason' if others == 1 else 'reasons'})" if others else ""
        return f"{causes[0] if causes else self.first[0]}{more}"

    def __str__(self) -> str:
        # A few rows are listed one by one; of many, a person first needs the causes.
        grouped = self.total > SHOWN and self.causes
        listed: Sequence[object] = self.list_causes() if grouped else self.first
        hidden = (len(self.causes) if grouped else self.total) - len(listed[:SHOWN])
        return "\n".join([*map(str, listed[:SHOWN]), *([f"... and {hidden} more"] if hidden else [])])


NO_FINDINGS = Findings()


class RefusedExportError(RosterServiceError):
    """The sync refuses the export as a whole and changes nothing; `findings` has the reasons."""

    def __init__(self, findings: Findings) -> None:
        super().__init__(str(findings))
        self.findings = findings


def refuse_if(findings: Findings) -> None:
    """Raises RefusedExportError if there are findings."""
    if findings:
        raise RefusedExportError(findings)


def cut_value(value: str) -> str:
    """The value, cut to `VALUE_LENGTH` characters."""
    return value if len(value) <= VALUE_LENGTH else value[: VALUE_LENGTH - 1] + "…"


# The columns of the file of `--rejects`; `roster sync rejected --csv` writes the same.
REJECTS_HEADER = ("file", "line", "column", "value", "reason", "sourcedId", "kind", "records")


def write_rejects(out: TextIO, findings: Findings) -> None:
    """Writes the kept findings as CSV, readable only for the file's owner; without findings, only the header."""
    rows = []
    for rejection in findings.first:
        kept = rejection.to_row()
        kept |= {
            "sourcedId": kept["sourced_id"],
            "kind": "consequence" if rejection.is_consequence else "cause",
            "records": list_names(rejection.records),
        }
        rows.append([kept[name] for name in REJECTS_HEADER])
    write_private_csv(out, REJECTS_HEADER, rows)
