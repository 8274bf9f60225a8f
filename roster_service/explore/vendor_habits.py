"""What is new about the requests of a vendor, beside its last days. It is told, and stops nothing: after each change of
ours, as a new grant or the first school day, every vendor does something new."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, time, timedelta
from ipaddress import ip_network
from statistics import median
from typing import Any

import sqlalchemy as sa

from roster_service.accounts.vendors import Vendor
from roster_service.change_log.changes import Verb
from roster_service.db.packed_bytes import split_bytes
from roster_service.db.tables import HASH_BYTES, audit, audit_days, changes, disclosures, vendors

# With what the last day is compared, and how long a change of ours explains whatever is new, in days.
COMPARED, SILENT = 30, 14
# What changes nothing that a vendor gets, and what makes every vendor pull all anew.
_OF_NO_RIGHTS = (Verb.SHOW, Verb.EXPORT, Verb.DELIVERY_PREVIEW, Verb.DELETION_ASK, Verb.DELETION_ANSWER)
_OF_ALL = (Verb.PERSON_ERASE, Verb.PERSON_HIDE, Verb.FEED_REMOVE, Verb.SYNC_UNDO, Verb.DB_RESTORED)
# The answers that are read at once.
_ANSWERS = 500
# The bits of an address that name its network.
_PREFIXES = {4: 24, 6: 48}


def list_habits(connection: sa.Connection, vendor: Vendor, now: datetime) -> list[str]:
    """Returns what is new in the last day, in phrases; none for a vendor that we have changed a short time ago, and
    for one that was not answered before."""
    begin = now - timedelta(days=SILENT)
    own = sa.and_(changes.c.vendor == vendor.email, changes.c.verb.not_in(_OF_NO_RIGHTS))
    of_all = sa.and_(changes.c.vendor.is_(None), changes.c.verb.in_(_OF_ALL))
    changed = sa.exists().where(changes.c.at > begin, own | of_all)
    # Whatever moves it makes the vendor pull all anew.
    moved = sa.exists().where(vendors.c.id == vendor.id, vendors.c.floor > begin)
    if connection.scalar(sa.select(changed | moved)):
        return []
    return [*_list_new(connection, vendor, now), *_compare_people(connection, vendor, now)]


def _list_new(connection: sa.Connection, vendor: Vendor, now: datetime) -> Iterator[str]:
    is_new = (disclosures.c.at > now - timedelta(days=1)).label("is_new")
    listed = sa.select(disclosures.c.address, disclosures.c.scope, is_new).distinct()
    kept = (disclosures.c.vendor_id == vendor.id, disclosures.c.last_at > now - timedelta(days=COMPARED))
    rows = connection.execute(listed.where(*kept)).all()
    if all(row.is_new for row in rows):
        return
    for word, find in _HABITS.items():
        before = {name for row in rows if not row.is_new for name in find(row)}
        first = sorted({name for row in rows for name in find(row)} - before)
        if first:
            yield f"in the last day it used a {word} for the first time in {COMPARED} days: {', '.join(first)}"


def _list_networks(row: Any) -> list[str]:
    return [_find_network(row.address)] if row.address else []


def _list_scopes(row: Any) -> list[str]:
    return (row.scope or "").split()


# The word for a habit -> its names in a row.
_HABITS: Mapping[str, Callable[[Any], list[str]]] = {"network": _list_networks, "scope or flag": _list_scopes}


def _find_network(address: str) -> str:
    try:
        version = ip_network(address).version
    except ValueError:
        return address
    return str(ip_network(f"{address}/{_PREFIXES[version]}", strict=False))


def _compare_people(connection: sa.Connection, vendor: Vendor, now: datetime) -> Iterator[str]:
    """Those of yesterday do not count: the rows of its answers become rows of a day in the next night."""
    day = sa.cast(sa.func.timezone("UTC", audit_days.c.at), sa.Date)
    recent = (audit_days.c.vendor_id == vendor.id, audit_days.c.at > now - timedelta(days=COMPARED))
    by_day = sa.select(sa.func.max(audit_days.c.people_of_day)).where(*recent).group_by(day)
    known = [people for people in connection.scalars(by_day) if people]
    if not known:
        return
    begin = datetime.combine(now.date(), time(), UTC)
    answers = sa.select(audit.c.people).where(audit.c.vendor_id == vendor.id, audit.c.at >= begin)
    shown: set[bytes] = set()
    for people in connection.scalars(answers, execution_options={"yield_per": _ANSWERS}):
        shown.update(split_bytes(people[HASH_BYTES:], HASH_BYTES))
    if shown:
        middle = round(median(known))
        yield f"it was shown {len(shown):,} people today (UTC); the median of its days with people is {middle:,}"
