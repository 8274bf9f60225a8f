"""The ends of agreements: each night notes those that are over, and announces those that come."""

from __future__ import annotations

import sqlalchemy as sa

from roster_service.accounts.agreements import NOTICE_DAYS, KnownAgreement, list_agreements
from roster_service.accounts.transparency import publish
from roster_service.db.tables import agreements
from sync_scripts.engine.nightly_feeds import NightlySync, send
from sync_scripts.notifications.announcement import Announcement, AnnouncementKind

# How many days before the end something is said, and on the first night after it. Each is said once: a night that was
# missed says it later.
STEPS = (NOTICE_DAYS, 14, 1, 0)


def announce_agreements(sync: NightlySync) -> int:
    """Notes of each agreement that is over that it has ended, announces the ends of which something is to be said, and
    publishes what holds now. Returns how many were announced."""
    with sync.engine.begin() as connection:
        connection.execute(sa.select(sa.func.note_ended_agreements()))
        announced = {row.vendor_id: row.told_days for row in connection.execute(sa.select(agreements))}
        due = [
            (known, step)
            for known in list_agreements(connection)
            if (step := _find_step(known)) is not None
            and step < (STEPS[0] + 1 if announced[known.vendor_id] is None else announced[known.vendor_id])
        ]
        for known, step in due:
            own = agreements.c.vendor_id == known.vendor_id
            connection.execute(sa.update(agreements).where(own).values(told_days=step))
        publish(connection)
    for known, _ in due:
        said = known.agreement
        words = f"the agreement “{said.title}” of {known.vendor}: {known.state}; its last day is {said.last_day}"
        message = f"{words}. Contact: {said.contact}. It promises: {said.deletion}"
        send(sync, Announcement(AnnouncementKind.AGREEMENT, None, message, vendor=known.vendor))
    return len(due)


def _find_step(known: KnownAgreement) -> int | None:
    """The last of `STEPS` that the agreement has reached; None for none."""
    left = 0 if known.days_left is None else max(known.days_left, 1)
    return min((step for step in STEPS if left <= step), default=None)
