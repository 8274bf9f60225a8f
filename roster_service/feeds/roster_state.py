"""The state of the roster: its revision and its stamps, the response headers that show them, and its publication."""

from __future__ import annotations

import functools
import hashlib
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from roster_service.change_log.actors import Actor
from roster_service.change_log.changes import State, Subject, Verb, recorded
from roster_service.db import tables
from roster_service.db.instants import format_instant
from roster_service.errors import CommandError
from roster_service.feeds.sharing_groups import lock_groups, refresh_groups_of
from roster_service.feeds.sharing_members import note_stamped
from roster_service.feeds.sync_lock import try_sync_lock
from roster_service.roster.label_check import require_right_labels
from roster_service.roster.stamps import make_next_stamp
from roster_service.roster.visible_orgs import refresh_vendors_of

# The bounds of the random number that is added to the revision of a restored roster. It is larger than the number of
# syncs since the backup can be, and random, so that two restores of one backup get different revisions.
MIN_RESTORE_STEP, RESTORE_STEPS_END = 2**20, 2**30
# The same for the version of a vendor's grants, which has fewer digits.
MIN_VERSION_STEP, VERSION_STEPS_END = 2**12, 2**20
_CLUSTER = "(SELECT system_identifier FROM pg_control_system())"
_DATABASE = "(SELECT oid FROM pg_database WHERE datname = current_database())"
# The cluster, its timeline, the database and the table. A failover and a restored base backup begin a new timeline; a
# dump is restored into another cluster, another database or another table. Every user may call these functions.
_SERVER = sa.literal_column(
    f"concat_ws('/', {_CLUSTER}, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8), {_DATABASE}, "
    "roster_state.tableoid)",
    sa.Text(),
)
_OWN = sa.literal_column(f"concat_ws('/', {_CLUSTER}, {_DATABASE}, roster_state.salt)", sa.Text())
REVISION, AS_OF, DELETIONS_SINCE = "X-Roster-Revision", "X-Roster-As-Of", "X-Roster-Deletions-Since"
# A worker caches the headers of more than one state, because requests of two revisions overlap while a sync commits.
KEPT_STATES = 8


@dataclass(frozen=True)
class RosterState:
    """The state of the roster, as somebody sees it: its revision, its newest `dateLastModified`, and the instant before
    which tombstones may have been purged. `later_revision`: the present one, for a page of a pull that began before it:
    the page has the records of the former revision as they are in the later one."""

    revision: int
    as_of: datetime
    deletions_since: datetime
    later_revision: int | None = None


def read_database_id(connection: sa.Connection) -> str:
    """Returns 16 hexadecimal digits that tell the database from every other one, also from its copies. A failover keeps
    them, a restored dump has others."""
    own = connection.execute(sa.select(_OWN).select_from(tables.roster_state)).scalar_one()
    return hashlib.sha256(own.encode()).hexdigest()[:16]


def read_roster_state(connection: sa.Connection) -> RosterState:
    """Reads the state of the whole roster. (A request gets the state that its caller sees.)"""
    state = tables.roster_state.c
    return RosterState(*connection.execute(sa.select(state.revision, state.as_of, state.deletions_since)).one())


def begin_change_of_rights(connection: sa.Connection) -> None:
    """Begins a change of what somebody may see: waits for the end of the changes of the roster that are about to
    commit, and moves the roster on. A vendor that sees something else afterwards has a revision that it never had, so
    its clients can tell a page of a former pull. Call it before the row of a vendor is changed."""
    lock_groups(connection)
    advance_state(connection, [])


def advance_state(
    connection: sa.Connection,
    feed_ids: Collection[int],
    as_of: datetime | None = None,
    deletions_since: datetime | None = None,
) -> int:
    """Moves the roster and these feeds on to its next revision, and returns the revision. The state of the vendors that
    see the feeds is still the former one. `as_of`, `deletions_since`: the instants of both, which stay where they are
    later already, because a run with a later stamp may have been announced first; None: they stay.

    What was deleted is no newer than the roster, so `deletions_since` stays within `as_of`: otherwise no delta would be
    whole until the next change.

    If the last revision was published on another server, or before a failover, the roster may have lost revisions that
    clients have seen. Then the next one is none of those, as after `advance_restored_state`.
    """
    state = tables.roster_state.c
    step = sa.case((state.server != _SERVER, _make_restore_step()), else_=1)
    moved = sa.update(tables.roster_state).values(revision=state.revision + step, server=_SERVER)
    later = moved.values(_find_later(tables.roster_state, as_of, deletions_since))
    revision = int(connection.execute(later.returning(state.revision)).scalar_one())
    own = sa.update(tables.feeds).where(tables.feeds.c.id.in_(feed_ids))
    connection.execute(own.values(revision=revision, **_find_later(tables.feeds, as_of, deletions_since)))
    return revision


def _find_later(
    table: sa.Table, as_of: datetime | None, deletions_since: datetime | None
) -> dict[str, sa.ColumnElement[datetime]]:
    # GREATEST passes over NULL.
    newest = sa.func.greatest(table.c.as_of, sa.literal(as_of, tables.Stamp))
    later: dict[str, sa.ColumnElement[datetime]] = {"as_of": newest}
    if deletions_since is not None:
        deleted = sa.func.least(sa.literal(deletions_since, tables.Stamp), newest)
        later["deletions_since"] = sa.func.greatest(table.c.deletions_since, deleted)
    return later


