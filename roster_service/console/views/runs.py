"""The runs of the sync: the list, one run with its progress, and the records that it changed. `rejected.py` has the
rows that it rejected."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import sqlalchemy as sa

from roster_service.change_log.actors import OperatorRole
from roster_service.change_log.changes import Verb
from roster_service.console.list_pages import Paged, find_window, make_paged
from roster_service.console.screen import MOST_ROWS, Form, Screen
from roster_service.console.visit import Moved, Outcome, Submission, Visit
from roster_service.db.tables import ROSTER_TABLES
from roster_service.errors import CommandError
from roster_service.feeds.change_history import ChangedRecord, find_changes
from roster_service.feeds.feed_conditions import Condition, list_conditions
from roster_service.feeds.feeds import find_listed, list_feeds
from roster_service.feeds.held_runs import HELD
from roster_service.feeds.rejected_rows import RejectedRow, count_rejected_rows, explain_missing, read_rejected_rows
from roster_service.feeds.run_history import (
    STEPS,
    TYPES,
    FinishedRun,
    Run,
    RunDetails,
    count_live,
    explain_shrunk,
    find_run,
    list_good_runs_before,
    list_run_page,
)
from roster_service.feeds.run_outcomes import (
    INCOMPLETE,
    LOADED_OUTCOMES,
    MISSING,
    OUTCOMES,
    REFUSED,
    find_rejected_percent,
    needs_person,
)
from roster_service.feeds.runs import Decision, is_being_applied, read_decision
from roster_service.feeds.scripts import Background
from roster_service.feeds.sync_lock import RUNNING, find_step
from roster_service.feeds.undo import (
    Undo,
    find_reload,
    find_undoing,
    find_undone_by,
    read_started,
    read_undo,
    start_undo,
)
from roster_service.roster.record_names import read_names

# Changes of a page.
PAGE = 50
# Why an export was refused, at most so many reasons on the page of its run. After the other outcomes, rejected rows
# are rows of people.
REASONS = 10
OF_EXPORT = (REFUSED, MISSING, INCOMPLETE)
# The good runs beside a run.
GOOD_RUNS = 13
# What each step does, for people.
STEP_WORDS = {
    "digest": "look for a change of the files",
    "stage": "read the files",
    "check": "check the rows",
    "prepare": "work out the new roster",
    "compare": "compare it with the stored one",
    "write": "write the changes",
    "index": "index the changes",
    "analyze": "update the statistics",
    "publish": "show it to vendors",
}
ALL_TYPES = "all"
# The kinds of change, and the words for them.
CHANGES = {"added": "added", "changed": "changed", "tombstoned": "marked as deleted", "revived": "revived"}


@dataclass(frozen=True)
class RunList:
    """A page of runs, the latest first. `feeds`, `outcomes`: to choose from; `feed`, `outcome`: the chosen ones;
    `totals`: by run, the records that it added, changed, marked as deleted and revived; `approving`: the held
    runs whose approval is under way; `is_live`: whether the page changes by itself."""

    runs: Paged
    totals: Mapping[int, Mapping[str, int]]
    approving: Sequence[int]
    feeds: Sequence[str]
    outcomes: Sequence[str]
    feed: str | None
    outcome: str | None
    is_live: bool


@dataclass(frozen=True)
class Progress:
    """A step of a run. `words`: what it does; `state`: `done`, `now`, or `later`; `seconds`: None if it has not ended,
    or is not known."""

    name: str
    words: str
    state: str
    seconds: float | None


@dataclass(frozen=True)
class Comparison:
    """The live records of a type after a run, and after the last good run before it; None: that run had none.
    `series`: after each of the last good runs, the oldest first, and after this one; `changes`: records by kind of
    change, rejected rows, and those purged later; `is_touched`: whether there is any change."""

    type: str
    records: int
    before: int | None
    series: Sequence[int]
    changes: Mapping[str, int]
    is_touched: bool


class Urgency(StrEnum):
    """Whether a person must act on a run. The value is the class of its first sentence."""

    FINE = "fine"
    # The first page has it as a task.
    NEEDS = "needs"
    # A person had to act; since then another run was made, or the feed is not loaded by the nightly sync.
    OVER = "over"


@dataclass(frozen=True)
class RunPage:
    """A run. `steps`: all of them, with their seconds; `now`: those of the run that applies it, or takes it back, while
    that is under way, and `by`: its number; `before`: the number of the last good run before it; `compared`: with that
    run, each type; `shrunk`: the files that lost many rows, in sentences; `stored`: the rejected rows that are stored;
    `missing`: why the others are not; `reasons`: the first of them, if they are why the export was refused; `urgency`:
    whether a person must act; `latest`: the latest run of the feed; `condition`: what is said of the feed first;
    `decision`: on a held run; `undo`: what taking it back would do, None for a run that changed nothing; `undone_by`:
    the run that has done so; `reload`: the run that has loaded its export again; `undoing`: the undo that was
    started last; `is_live`: whether the page changes by itself."""

    run: RunDetails
    steps: Sequence[Progress]
    now: Sequence[Progress]
    by: int | None
    before: int | None
    compared: Sequence[Comparison]
    shrunk: Sequence[str]
    stored: int
    missing: str
    reasons: Sequence[RejectedRow]
    urgency: Urgency
    latest: int | None
    condition: Condition
    decision: Decision
    undo: Undo | None
    undone_by: int | None
    reload: int | None
    undoing: Background | None
    is_live: bool


@dataclass(frozen=True)
class NamedChange(ChangedRecord):
    """A record that a run changed, with its name; None if the roster has it no more."""

    name: str | None


@dataclass(frozen=True)
class ChangePage:
    """A page of the records of one type that a run changed in one way, or that a held run would change. `counts`: by
    type and change; `missing`: later runs whose changes are not stored, so that records which this run added and they
    changed are not listed; `after`: the sourcedId after which the page begins; `next`: that of the next page."""

    run: int
    feed: str
    is_held: bool
    type: str
    change: str
    counts: Mapping[str, Mapping[str, int]]
    changes: Sequence[NamedChange]
    missing: Sequence[int]
    after: str | None
    next: str | None


def read_runs(visit: Visit) -> RunList:
    """Reads a page of the list of runs."""
    feed, outcome = visit.get("feed"), visit.get("outcome")
    if outcome is not None and outcome not in OUTCOMES:
        raise CommandError(f"there is no outcome {outcome}; a run is {', '.join(OUTCOMES)}")
    skipped, count = find_window(visit)
    connection, home = visit.connection, visit.settings.home
    runs = make_paged(visit, list_run_page(connection, feed, outcome, count, skipped))
    totals = {run.run: _sum_changes(run) for run in runs.rows}
    feeds = [feed.name for feed in list_feeds(connection, visit.settings.time_zone, without_records=True)]
    approving = [run.run for run in runs.rows if run.outcome == HELD and is_being_applied(connection, home, run.run)]
    is_live = bool(approving) or any(run.outcome == RUNNING for run in runs.rows)
    return RunList(
        runs=runs,
        totals=totals,
        approving=approving,
        feeds=feeds,
        outcomes=list(OUTCOMES),
        feed=feed,
        outcome=outcome,
        is_live=is_live,
    )


def read_run(visit: Visit) -> RunPage:
    """Reads a run, its progress if it is under way, and the decision on it if it was held."""
    connection, home, number = visit.connection, visit.settings.home, int(visit.place["run"])
    run = find_run(connection, number)
    decision = read_decision(connection, home, run)
    good = list_good_runs_before(connection, number, GOOD_RUNS)
    undoing = read_started(home, number)
    sees_people = visit.signed_in.role.includes(_VIEWER)
    if not sees_people:
        # A preview has samples by name, also in the reports of scripts, and the reason of a decision may name a person.
        run, undoing = dataclasses.replace(run, preview=None), None
        decision = dataclasses.replace(decision, change=None, approval=None)
    stored = count_rejected_rows(connection, number)
    by = decision.now or find_undoing(connection, number)
    feed = find_listed(connection, run.feed, visit.settings.time_zone)
    conditions = list_conditions(feed, visit.settings)
    return RunPage(
        run=run,
        steps=list(_list_progress(connection, run)),
        now=list_steps(connection, by),
        by=by,
        before=good[0].run if good else None,
        compared=compare_run(run, good),
        shrunk=list(explain_shrunk(run.files, good)),
        stored=stored,
        missing=explain_missing(run.rejected, stored),
        reasons=list(read_rejected_rows(connection, number, REASONS))
        if sees_people and run.outcome in OF_EXPORT
        else (),
        urgency=_find_urgency(run, conditions, visit.settings.rejected_percent),
        latest=feed.latest_run,
        condition=conditions[0],
        decision=decision,
        undo=read_undo(connection, number, home) if run.stamp and run.outcome in LOADED_OUTCOMES else None,
        undone_by=find_undone_by(connection, number),
        reload=find_reload(connection, number),
        undoing=undoing,
        is_live=run.outcome == RUNNING
        or decision.is_under_way
        or by is not None
        or (undoing is not None and undoing.is_running),
    )


def _find_urgency(run: RunDetails, conditions: Sequence[Condition], most_rejected: int) -> Urgency:
    """`conditions`: of the feed; `most_rejected`: the share of rejected rows that is no task yet, in percent."""
    if any(condition.needs and condition.run == run.run for condition in conditions):
        return Urgency.NEEDS
    share = find_rejected_percent(map(dataclasses.asdict, run.files))
    return Urgency.OVER if needs_person(run.outcome, share, most_rejected) else Urgency.FINE


def list_steps(connection: sa.Connection, run: int | None) -> Sequence[Progress]:
    """Returns the steps of a run; none of no run."""
    return [] if run is None else list(_list_progress(connection, find_run(connection, run)))


def compare_run(run: RunDetails, good: Sequence[FinishedRun]) -> Sequence[Comparison]:
    """Returns the types of records of a run, with those of the good runs before it. `good`: the latest first."""
    return [
        Comparison(
            name,
            count,
            good[0].records.get(name) if good else None,
            [*(one.records.get(name, 0) for one in reversed(good)), count],
            run.counts[name],
            any(number for kind, number in run.counts[name].items() if kind != "unchanged"),
        )
        for name, count in count_live(run.counts).items()
    ]


def read_changes(visit: Visit) -> ChangePage:
    """Reads a page of the records that a run changed: of the given type and kind of change, else of the first that
    occurs. In CSV, the type may be `all`."""
    connection, number = visit.connection, int(visit.place["run"])
    run = find_run(connection, number)
    # A run that was refused or interrupted has counts, but changed nothing.
    history = find_changes(connection, number)
    listed = () if history is None else history.kinds
    counts = {
        kind: found
        for kind, of_type in run.counts.items()
        if (found := {name: of_type[name] for name in listed if of_type.get(name)})
    }
    kind = visit.get("type") or next(iter(counts), "users")
    change = visit.get("change") or next(iter(counts.get(kind, {})), "changed")
    kinds = list(counts) if visit.whole and kind == ALL_TYPES else [kind]
    if not set(kinds) <= set(TYPES.values()) or change not in CHANGES:
        raise CommandError(f"there is no such list; the types are {', '.join(TYPES.values())}")
    after = visit.get("after")
    count = MOST_ROWS if visit.whole else PAGE + 1
    changes: list[ChangedRecord] = []
    if history is not None:
        for one in kinds:
            changes += history.read_page(connection, one, change, after, count - len(changes))
    shown = _name_changes(connection, changes if visit.whole else changes[:PAGE])
    return ChangePage(
        run=number,
        feed=run.feed,
        is_held=run.outcome == HELD,
        type=kind,
        change=change,
        counts=counts,
        changes=shown,
        missing=() if history is None else history.missing,
        after=after,
        next=shown[-1].sourcedId if len(changes) > len(shown) else None,
    )


def undo(sent: Submission) -> Outcome:
    """Starts to take a run back, and shows it, which tells how that goes on."""
    run = int(sent.place["run"])
    with sent.change() as connection:
        start_undo(connection, sent.actor, run, sent.settings.home)
    return Moved(f"/runs/{run}", None)


def _name_changes(connection: sa.Connection, changes: Sequence[ChangedRecord]) -> list[NamedChange]:
    names = {
        kind: read_names(connection, table, (change.sourcedId for change in changes if change.type == kind), {})
        for table in ROSTER_TABLES
        if (kind := TYPES[table.name]) in {change.type for change in changes}
    }
    return [
        NamedChange(
            change.type, change.sourcedId, change.change, change.fields, names[change.type].get(change.sourcedId)
        )
        for change in changes
    ]


def _sum_changes(run: Run) -> dict[str, int]:
    return {name: sum(of_type.get(name, 0) for of_type in run.counts.values()) for name in CHANGES}


def _list_progress(connection: sa.Connection, run: RunDetails) -> Iterator[Progress]:
    """The steps with their seconds, or of a run that is under way those before the present one as done."""
    if run.outcome != RUNNING:
        yield from (
            Progress(name, STEP_WORDS.get(name, name), "done", seconds) for name, seconds in run.seconds.items()
        )
        return
    now = find_step(connection, run.feed)
    reached = STEPS.index(now) if now in STEPS else -1
    for number, name in enumerate(STEPS):
        yield Progress(
            name, STEP_WORDS[name], "done" if number < reached else "now" if number == reached else "later", None
        )


_VIEWER = OperatorRole.VIEWER
SCREENS = (
    Screen("runs", "/runs", "Runs", OperatorRole.OBSERVER, read_runs, lambda it: it.runs.rows, "Runs"),
    Screen("run", "/runs/<int:run>", "Run", OperatorRole.OBSERVER, read_run, None, None),
    Screen(
        "run_changes", "/runs/<int:run>/changes", "Changed records", _VIEWER, read_changes, lambda it: it.changes, None
    ),
)
FORMS = (Form("run", "undo", Verb.SYNC_UNDO, undo, None),)
