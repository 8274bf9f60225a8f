"""Notices about an export that are no reason to refuse it, but that an operator should know."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa

from roster_service.db import tables
from sync_scripts.applying.desired_state import DesiredState
from sync_scripts.formats.ids import DISTRICT
from sync_scripts.formats.model import METADATA, Format, Staged
from sync_scripts.staging.retained import ACTIVE


def list_notices(
    connection: sa.Connection, form: Format, staged: Staged, desired: DesiredState, feed_id: int
) -> Iterator[str]:
    """The notices about absent files, dropped metadata, users without a role, and districts that another feed has too,
    as sentences for the report."""
    for file in form.files:
        if file.table is not None and file.name not in staged:
            kept = sa.select(sa.func.count()).where(file.table.c.feed_id == feed_id, file.table.c.status == ACTIVE)
            if count := connection.scalar(kept):
                yield f"{file.file_name} is absent; {count} records of earlier exports stay as they are"
    for staged_file in staged.values():
        if staged_file.metadata_keys and (staged_file.file.table is None or METADATA not in staged_file.file.table.c):
            yield f"{staged_file.file.file_name}: its metadata columns have no place in the roster and are not kept"
    roles, users = desired.parts[tables.user_roles], desired.parts[tables.user_roles].owners.subquery()
    nowhere = (
        sa.select(sa.func.count())
        .select_from(users)
        .where(~sa.exists().where(roles.rows.c.user_id == users.c.sourced_id))
    )
    if count := connection.scalar(nowhere):
        yield f"users.csv: {count} users have no role anywhere, so no vendor sees them"

    yield from _list_twin_districts(connection, desired, feed_id)


def _list_twin_districts(connection: sa.Connection, desired: DesiredState, feed_id: int) -> Iterator[str]:
    """The notices about districts that another feed has too, under another id: a grant of one opens nothing of the
    other."""
    if tables.orgs not in desired.records:
        return
    own, other = desired.records[tables.orgs].subquery(), tables.orgs
    same = (own.c.name == other.c.name, own.c.identifier.is_not_distinct_from(other.c.identifier))
    theirs = (other.c.feed_id != feed_id, other.c.status == ACTIVE, other.c.type == DISTRICT, own.c.type == DISTRICT)
    rows = sa.select(own.c.sourced_id, other.c.sourced_id.label("twin"), tables.feeds.c.name.label("feed"))
    found = rows.where(*same, *theirs, own.c.sourced_id != other.c.sourced_id, tables.feeds.c.id == other.c.feed_id)
    for row in connection.execute(found.order_by(own.c.sourced_id, tables.feeds.c.name)):
        yield (
            f"the feed {row.feed} has a district with the same name and identifier, {row.twin}, beside "
            f"{row.sourced_id} of this export: grant vendors the one that they shall read, or both"
        )


def list_left_out(count: int) -> Iterator[str]:
    """The notice about people whom the run leaves out, if there are some."""
    if count:
        yield f"people who were erased or hidden, and whom the run leaves out: {count} (`roster person list`)"
