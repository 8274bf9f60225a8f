"""Keeps the visibility labels right through a run: of the records that it writes, and of those that hang on them.

It also stamps what no stamp of a record can tell: a part that left the answer of the vendor interface stamps the
student (`parts_changed`), and a teacher who left a class stamps the class (`teachers_changed`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from roster_service.db.tables import classes, courses, demographics, enrollments, orgs, user_agents, users
from roster_service.roster.labels import find_labels, relabel
from sync_scripts.applying.changes import ADDED, CHANGE, CHANGED, Difference

Ids = sa.Select[Any] | sa.CompoundSelect[Any]
# The first labels of courses are made after their classes are written.
_LABELLED_FIRST = (classes, users, enrollments, demographics)


class RunLabels:
    """The labels of one run, which writes the tables in the order of ROSTER_TABLES."""

    def __init__(self, connection: sa.Connection, feed_id: int, stamp: datetime) -> None:
        self._connection = connection
        self._feed_id = feed_id
        self._stamp = stamp
        self._written: dict[sa.Table, Difference] = {}
        # The ids of the records whose label is another one now.
        self._moved: dict[sa.Table, sa.TableClause] = {}

    def find_first(self, difference: Difference) -> sa.TableClause | None:
        """Returns the labels of the records that the difference adds, as `find_labels`. Call it after their parts are
        written. None: the table has no labels, or they are made later."""
        if difference.table not in _LABELLED_FIRST:
            return None
        added = sa.select(difference.rows).where(difference.rows.c[CHANGE] == ADDED).subquery("added")
        return find_labels(self._connection, difference.table, added, self._feed_id)

    def stamp_left_parts(self, difference: Difference) -> None:
        """Stamps the students and the classes that lose an enrollment or demographics by the difference. Call it before
        the difference is written."""
        gone = sa.select(difference.gone.c.sourced_id)
        if difference.table is demographics and difference.counts.tombstoned:
            self._stamp_parts(gone)
        if difference.table is enrollments and (difference.counts.tombstoned or difference.counts.rewritten):
            new, old = difference.rows, enrollments.alias()
            is_other = sa.or_(*(new.c[name] != old.c[name] for name in ("user_id", "class_id", "school_id", "role")))
            both = new.join(old, old.c.sourced_id == new.c.sourced_id)
            moved = sa.select(new.c.sourced_id).select_from(both).where(new.c[CHANGE] == CHANGED, is_other)
            self._stamp_enrolled(sa.union(gone, moved))

    def renew(self, difference: Difference) -> None:
        """Makes the labels of the records anew that the difference has changed, if others follow from them."""
        self._written[difference.table] = difference
        if difference.table in (classes, users) and difference.counts.rewritten:
            self._relabel(difference.table, _select_rewritten(difference))

    def renew_others(self) -> None:
        """Makes all other labels anew that follow from what was written. Call it after all differences."""
        # What hangs on the classes and the users whose labels are others now.
        enrolled: list[Ids] = [
            sa.select(enrollments.c.sourced_id).where(column.in_(sa.select(self._moved[table].c.sourced_id)))
            for table, column in ((classes, enrollments.c.class_id), (users, enrollments.c.user_id))
            if table in self._moved
        ]
        own = self._written.get(enrollments)
        if own is not None and own.counts.rewritten:
            enrolled.append(_select_rewritten(own))
        if enrolled:
            self._relabel(enrollments, sa.union(*enrolled))
        if enrollments in self._moved:
            self._stamp_enrolled(sa.select(self._moved[enrollments].c.sourced_id))
        if users in self._moved:
            moved = sa.select(self._moved[users].c.sourced_id)
            self._relabel(demographics, moved)
            self._stamp_naming(moved)
        if any(table in self._written and self._written[table].counts.any for table in (orgs, courses, classes)):
            # All of them: they are few, and a class that was changed does not tell its former course.
            self._relabel(courses, sa.select(courses.c.sourced_id).where(courses.c.feed_id == self._feed_id))

    def _relabel(self, table: sa.Table, ids: Ids) -> None:
        moved = relabel(self._connection, table, ids, self._feed_id, self._stamp)
        if moved is not None:
            self._moved[table] = moved

    def _stamp_enrolled(self, ids: Ids) -> None:
        """Stamps the users of these enrollments, and the classes of those of teachers."""
        left = enrollments.c.sourced_id.in_(ids)
        self._stamp_parts(sa.select(enrollments.c.user_id).where(left))
        taught = sa.select(enrollments.c.class_id).where(left, enrollments.c.role == "teacher")
        values = {"teachers_changed": self._stamp}
        self._connection.execute(sa.update(classes).where(classes.c.sourced_id.in_(taught)).values(values))

    def _stamp_parts(self, user_ids: Ids) -> None:
        values = {"parts_changed": self._stamp}
        self._connection.execute(sa.update(users).where(users.c.sourced_id.in_(user_ids)).values(values))

    def _stamp_naming(self, user_ids: Ids) -> None:
        """Stamps the users who name one of these as an agent: they show or hide the reference now."""
        naming = sa.select(user_agents.c.user_id).where(user_agents.c.agent_id.in_(user_ids))
        active = sa.and_(users.c.sourced_id.in_(naming), users.c.status == "active")
        self._connection.execute(sa.update(users).where(active).values(date_last_modified=self._stamp))


def _select_rewritten(difference: Difference) -> Ids:
    return sa.select(difference.rows.c.sourced_id).where(difference.rows.c[CHANGE] != ADDED)
