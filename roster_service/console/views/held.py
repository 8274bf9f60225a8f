"""A held run: what would vanish and change if it were applied, and the decision of an operator."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from roster_service.change_log.actors import OperatorRole
from roster_service.change_log.changes import Verb
from roster_service.console.filters import to_counted
from roster_service.console.screen import Form, Screen
from roster_service.console.views.runs import GOOD_RUNS, Comparison, Progress, compare_run, list_steps
from roster_service.console.visit import Moved, Outcome, Submission, Visit
from roster_service.errors import CommandError
from roster_service.feeds.change_history import find_changes
from roster_service.feeds.feeds import Feed, change_feed, find_listed, list_default_limits
from roster_service.feeds.held_runs import HELD, drop_export
from roster_service.feeds.run_history import RunDetails, explain_shrunk, find_run, list_good_runs_before
from roster_service.feeds.runs import Decision, discard_run, read_decision, start_approval
from roster_service.settings import Settings

# An approval that deletes more records takes a second step.
MOST_DELETED = 100
LIMITS = {
    "hold_tombstones_percent": "records of a type that would vanish",
    "hold_changes_percent": "records of a type that would change",
    "hold_rejected_percent": "rows of a file that are rejected",
}


@dataclass(frozen=True)
class FeedLimit:
    """A limit beyond which runs of a feed are held, in percent. `own`: that of the feed, None for that of the service;
    `default`: that of the service; `least`: the records of a type or rows of a file from which on it counts."""

    name: str
    words: str
    own: int | None
    default: int
    least: int


@dataclass(frozen=True)
class HeldSchool:
    """The records of one type at a school that would vanish and change, and the active ones."""

    sourcedId: str  # noqa: N815  (the name in exports)
    name: str | None
    type: str
    vanishing: int
    changing: int
    active: int


@dataclass(frozen=True)
class HeldPage:
    """A held run. `shown`: the parts of its preview, by school, grade, role and class, samples, and
    data quality; `emptied`: what
    would be gone as a whole, in sentences; `shrunk`, `before` and `compared`: as on the page of a run; `deletes`: the
    records that an approval marks as deleted, which are purged `retention_days` later; `typed`: what the operator
    types for it, None if nothing; `is_listed`: whether the records that it would change are stored; `now`: as on the
    page of a run."""

    run: RunDetails
    feed: Feed
    shown: Mapping[str, Sequence[Mapping[str, Any]]]
    emptied: Sequence[str]
    shrunk: Sequence[str]
    before: int | None
    compared: Sequence[Comparison]
    deletes: int
    retention_days: int
    typed: str | None
    is_listed: bool
    limits: Sequence[FeedLimit]
    decision: Decision
    now: Sequence[Progress]


def read_held(visit: Visit) -> HeldPage:
    """Reads a held run, also one that is decided: its preview stays."""
    run = find_run(visit.connection, int(visit.place["run"]))
    if run.preview is None and run.outcome != HELD:
        raise CommandError(f"the run {run.run} has no preview: it is {run.outcome}, and was not held")
    shown = run.preview or {}
    feed = find_listed(visit.connection, run.feed, visit.settings.time_zone)
    decision = read_decision(visit.connection, visit.settings.home, run)
    good = list_good_runs_before(visit.connection, run.run, GOOD_RUNS)
    parts = {name: shown.get(name, []) for name in ("schools", "grades", "roles", "classes", "samples", "quality")}
    return HeldPage(
        run=run,
        feed=feed,
        shown=parts,
        emptied=list(list_emptied(parts, run.counts.get("users", {}))),
        shrunk=list(explain_shrunk(run.files, good)),
        before=good[0].run if good else None,
        compared=compare_run(run, good),
        deletes=_count_deleted(run),
        retention_days=visit.settings.retention_days,
        typed=_name_deletion(run),
        is_listed=find_changes(visit.connection, run.run) is not None,
        limits=list_limits(feed, visit.settings),
        decision=decision,
        now=list_steps(visit.connection, decision.now),
    )


def list_emptied(shown: Mapping[str, Sequence[Mapping[str, Any]]], changes: Mapping[str, int]) -> Iterator[str]:
    """Yields a sentence for the roles whose people would all vanish, and one for each school that would lose all of its
    people. `shown`: of `HeldPage`; `changes`: users by kind of change. An export in which people have other ids takes
    all of them away and adds them again: then nobody is gone."""
    if changes.get("added", 0) * 2 >= changes.get("tombstoned", 0):
        return
    roles = [
        to_counted(place["counts"]["users"]["active"], _name_role(place["role"]))
        for place in shown["roles"]
        if _is_emptied(place)
    ]
    if roles:
        yield f"all of these would vanish: {', '.join(roles)}"
    for place in filter(_is_emptied, shown["schools"]):
        yield f"{place['name'] or place['sourcedId']} would lose all its people: {place['counts']['users']['active']:,}"


def _is_emptied(place: Mapping[str, Any]) -> bool:
    users = place["counts"].get("users")
    return users is not None and 0 < users["active"] <= users["vanishing"]


def _name_role(role: str) -> str:
    return re.sub(r"(?<=[a-z])[A-Z]", lambda sign: f" {sign[0].lower()}", role)


def list_school_rows(page: HeldPage) -> Sequence[HeldSchool]:
    """Returns the schools of a held run, a row for each type."""
    return [
        HeldSchool(
            school["sourcedId"], school["name"], kind, counts["vanishing"], counts.get("changing", 0), counts["active"]
        )
        for school in page.shown["schools"]
        for kind, counts in school["counts"].items()
    ]


def list_limits(feed: Feed, settings: Settings) -> Sequence[FeedLimit]:
    """Returns the limits of a feed."""
    defaults = list_default_limits(settings)
    return [
        FeedLimit(name, words, getattr(feed, name), defaults[name], settings.hold_least_records)
        for name, words in LIMITS.items()
    ]


def read_limit(given: str | None) -> int | None:
    """Returns a percentage of a form; None for a blank field, which stands for the limit of the service. Raises
    CommandError for anything else."""
    if given is None:
        return None
    if not (given.isascii() and given.isdigit() and len(given) < 4 and int(given) <= 100):
        raise CommandError(f"{given} is no whole number from 0 to 100")
    return int(given)


def _count_deleted(run: RunDetails) -> int:
    return sum(of_type.get("tombstoned", 0) for of_type in run.counts.values())


def _name_deletion(run: RunDetails) -> str | None:
    """What an operator types to approve a run that deletes many records; None for any other run."""
    deleted = _count_deleted(run)
    return f"delete {deleted}" if deleted > MOST_DELETED else None


def read_typed(sent: Submission) -> str | None:
    """Returns what the operator must type for the approval, None if nothing."""
    with sent.change() as connection:
        return _name_deletion(find_run(connection, int(sent.place["run"])))


def approve(sent: Submission) -> Outcome:
    """Starts the approval, and shows the run, which tells how it goes on."""
    run = int(sent.place["run"])
    with sent.change() as connection:
        start_approval(connection, sent.actor, run, sent.settings.home)
    return Moved(f"/runs/{run}", None)


def discard(sent: Submission) -> Outcome:
    """Discards the run."""
    run = int(sent.place["run"])
    with sent.change() as connection:
        name, kept = discard_run(connection, sent.actor, run)
    for export in kept:
        drop_export(export, sent.settings.home)
    return Moved(f"/runs/{run}", f"Run {run} is discarded; the roster of {name} stays as it is.")


def set_limits(sent: Submission) -> Outcome:
    """Sets the limits of the feed of the run."""
    run = int(sent.place["run"])
    values = {name: read_limit(sent.get(name)) for name in LIMITS}
    with sent.change() as connection:
        name = find_run(connection, run).feed
        change_feed(connection, sent.actor, name, values)
    return Moved(f"/runs/{run}/held", f"The limits of {name} are set. They count from its next run on.")


_PATH = "/runs/<int:run>/held"
SCREENS = (Screen("held", _PATH, "Held run", OperatorRole.VIEWER, read_held, list_school_rows, None),)
FORMS = (
    Form("held", "approve", Verb.SYNC_APPROVE, approve, read_typed),
    Form("held", "discard", Verb.SYNC_DISCARD, discard, None),
    Form("held", "limits", Verb.FEED_SET, set_limits, None),
)
