"""The removal of a feed: a run that marks all records of the feed as deleted, or deletes them at once.

The run is recorded and published like that of an export. The row of the feed stays as `removed`, because its runs refer
to it; the nightly sync leaves it out, and loaders refuse it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import sqlalchemy as sa

from roster_service.change_log.actors import Actor
from roster_service.change_log.changes import Subject, Verb, recorded
from roster_service.db.tables import ROSTER_TABLES, feeds, orgs, sync_runs
from roster_service.errors import CommandError
from roster_service.feeds.feed_states import REMOVAL, FeedState, find_listed_feed, read_feed_settings
from roster_service.feeds.held_runs import close_held, drop_export
from roster_service.feeds.roster_state import publish
from roster_service.feeds.run_history import TYPES, delete_run_values
from roster_service.feeds.run_outcomes import DISCARDED, DONE
from roster_service.feeds.sync_lock import hold_lock
from roster_service.feeds.undo import forget_copies
from roster_service.roster.visible_orgs import FeedGrant, end_grants, forget_agreed, list_feed_grants
from roster_service.settings import Settings
from sync_scripts.applying.change_log import record_changes
from sync_scripts.applying.changes import Difference, compare_with_nothing
from sync_scripts.applying.desired_state import DesiredState
from sync_scripts.applying.preview import make_preview
from sync_scripts.applying.writes import delete_records, forget_all_needs, write_differences
from sync_scripts.engine import run_record
from sync_scripts.engine.report import Report
from sync_scripts.reading.rejections import NO_FINDINGS

NOTHING = DesiredState({}, {}, {})


def remove_feed(
    engine: sa.Engine,
    actor: Actor,
    name: str,
    settings: Settings,
    *,
    at_once: bool,
    dry_run: bool = False,
    wait: bool = False,
) -> Report:
    """Removes a feed, with its held runs and the digest of its last export. Its records become tombstones, which the
    purge deletes after the retention; `at_once` deletes them now, with the rejected rows and changes of its runs, and
    ends the grants of its districts.

    The change log gets a row with the actor. Returns the report of the run; with `dry_run`, nothing is changed, and the
    report has a preview. Raises CommandError for an unknown feed, and for a removed one unless `at_once`; LockedError
    while another run of the feed is under way, unless `wait`; DatabaseUnavailableError if the database fails.
    """
    with run_record.translate_database_errors(), engine.connect() as connection, hold_lock(connection, name, wait=wait):
        with connection.begin():
            feed = find_listed_feed(connection, name)
            if feed.state == FeedState.REMOVED and not at_once:
                raise CommandError(f"the feed {name} was removed already; --now deletes its records at once")
        if dry_run:
            with connection.begin():
                report, differences, _ = _compare(connection, feed, settings, at_once=at_once)
                preview = make_preview(connection, differences, NOTHING, feed.id)
                return dataclasses.replace(report, dry_run=True, preview=preview)
        with engine.begin() as other:
            number = run_record.begin_run(other, feed.id, feed.format, REMOVAL, actor)
        with run_record.record_errors(engine, number), run_record.translate_database_errors(), connection.begin():
            subject = Subject.of_feed(name)
            with recorded(
                connection, actor, Verb.FEED_REMOVE, subject, lambda: _read_state(connection, name, at_once=at_once)
            ):
                report, differences, grants = _compare(connection, feed, settings, at_once=at_once)
                if any(report.purged.values()) or any(difference.counts.any for difference in differences):
                    report = _write(connection, feed.id, number, report, differences, settings)
                if at_once:
                    # Also of a feed whose runs were all held, or whose records the purge has deleted.
                    delete_run_values(connection, [feed.id])
                forget_all_needs(connection, feed.id)
                end_grants(connection, actor, grants if at_once else ())
                run_record.end_run(connection, number, NO_FINDINGS, **report.to_row())
                copies = forget_copies(connection, sync_runs.c.feed_id == feed.id)
                why = f"discarded, because run {number} removed the feed"
                kept = close_held(connection, sync_runs.c.feed_id == feed.id, DISCARDED, why) + copies
                connection.execute(sa.update(sync_runs).where(sync_runs.c.feed_id == feed.id).values(kept_digest=None))
                removed = {"state": FeedState.REMOVED, "last_digest": None, "fingerprinted": False}
                connection.execute(sa.update(feeds).where(feeds.c.id == feed.id).values(removed))
                if at_once and grants:
                    # The schemas take half a second to import.
                    from roster_service.accounts.transparency import publish as publish_vendors

                    publish_vendors(connection)
    for export in kept:
        drop_export(export, settings.home)
    return dataclasses.replace(report, run=number)


def _read_state(connection: sa.Connection, name: str, *, at_once: bool) -> dict[str, Any]:
    """The settings of the feed, and the number of its records if they are deleted."""
    feed = find_listed_feed(connection, name)
    records = {"records": sum(_count_records(connection, feed.id).values())} if at_once else {}
    return (read_feed_settings(connection, name) or {}) | records


def _compare(
    connection: sa.Connection, feed: sa.Row[Any], settings: Settings, *, at_once: bool
) -> tuple[Report, list[Difference], list[FeedGrant]]:
    """(the report of the removal, what it changes, the grants of the districts of the feed)."""
    differences, grants = compare_with_nothing(connection, feed.id), list_feed_grants(connection, feed.id)
    retention_days = None if at_once else settings.retention_days
    report = Report(
        feed=feed.name,
        format=feed.format,
        source=REMOVAL,
        outcome=DONE,
        counts={TYPES[difference.table.name]: difference.counts for difference in differences},
        seconds={},
        purged=_count_records(connection, feed.id) if at_once else {},
        notices=tuple(grant.describe_end(retention_days, settings.time_zone) for grant in grants),
    )
    return report, differences, grants


def _count_records(connection: sa.Connection, feed_id: int) -> dict[str, int]:
    return {
        TYPES[table.name]: connection.execute(sa.select(sa.func.count()).where(table.c.feed_id == feed_id)).scalar_one()
        for table in ROSTER_TABLES
    }


def _write(
    connection: sa.Connection,
    feed_id: int,
    number: int,
    report: Report,
    differences: list[Difference],
    settings: Settings,
) -> Report:
    """Marks the records as deleted, or deletes those that the report counts as purged. Returns the report with the
    stamp and the revision."""
    stamp = run_record.take_stamp(connection.engine, number)
    # A consumer that sees no tombstones has to read the whole roster.
    deletions_since = stamp if report.purged else None
    if report.purged:
        forget_agreed(connection, *connection.scalars(sa.select(orgs.c.sourced_id).where(orgs.c.feed_id == feed_id)))
        delete_records(connection, feed_id)
    else:
        if settings.change_days:
            record_changes(connection, number, differences, NOTHING)
        write_differences(connection, differences, NOTHING, feed_id, stamp)
    revision = publish(connection, [feed_id], as_of=stamp, deletions_since=deletions_since)
    return dataclasses.replace(report, stamp=stamp, revision=revision)
