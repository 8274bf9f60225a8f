"""Held runs of the sync: as operators approve and discard them."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from roster_service.change_log.actors import Actor, require_role
from roster_service.change_log.changes import Change, Subject, Verb, find_last_change, recorded
from roster_service.db.tables import feeds, sync_runs
from roster_service.errors import CommandError
from roster_service.feeds.exclusions import require_none_named
from roster_service.feeds.held_runs import APPROVED, HELD, OTHER_IDS, close_held, locate_export, read_outcome
from roster_service.feeds.run_history import Run, find_run_under_way
from roster_service.feeds.run_outcomes import DISCARDED
from roster_service.feeds.scripts import Background, name_folder, read_background, run_script, start_script
from roster_service.feeds.undo import find_applied_by


def approve_run(
    connection: sa.Connection, actor: Actor, run: int, home: Path, *, as_json: bool, has_named: bool
) -> subprocess.CompletedProcess[str]:
    """Applies a held run with the export that was held, by the loader, which records it. Returns the output of the
    loader. `home`: the data folder; `has_named`: the operator has said which ids the excluded and the kept people have
    now.

    Raises CommandError for a run that is not held, and for one that the loader did not apply: if it would now delete or
    change more records than it showed, it is held again, as a new run.
    """
    script, *options = _prepare_approval(connection, actor, run, home, has_named=has_named)
    done = run_script(connection, script, *(["--json"] if as_json else []), *options)
    # The outcome in the database decides, because other failures could give the same exit code.
    if _find(connection, run).outcome != APPROVED:
        raise CommandError(f"the run {run} was not applied:\n{done.stderr or done.stdout}")
    return done


def start_approval(connection: sa.Connection, actor: Actor, run: int, home: Path) -> None:
    """Starts what `approve_run` does, in the background; `read_approval` tells how it ended. `home`: the data folder.

    Raises CommandError for a run that is not held, and if its approval was started and has not ended.
    """
    script, *options = _prepare_approval(connection, actor, run, home, has_named=False)
    start_script(connection, home, _name_approval(home, run), script, "--json", *options)


def read_approval(home: Path, run: int) -> Background | None:
    """Returns the approval of a run that was started last; None if there was none."""
    return read_background(_name_approval(home, run))


@dataclass(frozen=True)
class Decision:
    """The decision on a held run. `change`: the row of the change log, None without a decision of an operator;
    `applied_by`: the number of the run that applied it; `approval`: the approval that was started in the background
    last; `now`: the number of the run that applies it, while that is under way, whoever has started it."""

    change: Change | None
    applied_by: int | None
    approval: Background | None
    now: int | None

    @property
    def is_under_way(self) -> bool:
        """Whether an approval is under way."""
        return self.now is not None or (self.approval is not None and self.approval.is_running)

    @property
    def failure(self) -> str | None:
        """The reason why the last approval did not apply the run; None if it did, and while it is under way."""
        if self.approval is None or self.applied_by is not None or self.is_under_way:
            return None
        return self.approval.message

    @property
    def held_again(self) -> int | None:
        """The number of the run as which the last approval was held again."""
        report = self.approval and self.approval.report
        return report.get("run") if report and report.get("outcome") == HELD else None


def is_being_applied(connection: sa.Connection, home: Path, run: int) -> bool:
    """Returns whether an approval of a held run is under way, whoever has started it."""
    approval = read_approval(home, run)
    return (approval is not None and approval.is_running) or _find_applying(connection, run) is not None


def read_decision(connection: sa.Connection, home: Path, run: Run) -> Decision:
    """Reads the decision on a held run. `home`: the data folder."""
    return Decision(
        find_last_change(connection, Subject.of_run(run.run, run.feed), (Verb.SYNC_APPROVE, Verb.SYNC_DISCARD)),
        find_applied_by(connection, run.run),
        read_approval(home, run.run),
        _find_applying(connection, run.run),
    )


def _find_applying(connection: sa.Connection, run: int) -> int | None:
    return find_run_under_way(connection, sync_runs.c.approves == run)


def start_load(
    connection: sa.Connection,
    actor: Actor,
    feed: str,
    format_: str,
    path: str,
    home: Path,
    *,
    is_complete: bool,
    drop: Path | None,
    source: str | None = None,
) -> None:
    """Starts a load of the export at `path` in the background; `read_load` reads how it ended. `home`: the data folder;
    `is_complete`: load the export even if somebody wrote to it some minutes ago; `drop`: the folder of the export, to
    delete when it is loaded; `source`: what the run calls its export, None for the path.

    Raises CommandError if a load of the feed was started and has not ended.
    """
    named = () if source is None else ("--source", source)
    chosen = ("--feed", feed, "--json", "--actor", actor.to_text(), *named, *(["--now"] if is_complete else []))
    with recorded(connection, actor, Verb.SYNC_RUN, Subject.of_feed(feed), dict):
        start_script(
            connection, home, name_folder(home, "load", feed), f"load_{format_}", *chosen, "--", path, drop=drop
        )


def read_load(home: Path, feed: str) -> Background | None:
    """Returns the load of a feed that was started last; None if there was none."""
    return read_background(name_folder(home, "load", feed))


def _name_approval(home: Path, run: int) -> Path:
    return name_folder(home, "approval", str(run))


def _prepare_approval(
    connection: sa.Connection, actor: Actor, run: int, home: Path, *, has_named: bool
) -> Sequence[str]:
    """The script that applies a held run, and its arguments."""
    require_role(connection, actor, Verb.SYNC_APPROVE.least_role, Verb.SYNC_APPROVE)
    held = find_held(connection, run)
    if not has_named and OTHER_IDS in (held.message or ""):
        require_none_named(connection, f"roster sync approve {run}")
    options = ("--feed", held.name, "--approves", str(run), "--actor", actor.to_text(), "--source", held.source)
    return (f"load_{held.format}", *options, "--", str(locate_export(held.kept, home)))


def discard_run(connection: sa.Connection, actor: Actor, run: int) -> tuple[str, list[str]]:
    """Discards a held run. Returns the name of its feed, and the paths of its kept exports, which the caller deletes
    after the commit (`drop_export`). Raises CommandError for a run that is not held."""
    held = find_held(connection, run)
    subject = Subject.of_run(run, held.name)
    with recorded(connection, actor, Verb.SYNC_DISCARD, subject, lambda: read_outcome(connection, run)):
        own = sync_runs.c.id == run
        kept = close_held(connection, own, DISCARDED, "discarded by an operator")
    return str(held.name), kept


def _find(connection: sa.Connection, run: int) -> sa.Row[Any, Any, Any, Any, Any, Any]:
    own = (sync_runs.c.outcome, sync_runs.c.message, sync_runs.c.source, sync_runs.c.kept_export.label("kept"))
    rows = sa.select(*own, feeds.c.name, feeds.c.format).join(feeds, feeds.c.id == sync_runs.c.feed_id)
    found = connection.execute(rows.where(sync_runs.c.id == run)).one_or_none()
    if found is None:
        raise CommandError(f"there is no run {run}")
    return found


def find_held(connection: sa.Connection, run: int) -> sa.Row[Any, Any, Any, Any, Any, Any]:
    """Returns the row of a held run. Raises CommandError for another one."""
    found = _find(connection, run)
    if found.outcome != HELD:
        # `close_held` is given a message that says by what.
        is_closed = found.message is not None and found.message.startswith(found.outcome)
        raise CommandError(f"the run {run} is not held; it is {found.message if is_closed else found.outcome}")
    return found
