"""How a feed is, and whether it needs a person: in the same words on the first page, in the list of feeds, on the page
of the feed, and in `roster feed list`. An outcome of a run is told as the announcements of the sync tell it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from roster_service.feeds.feed_states import FeedState
from roster_service.feeds.feeds import Feed
from roster_service.feeds.held_runs import APPROVED, HELD
from roster_service.feeds.run_outcomes import LOADED_OUTCOMES, OUTCOMES, Colour, needs_person
from roster_service.feeds.runs import read_approval
from roster_service.settings import Settings

# The word of a feed that no night loads, because nobody has said where its export lies, and what is said of it.
NO_PATH = "no path"
NO_PATH_CAUSE = "it has no path, so no nightly sync loads it"


NOT_LOADED = "not loaded"


@dataclass(frozen=True)
class Condition:
    """What is said of a feed. `word`, `colour`: of its badge; `cause`: why; `remedy`: what to do about it, None if
    there is nothing; `run`: that it is about, None if it is about none; `needs`: whether a person must act; `failed`:
    whether an approval of it failed."""

    word: str
    colour: Colour
    cause: str
    remedy: str | None = None
    run: int | None = None
    needs: bool = False
    failed: bool = False

    @property
    def first_cause(self) -> str:
        """The cause, or the first of several, which a semicolon separates."""
        return self.cause.partition("; ")[0]

    @property
    def sentence(self) -> str:
        """The word and its cause, which may begin with the word, for a text without a badge."""
        return self.cause if self.cause.startswith(self.word) else f"{self.word}: {self.cause}"


def explain_no_path(name: str, path: str) -> str:
    """Returns why no nightly sync loads a feed, and the command that names it an export, at `path`."""
    return f"{NO_PATH_CAUSE}; `roster feed set {shlex.quote(name)} --path {shlex.quote(path)}` gives it one"


def list_conditions(feed: Feed, settings: Settings) -> Sequence[Condition]:
    """Returns what is said of a feed, the gravest first: at least one."""
    return sorted(_find_conditions(feed, settings), key=lambda condition: not condition.needs)


def _find_conditions(feed: Feed, settings: Settings) -> Iterator[Condition]:
    if feed.state == FeedState.REMOVED:
        yield Condition("removed", Colour.QUIET, "no sync loads it")
        return
    if feed.held_run is not None:
        yield _describe_held(feed, feed.held_run, settings)
    if not feed.enabled:
        yield Condition("disabled", Colour.QUIET, "the nightly sync leaves it out")
    elif feed.is_paused:
        yield Condition("paused", Colour.QUIET, feed.pause or "")
    elif feed.last_outcome is None or (feed.is_emptied and feed.last_outcome in LOADED_OUTCOMES):
        how = "the nightly sync loads its export" if feed.path else "upload its export, or give it a path"
        yield Condition(NOT_LOADED, Colour.WARN, _explain_not_loaded(feed), how, needs=True)
    elif feed.latest_run != feed.held_run and not feed.is_applied:
        yield from _describe_latest(feed, feed.last_outcome, settings)
    if feed.enabled and not feed.path and feed.last_outcome is not None:
        # No task: the exports of some feeds are uploaded.
        remedy = "give it the path of its export, or go on uploading each export"
        yield Condition(NO_PATH, Colour.WARN, NO_PATH_CAUSE, remedy)


def _explain_not_loaded(feed: Feed) -> str:
    if feed.is_emptied:
        return "it was removed and taken back, and its export must be loaded: vendors see none of its records as active"
    return "no export of it has been loaded yet"


def _describe_held(feed: Feed, run: int, settings: Settings) -> Condition:
    outcome, approval = OUTCOMES[HELD], read_approval(settings.home, run)
    if feed.is_applied or (approval is not None and approval.is_running):
        return Condition("being applied", Colour.QUIET, "the export that was held is loaded now", run=run)
    cause = outcome.explain(feed.held_message)
    if approval is None:
        return Condition(HELD, outcome.colour, cause, outcome.remedy, run, needs=True)
    cause = f"{cause}; its approval failed"
    return Condition(HELD, outcome.colour, cause, outcome.remedy, run, needs=True, failed=True)


def _describe_latest(feed: Feed, word: str, settings: Settings) -> Iterator[Condition]:
    """What the latest run says, and the time since the last good one."""
    outcome, seconds = OUTCOMES[word], feed.age_seconds
    needs = needs_person(word, feed.rejected_percent, settings.rejected_percent)
    yield Condition(word, outcome.colour, outcome.explain(feed.message), outcome.remedy, feed.latest_run, needs)
    if needs or feed.is_running:
        return
    if feed.is_emptied or (seconds is None and word != APPROVED):
        yield Condition(NOT_LOADED, Colour.WARN, _explain_not_loaded(feed), needs=True)
    elif feed.path and seconds is not None and seconds > timedelta(days=settings.stale_days).total_seconds():
        days = int(seconds // 86_400)
        cause = f"no sync has loaded it for {days} {'day' if days == 1 else 'days'}"
        yield Condition("late", Colour.BAD, cause, "look whether the nightly sync runs", needs=True)
