"""The change log as operators read it, and the order of rows that all logs share."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from roster_service.change_log.actors import normalize_email
from roster_service.change_log.changes import Subject, Verb
from roster_service.db.instants import format_instant
from roster_service.db.tables import changes


def order_rows(rows: sa.Select[Any], log: sa.FromClause, latest: tuple[int, int] | None) -> sa.Select[Any]:
    """Returns a SELECT of rows of a log, the oldest first. `latest`: only this many rows (the second number), the
    newest first, without the newest ones (the first number)."""
    if latest is None:
        return rows.order_by(log.c.at, log.c.id)
    skipped, count = latest
    return rows.order_by(log.c.at.desc(), log.c.id.desc()).offset(skipped).limit(count)


@dataclass(frozen=True)
class Change:
    """A row of the change log. `at`: ISO 8601, UTC; `actor`: an operator's e-mail, or `user@host` of the command line;
    `verb`: the words of the command; `before`, `after`: the values that differ, None where the subject was or is not
    there."""

    id: int
    at: str
    actor_kind: str
    actor: str
    verb: str
    kind: str
    subject: str
    vendor: str | None
    feed: str | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    reason: str | None


def list_changes(
    connection: sa.Connection,
    *,
    vendor: str | None,
    feed: str | None,
    operator: str | None,
    since: datetime | None,
    latest: tuple[int, int] | None = None,
) -> list[Change]:
    """Lists changes, in the order that `order_rows` gives for `latest`. Each other argument but None leaves only those
    of a vendor (its e-mail), a feed (its name), an actor (as `Change.actor`), and those at or after an instant; removed
    ones have their changes too."""
    conditions = []
    if vendor is not None:
        conditions.append(changes.c.vendor == normalize_email(vendor))
    if feed is not None:
        conditions.append(changes.c.feed == feed)
    if operator is not None:
        conditions.append(changes.c.actor == operator)
    if since is not None:
        conditions.append(changes.c.at >= since)
    rows = connection.execute(order_rows(sa.select(changes).where(*conditions), changes, latest))
    return [_read_change(row) for row in rows]


def find_last_change(connection: sa.Connection, subject: Subject, verbs: Collection[Verb]) -> Change | None:
    """Returns the last change of a subject by one of the verbs; None if there is none."""
    own = (changes.c.kind == subject.kind, changes.c.subject == subject.name)
    last = sa.select(changes).where(*own, changes.c.verb.in_(verbs)).order_by(changes.c.id.desc()).limit(1)
    row = connection.execute(last).one_or_none()
    return None if row is None else _read_change(row)


def _read_change(row: sa.Row[Any]) -> Change:
    return Change(**{**row._asdict(), "at": format_instant(row.at)})
