"""The arguments of a load, and the run that it makes of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

import sqlalchemy as sa

from roster_service.change_log.actors import Actor, find_system_user
from roster_service.db.tables import feeds
from roster_service.errors import CommandError
from roster_service.feeds.exclusions import ExcludedPeople, read_excluded
from roster_service.feeds.undo import require_undo
from roster_service.settings import Settings
from sync_scripts.applying.change_log import record_changes
from sync_scripts.applying.changes import Difference
from sync_scripts.applying.desired_state import DesiredState
from sync_scripts.engine.hold_policy import HeldRun, read_held_run
from sync_scripts.engine.progress import Observer, Stopwatch
from sync_scripts.engine.run_record import Approval, RunRecord, find_or_add_feed
from sync_scripts.engine.staged_export import StagedExport
from sync_scripts.formats.model import Format
from sync_scripts.formats.tolerated import Notice, Tolerated
from sync_scripts.reading.manifest import Contents
from sync_scripts.reading.registry import Family
from sync_scripts.reading.rejections import Findings, Rejection, refuse_if
from sync_scripts.staging.line_hashes import is_last_export, make_digest, read_digest
from sync_scripts.staging.normalize import map_words

# The planner settings of a run, until the transaction ends.
PLANNING = {
    # Enough to sort and join whole files in memory.
    "work_mem": "128MB",
    # A roster is in memory, so these costs make a run that needs one row in a hundred use an index instead of a scan.
    "random_page_cost": "0.1",
    "seq_page_cost": "0.1",
    # Rough statistics are enough for the run; autovacuum later makes finer ones.
    "default_statistics_target": "20",
}


def _notify_nobody(_event: Mapping[str, Any]) -> None:
    pass


@dataclass(frozen=True)
class Options:
    """The options of a run. `dry_run`: report the changes without applying them; `allow_mass_delete`: never hold the
    run; `changes`: where a dry run writes the changes that it would make, with the values before and after; `strict`:
    refuse the export for any tolerated deviation; `approval`: of the held run whose export this is; `undoes`: the run
    that this one takes back: it is not held, and loads no other export than the one before that run; `has_named`: the
    operator has said which ids the excluded and the kept people have then; `keeps_copy`: keep a copy of the export in
    the data folder, for an undo; `wait`: for another run of the feed, instead of raising
    LockedError; `actor`: who loads the export, None for the system user of this process; `source`: what the run calls
    its export, if the path is that of a copy, else None; `require_complete`: raises IncompleteExportError for an export
    that is not complete, which ends the run, None if the caller has looked; `notify`: called with the progress of each
    step."""

    settings: Settings = dataclasses.field(default_factory=Settings)
    dry_run: bool = False
    allow_mass_delete: bool = False
    changes: TextIO | None = None
    strict: bool = False
    approval: Approval | None = None
    undoes: int | None = None
    has_named: bool = False
    keeps_copy: bool = False
    wait: bool = False
    actor: Actor | None = None
    source: str | None = None
    require_complete: Callable[[Path], None] | None = None
    notify: Observer = _notify_nobody

    @property
    def about(self) -> Mapping[str, int | None]:
        """The other run that the run is about, by the column that names it."""
        return {"approves": None if self.approval is None else self.approval.run, "undoes": self.undoes}


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


@dataclass(frozen=True)
class Run:
    """A run in its transaction. `record`: None for a dry run; `form`, `contents`: with the words of the feed;
    `written_at`: when the export was written, None if nothing says it; `feed`: its row; `held`: the held run that an
    operator has approved, or None; `excluded`: the people whom the roster must not have."""

    request: LoadRequest
    connection: sa.Connection
    record: RunRecord | None
    form: Format
    contents: Contents
    written_at: datetime | None
    feed: sa.Row[Any]
    is_new: bool
    held: HeldRun | None
    excluded: ExcludedPeople | None
    watch: Stopwatch

    @property
    def options(self) -> Options:
        """The options of the run."""
        return self.request.options

    @property
    def is_strict(self) -> bool:
        """Whether it refuses the export for any tolerated deviation."""
        return self.options.strict or self.feed.strict

    @cached_property
    def skips_known(self) -> bool:
        """Whether it skips what did not change. A strict run looks again at exports and lines of which a lenient one
        may have tolerated deviations."""
        return not self.is_strict or (self.feed.strict and not any(_list_deviations(self.contents.notices)))

    def refuse_deviations(self, notices: Iterable[Notice]) -> None:
        """Raises RefusedExportError for tolerated deviations, if the run is strict."""
        if self.is_strict:
            refuse_if(Findings.of(_list_deviations(notices)))

    def is_last_export(self) -> bool:
        """Whether the feed was last loaded from this export. Raises CommandError if it is not the one that was held."""
        if self.options.undoes is not None:
            return False
        if self.held is not None:
            self.held.require_digest(read_digest(self.contents, self.form))
            return False
        return self.skips_known and is_last_export(self.connection, self.feed.id, self.contents, self.form)

    def digest(self, staged: StagedExport) -> bytes:
        """The digest of the staged export. Raises CommandError if it is not the one that was held."""
        digest = make_digest(self.contents, self.form, staged.stage.digests)
        if self.held is not None:
            self.held.require_digest(digest)
        undone, home = self.options.undoes, self.options.settings.home
        if undone is not None and require_undo(self.connection, undone, home)[1] != digest:
            raise CommandError("the kept export is not what was loaded: somebody has changed it")
        return digest

    def keep_changes(self, differences: list[Difference], desired: DesiredState) -> None:
        """Stores what the run is about to change, or would change if it were not held, unless the settings say
        otherwise."""
        if self.record is not None and self.options.settings.change_days:
            record_changes(self.connection, self.record.number, differences, desired)


def begin(
    connection: sa.Connection,
    request: LoadRequest,
    record: RunRecord | None,
    form: Format,
    contents: Contents,
    written_at: datetime | None,
    watch: Stopwatch,
) -> Run:
    """Returns the run of a request whose transaction has begun. `form`, `contents`, `written_at`: of its export."""
    connection.execute(sa.select(*(sa.func.set_config(name, value, True) for name, value in PLANNING.items())))
    if record is None:
        feed_id, is_new = find_or_add_feed(connection, request.feed_name, request.family.name)
    else:
        feed_id, is_new = record.feed_id, record.is_new
    feed = connection.execute(sa.select(feeds).where(feeds.c.id == feed_id)).one()
    if feed.words is not None:
        form, contents = map_words(connection, feed.words, form, contents)
    approval = request.options.approval
    return Run(
        request=request,
        connection=connection,
        record=record,
        form=form,
        contents=contents,
        written_at=written_at,
        feed=feed,
        is_new=is_new,
        held=None if approval is None else read_held_run(connection, feed_id, approval.run),
        excluded=read_excluded(connection, request.options.settings.find_secret_key()),
        watch=watch,
    )


def _list_deviations(notices: Iterable[Notice]) -> Iterator[Rejection]:
    """The deviations for which a strict run refuses an export."""
    for notice in notices:
        if isinstance(notice, Tolerated) and not notice.deviation.allowed:
            yield Rejection(notice.file, notice.describe(), None, notice.column)
