"""The school of an enrollment is that of its class: a vendor of either school would otherwise get half of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import sqlalchemy as sa

from roster_service.db.tables import classes, enrollments
from roster_service.feeds.run_history import TYPES
from sync_scripts.applying.lost_references import Amended, amend
from sync_scripts.formats.model import HASH, Format
from sync_scripts.formats.tolerated import OTHER_SCHOOL, Notice, Tolerated
from sync_scripts.staging.retained import Retention, is_named
from sync_scripts.staging.temporary import count_lines


@dataclass(frozen=True)
class PlacedEnrollments:
    """The notice about the rows that name another school than their class, and the schools of the stored enrollments
    without a staged row whose class has moved; None for none."""

    notices: tuple[Notice, ...]
    moved: Amended | None


def place_enrollments(connection: sa.Connection, form: Format, retention: Retention) -> PlacedEnrollments:
    """Gives each staged enrollment that names another school that of its class. `form`: of the files of OneRoster. The
    next run looks at these rows again."""
    (count, line), moved = _place_staged(connection, form, retention), _find_moved(connection, retention)
    if moved is not None and enrollments in retention.absent:
        # Their lines did not change, and name the former school.
        count += connection.execute(sa.select(sa.func.count()).select_from(moved.rows)).scalar_one()
    name = form.find_file(TYPES[enrollments.name]).file_name
    said = (Tolerated(name, OTHER_SCHOOL, "schoolSourcedId", count, line=line),) if count else ()
    return PlacedEnrollments(said, moved)


def _place_staged(connection: sa.Connection, form: Format, retention: Retention) -> tuple[int, int | None]:
    """(the number of rows that name another school, the first of their lines)."""
    file = next(iter(retention.list_files(enrollments)), None)
    if file is None or file.is_known:
        return 0, None
    staged, of_classes = next(iter(retention.list_files(classes)), None), form.find_file(TYPES[classes.name])
    place = retention.find_retained(of_classes) if staged is None else retention.include_retained(staged)
    if place is None:
        return 0, None
    school, table = place["schoolSourcedId"], cast(sa.Table, file.table)
    is_elsewhere = (place["sourcedId"] == file["classSourcedId"], school != file["schoolSourcedId"])
    placed = sa.update(table).where(file.live, *is_elsewhere)
    unread = {HASH: None} if HASH in table.c else {}
    changed = placed.values({"schoolSourcedId": school, **unread}).returning(file.line)
    return count_lines(connection, changed.cte("placed"))


def _find_moved(connection: sa.Connection, retention: Retention) -> Amended | None:
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