def _make_restore_step() -> int:
    return MIN_RESTORE_STEP + secrets.randbelow(RESTORE_STEPS_END - MIN_RESTORE_STEP)


def advance_restored_state(connection: sa.Connection, actor: Actor) -> RosterState:
    """Gives a roster that was restored from a backup a revision that it never had, and returns the new state.

    Entity tags, caches of workers and orderings belong to a revision, so none of the time before the
    restore is used again. Consumers cannot continue their deltas, because the restored roster may lack, even as a
    tombstone, a record that was added after the backup: so `deletions_since` becomes the present. All tokens end: the
    versions that they carry count changes since the backup again, and those of a lost right could be valid once more.
    Raises CommandError while a sync is under way, because a sync gives stamps too.
    """
    if not try_sync_lock(connection, "notes a restored database"):
        raise CommandError("a sync is under way; try again when it is done")
    state = tables.roster_state.c
    stamp = sa.func.greatest(sa.func.date_trunc("milliseconds", sa.func.now()), state.as_of, type_=tables.Stamp)
    moved = sa.update(tables.roster_state).values(
        revision=state.revision + _make_restore_step(), server=_SERVER, as_of=stamp, deletions_since=stamp
    )
    found = moved.returning(state.revision, state.as_of, state.deletions_since)

    def read_revision() -> State:
        return {"revision": connection.scalar(sa.select(state.revision))}

    with recorded(connection, actor, Verb.DB_RESTORED, Subject("service", "database"), read_revision):
        restored = RosterState(*connection.execute(found).one())
        of_all = {"revision": restored.revision, "as_of": restored.as_of, "deletions_since": restored.deletions_since}
        for table in (tables.feeds, tables.visible_feeds):
            connection.execute(sa.update(table).values(of_all))
        # A client may be within a pull that was lost, and would go on in one that it began before.
        for table in (tables.ordering_chunks, tables.orderings):
            connection.execute(sa.delete(table))
        step = MIN_VERSION_STEP + secrets.randbelow(VERSION_STEPS_END - MIN_VERSION_STEP)
        connection.execute(sa.update(tables.vendors).values(grant_version=tables.vendors.c.grant_version + step))
    return restored


def describe_headers(parameter: str) -> dict[str, Any]:
    """Returns the OpenAPI header objects of `make_state_headers`. `parameter`: what asks for a delta."""
    instant = {"type": "string", "format": "date-time"}
    return {
        REVISION: {
            "description": "The revision of the roster; all pages of a pull have the same",
            "schema": {"type": "integer"},
        },
        AS_OF: {
            "description": f"The instant for the next `{parameter}`; of several answers, keep the earliest",
            "schema": instant,
        },
        DELETIONS_SINCE: {
            "description": "If your last pull is older than this instant, deletions since then can be unknown: pull "
            "all records, and delete those that are not among them",
            "schema": instant,
        },
    }


@functools.lru_cache(KEPT_STATES)
def make_state_headers(state: RosterState) -> Mapping[str, str]:
    """Returns the headers that tell a consumer which revision a response was made from, and how to continue its deltas.

    `X-Roster-As-Of` is the instant for the next `dateLastModified>`: no later change has an older stamp. Tombstones
    older than `X-Roster-Deletions-Since` may have been purged, so a consumer whose last pull was before that instant
    must pull in full.
    """
    return {
        REVISION: str(state.revision),
        AS_OF: format_instant(state.as_of),
        DELETIONS_SINCE: format_instant(state.deletions_since),
    }


def publish(
    connection: sa.Connection,
    feed_ids: Collection[int],
    *,
    new_orgs: Collection[str] = (),
    as_of: datetime | None = None,
    deletions_since: datetime | None = None,
    noted: bool = False,
) -> int:
    """Publishes the records of these feeds, as this transaction has changed them, as the next revision, and returns
    that revision: checks the labels of what has changed, makes the groups of grants with rules right, and updates the
    visible orgs and labels and the state of the vendors that see the feeds.

    `new_orgs`: the ids of the orgs that the transaction has added: those that were there before move the floor of a
    vendor that sees other ones of them now. `as_of`, `deletions_since`: as for `advance_state`. `noted`: the
    transaction has noted all that it has changed with `note_candidates`, before it did, and has changed no orgs; else
    the groups are made anew.

    Raises WrongLabelsError. Call it as the last step of the transaction, because other announcements and changes of
    grants wait for its end.
    """
    if as_of is not None:
        for feed_id in feed_ids:
            require_right_labels(connection, feed_id, as_of)
    # First, so that what is noted counts for each grant with rules that is there when the groups are made.
    lock_groups(connection)
    if noted and as_of is not None:
        note_stamped(connection, feed_ids, as_of)
    # A purge has no stamp of a run.
    refresh_groups_of(connection, feed_ids, make_next_stamp(connection) if as_of is None else as_of, noted=noted)
    revision = advance_state(connection, feed_ids, as_of, deletions_since)
    refresh_vendors_of(connection, feed_ids, new_orgs)
    return revision
