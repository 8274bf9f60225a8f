"""`python -m sync_scripts.purge`: removes the tombstones that every consumer has had time to see.

The purge removes a record that has been `tobedeleted` for the retention period, if no remaining record refers to it.
It removes referring records before the records they refer to, so one purge clears whole branches, even after missed
purges. A record that a younger record refers to waits for a later purge. No reference is left without its target.

A user names agents and does not need them, and a delta says nothing of a user who names somebody it deletes. So nobody
stays for being named: the purge ends the reference, and stamps the user who named, as soon as no feed has a run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import datetime

import click
import sqlalchemy as sa

from roster_service.change_log.actors import find_system_user
from roster_service.db.tables import CText, departures, feeds, kept_people, orgs, vendors
from roster_service.feeds.roster_state import begin_change_of_rights, publish
from roster_service.feeds.run_history import TYPES
from roster_service.feeds.sharing_members import MEMBERS, note_candidates
from roster_service.feeds.sync_lock import LockedError, hold_lock
from roster_service.roster.labels import delete_unused_labels
from roster_service.roster.references import Reference, list_references_to, refers_to
from roster_service.roster.revisions import open_roster_engine
from roster_service.roster.stamps import NOW
from roster_service.roster.visible_orgs import end_grants, forget_agreed, list_feed_grants, refresh_visible_orgs
from roster_service.settings import Settings
from sync_scripts.access_log_days import fold_days
from sync_scripts.applying.writes import PURGE_ORDER, delete_from
from sync_scripts.engine.exit_codes import HELP, exit_on_error
from sync_scripts.engine.loader_command import WAIT
from sync_scripts.engine.progress import survive_lost_output
from sync_scripts.engine.run_record import record_purge
from sync_scripts.retention import delete_expired, delete_old_orderings, make_interval
from sync_scripts.staging.retained import TO_BE_DELETED
from sync_scripts.staging.temporary import analyze_temporary, create_temporary

DEFAULTS = Settings()


def purge(engine: sa.Engine, retention_days: int, *, wait: bool = False) -> dict[str, int]:
    """Removes every tombstone older than `retention_days` that no remaining record refers to, and every departure of
    that age, feed by feed, each in one transaction.

    Returns the number of removed records per type, and adds these numbers to the latest run of their feed. If it
    removed any record of a feed, the roster's revision advances, and `deletions_since` tells how old a consumer's last
    pull may be. A feed with a run under way is left out, unless `wait`; then raises LockedError after the others.
    """
    with engine.begin() as connection:
        cutoff = connection.execute(sa.select(NOW - make_interval(retention_days))).scalar_one()
        found = _find_feeds(connection, cutoff)
    purged = dict.fromkeys((TYPES[table.name] for table in PURGE_ORDER), 0)
    locked: LockedError | None = None
    for feed in found:
        try:
            with engine.connect() as connection, hold_lock(connection, feed.name, wait=wait), connection.begin():
                removed = _purge_feed(connection, feed.id, cutoff)
        except LockedError as error:
            locked = error
        else:
            purged = {name: count + removed[name] for name, count in purged.items()}
    if locked is not None:
        raise locked
    _forget_returned(engine, cutoff)
    return purged


def _forget_returned(engine: sa.Engine, cutoff: datetime) -> None:
    """Deletes the rows of people who came back to a vendor before `cutoff`. No departure is left of the time for which
    they were kept; and without the stamp of the return, only a copy made after it can be kept by deltas."""
    with engine.begin() as connection:
        ended = kept_people.c.until < cutoff
        if not connection.scalar(sa.select(sa.exists().where(ended))):
            return
        begin_change_of_rights(connection)
        gone = sa.delete(kept_people).where(ended).returning(kept_people.c.vendor_id)
        found = set(connection.scalars(gone))
        moved = {"floor": sa.func.greatest(vendors.c.floor, cutoff)}
        connection.execute(sa.update(vendors).where(vendors.c.id.in_(found)).values(moved))
        refresh_visible_orgs(connection, *found)


def _find_feeds(connection: sa.Connection, cutoff: datetime) -> Sequence[sa.Row[int, str]]:
    """Returns (`id`, `name`) of the feeds that have a tombstone or a departure from before `cutoff`."""
    old = sa.union(
        *(sa.select(table.c.feed_id).where(_is_expired(table, cutoff)) for table in PURGE_ORDER),
        sa.select(departures.c.feed_id).where(departures.c.departed_at < cutoff),
    )
    found = sa.select(feeds.c.id, feeds.c.name).where(feeds.c.id.in_(old)).order_by(feeds.c.name)
    return connection.execute(found).all()


def _is_expired(table: sa.Table, cutoff: datetime) -> sa.ColumnElement[bool]:
    return sa.and_(table.c.status == TO_BE_DELETED, table.c.date_last_modified < cutoff)


def _purge_feed(connection: sa.Connection, feed_id: int, cutoff: datetime) -> dict[str, int]:
    """Purges a feed, and returns the number of removed records by type."""
    grants, own = list_feed_grants(connection, feed_id), sa.select(orgs.c.sourced_id).where(orgs.c.feed_id == feed_id)
    before = set(connection.scalars(own))
    # Those that a younger record refers to are not removed, and stay members.
    noted = note_candidates(connection, {table: _select_expired(table, feed_id, cutoff) for table in MEMBERS})
    removed = {TYPES[table.name]: _purge_table(connection, table, feed_id, cutoff) for table in PURGE_ORDER}
    departed = sa.delete(departures).where(departures.c.feed_id == feed_id, departures.c.departed_at < cutoff)
    expired = connection.execute(departed).rowcount
    if any(removed.values()):
        record_purge(connection, feed_id, {name: count for name, count in removed.items() if count})
    if expired or any(removed.values()):
        delete_unused_labels(connection, feed_id)
        is_noted = noted and not removed[TYPES[orgs.name]]
        publish(connection, [feed_id], deletions_since=cutoff, noted=is_noted)
        gone = before.difference(connection.scalars(own))
        ended = [grant for grant in grants if grant.district_id in gone]
        end_grants(connection, find_system_user("the purge deleted the district"), ended)
        forget_agreed(connection, *gone)
        if ended:
            # The schemas take half a second to import.
            from roster_service.accounts.transparency import publish as publish_vendors

            publish_vendors(connection)
    return removed


def _select_expired(table: sa.Table, feed_id: int, cutoff: datetime) -> sa.Select[str]:
    return sa.select(table.c.sourced_id).where(table.c.feed_id == feed_id, _is_expired(table, cutoff))


def _purge_table(connection: sa.Connection, table: sa.Table, feed_id: int, cutoff: datetime) -> int:
    """Removes the expired records of a feed in one table to which no remaining record refers. Returns their number."""
    doomed = create_temporary(connection, f"doomed_{table.name}", [sa.column("sourced_id", CText)], key="sourced_id")
    connection.execute(doomed.insert().from_select(["sourced_id"], _select_expired(table, feed_id, cutoff)))
    analyze_temporary(connection, doomed)
    # A record to which a remaining record refers remains. Then the records it refers to remain too, and so on.
    references = list_references_to(table)
    spare = sa.delete(doomed).where(sa.or_(sa.false(), *(_is_named(doomed, reference) for reference in references)))
    while references and connection.execute(spare).rowcount:
        pass
    return delete_from(connection, table, table.c.sourced_id.in_(sa.select(doomed.c.sourced_id)))


def _is_named(doomed: sa.Table, reference: Reference) -> sa.ColumnElement[bool]:
    naming = reference.column.table.alias()
    conditions = [refers_to(naming.c[reference.column.name], doomed.c.sourced_id)]
    if reference.record is reference.target:
        # Records of one table may refer to each other, as a student and a guardian do: they go together.
        going = doomed.alias()
        conditions.append(naming.c[reference.own.name].not_in(sa.select(going.c.sourced_id)))
    return sa.exists().where(*conditions)


@click.command(epilog=HELP)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@WAIT
def main(as_json: bool, wait: bool) -> None:
    """Remove tombstones, logs and runs whose days are over.

    Records that have been `tobedeleted` for longer than ROSTER_RETENTION_DAYS, and the rows of logs and runs whose days
    are over (`roster settings` shows the days). Makes rows of days of the access log.
    """
    with exit_on_error(as_json=as_json):
        settings = Settings.read(os.environ)
        with open_roster_engine(settings) as engine:
            deleted = delete_expired(engine, settings)
            folded = fold_days(engine)
            delete_old_orderings(engine)
            purged = purge(engine, settings.retention_days, wait=wait)
        with survive_lost_output():
            if as_json:
                done = {"outcome": "purged", "purged": purged, "deleted": deleted, "folded": {"responses": folded}}
                click.echo(json.dumps(done))
            else:
                for word, counts in {"purged": purged, "deleted": deleted}.items():
                    summary = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
                    click.echo(f"{word}: {summary or 'nothing'}")


if __name__ == "__main__":
    main()
