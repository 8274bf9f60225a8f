"""The arguments of a load."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import sqlalchemy as sa

from roster_service.change_log.actors import Actor, find_system_user
from roster_service.settings import Settings
from sync_scripts.engine.progress import Observer
from sync_scripts.engine.run_record import Approval
from sync_scripts.reading.registry import Family


def _notify_nobody(_event: Mapping[str, Any]) -> None:
    pass


@dataclass(frozen=True)
class Options:
    """The options of a run."""

    settings: Settings = dataclasses.field(default_factory=Settings)
    # Report the changes without applying them.
    dry_run: bool = False
    # Never hold the run.
    allow_mass_delete: bool = False
    # Where a dry run writes the changes that it would make, with the values before and after.
    changes: TextIO | None = None
    # Refuse the export for any tolerated deviation.
    strict: bool = False
    # The approval of the held run whose export this is.
    approval: Approval | None = None
    # Wait for another run of the feed, instead of raising LockedError.
    wait: bool = False
    # Who loads the export; None: the system user of this process.
    actor: Actor | None = None
    # What the run calls its export, if the path is that of a copy; None: the path.
    source: str | None = None
    # Raises IncompleteExportError for an export that is not complete, which ends the run; None: the caller has looked.
    require_complete: Callable[[Path], None] | None = None
    # The engine calls it with the progress of each step.
    notify: Observer = _notify_nobody


DEFAULTS = Options()


@dataclass(frozen=True)
class LoadRequest:
    """The arguments of `load`."""

    engine: sa.Engine
    feed_name: str
    path: Path
    family: Family
    options: Options

    @property
    def source(self) -> str:
        """What the run calls its export."""
        return self.options.source or str(self.path)

    @property
    def actor(self) -> Actor:
        """Who loads the export."""
        return self.options.actor or find_system_user(None)
