"""Why a run is not taken back although the export before it is kept: what that export says of the records tells it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import sqlalchemy as sa

from roster_service.db.tables import sync_runs, users
from roster_service.errors import CommandError
from roster_service.feeds.exclusions import require_none_named
from sync_scripts.applying.changes import Difference
from sync_scripts.engine.hold_policy import find_other_ids
from sync_scripts.engine.run import Run
from sync_scripts.staging.retained import Retention


def refuse_unsafe_undo(run: Run, undone: int, retention: Retention, differences: Collection[Difference]) -> None:
    """Raises CommandError if a load of the export before the run `undone` would leave changes of that run, or bring
    excluded or kept people back under their former ids, of which the operator has said nothing."""
    if files := sorted(set(_list_lasting(run, undone, retention, differences))):
        raise CommandError(
            f"the run {undone} cannot be taken back: the export before it has rejected rows in {', '.join(files)}, "
            "and what the run changed of their records would stay"
        )
    if not run.options.has_named and any(find_other_ids(run.connection, run.feed.id, differences)):
        require_none_named(run.connection, f"roster sync undo {undone}")


def _list_lasting(run: Run, undone: int, retention: Retention, differences: Collection[Difference]) -> Iterator[str]:
    """The files of the export with a rejected row of a record that the run `undone` has written, and that stays as it
    is: it neither ends with another one, nor returns with it."""
    gone = {difference.table: difference.gone for difference in differences}
    stamp = sa.select(sync_runs.c.stamp).where(sync_runs.c.id == undone).scalar_subquery()
    sources = {converted.file.name: converted.files for converted in run.form.converted}
    for name, rejected in retention.rejected.items():
        file = rejected.file
        if file.table is None and file.kept_in is None:
            continue
        # A role or a profile is a part of its user, who has the date.
        table, key = (users, rejected[file.owner.header]) if file.table is None else (file.table, rejected["sourcedId"])
        moved = (ids for ids in (gone.get(table), retention.returning.get(table)) if ids is not None)
        stays = (table.c.sourced_id.not_in(sa.select(ids.c.sourced_id)) for ids in moved)
        written = (table.c.feed_id == retention.feed_id, table.c.date_last_modified >= stamp)
        named = table.c.sourced_id.in_(sa.select(key))
        if run.connection.scalar(sa.select(sa.exists().where(*written, named, *stays))):
            yield from (f"{source}.csv" for source in sources.get(name, (name,)))
