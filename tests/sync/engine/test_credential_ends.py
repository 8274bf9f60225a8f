"""The nightly sync announces API keys and client secrets that end soon."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from sqlalchemy import Engine

from roster_service.access import clients, vendors
from roster_service.access.scopes import Scope, ScopeName
from roster_service.settings import Settings
from sync_scripts.engine import nightly_feeds
from sync_scripts.engine.credential_ends import announce_ends
from sync_scripts.engine.nightly_feeds import NightlySync
from sync_scripts.notifications.announcement import Announcement, Kind
from tests.actors import TESTER

EMAIL = "reading@example.com"
LAST = date(2126, 12, 20)


@pytest.mark.parametrize(
    ("days", "day", "number"),
    [(14, date(2126, 12, 6), 2), (14, date(2126, 12, 19), 2), (14, date(2126, 12, 7), 0), (0, date(2126, 12, 19), 0)],
)
def test_ends_are_announced_with_their_vendor(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, days: int, day: date, number: int
) -> None:
    """One key and one secret end; a key without an end is never announced."""
    sent: list[Announcement] = []
    events: list[dict[str, object]] = []

    def announce(_settings: Settings, announcement: Announcement) -> list[str]:
        sent.append(announcement)
        return ["the webhook failed"]

    monkeypatch.setattr(nightly_feeds, "announce", announce)
    end = datetime(2126, 12, 21, tzinfo=UTC)
    with engine.begin() as connection:
        key = vendors.add_vendor(connection, TESTER, EMAIL, "x", expires_at=end)
        vendors.add_vendor(connection, TESTER, "other@example.com", "x")
        scopes = [Scope("v1p2", ScopeName.CORE)]
        client = clients.add_client(connection, TESTER, EMAIL, "x", scopes, expires_at=end)
    sync = NightlySync(engine, Settings(credential_days=days), events.append)
    assert announce_ends(sync, day) == number
    words = [
        f"the api key {key.prefix} of {EMAIL} is valid until {LAST}, UTC",
        f"the client secret {client.client_id} of {EMAIL} is valid until {LAST}, UTC",
    ]
    assert sent == [Announcement(Kind.CREDENTIAL, None, text, vendor=EMAIL) for text in words[:number]]
    assert [(event["step"], event["vendor"], event["exit"]) for event in events] == [("announce", EMAIL, 0)] * number
