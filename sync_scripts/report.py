"""What a run did, as a value, as JSON, and as a table for people."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.table import Table as Grid

from sync_scripts.changes import Counts

# What people call the tables: the names of OneRoster's collections.
TYPES = {"academic_sessions": "academicSessions"}


@dataclass(frozen=True)
class Report:
    """The outcome of a run that went through: `done`, or `unchanged` where the roster already was as exported."""

    feed: str
    format: str
    source: str
    outcome: str
    # The dateLastModified of every change of the run, and the roster's revision; None where nothing changed.
    stamp: datetime | None
    revision: int | None
    counts: Mapping[str, Counts]
    seconds: Mapping[str, float]
    notices: tuple[str, ...] = ()

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
            "counts": {TYPES.get(name, name): dataclasses.asdict(count) for name, count in self.counts.items()},
            "seconds": dict(self.seconds),
        }

    def to_json(self) -> dict[str, Any]:
        """One object, ready for json.dumps."""
        return {
            "feed": self.feed,
            **self.to_row(),
            "stamp": self.stamp and self.stamp.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "revision": self.revision,
            "notices": list(self.notices),
        }

    def to_grid(self) -> Grid:
        """The counts per type, as a table for a terminal."""
        grid = Grid(title=f"{self.feed}: {self.outcome} ({sum(self.seconds.values()):.1f} s)")
        fields = [field.name for field in dataclasses.fields(Counts)]
        grid.add_column("type")
        for field in fields:
            grid.add_column(field, justify="right")
        for name, count in self.counts.items():
            grid.add_row(TYPES.get(name, name), *(f"{getattr(count, field):,}" for field in fields))
        return grid
