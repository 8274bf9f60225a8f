"""The stored records that the rejected rows of an SDS export may have described: one function per OneRoster file.

Each function takes the rejected rows by the name of their file, and the name of the feed; it yields SELECTs of ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from roster_service.db import tables
from sync_scripts.formats.model import RetainedRows, Staged


def _list_cells(rejected: Staged, name: str, *headers: str) -> Iterator[sa.Select[Any]]:
    """The ids in the cells under these headers of the rejected rows of a file."""
    if name in rejected:
        yield from (sa.select(rejected[name][header].label("sourcedId")) for header in headers)


def retain_ids(name: str) -> RetainedRows:
    """A function that selects the ids of the rejected rows of the file `name`."""
    return lambda rejected, _feed: _list_cells(rejected, name, "sourcedId")


def retain_courses(rejected: Staged, feed: str) -> Iterator[sa.Select[Any]]:
    """The courses of rejected courses rows, and the courses of the classes that rejected classes rows describe."""
    yield from _list_cells(rejected, "sds_courses", "sourcedId")
    stored = tables.classes
    for classes in _list_cells(rejected, "sds_classes", "sourcedId"):
        yield sa.select(stored.c.course_id.label("sourcedId")).where(stored.c.sourced_id.in_(classes))


def retain_users(rejected: Staged, feed: str) -> Iterator[sa.Select[Any]]:
    """The users of rejected users rows; the users of rejected roles rows, which hold their grades; both users of
    rejected relationships rows."""
    yield from _list_cells(rejected, "sds_users", "sourcedId")
    yield from _list_cells(rejected, "sds_roles", "userSourcedId")
    yield from _list_cells(rejected, "sds_relationships", "userSourcedId", "relationshipUserSourcedId")


def retain_roles(rejected: Staged, feed: str) -> Iterator[sa.Select[Any]]:
    """All roles of the users in rejected roles rows and of the contacts in rejected relationships rows, and of the
    agents of both, who have their roles at the same orgs."""
    stored, agents = tables.user_roles, tables.user_agents
    named = [
        *_list_cells(rejected, "sds_roles", "userSourcedId"),
        *_list_cells(rejected, "sds_relationships", "relationshipUserSourcedId"),
    ]
    if named:
        contacts = sa.select(agents.c.agent_id).where(agents.c.user_id.in_(sa.union_all(*named)))
        yield sa.select(stored.c.row_id.label("sourcedId"), stored.c.user_id.label("userSourcedId")).where(
            stored.c.user_id.in_(sa.union_all(*named, contacts))
        )


def retain_enrollments(rejected: Staged, feed: str) -> Iterator[sa.Select[Any]]:
    """All enrollments of the user of a rejected enrollments row in its class, in any role."""
    if "sds_enrollments" in rejected:
        stored, seats = tables.enrollments, rejected["sds_enrollments"]
        same = sa.and_(stored.c.class_id == seats["classSourcedId"], stored.c.user_id == seats["userSourcedId"])
        yield sa.select(stored.c.sourced_id.label("sourcedId")).where(sa.exists().where(same))
