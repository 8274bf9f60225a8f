"""What a run did, as a value, as JSON, and as a table for people."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.table import Table as Grid

from sync_scripts.applying.changes import Counts
from sync_scripts.engine.runs import PURGED
from sync_scripts.reading.rejections import NO_FINDINGS, SHOWN, Findings

# What people call the tables: the names of OneRoster's collections.
TYPES = {"academic_sessions": "academicSessions"}


@dataclass(frozen=True)
class Report:
    """The outcome of a run: `done`, `unchanged` where the roster already was as exported, or `held`: then the counts
    say what would have been done."""

    feed: str
    format: str
    source: str
    outcome: str
    # The dateLastModified of every change of the run, and the roster's revision; None where nothing changed.
    stamp: datetime | None
    revision: int | None
    counts: Mapping[str, Counts]
    seconds: Mapping[str, float]
    # Why rows were refused; the others of the export were loaded.
    findings: Findings = NO_FINDINGS
    # Why it is held.
    message: str | None = None
    notices: tuple[str, ...] = ()
    dry_run: bool = False
    # Its number in sync_runs; None for a dry run, which leaves nothing behind.
    run: int | None = None

    @property
    def refused(self) -> int:
        """How many rows were refused."""
        return sum(count.refused for count in self.counts.values())

    def with_notices(self, *notices: str) -> Report:
        """The report with further notices."""
        return dataclasses.replace(self, notices=(*self.notices, *notices))

    def to_row(self) -> dict[str, Any]:
        """The columns of sync_runs that say the same."""
        return {
            "format": self.format,
            "source": self.source,
            "stamp": self.stamp,
            "outcome": self.outcome,
            # The purge comes after the run.
            "counts": {name: {**dataclasses.asdict(count), PURGED: 0} for name, count in self.counts.items()},
            "seconds": dict(self.seconds),
            "message": self.message,
            "refused": self.refused,
            "notices": list(self.notices),
        }

    def to_json(self) -> dict[str, Any]:
        """One object, ready for json.dumps."""
        return {
            "feed": self.feed,
            "run": self.run,
            **self.to_row(),
            "stamp": self.stamp and self.stamp.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "revision": self.revision,
            "refusals": [rejection.to_json() for rejection in self.findings.first[:SHOWN]],
            "dry_run": self.dry_run,
        }

    def to_grid(self) -> Grid:
        """The counts per type, as a table for a terminal."""
        dry = ", dry run: nothing was changed" if self.dry_run else ""
        grid = Grid(title=f"{self.feed}: {self.outcome}{dry} ({sum(self.seconds.values()):.1f} s)")
        fields = [field.name for field in dataclasses.fields(Counts)]
        grid.add_column("type")
        for field in fields:
            grid.add_column(field, justify="right")
        for name, count in self.counts.items():
            grid.add_row(name, *(f"{getattr(count, field):,}" for field in fields))
        return grid
