"""The ends of agreements: each night notes those that are over, and announces those that come."""

from __future__ import annotations

import re
from typing import Any

import sqlalchemy as sa

from roster_service.accounts.known_agreements import NOTICE_DAYS, KnownAgreement, list_agreements
from roster_service.accounts.transparency import publish
from roster_service.accounts.vendors import list_vendors
from roster_service.db.tables import agreements
from sync_scripts.engine.nightly_feeds import NightlySync, send
from sync_scripts.notifications.announcement import Announcement, AnnouncementKind
from sync_scripts.notifications.channels import MAIL, list_channels

# How many days before the end something is said, and on the first night after it. Each is said once: a night that was
# missed, or whose words reached no channel, says it later.
STEPS = (NOTICE_DAYS, 14, 1, 0)
# An address of a contact: a part of another one would be somebody else's.
_ADDRESS = re.compile(r"[A-Za-z0-9._+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
_BESIDE = re.compile(r"[\s<>(),;]+")
# The step of an agreement of which nothing is announced yet, or the last one.
_ANNOUNCED = sa.func.coalesce(agreements.c.told_days, STEPS[0] + 1)


def announce_agreements(sync: NightlySync) -> int:
    """Notes of each agreement that is over that it has ended, announces the ends of which something is to be said, and
    publishes what holds now. Returns how many were announced."""
    with sync.engine.begin() as connection:
        connection.execute(sa.select(sa.func.note_ended_agreements()))
        columns = (agreements.c.vendor_id, agreements.c.ends_at, _ANNOUNCED.label("announced"))
        stored = {row.vendor_id: row for row in connection.execute(sa.select(*columns))}
        due = [
            (known, step)
            for known in list_agreements(connection)
            if (step := _find_step(known)) is not None and step < stored[known.vendor_id].announced
        ]
        enabled = {vendor.id for vendor in list_vendors(connection) if vendor.enabled}
        publish(connection)
    channels = {name for name, _ in list_channels(sync.settings)}
    count = 0
    for known, step in due:
        said = known.agreement
        words = f"the agreement “{said.title}” of {known.vendor}: {known.state}; its last day is {said.last_day}"
        message = f"{words}. Contact: {said.contact}. It promises: {said.deletion}"
        failed = send(sync, Announcement(AnnouncementKind.AGREEMENT, None, message, vendor=known.vendor))
        if not channels or channels > set(failed):
            _note(sync, stored[known.vendor_id], step)
            count += 1
            # Once, also where it fails; nobody waits for the end of what is switched off.
            for address in _find_addresses(said.contact) if known.vendor_id in enabled else ():
                send(sync, Announcement(AnnouncementKind.CONTACT, None, words, vendor=known.vendor, to=address), {MAIL})
    return count


def _find_addresses(contact: str) -> list[str]:
    """The e-mail addresses among the words for a contact."""
    words = (word.strip(".:") for word in _BESIDE.split(contact))
    return [word for word in words if _ADDRESS.fullmatch(word)]


def _note(sync: NightlySync, row: Any, step: int) -> None:
    """Notes that a step is announced, unless somebody has saved another end since, or another run has noted more."""
    same = (agreements.c.vendor_id == row.vendor_id, agreements.c.ends_at == row.ends_at)
    with sync.engine.begin() as connection:
        connection.execute(sa.update(agreements).where(*same, step < _ANNOUNCED).values(told_days=step))


def _find_step(known: KnownAgreement) -> int | None:
    """The last of `STEPS` that the agreement has reached; None for none."""
    left = 0 if known.days_left is None else max(known.days_left, 1)
    return min((step for step in STEPS if left <= step), default=None)
