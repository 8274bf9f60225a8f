"""The outcomes of runs: what each is called, its colour, what it means, and what a person does about it.

The console, the commands, the announcements and the metrics read this table, so all of them say the same of a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from roster_service.feeds.held_runs import APPROVED, HELD
from roster_service.feeds.sync_lock import INTERRUPTED, RUNNING

DONE, UNCHANGED, PARTIAL, STALE = "done", "unchanged", "partial", "stale"
DISCARDED, REPLACED, REFUSED = "discarded", "replaced", "refused"
MISSING, INCOMPLETE, FAILED = "missing", "incomplete", "failed"


class Colour(StrEnum):
    """The colour of a word: bad only if somebody must act."""

    GOOD = "good"
    QUIET = "quiet"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True)
class Outcome:
    """An outcome of a run. `state`: its word for vendors (schemas/roster_status.py); `meaning`, `remedy`: a sentence
    each, without its first capital and full stop; `is_loaded`: whether the roster is that of the export;
    `is_announced`: whether the nightly sync announces it; `is_repeated`: and again, when its cause changes and while it
    waits."""

    word: str
    state: str
    colour: Colour
    meaning: str
    remedy: str | None = None
    is_loaded: bool = False
    is_announced: bool = False
    is_repeated: bool = False

    def explain(self, message: str | None) -> str:
        """Returns the cause of the outcome, as people read it everywhere. `message`: of the run."""
        return message or self.meaning

    def describe(self, message: str | None) -> str:
        """Returns the outcome and its cause, which may begin with its word."""
        cause = self.explain(message)
        return cause if cause.startswith(self.word) else f"{self.word}: {cause}"


_UNTOUCHED = "nothing was changed"
OUTCOMES: Mapping[str, Outcome] = {
    outcome.word: outcome
    for outcome in (
        Outcome(DONE, "done", Colour.GOOD, "the roster is that of the export", is_loaded=True),
        Outcome(UNCHANGED, "unchanged", Colour.GOOD, "the roster was already that of the export", is_loaded=True),
        Outcome(
            PARTIAL,
            "done",
            Colour.WARN,
            "the roster is that of the export, but for the rejected rows",
            "correct these rows in the student information system",
            is_loaded=True,
            is_announced=True,
        ),
        Outcome(
            STALE,
            "unchanged",
            Colour.BAD,
            "the export has been the same for days",
            "the roster stays as it is; look whether the student information system still delivers its export",
            is_announced=True,
        ),
        Outcome(
            HELD,
            "held",
            Colour.BAD,
            "a person must decide",
            f"{_UNTOUCHED}; look at what the run would do, and approve or discard it",
            is_announced=True,
            is_repeated=True,
        ),
        Outcome(APPROVED, "done", Colour.GOOD, "it was held, and a later run applied it"),
        Outcome(DISCARDED, "failed", Colour.QUIET, f"it was held, and {_UNTOUCHED}"),
        Outcome(REPLACED, "failed", Colour.QUIET, "it was held, and a later run of the feed took its place"),
        Outcome(
            REFUSED,
            "failed",
            Colour.BAD,
            "the export cannot be loaded as it is",
            f"{_UNTOUCHED}; correct the export, or the settings of the feed, and load it again",
            is_announced=True,
        ),
        Outcome(
            MISSING,
            "missing",
            Colour.BAD,
            "there is no export",
            f"{_UNTOUCHED}; look whether the student information system still delivers its export, and to this path",
            is_announced=True,
        ),
        Outcome(
            INCOMPLETE,
            "incomplete",
            Colour.BAD,
            "the export is still being written",
            f"{_UNTOUCHED}; look whether the student information system ends its export before the sync begins",
            is_announced=True,
        ),
        Outcome(
            FAILED,
            "failed",
            Colour.BAD,
            "the service could not finish the run",
            f"{_UNTOUCHED}; look at the log of the sync, and load the export again",
            is_announced=True,
        ),
        Outcome(
            INTERRUPTED,
            "failed",
            Colour.BAD,
            "the process of the run ended; nothing was changed",
            "load the export again",
        ),
        Outcome(RUNNING, "running", Colour.QUIET, "the run is under way"),
    )
}
# After these the roster is that of the export.
LOADED_OUTCOMES = tuple(outcome.word for outcome in OUTCOMES.values() if outcome.is_loaded)


def find_rejected_percent(files: Iterable[Mapping[str, Any]]) -> float:
    """Returns the largest share of the rows of a file that a run rejected, in percent. `files`: of the run."""
    return max((100 * (file["rejected"] or 0) / file["rows"] for file in files if file["rows"]), default=0.0)


def needs_person(word: str, rejected_percent: float, most: int) -> bool:
    """Returns whether a person must act on a run with this outcome, as long as it is the latest of its feed.
    `rejected_percent`: of `find_rejected_percent`; `most`: the share that is no task yet, of the settings."""
    return OUTCOMES[word].colour == Colour.BAD or (word == PARTIAL and rejected_percent > most)
