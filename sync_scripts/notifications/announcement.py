"""An announcement: what happened to a feed, or which credential of a vendor ends soon, for a person and for a program.

It quotes no value of an export, and no secret.
"""

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
    CREDENTIAL = "credential"
    TEST = "test"


# What the subject of an e-mail says.
SUBJECTS = {
    Kind.HELD: "the run of {} is held: a person must decide",
    Kind.FAILED: "{} could not be loaded",
    Kind.STALE: "the export of {} is stale",
    Kind.RECOVERED: "{} is loaded again",
    Kind.PAUSE: "the pause of {}",
    Kind.CREDENTIAL: "a key or secret of {} ends soon",
    Kind.TEST: "a test of the notifications ({})",
}
# What to do, by kind.
REMEDIES = {
    Kind.HELD: "`roster sync show` describes the run; `roster sync approve` or `roster sync discard` ends it.",
    Kind.FAILED: "The roster stays as it was. `roster sync list` has the reason.",
    Kind.STALE: "The roster stays as it was. Look whether the SIS still delivers its export.",
    Kind.RECOVERED: "There is nothing to do.",
    Kind.PAUSE: "`roster feed resume` ends a pause.",
    Kind.CREDENTIAL: "`roster vendor rotate-key` and `roster client rotate-secret` make a new one.",
    Kind.TEST: "There is nothing to do.",
}


@dataclass(frozen=True)
class Announcement:
    """What happened. `feed`, `vendor`: one of them, the feed's name or the vendor's e-mail; `message`: in one sentence;
    `run`: the number of the run, if there is one."""

    kind: Kind
    feed: str | None
    message: str
    run: int | None = None
    vendor: str | None = None

    @property
    def subject_names(self) -> dict[str, str]:
        """The feed or the vendor, by its word."""
        return {word: name for word, name in (("feed", self.feed), ("vendor", self.vendor)) if name is not None}

    @property
    def name(self) -> str:
        """The name of the feed or the vendor."""
        return " ".join(self.subject_names.values())

    @property
    def subject(self) -> str:
        """The subject of an e-mail."""
        return "Roster Service: " + SUBJECTS[self.kind].format(self.name)

    @property
    def text(self) -> str:
        """The text of an e-mail."""
        run = "" if self.run is None else f"\nRun: {self.run}"
        subject = "\n".join(f"{word.capitalize()}: {name}" for word, name in self.subject_names.items())
        return f"{subject}{run}\n\n{self.message}\n\n{REMEDIES[self.kind]}\n"

    def to_json(self) -> dict[str, object]:
        """The body of a webhook."""
        return {
            "kind": self.kind,
            **self.subject_names,
            "run": self.run,
            "message": self.message,
            "at": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        }
