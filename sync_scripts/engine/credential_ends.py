"""The announcements of API keys and client secrets that end soon."""

from __future__ import annotations

from datetime import date

from roster_service.accounts.credentials import list_credentials
from sync_scripts.engine.nightly_feeds import NightlySync, send
from sync_scripts.notifications.announcement import Announcement, AnnouncementKind


def announce_ends(sync: NightlySync, day: date) -> int:
    """Announces the credentials of which something is to be said on a day, in UTC. Returns their number."""
    if not sync.settings.credential_days:
        return 0
    with sync.engine.connect() as connection:
        found = list_credentials(connection)
    announced = [(item.vendor, item.announce(day, sync.settings.credential_days)) for item in found]
    for vendor, words in announced:
        if words is not None:
            send(sync, Announcement(AnnouncementKind.CREDENTIAL, None, words, vendor=vendor))
    return sum(words is not None for _, words in announced)
