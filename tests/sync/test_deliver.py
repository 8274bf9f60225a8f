"""When deliveries are sent, how often they are tried, and who hears of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from roster_service.deliveries.accounts import Delivery
from roster_service.errors import CommandError
from roster_service.settings import Settings
from sync_scripts import deliver
from sync_scripts.deliver import PAUSES, is_due, send_due
from sync_scripts.engine.exit_codes import ExitCode
from sync_scripts.notifications.announcement import Announcement

# 01:30 on 25 November on a machine five hours behind UTC.
NOW = datetime(2026, 11, 25, 1, 30, tzinfo=timezone(-timedelta(hours=5)))
TODAY, YESTERDAY, LATER = "2026-11-25T05:10:00.000Z", "2026-11-25T04:50:00.000Z", "2026-11-25T05:20:00.000Z"


def make(**given: Any) -> Delivery:
    """A delivery."""
    values: Mapping[str, Any] = dict.fromkeys(Delivery.__dataclass_fields__)
    return Delivery(**{**values, "name": "nightly", "since": "2026-11-01T00:00:00.000Z", **given})


@pytest.mark.parametrize(
    ("delivery", "after_sync", "due"),
    [
        (make(), True, True),
        (make(), False, False),
        (make(sent_at=YESTERDAY), True, True),
        (make(sent_at=TODAY), True, False),
        (make(state="waiting", at=TODAY), True, True),
        (make(stopped=True), True, False),
        (make(hour=1), False, True),
        (make(hour=1), True, False),
        (make(hour=2), False, False),
        (make(hour=0, sent_at=YESTERDAY), False, True),
        (make(hour=0, sent_at=TODAY), False, False),
        (make(hour=0, state="failed", at=TODAY), False, True),
        (make(hour=0, state="waiting", at=TODAY), False, False),
        # A sync that ends after midnight, and the next one before midnight; or a file that was approved by day.
        (make(sent_at=TODAY, has_changed=True), True, True),
        (make(sent_at=TODAY, has_changed=True), False, False),
        (make(sent_at=TODAY, has_changed=True, stopped=True), True, False),
        (make(sent_at=TODAY, since=LATER), True, True),
        (make(hour=0, sent_at=TODAY, has_changed=True), False, False),
    ],
)
def test_a_delivery_is_due_once_a_day(delivery: Delivery, after_sync: bool, due: bool) -> None:
    assert is_due(delivery, NOW, after_sync=after_sync) is due


@dataclass
class Sender:
    """Ends as it is given, one try after the other."""

    ends: dict[str, list[Delivery | Exception]]
    settings: Settings = field(default_factory=Settings)
    tries: list[str] = field(default_factory=list)

    class owner:  # noqa: N801
        """The database of another test."""

        @staticmethod
        def connect() -> Any:
            """A connection that nobody asks."""
            import contextlib

            return contextlib.nullcontext()

    def now(self) -> datetime:
        """The time of the machine."""
        return NOW

    def deliver(self, name: str) -> Delivery:
        """One try."""
        self.tries.append(name)
        end = self.ends[name].pop(0)
        if isinstance(end, Exception):
            raise end
        return end


def test_only_what_failed_is_tried_again_after_growing_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(name: str, state: str) -> Delivery:
        return make(name=name, vendor="v@example.org", state=state, message=None if state == "sent" else "because")

    ends = {
        "good": [end("good", "sent")],
        "waits": [end("waits", "waiting")],
        "late": [end("late", "failed"), end("late", "sent")],
        "away": [end("away", "failed")] * len(PAUSES),
        "lost": [OperationalError("SELECT 1", None, ConnectionError())] * len(PAUSES),
        "goes": [CommandError("the delivery goes is under way")],
    }
    found = [make(name=name, vendor="v@example.org") for name in ends]
    monkeypatch.setattr(deliver, "list_deliveries", lambda _connection: found)
    mailed: list[Announcement] = []
    monkeypatch.setattr(deliver, "announce", lambda _settings, it: mailed.append(it) or {})
    sender, pauses, events = Sender(ends), list[float](), list[dict[str, Any]]()
    code = send_due(sender, events.append, after_sync=True, sleep=pauses.append)  # type: ignore[arg-type]
    assert code is ExitCode.FAILED
    assert sender.tries == [*ends, *("late", "away", "lost"), *("away", "lost") * 2]
    assert pauses == list(PAUSES)
    assert {it["delivery"]: it.get("outcome") for it in events} == {
        "good": "sent", "waits": "waiting", "late": "sent", "away": "failed", "lost": "failed", "goes": None,
    }  # fmt: skip
    assert sorted(it.text.splitlines()[2] for it in mailed) == [
        "The file of away was not sent: because.",
        "The file of lost was not sent: OperationalError.",
        "The file of waits waits: because.",
    ]
    assert {it.subject for it in mailed} == {"Roster Service: a file for v@example.org was not sent"}
