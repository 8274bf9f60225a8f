"""What is deleted because its days are over: the rows of logs and runs. `purge.py` has the tombstones.

The owner of the tables deletes, in the nightly sync or `python -m sync_scripts.purge`: the roles of the service can
delete neither the access log nor the change log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import INTERVAL

from roster_service.db.tables import (
    LAST_DAY_STEP,
    RATE_DAYS,
    REFUSED_DAYS,
    audit,
    audit_days,
    audit_people,
    changes,
    deletion_requests,
    delivery_runs,
    oauth1_nonces,
    ordering_chunks,
    orderings,
    pulls,
    rate_hits,
    rate_windows,
    refused_requests,
    sync_changes,
    sync_rejections,
    sync_runs,
    usage,
)
from roster_service.feeds.export_previews import drop_old_previews
from roster_service.feeds.held_runs import HELD
from roster_service.feeds.run_outcomes import LOADED_OUTCOMES
from roster_service.feeds.sync_lock import RUNNING
from roster_service.feeds.undo import drop_unknown_copies, forget_copies
from roster_service.roster.stamps import NOW
from roster_service.settings import Settings
from sync_scripts.engine.run_record import KNOWN

Before = sa.ColumnElement[datetime]


def delete_expired(engine: sa.Engine, settings: Settings) -> dict[str, int]:
    """Deletes the rows whose days are over, each kind in one transaction, and the exports in the data folder that
    nobody needs any more. Returns the number of deleted rows by kind."""
    counts = {}
    for name, kind in KINDS.items():
        with engine.begin() as connection:
            counts[name] = kind.delete(connection, NOW - make_interval(kind.days(settings)))
    with engine.connect() as connection:
        drop_unknown_copies(connection, settings.home)
    drop_old_previews(settings.home)
    return counts


def delete_old_orderings(engine: sa.Engine) -> None:
    """Deletes orderings that are older than a day, because they may have ids of purged records, but for those that a
    pull under way reads: while nothing changes, one serves for days. The next request makes an ordering again."""
    names = ("feed_id", "visible_set", "revision")
    parts = sa.func.unnest(pulls.c.feed_ids, pulls.c.visible_sets, pulls.c.feed_revisions)
    part = parts.table_valued(*names, name="part").render_derived()
    same = (orderings.c[name] == part.c[name] for name in names)
    is_read = sa.exists().where(pulls.c.ends_at > NOW, pulls.c.query == orderings.c.query, *same)
    old = (orderings.c.made_at < NOW - make_interval(1)) & ~is_read
    with engine.begin() as connection:
        gone = connection.scalars(sa.delete(orderings).where(old).returning(orderings.c.id)).all()
        connection.execute(sa.delete(ordering_chunks).where(ordering_chunks.c.ordering_id.in_(gone)))


def make_interval(days: int) -> sa.ColumnElement[Any]:
    """Returns the expression of an interval."""
    return sa.type_coerce(sa.func.make_interval(0, 0, 0, days), INTERVAL)


def _delete_rejections(connection: sa.Connection, before: Before) -> int:
    """Deletes the rejected rows of older runs, which have values of the exports."""
    old = sa.select(sync_runs.c.id).where(sync_runs.c.started_at < before)
    return connection.execute(sa.delete(sync_rejections).where(sync_rejections.c.run_id.in_(old))).rowcount


def _delete_changes(connection: sa.Connection, before: Before) -> int:
    """Deletes the changes and the previews of older runs, which have values and ids of records. A held run keeps
    both."""
    ended = sa.and_(sync_runs.c.outcome != HELD, sync_runs.c.started_at < before)
    old = sa.and_(sync_runs.c.has_changes, ended)
    forgotten = connection.scalars(sa.update(sync_runs).where(old).values(has_changes=False).returning(sync_runs.c.id))
    count = connection.execute(sa.delete(sync_changes).where(sync_changes.c.run_id.in_(forgotten.all()))).rowcount
    connection.execute(sa.update(sync_runs).where(ended, sync_runs.c.preview.is_not(None)).values(preview=None))
    return count


def _forget_copies(connection: sa.Connection, before: Before) -> int:
    """Forgets the exports that were kept for an undo."""
    return len(forget_copies(connection, sync_runs.c.started_at < before))


def _delete_runs(connection: sa.Connection, before: Before) -> int:
    """Deletes older runs, except those that show the state of their feed: the latest one, the latest good one, the
    latest one with a new export, and those that are held or under way."""
    showing = (sa.true(), sync_runs.c.outcome.in_(LOADED_OUTCOMES), ~sync_runs.c.notices.contains([KNOWN]))
    kept = sa.union(
        *(sa.select(sa.func.max(sync_runs.c.id)).where(one).group_by(sync_runs.c.feed_id) for one in showing)
    )
    ended = sync_runs.c.outcome.not_in((HELD, RUNNING))
    old = sa.delete(sync_runs).where(sync_runs.c.started_at < before, ended, sync_runs.c.id.not_in(kept))
    return connection.execute(old).rowcount


def _delete_delivery_runs(connection: sa.Connection, before: Before) -> int:
    """Deletes older files of deliveries, except the last one that was sent, with which the next one is compared."""
    kept = (
        sa.select(sa.func.max(delivery_runs.c.id))
        .where(delivery_runs.c.state == "sent")
        .group_by(delivery_runs.c.delivery_id)
    )
    old = sa.delete(delivery_runs).where(delivery_runs.c.started_at < before, delivery_runs.c.id.not_in(kept))
    return connection.execute(old).rowcount


def _delete_disclosures(connection: sa.Connection, before: Before) -> int:
    """Deletes the rows of the access log: that of a day once its last response is too old. The hashes of people go at
    most LAST_DAY_STEP days after their last row."""
    ended = audit_people.c.last_day < sa.cast(sa.func.timezone("UTC", before), sa.Date) - LAST_DAY_STEP
    connection.execute(sa.delete(audit_people).where(ended))
    return sum(_delete_by(column)(connection, before) for column in (audit.c.at, audit_days.c.last_at))


def _delete_counters(connection: sa.Connection, before: Before) -> int:
    """Deletes the counters of throttles, as the service does each hour in which a vendor asks."""
    old = sa.select(rate_windows.c.key).where(rate_windows.c.last_hit < before)
    connection.execute(sa.delete(rate_hits).where(rate_hits.c.key.in_(old)))
    return connection.execute(sa.delete(rate_windows).where(rate_windows.c.key.in_(old))).rowcount


def _delete_nonces(connection: sa.Connection, before: Before) -> int:
    """Deletes the nonces of signed requests, as the service does each hour in which a vendor asks."""
    return connection.execute(
        sa.delete(oauth1_nonces).where(oauth1_nonces.c.stamp < sa.extract("epoch", before))
    ).rowcount


def _delete_by(column: sa.Column[Any]) -> Callable[[sa.Connection, Before], int]:
    """Returns the function that deletes the rows of a table by the column of their time."""
    return lambda connection, before: connection.execute(sa.delete(column.table).where(column < before)).rowcount


@dataclass(frozen=True)
class KeptRows:
    """A kind of rows. `days`: for how many they are kept; `delete`: deletes older ones, and returns how
    many."""

    days: Callable[[Settings], int]
    delete: Callable[[sa.Connection, Before], int]


# By the name in the output of the nightly sync. The rows of a run go before the run.
KINDS: Mapping[str, KeptRows] = {
    # For a day at least: whoever comes in the morning has to see what the nightly sync rejected.
    "rejected rows": KeptRows(lambda settings: max(1, settings.change_days), _delete_rejections),
    "changes of records": KeptRows(lambda settings: settings.change_days, _delete_changes),
    "exports for an undo": KeptRows(lambda settings: settings.change_days, _forget_copies),
    "runs": KeptRows(lambda settings: settings.log_days, _delete_runs),
    "files of deliveries": KeptRows(lambda settings: settings.log_days, _delete_delivery_runs),
    "access log rows": KeptRows(lambda settings: settings.log_days, _delete_disclosures),
    "usage counters": KeptRows(lambda settings: settings.log_days, _delete_by(usage.c.day)),
    "counters of refused requests": KeptRows(lambda _settings: REFUSED_DAYS, _delete_by(refused_requests.c.hour)),
    "counters of throttles": KeptRows(lambda _settings: RATE_DAYS, _delete_counters),
    "nonces of signed requests": KeptRows(lambda _settings: 1, _delete_nonces),
    # Whoever has not answered stays.
    "answered deletion requests": KeptRows(
        lambda settings: settings.log_days, _delete_by(deletion_requests.c.answered)
    ),
    "change log rows": KeptRows(lambda settings: settings.change_log_days, _delete_by(changes.c.at)),
}
