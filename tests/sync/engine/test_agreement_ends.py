"""The nightly sync announces the ends of agreements, each step once, also after a run that was missed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.accounts import agreements, vendors
from roster_service.settings import Settings
from sync_scripts.engine import nightly_feeds
from sync_scripts.engine.agreement_ends import announce_agreements
from sync_scripts.engine.nightly_feeds import NightlySync
from sync_scripts.notifications.announcement import Announcement, AnnouncementKind
from tests.accounts.agreed import VENDOR, WHOLE
from tests.actors import TESTER
from tests.postgres.loaded import load_first
from tests.sync.conftest import EXPORTS, SHELBYVILLE


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Announcement]:
    """What is sent."""
    sent: list[Announcement] = []

    def announce(_settings: Settings, announcement: Announcement, _over: Any) -> Mapping[str, str]:
        sent.append(announcement)
        return {}

    monkeypatch.setattr(nightly_feeds, "announce", announce)
    return sent


# What is left at each run, and the last of the days 30, 14, 1 and 0 that is announced then; None: nothing is.
RUNS = {
    "each step": [("40 days", None), ("29 days", 30), ("28 days", None), ("13 days", 14), ("20 hours", 1), ("-1 s", 0)],
    "missed runs": [("40 days", None), ("5 days", 14), ("-3 days", 0), ("-4 days", None)],
    "saved late": [("2 hours", 1), ("1 hour", None)],
}


@pytest.mark.parametrize("runs", RUNS.values(), ids=RUNS)
def test_each_step_is_announced_once(
    engine: sa.Engine, sent: list[Announcement], runs: list[tuple[str, int | None]]
) -> None:
    load_first(engine, "shelbyville", EXPORTS / SHELBYVILLE)
    with engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, VENDOR, "App")
        agreements.set_agreement(connection, TESTER, VENDOR, WHOLE)
    sync = NightlySync(engine, Settings(), lambda _: None)
    for left, step in runs:
        with engine.begin() as connection:
            moved = sa.text("UPDATE agreements SET starts_at = 'epoch', ends_at = now() + CAST(:left AS interval)")
            connection.execute(moved, {"left": left})
        before = len(sent)
        assert announce_agreements(sync) == (step is not None), left
        assert len(sent) - before == (step is not None), left
        with engine.connect() as connection:
            noted, ended_at = connection.execute(sa.text("SELECT told_days, ended_at FROM agreements")).one()
        assert step in (None, noted), left
        assert (ended_at is not None) == left.startswith("-"), left
    assert {(it.kind, it.vendor) for it in sent} == {(AnnouncementKind.AGREEMENT, VENDOR)}
    assert all(WHOLE.contact in it.message and WHOLE.deletion in it.message for it in sent)
    assert {tuple(it.copy_to) for it in sent} == {(WHOLE.contact,)}


def test_what_reached_nobody_is_announced_again(engine: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    load_first(engine, "shelbyville", EXPORTS / SHELBYVILLE)
    with engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, VENDOR, "App")
        agreements.set_agreement(connection, TESTER, VENDOR, WHOLE)
        connection.execute(sa.text("UPDATE agreements SET starts_at = 'epoch', ends_at = now() + interval '20 hours'"))
    channels = Settings(webhook_url="http://127.0.0.1:9", smtp_url="smtp://127.0.0.1:9", mail_to="ops@example.org")
    sync = NightlySync(engine, channels, lambda _: None)
    runs = [("e-mail", "webhook"), ("e-mail", "webhook"), ("e-mail",), ()]
    for failing in runs:
        monkeypatch.setattr(nightly_feeds, "announce", lambda *_, it=failing: dict.fromkeys(it, "was not sent"))
        # One channel that was reached is enough; then nothing is to be said any more.
        assert announce_agreements(sync) == (failing == ("e-mail",))


def test_an_older_run_beside_another_takes_no_step_back(engine: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    load_first(engine, "shelbyville", EXPORTS / SHELBYVILLE)
    with engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, VENDOR, "App")
        agreements.set_agreement(connection, TESTER, VENDOR, WHOLE)
        connection.execute(sa.text("UPDATE agreements SET starts_at = 'epoch', ends_at = now() + interval '13 days'"))

    def announce(*_: Any) -> Mapping[str, str]:
        # Another run has announced a later step meanwhile.
        with engine.begin() as connection:
            connection.execute(sa.text("UPDATE agreements SET told_days = 1"))
        return {}

    monkeypatch.setattr(nightly_feeds, "announce", announce)
    announce_agreements(NightlySync(engine, Settings(), lambda _: None))
    with engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT told_days FROM agreements")) == 1


def test_a_renewed_agreement_is_announced_anew(engine: sa.Engine, sent: list[Announcement]) -> None:
    load_first(engine, "shelbyville", EXPORTS / SHELBYVILLE)
    sync = NightlySync(engine, Settings(), lambda _: None)
    with engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, VENDOR, "App")
    for _ in range(2):
        with engine.begin() as connection:
            agreements.set_agreement(connection, TESTER, VENDOR, WHOLE)
            connection.execute(sa.text("UPDATE agreements SET starts_at = 'epoch', ends_at = now() - interval '1 s'"))
        assert announce_agreements(sync) == 1
    assert len(sent) == 2
