"""The hold policy. A run is held if it would delete or change too many records, or reject too many rows, if its export
is older than the one before, or if an approved run would delete, change or reject more than its report showed to the
operator."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

import sqlalchemy as sa

from roster_service.db.instants import describe_instant
from roster_service.db.tables import demographics, feeds, sync_runs, users
from roster_service.errors import CommandError
from roster_service.feeds.exclusions import count_named
from roster_service.feeds.feeds import list_default_limits
from roster_service.feeds.held_runs import HELD, OTHER_IDS
from roster_service.feeds.run_history import ReadFile
from roster_service.feeds.run_outcomes import DONE, LOADED_OUTCOMES, STALE
from roster_service.settings import Settings
from sync_scripts.applying.changes import Counts, Difference
from sync_scripts.engine.report import Report
from sync_scripts.engine.run_record import NOT_HELD
from sync_scripts.reading.manifest import BULK

# So many ids may be those of other people for another reason, such as two students who were taken for each other, and
# this part of the ids that the export and the roster share, in percent.
FEW, OTHER_PERCENT = 5, 1
# An export is an older one if it was written this long before the other: a zip has its times without their zone.
OLDER = timedelta(hours=2)


@dataclass(frozen=True)
class HoldLimits:
    """The limits of a run: the largest parts of a type's active records that it may mark as deleted and change, and the
    largest part of a file's rows that it may reject, in percent. The limits apply to types with at least
    `least_records` active records, and to files with as many rows."""

    tombstones_percent: int
    changes_percent: int
    rejected_percent: int
    least_records: int

    @classmethod
    def of(cls, settings: Settings) -> HoldLimits:
        """The limits of feeds without limits of their own."""
        percents = list_default_limits(settings)
        return cls(
            percents["hold_tombstones_percent"],
            percents["hold_changes_percent"],
            percents["hold_rejected_percent"],
            settings.hold_least_records,
        )


def read_limits(connection: sa.Connection, feed_id: int, default: HoldLimits) -> HoldLimits:
    """The limits of a feed: each its own, or the default where the feed has none."""
    own = connection.execute(
        sa.select(feeds.c.hold_tombstones_percent, feeds.c.hold_changes_percent, feeds.c.hold_rejected_percent).where(
            feeds.c.id == feed_id
        )
    ).one()
    return HoldLimits(
        default.tombstones_percent if own.hold_tombstones_percent is None else own.hold_tombstones_percent,
        default.changes_percent if own.hold_changes_percent is None else own.hold_changes_percent,
        default.rejected_percent if own.hold_rejected_percent is None else own.hold_rejected_percent,
        default.least_records,
    )


def find_other_ids(connection: sa.Connection, feed_id: int, differences: Collection[Difference]) -> Iterator[str]:
    """One sentence if many ids are now those of people with another name and another birth date, or if most of the
    users get new ids, or former ones. Counts alone do not tell: in another SIS the same numbers may be those of other
    people. Also one if a feed that has lost its users gets new ones while people are known by their ids."""
    found = {difference.table: difference for difference in differences}
    if users not in found:
        return
    counts = found[users].counts
    if demographics in found and not (found[users].all_new or found[demographics].all_new):
        person, birth = found[users].rows, found[demographics].rows
        names = sa.or_(
            *(
                sa.func.lower(person.c[name]).is_distinct_from(sa.func.lower(users.c[name]))
                for name in ("given_name", "family_name")
            )
        )
        other = (
            sa.select(sa.func.count())
            .select_from(person)
            .join(users, users.c.sourced_id == person.c.sourced_id)
            .join(birth, birth.c.sourced_id == person.c.sourced_id)
            .join(demographics, demographics.c.sourced_id == person.c.sourced_id)
            .where(names, birth.c.birth_date != demographics.c.birth_date)
        )
        number, same = connection.execute(other).scalar_one(), counts.unchanged + counts.rewritten
        if number > FEW and number * 100 > OTHER_PERCENT * same:
            yield (
                f"{OTHER_IDS}: {number:,} of {same:,} ids are now those of people with another name and another birth "
                "date, and who approves it gives their accounts at vendors to these people"
            )
            return
    if min(counts.tombstoned, counts.added + counts.revived) > max(FEW, counts.stored / 2):
        back = f", {counts.revived:,} return" if counts.revived else ""
        yield (
            f"{OTHER_IDS}: {counts.tombstoned:,} of {counts.stored:,} users would vanish and {counts.added:,} be new"
            f"{back}, and who approves it ends their accounts at vendors and begins new ones"
        )
    is_refilled = counts.added > counts.revived and not counts.stored
    if is_refilled and count_named(connection) and _has_had_users(connection, feed_id):
        yield (
            f"{OTHER_IDS}: the feed has lost its users, and {counts.added:,} come under ids that it does not know, "
            "while people are erased, hidden or kept from a vendor by their ids"
        )


def _has_had_users(connection: sa.Connection, feed_id: int) -> bool:
    """Whether a run has changed users of the feed, also if they are purged since."""
    counts = sa.select(sync_runs.c.counts).where(sync_runs.c.feed_id == feed_id, sync_runs.c.stamp.is_not(None))
    of_users = (found.get("users", {}) for found in connection.scalars(counts))
    return any(number for found in of_users for name, number in found.items() if name != "rejected")


def find_excess(counts: Mapping[str, Counts], files: Iterable[ReadFile], limits: HoldLimits) -> Iterator[str]:
    """One sentence for each limit that the counts of a type, or the rejected rows of a file, exceed. A bulk file of
    which every row is rejected exceeds it, however few they are."""
    for name, count in counts.items():
        for number, percent, words in (
            (count.tombstoned, limits.tombstones_percent, "would vanish"),
            (count.changed, limits.changes_percent, "would change"),
        ):
            if count.stored >= limits.least_records and number * 100 > percent * count.stored:
                yield f"{number:,} of {count.stored:,} {name} {words}, more than {percent}%"
    # The rows and not the records of a type: a record whose row is rejected may be stored, and stays.
    for file in files:
        rows, rejected, percent = file.rows or 0, file.rejected or 0, limits.rejected_percent
        is_whole = file.mode == BULK and rejected == rows
        if rows >= (1 if is_whole else limits.least_records) and rejected * 100 > percent * rows:
            yield f"{rejected:,} of {rows:,} rows of {file.file} are rejected, more than {percent}%"


def find_older(
    connection: sa.Connection, feed_id: int, report: Report, limits: HoldLimits, zone: tzinfo | None
) -> str | None:
    """The sentence about an export that was written before the one that was loaded last, and would change the roster;
    None for any other, and for a feed with few records. `zone`: as for `describe_instant`."""
    is_large = any(count.stored >= limits.least_records for count in report.counts.values())
    if report.written_at is None or report.outcome != DONE or not is_large:
        return None
    own = (sync_runs.c.feed_id == feed_id, sync_runs.c.written_at.is_not(None))
    loaded = sa.select(sync_runs.c.written_at).where(*own, sync_runs.c.outcome.in_((*LOADED_OUTCOMES, STALE)))
    last: datetime | None = connection.scalar(loaded.order_by(sync_runs.c.id.desc()).limit(1))
    if last is None or report.written_at > last - OLDER:
        return None
    this, that = (describe_instant(at, zone) for at in (report.written_at, last))
    return f"the export was written on {this}, before the one that was loaded last, of {that}"


def list_reasons(
    connection: sa.Connection,
    feed_id: int,
    report: Report,
    held: HeldRun | None,
    differences: Collection[Difference],
    limits: HoldLimits,
    zone: tzinfo | None,
) -> list[str]:
    """The reasons to hold a run, one sentence each; none for a run that may go on. `held`: the held run that an
    operator has approved; `zone`: as for `describe_instant`."""
    if held is None:
        older = find_older(connection, feed_id, report, limits, zone)
        excess = [*([] if older is None else [older]), *find_excess(report.counts, report.files, limits)]
    else:
        excess = list(held.find_further_excess(report.counts))
    if held is None or OTHER_IDS not in held.message:
        return [*find_other_ids(connection, feed_id, differences), *excess]
    # The operator approved this reason, and the next approval needs to know of it.
    return [held.message.split("; ")[0], *excess] if excess else []


@dataclass(frozen=True)
class HeldRun:
    """A held run as its report showed it to the operator: the digest of its export, the counts of each type, and the
    reason."""

    run: int
    message: str
    digest: bytes | None
    counts: Mapping[str, Mapping[str, int]]

    def require_digest(self, digest: bytes | None) -> None:
        """Raises CommandError if the digest is not the one of the held export."""
        if digest is None or digest != self.digest:
            raise CommandError(
                f"the kept export of the run {self.run} is not what was held: somebody has changed it, or this "
                "version reads it differently; discard the run and load the export again"
            )

    def find_further_excess(self, counts: Mapping[str, Counts]) -> Iterator[str]:
        """One sentence for each type of which the run would delete, change or reject more than its report showed."""
        for name, count in counts.items():
            shown = self.counts.get(name, {})
            for number, subject, key, words in (
                (count.tombstoned, f"of {count.stored:,} {name}", "tombstoned", "would vanish"),
                (count.changed, f"of {count.stored:,} {name}", "changed", "would change"),
                (count.rejected, f"rows of {name}", "rejected", "are rejected"),
            ):
                before = shown.get(key, 0)
                if number > before:
                    yield f"{number:,} {subject} {words}, not {before:,} as the run {self.run} showed"


def read_held_run(connection: sa.Connection, feed_id: int, run: int) -> HeldRun:
    """The held run of a feed with this number. Raises CommandError if the feed has no such held run."""
    own = (sync_runs.c.id == run, sync_runs.c.feed_id == feed_id, sync_runs.c.outcome == HELD)
    row = connection.execute(
        sa.select(sync_runs.c.kept_digest, sync_runs.c.counts, sync_runs.c.message).where(*own)
    ).one_or_none()
    if row is None:
        raise CommandError(NOT_HELD.format(run))
    return HeldRun(run, row.message or "", row.kept_digest, row.counts)
