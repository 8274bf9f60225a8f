"""An announcement: what happened to a feed, or which credential of a vendor ends soon, for a person and for a program.

It quotes no value of an export, and no secret.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import UTC, datetime

from roster_service.feeds.held_runs import HELD
from roster_service.feeds.run_outcomes import OUTCOMES


class AnnouncementKind(enum.StrEnum):
    """The kind of an announcement that is no outcome of a run."""

    RECOVERED = "recovered"
    PAUSE = "pause"
    CREDENTIAL = "credential"
    AGREEMENT = "agreement"
    CONTACT = "agreement contact"
    DELIVERY = "delivery"
    TEST = "test"


# By kind, what the subject of an e-mail says, and what to do.
KINDS: dict[str, tuple[str, str]] = {
    **{
        outcome.word: (f"{{}} is {outcome.word}: {outcome.meaning}", f"{outcome.remedy}.".capitalize())
        for outcome in OUTCOMES.values()
        if outcome.is_announced
    },
    AnnouncementKind.RECOVERED: ("{} is loaded again", "There is nothing to do."),
    AnnouncementKind.PAUSE: ("the pause of {}", "`roster feed resume` ends a pause."),
    AnnouncementKind.CREDENTIAL: (
        "a key or secret of {} ends soon",
        "`roster vendor rotate-key` and `roster client rotate-secret` make a new one.",
    ),
    AnnouncementKind.AGREEMENT: (
        "the agreement with {} ends",
        "`roster agreement set` saves the next one, on its first day; without it, the vendor gets nothing.",
    ),
    AnnouncementKind.CONTACT: (
        "the agreement with {} ends",
        "Ask the district for the next one; without it, every request is refused from then on.",
    ),
    AnnouncementKind.DELIVERY: (
        "a file for {} was not sent",
        "`roster delivery list` shows all; `roster delivery approve` sends one that waits.",
    ),
    AnnouncementKind.TEST: ("a test of the notifications ({})", "There is nothing to do."),
}
COMMANDS = {
    HELD: "`roster sync show {0}` shows it, `roster sync approve {0}` applies it, `roster sync discard {0}` forgets it."
}


@dataclass(frozen=True)
class Announcement:
    """What happened. `kind`: the outcome of a run, or an `AnnouncementKind`; `feed`, `vendor`: one of them, the feed's
    name or the vendor's e-mail; `message`: in one sentence; `run`: the number of the run, if there is one; `page`: the
    address of its page in the console, if there is a console; `to`: the address that alone gets it, by
    e-mail, None for those of the settings."""

    kind: str
    feed: str | None
    message: str
    run: int | None = None
    vendor: str | None = None
    page: str | None = None
    to: str | None = None

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
        return "Roster Service: " + KINDS[self.kind][0].format(self.name)

    @property
    def text(self) -> str:
        """The text of an e-mail."""
        places = {**self.subject_names, "run": self.run, "page": self.page}
        head = "\n".join(f"{word.capitalize()}: {name}" for word, name in places.items() if name is not None)
        message = OUTCOMES[self.kind].describe(self.message) if self.kind in OUTCOMES else self.message
        commands = COMMANDS.get(self.kind, "`roster sync show {0}` shows it.")
        remedy = KINDS[self.kind][1] + (f" {commands.format(self.run)}" if self.run else "")
        return f"{head}\n\n{message}\n\n{remedy}\n"

    def to_json(self) -> dict[str, object]:
        """The body of a webhook."""
        return {
            "kind": self.kind,
            **self.subject_names,
            "run": self.run,
            "message": self.message,
            "page": self.page,
            "at": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        }
