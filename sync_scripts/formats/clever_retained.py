"""The stored records that the rejected rows of a Clever export may have described: one function per OneRoster file.

Each function takes the rejected rows by the name of their file, and the name of the feed; it yields SELECTs of ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from roster_service.db import tables
from sync_scripts.formats.clever_people import PEOPLE
from sync_scripts.formats.ids import make_id
from sync_scripts.formats.model import Staged


def _list_ids(rejected: Staged, feed: str, kind: str, name: str) -> Iterator[sa.Select[Any]]:
    if name in rejected:
        yield sa.select(make_id(feed, kind, rejected[name]["sourcedId"]).label("sourcedId"))


def retain_orgs(rejected: Staged, feed: str) -> Iterator[sa.Select[Any]]:
    """The schools of rejected schools rows."""
    yield from _list_ids(rejected, feed, "school", "schools")


def retain_classes(rejected: Staged, feed: str) -> Iterator[sa.Select[Any]]:
    """The classes of rejected sections rows."""
    yield from _list_ids(rejected, feed, "section", "sections")


def retain_sessions(rejected: Staged, feed: str) -> Iterator[sa.Select[Any]]:
    """The terms of the classes that the rejected sections rows describe."""
    terms = tables.class_terms
    for sections in retain_classes(rejected, feed):
        yield sa.select(terms.c.session_id.label("sourcedId")).where(terms.c.class_id.in_(sections))


def retain_courses(rejected: Staged, feed: str) -> Iterator[sa.Select[Any]]:
    """The courses of the classes that the rejected sections rows describe."""
    stored = tables.classes
    for sections in retain_classes(rejected, feed):
        yield sa.select(stored.c.course_id.label("sourcedId")).where(stored.c.sourced_id.in_(sections))


def retain_enrollments(rejected: Staged, feed: str) -> Iterator[sa.Select[Any]]:
    """The enrollments of rejected enrollments rows, and the teachers of the classes of rejected sections rows."""
    if "seats" in rejected:
        seats = rejected["seats"]
        yield sa.select(make_id(feed, "enrollment", seats["Section_id"], seats["Student_id"]).label("sourcedId"))
    stored = tables.enrollments
    for sections in retain_classes(rejected, feed):
        yield sa.select(stored.c.sourced_id.label("sourcedId")).where(
            stored.c.class_id.in_(sections), stored.c.role == "teacher"
        )


def retain_users(rejected: Staged, feed: str) -> Iterator[sa.Select[Any]]:
    """The people of rejected rows, and the contacts of rejected students."""
    for kind, name, *_ in PEOPLE:
        yield from _list_ids(rejected, feed, kind, name)
    agents = tables.user_agents
    for students in _list_ids(rejected, feed, "student", "students"):
        yield sa.select(agents.c.agent_id.label("sourcedId")).where(agents.c.user_id.in_(students))


def retain_roles(rejected: Staged, feed: str) -> Iterator[sa.Select[Any]]:
    """All roles of the people of `retain_users`."""
    stored = tables.user_roles
    people = list(retain_users(rejected, feed))
    if people:
        yield sa.select(stored.c.row_id.label("sourcedId"), stored.c.user_id.label("userSourcedId")).where(
            stored.c.user_id.in_(sa.union_all(*people))
        )


def retain_demographics(rejected: Staged, feed: str) -> Iterator[sa.Select[Any]]:
    """The demographics of rejected students rows."""
    yield from _list_ids(rejected, feed, "student", "students")
