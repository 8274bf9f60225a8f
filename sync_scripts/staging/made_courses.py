"""The courses of an export without `courses.csv`: one for each course that its classes name, or for each class.

OneRoster requires a course of each class, and a SIS without courses leaves the file out. The courses that the feed has
already stay as they are, so a run without the file changes none of them.
"""

from __future__ import annotations

import typing
from typing import Any

import sqlalchemy as sa

from roster_service.db.tables import CText, courses
from sync_scripts.formats.cells import is_blank
from sync_scripts.formats.ids import make_id
from sync_scripts.formats.model import LINE, CsvFile, Staged, StagedFile
from sync_scripts.formats.tolerated import NO_COURSES, Tolerated
from sync_scripts.staging.retained import is_active
from sync_scripts.staging.temporary import analyze_temporary, create_temporary


def make_courses(
    connection: sa.Connection, feed_id: int, feed_name: str, file: CsvFile, staged: Staged
) -> tuple[StagedFile, Tolerated]:
    """(rows of `courses.csv`, the notice about them). `file`: the declaration of `courses.csv`; `staged`: the
    normalized files. Gives each class without a course the id of its own."""
    classes, orgs = staged["classes"], staged["orgs"].alias()
    own_id = make_id(feed_name, "class-course", classes["sourcedId"])
    without = is_blank(classes["courseSourcedId"])
    connection.execute(sa.update(typing.cast(sa.Table, classes.table)).where(without).values(courseSourcedId=own_id))
    columns: list[sa.Column[Any]] = [
        sa.Column(LINE, sa.BigInteger),
        *(sa.Column(header, CText) for header in file.headers),
    ]
    table = create_temporary(connection, "made_courses", columns)
    named, school = classes["courseSourcedId"], classes["schoolSourcedId"]
    rows = (
        sa.select(sa.func.min(classes.line), named, sa.func.min(classes["title"]), sa.func.min(school))
        .where(
            classes.live,
            # The checks reject a class without a school by itself.
            sa.exists().where(orgs["sourcedId"] == school, orgs.live),
            ~is_blank(classes["title"]),
            ~sa.exists().where(courses.c.sourced_id == named, is_active(courses, feed_id)),
        )
        .group_by(named)
    )
    count = connection.execute(table.insert().from_select([LINE, "sourcedId", "title", "orgSourcedId"], rows)).rowcount
    analyze_temporary(connection, table)
    return StagedFile(file, table, ()), Tolerated(file.file_name, NO_COURSES, found=f"{count:,} made")
