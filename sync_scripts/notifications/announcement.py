"""An announcement: what happened to a feed, for a person and for a program. It quotes no value of an export."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import UTC, datetime


class Kind(enum.StrEnum):
    """The kind of an announcement."""

    HELD = "held"
    FAILED = "failed"
    STALE = "stale"
    RECOVERED = "recovered"
    PAUSE = "pause"
    TEST = "test"


# What the subject of an e-mail says.
SUBJECTS = {
    Kind.HELD: "the run of {} is held: a person must decide",
    Kind.FAILED: "{} could not be loaded",
    Kind.STALE: "the export of {} is stale",
    Kind.RECOVERED: "{} is loaded again",
    Kind.PAUSE: "the pause of {}",
    Kind.TEST: "a test of the notifications ({})",
}
# What to do, by kind.
REMEDIES = {
    Kind.HELD: "`roster sync show` describes the run; `roster sync approve` or `roster sync discard` ends it.",
    Kind.FAILED: "The roster stays as it was. `roster sync list` has the reason.",
    Kind.STALE: "The roster stays as it was. Look whether the SIS still delivers its export.",
    Kind.RECOVERED: "There is nothing to do.",
    Kind.PAUSE: "`roster feed resume` ends a pause.",
    Kind.TEST: "There is nothing to do.",
}


@dataclass(frozen=True)
class Announcement:
    """What happened to a feed. `message`: in one sentence; `run`: the number of the run, if there is one."""

    kind: Kind
    feed: str
    message: str
    run: int | None = None

    @property
    def subject(self) -> str:
        """The subject of an e-mail."""
        return "Roster Service: " + SUBJECTS[self.kind].format(self.feed)

    @property
    def text(self) -> str:
        """The text of an e-mail."""
        run = "" if self.run is None else f"\nRun: {self.run}"
        return f"Feed: {self.feed}{run}\n\n{self.message}\n\n{REMEDIES[self.kind]}\n"

    def to_json(self) -> dict[str, object]:
        """The body of a webhook."""
        return {
            "kind": self.kind,
            "feed": self.feed,
            "run": self.run,
            "message": self.message,
            "at": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        }
