"""The school of an enrollment is that of its class: a vendor of either school would otherwise get half of it."""

from __future__ import annotations

from typing import cast

import sqlalchemy as sa

from roster_service.db.tables import enrollments
from sync_scripts.formats.model import HASH, Format
from sync_scripts.formats.tolerated import OTHER_SCHOOL, Notice, Tolerated
from sync_scripts.staging.retained import Retention


def place_enrollments(connection: sa.Connection, form: Format, retention: Retention) -> tuple[Notice, ...]:
    """Gives each staged enrollment that names another school that of its class, and returns the notice about them.
    `form`: of the files of OneRoster. The next run looks at these rows again."""
    file = next(iter(retention.list_files(enrollments)), None)
    target = retention.list_targets(form).get("classes")
    if file is None or file.is_known or target is None:
        return ()
    place = target.retained if target.staged is None else target.join_rows()
    if place is None:
        return ()
    school, table = place["schoolSourcedId"], cast(sa.Table, file.table)
    is_elsewhere = (place["sourcedId"] == file["classSourcedId"], school != file["schoolSourcedId"])
    moved = sa.update(table).where(file.live, *is_elsewhere)
    count = connection.execute(
        moved.values({"schoolSourcedId": school, **({HASH: None} if HASH in table.c else {})})
    ).rowcount
    return (Tolerated(file.file.file_name, OTHER_SCHOOL, "schoolSourcedId", count),) if count else ()
