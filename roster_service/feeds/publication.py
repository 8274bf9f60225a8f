"""The steps that prepare a new roster for serving: a sync or a purge runs them in the transaction that changes the
roster.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa

from roster_service.feeds.roster_state import advance_state
from roster_service.roster.label_check import require_right_labels
from roster_service.roster.visible_orgs import refresh_vendors_of


def publish(
    connection: sa.Connection,
    feed_ids: Collection[int],
    *,
    new_orgs: Collection[str] = (),
    as_of: datetime | None = None,
    deletions_since: datetime | None = None,
) -> int:
    """Publishes the records of these feeds, as this transaction has changed them, as the next revision, and returns
    that revision: checks the labels of what has changed, and updates the visible orgs and labels and the state of the
    vendors that see the feeds.

    `new_orgs`: the ids of the orgs that the transaction has added: those that were there before move the floor of a
    vendor that sees other ones of them now. `as_of`, `deletions_since`: as for `advance_state`.

    Raises WrongLabelsError. Call it as the last step of the transaction, because other announcements and changes of
    grants wait for its end.
    """
    if as_of is not None:
        for feed_id in feed_ids:
            require_right_labels(connection, feed_id, as_of)
    revision = advance_state(connection, feed_ids, as_of, deletions_since)
    refresh_vendors_of(connection, feed_ids, new_orgs)
    return revision
