"""The school of an enrollment is that of its class: a vendor of either school would otherwise get half of it."""

from __future__ import annotations

from typing import cast

import sqlalchemy as sa

from roster_service.db.tables import classes, enrollments
from sync_scripts.applying.lost_references import Amended, amend
from sync_scripts.formats.model import HASH, Format
from sync_scripts.formats.tolerated import OTHER_SCHOOL, Notice, Tolerated
from sync_scripts.staging.retained import Retention, is_named


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


def find_moved(connection: sa.Connection, retention: Retention) -> Amended | None:
    """The schools of the stored enrollments that stay without a staged row, in a class that is at another school after
    the run; None for none."""
    condition = retention.is_active_after(enrollments, enrollments)
    file = next(iter(retention.list_files(classes)), None)
    if condition is None or file is None or file.is_known:
        return None
    seats = (is_named(enrollments.c.sourced_id, own) for own in retention.list_files(enrollments))
    found = sa.select(enrollments.c.sourced_id, file["schoolSourcedId"].label("school_id")).where(
        file.live,
        file["sourcedId"] == enrollments.c.class_id,
        file["schoolSourcedId"] != enrollments.c.school_id,
        condition,
        *(~is_staged for is_staged in seats),
    )
    return amend(connection, enrollments.c.school_id, found)
