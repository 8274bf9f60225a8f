"""The nightly sync announces the ends of agreements, each step once, also after a run that was missed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.accounts import agreements, vendors
from roster_service.settings import Settings
from sync_scripts.engine import nightly_feeds
from sync_scripts.engine.agreement_ends import announce_agreements
from sync_scripts.engine.nightly_feeds import NightlySync
from sync_scripts.notifications.announcement import Announcement, AnnouncementKind
from sync_scripts.notifications.channels import MAIL
from tests.accounts.agreed import VENDOR, WHOLE
from tests.actors import TESTER
from tests.postgres.loaded import load_first
from tests.sync.conftest import EXPORTS, SHELBYVILLE


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Announcement]:
    """What is sent."""
    sent: list[Announcement] = []

    def announce(_settings: Settings, announcement: Announcement, over: Any) -> Mapping[str, str]:
        # What goes to a contact goes by e-mail alone.
        assert (announcement.to is not None) == (over == {MAIL})
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
        assert len(sent) - before == 2 * (step is not None), left
        with engine.connect() as connection:
            noted, ended_at = connection.execute(sa.text("SELECT told_days, ended_at FROM agreements")).one()
        assert step in (None, noted), left
        assert (ended_at is not None) == left.startswith("-"), left
    own, others = sent[::2], sent[1::2]
    assert {(it.kind, it.vendor, it.to) for it in own} == {(AnnouncementKind.AGREEMENT, VENDOR, None)}
    assert all(WHOLE.contact in it.message and WHOLE.deletion in it.message for it in own)
    assert {(it.kind, it.vendor, it.to) for it in others} == {(AnnouncementKind.CONTACT, VENDOR, WHOLE.contact)}


CONTACTS: dict[str, tuple[str, list[str]]] = {
    "an address": ("privacy@vendor.example", ["privacy@vendor.example"]),
    "a name with an address": ("Jo Doe <jo.doe+x@mail.vendor.example>, desk", ["jo.doe+x@mail.vendor.example"]),
    "two of them": ("a@v.example; b@v.example.", ["a@v.example", "b@v.example"]),
    "one of which a part would be another": ("o'brien@v.example or jörg@v.example, x&y@v.example", []),
    "none": ("the office, phone 555-0100", []),
    "a vendor that is disabled": ("a@v.example", []),
}


@pytest.mark.parametrize("case", CONTACTS)
def test_the_contact_hears_of_the_end_where_it_is_an_address(
    engine: sa.Engine, sent: list[Announcement], case: str
) -> None:
    contact, expected = CONTACTS[case]
    load_first(engine, "shelbyville", EXPORTS / SHELBYVILLE)
    with engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, VENDOR, "App")
        agreements.set_agreement(connection, TESTER, VENDOR, replace(WHOLE, contact=contact))
        connection.execute(sa.text("UPDATE agreements SET ends_at = now() + interval '20 hours'"))
        vendors.set_vendor_enabled(connection, TESTER, VENDOR, enabled="disabled" not in case)
    announce_agreements(NightlySync(engine, Settings(), lambda _: None))
    assert [it.to for it in sent] == [None, *expected]


def test_an_end_that_is_saved_again_is_not_announced_again(engine: sa.Engine, sent: list[Announcement]) -> None:
    load_first(engine, "shelbyville", EXPORTS / SHELBYVILLE)
    last_day = date.today() + timedelta(days=5)  # noqa: DTZ011  (a day more or less is no other step)
    sync = NightlySync(engine, Settings(), lambda _: None)
    with engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, VENDOR, "App")
    for title in ("First", "Second"):
        with engine.begin() as connection:
            saved = replace(WHOLE, title=title, last_day=last_day)
            agreements.set_agreement(connection, TESTER, VENDOR, saved)
        announce_agreements(sync)
    assert len(sent) == 2


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
    assert [it.kind for it in sent] == [AnnouncementKind.AGREEMENT, AnnouncementKind.CONTACT] * 2
