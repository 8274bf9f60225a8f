"""The rows that runs of the sync rejected, as sync_rejections remembers them, and the records that each row names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from roster_service.db.tables import feeds, sync_rejections, sync_runs
from roster_service.feeds.held_runs import HELD
from roster_service.feeds.run_outcomes import LOADED_OUTCOMES, REFUSED

# The rejected rows that are kept of a run.
KEPT = 10_000
# How many feeds a list of their latest runs has.
MOST_FEEDS = 20
# The outcomes of a run that would load an export once a person acts.
WAITING_OUTCOMES = (HELD, REFUSED)


@dataclass(frozen=True)
class NamedRecord:
    """A record of the roster that a row names. `type`: as in reports; `own`: whether the row describes the record, and
    does not only refer to it; `label`: the name or title that the row gives its own record, None for any other."""

    type: str
    sourcedId: str  # noqa: N815  (the name in OneRoster)
    own: bool
    label: str | None

    def to_json(self) -> dict[str, object]:
        """The record as it is stored, without values that are None."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class RejectedRow:
    """A rejected row, as it is stored. `kind`: `cause`, or `consequence` for a row that is rejected only because it
    refers to a rejected one; `cause`: the number of its root cause in the run, None if it is in no group; `records`:
    that it names, its own first."""

    file: str
    line: int | None
    column: str | None
    value: str | None
    reason: str
    sourcedId: str | None  # noqa: N815  (the name in exports)
    kind: str
    cause: int | None
    records: tuple[NamedRecord, ...]


def count_rejected_rows(connection: sa.Connection, run: int) -> int:
    """Returns the number of rejected rows of a run that are stored: fewer than were rejected if they were too many, and
    none after their retention."""
    return connection.execute(sa.select(sa.func.count()).where(sync_rejections.c.run_id == run)).scalar_one()


def explain_missing(rejected: int, stored: int) -> str:
    """Returns in words why fewer rows are stored than were rejected; an empty text if all are stored."""
    if stored >= rejected:
        return ""
    kept = f"{stored:,}" if stored else "none"
    rows = f"{rejected:,} {'row was' if rejected == 1 else 'rows were'} rejected, and {kept} of them"
    first = f"of one run the first {KEPT:,} are stored; " if rejected > KEPT else ""
    deleted = "a row is deleted after ROSTER_CHANGE_DAYS, and when a person whom it names is erased"
    return f"{rows} {'is' if stored < 2 else 'are'} stored: {first}{deleted}"


def read_rejected_rows(
    connection: sa.Connection, run: int, count: int | None = None, *conditions: sa.ColumnElement[bool], offset: int = 0
) -> Iterator[RejectedRow]:
    """Reads the stored rejected rows of a run, or `count` of them after the first `offset`: root causes before
    consequences. `conditions`: of the rows of sync_rejections."""
    rows = (
        sa.select(sync_rejections)
        .where(sync_rejections.c.run_id == run, *conditions)
        .order_by(sync_rejections.c.number)
    )
    for row in connection.execute(rows.limit(count).offset(offset)):
        yield RejectedRow(
            file=row.file,
            line=row.line,
            column=row.header,
            value=row.value,
            reason=row.reason,
            sourcedId=row.sourced_id,
            kind="consequence" if row.is_consequence else "cause",
            cause=None if row.cause is None else row.cause + 1,
            records=tuple(
                NamedRecord(record["type"], record["sourcedId"], record["own"], record.get("label"))
                for record in row.records
            ),
        )


def has_cause(cause: int) -> sa.ColumnElement[bool]:
    """Returns the condition that a row is of the root cause with this number."""
    return sync_rejections.c.cause == cause - 1


def names_record(type_: str, sourced_id: str) -> sa.ColumnElement[bool]:
    """Returns the condition that a row names a record, as its own or by a reference."""
    return sync_rejections.c.records.contains([{"type": type_, "sourcedId": sourced_id}])


def find_loading_run(connection: sa.Connection, feed: str) -> int | None:
    """Returns the latest run of a feed that loaded an export."""
    found: int | None = connection.scalar(_select_latest(feed, LOADED_OUTCOMES))
    return found


def find_explaining_runs(connection: sa.Connection, feed: str) -> list[int]:
    """Returns the runs of a feed that explain why a record is not as its export has it, the newest first: the latest
    run that loaded an export, and the newest run after it that was held or refused. A row that a later run loads is no
    longer rejected, so no earlier run explains anything."""
    loading = find_loading_run(connection, feed)
    waiting: int | None = connection.scalar(
        _select_latest(feed, WAITING_OUTCOMES).having(sa.func.max(sync_runs.c.id) > (loading or 0))
    )
    return [run for run in (waiting, loading) if run is not None]


def list_rejecting_runs(connection: sa.Connection) -> list[tuple[str, int]]:
    """Returns (feed, run) of each feed whose latest run that loaded an export rejected rows, by the name of the feed.
    The first `MOST_FEEDS` of them."""
    latest = sa.select(sa.func.max(sync_runs.c.id)).where(sync_runs.c.outcome.in_(LOADED_OUTCOMES))
    rows = sa.select(feeds.c.name, sync_runs.c.id).join(feeds, feeds.c.id == sync_runs.c.feed_id)
    rows = rows.where(sync_runs.c.id.in_(latest.group_by(sync_runs.c.feed_id)), sync_runs.c.rejected > 0)
    return [(feed, run) for feed, run in connection.execute(rows.order_by(feeds.c.name).limit(MOST_FEEDS))]


def _select_latest(feed: str, outcomes: Collection[str]) -> sa.Select[Any]:
    of_feed = sync_runs.c.feed_id == sa.select(feeds.c.id).where(feeds.c.name == feed).scalar_subquery()
    return sa.select(sa.func.max(sync_runs.c.id)).where(of_feed, sync_runs.c.outcome.in_(outcomes))


def list_names(records: Iterable[NamedRecord]) -> str:
    """Returns records as one text: `enrollments e-1; users u-7 (Ann Lee)`."""
    return "; ".join(
        f"{record.type} {record.sourcedId}{'' if record.label is None else f' ({record.label})'}" for record in records
    )
