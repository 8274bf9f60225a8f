"""The report of a run: as a value, as JSON, and as a table for a terminal."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.table import Table as Grid

from roster_service.feeds.run_history import ReadFile
from roster_service.feeds.run_outcomes import LOADED_OUTCOMES, PARTIAL
from sync_scripts.applying.changes import Counts
from sync_scripts.applying.preview import Preview
from sync_scripts.engine.runs import PURGED
from sync_scripts.reading.rejections import NO_FINDINGS, SHOWN, Findings


@dataclass(frozen=True)
class Report:
    """The report of a run. `outcome`: `done`, `unchanged` if the roster already equalled the export, `stale` if that is
    so for days, or `held`; the counts of a held run are those that it would have made."""

    feed: str
    format: str
    source: str
    outcome: str
    counts: Mapping[str, Counts]
    seconds: Mapping[str, float]
    # The dateLastModified of every change of the run, and the roster's new revision; None if nothing changed.
    stamp: datetime | None = None
    revision: int | None = None
    # The reasons of rejected rows; the run has loaded the other rows.
    findings: Findings = NO_FINDINGS
    # By type, the records that the run deleted for good.
    purged: Mapping[str, int] = dataclasses.field(default_factory=dict)
    files: tuple[ReadFile, ...] = ()
    # Why the run is held, or stale.
    message: str | None = None
    notices: tuple[str, ...] = ()
    # What would vanish, and samples, of a held run and of a dry run; None for other runs.
    preview: Preview | None = None
    dry_run: bool = False
    # The number of the run in sync_runs; None for a dry run, which has no row there.
    run: int | None = None
    # When the export was written; None if nothing says it.
    written_at: datetime | None = None

    @property
    def rejected(self) -> int:
        """The number of rejected rows."""
        return sum(count.rejected for count in self.counts.values())

    def with_notices(self, *notices: str) -> Report:
        """The report with further notices."""
        return dataclasses.replace(self, notices=(*self.notices, *notices))

    @property
    def is_partial(self) -> bool:
        """Whether the export was loaded, but for rejected rows."""
        return self.outcome in LOADED_OUTCOMES and self.rejected > 0

    def to_row(self) -> dict[str, Any]:
        """The columns of sync_runs for this report."""
        left_out = f"loaded but for {self.rejected:,} {'row' if self.rejected == 1 else 'rows'}"
        return {
            "format": self.format,
            "source": self.source,
            "stamp": self.stamp,
            "outcome": PARTIAL if self.is_partial else self.outcome,
            # A later purge adds its records.
            "counts": {
                name: {**dataclasses.asdict(count), PURGED: self.purged.get(name, 0)}
                for name, count in self.counts.items()
            },
            "seconds": dict(self.seconds),
            "message": f"{left_out}: {self.findings.summarize()}" if self.is_partial else self.message,
            "rejected": self.rejected,
            "notices": list(self.notices),
            "files": [dataclasses.asdict(file) for file in self.files],
            "preview": self.preview,
            "written_at": self.written_at,
        }

    def to_json(self) -> dict[str, Any]:
        """The report as one object for json.dumps."""
        return {
            "feed": self.feed,
            "run": self.run,
            **self.to_row(),
            "preview": self.preview if self.dry_run else self._omit_samples(),
            "stamp": self.stamp and self.stamp.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "written_at": self.written_at and self.written_at.isoformat(timespec="seconds"),
            "revision": self.revision,
            "causes": [cause.to_json() for cause in self.findings.list_causes()[:SHOWN]],
            "rejections": [rejection.to_json() for rejection in self.findings.first[:SHOWN]],
            "dry_run": self.dry_run,
        }

    def _omit_samples(self) -> Preview | None:
        """The preview without its samples: the output of a run goes to logs, and samples have values of records."""
        return self.preview and {name: part for name, part in self.preview.items() if name != "samples"}

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
