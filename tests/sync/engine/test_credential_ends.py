"""The nightly sync announces API keys and client secrets that end soon."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.accounts import clients, vendors
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.feeds.exclusions import find_renewal, renew_statistics
from roster_service.settings import Settings
from sync_scripts.engine import nightly_feeds
from sync_scripts.engine.nightly_feeds import NightlySync, announce_ends
from sync_scripts.notifications.announcement import Announcement, AnnouncementKind
from tests.actors import TESTER

EMAIL = "reading@example.com"
LAST = date(2126, 12, 20)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Announcement]:
    """What is sent to a webhook that fails."""
    sent: list[Announcement] = []

    def announce(_settings: Settings, announcement: Announcement, _over: Any) -> Mapping[str, str]:
        sent.append(announcement)
        return {"webhook": "the webhook failed"}

    monkeypatch.setattr(nightly_feeds, "announce", announce)
    return sent


def add_ending(connection: sa.Connection) -> tuple[str, str]:
    """One key and one secret that end, and a key without an end; (prefix of the first key, id of the client)."""
    end = datetime(2126, 12, 21, tzinfo=UTC)
    key = vendors.add_vendor(connection, TESTER, EMAIL, "x", expires_at=end)
    vendors.add_vendor(connection, TESTER, "other@example.com", "x")
    scopes = [Scope("v1p2", ScopeName.CORE)]
    return key.prefix, clients.add_client(connection, TESTER, EMAIL, "x", scopes, expires_at=end).client_id


def december(day: int) -> date:
    return date(2126, 12, day)


# The day, that of the sync before if the database knows it, and how many ends are announced.
DAYS = {
    "14 days before": (december(6), None, 2),
    "the day before": (december(19), None, 2),
    "another day": (december(7), None, 0),
    "another day, and a sync each night": (december(7), december(6), 0),
    "a second sync of the day": (december(6), december(6), 2),
    "after a missed night": (december(7), december(5), 2),
    "after weeks, once for both": (december(20), date(2126, 11, 1), 2),
    "after the end": (december(21), december(1), 0),
}


@pytest.mark.parametrize(("day", "before", "number"), DAYS.values(), ids=DAYS)
def test_ends_are_announced_with_their_vendor(
    engine: sa.Engine, sent: list[Announcement], day: date, before: date | None, number: int
) -> None:
    """A key without an end is never announced."""
    events: list[dict[str, object]] = []
    with engine.begin() as connection:
        prefix, client_id = add_ending(connection)
    sync = NightlySync(engine, Settings(), events.append)
    assert announce_ends(sync, day, before) == number
    words = [
        f"the api key {prefix} of {EMAIL} is valid until {LAST}, UTC",
        f"the client secret {client_id} of {EMAIL} is valid until {LAST}, UTC",
    ]
    assert sent == [Announcement(AnnouncementKind.CREDENTIAL, None, text, vendor=EMAIL) for text in words[:number]]
    assert [(event["step"], event["vendor"], event["exit"]) for event in events] == [("announce", EMAIL, 0)] * number


@pytest.mark.parametrize(
    ("disable", "number"),
    [
        pytest.param(
            lambda it, _: vendors.set_vendor_enabled(it, TESTER, EMAIL, enabled=False), 0, id="a-disabled-vendor"
        ),
        pytest.param(lambda it, client_id: clients.disable_client(it, TESTER, client_id), 1, id="a-disabled-client"),
    ],
)
def test_the_end_of_what_is_disabled_is_not_announced(
    engine: sa.Engine, sent: list[Announcement], disable: Callable[[sa.Connection, str], Any], number: int
) -> None:
    with engine.begin() as connection:
        _, client_id = add_ending(connection)
        disable(connection, client_id)
    assert announce_ends(NightlySync(engine, Settings(), lambda _: None), december(6), None) == number
    assert len(sent) == number


def test_the_database_knows_when_a_nightly_sync_was_last_done(engine: sa.Engine) -> None:
    before = datetime.now(UTC)
    renew_statistics(engine)
    with engine.connect() as connection:
        found = find_renewal(connection)
        assert found is not None
        assert before <= found <= datetime.now(UTC)
        # The load of an export, and an index, take samples of single tables.
        connection.exec_driver_sql("ANALYZE users, visible_orgs")
        assert find_renewal(connection) == found
