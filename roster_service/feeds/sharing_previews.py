"""What grants open beside what others open, counted before a change of them: by kind and school, with examples.

It reads the rules as groups are made, and makes none. Records that are deleted do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from roster_service.db.tables import CText, classes, orgs, user_roles, users
from roster_service.feeds.sharing_members import (
    WANTED,
    Extent,
    describe_table,
    find_wanted,
    list_granted,
    make_temporary,
)
from roster_service.roster.vocabulary import GUARDIAN_ROLES

KINDS = ("students", "classes", "staff", "guardians")
EXAMPLES = 5
_NOW, _THEN = "now", "then"


_SEEN = describe_table("seen_members", "side", "kind", "sourced_id", "org_id")
# The first and the last side on which a record is seen: `now` comes before `then`.
_MARKED = describe_table("marked_members", "kind", "sourced_id", "org_id", "first", "last")
_IS: Mapping[str, Callable[[Any], sa.ColumnElement[bool]]] = {
    "now": lambda marked: marked.first == _NOW,
    "then": lambda marked: marked.last == _THEN,
    "come": lambda marked: marked.first == _THEN,
    "go": lambda marked: marked.last == _NOW,
}


@dataclass(frozen=True)
class Counted:
    """The number of records of a kind that are open now and after a change, of those that come, and of those that
    go."""

    kind: str
    now: int
    then: int
    come: int
    go: int


@dataclass(frozen=True)
class CountedSchool:
    """The same of an org. `counts`: only of kinds that it has."""

    sourcedId: str  # noqa: N815  (the name in OneRoster)
    name: str
    counts: Sequence[Counted]


@dataclass(frozen=True)
class Preview:
    """What a change opens and closes. `counts`: of each kind; `seen`: the names of some students that are open after
    it; `coming`, `going`: of some that it opens or closes."""

    counts: Sequence[Counted]
    schools: Sequence[CountedSchool]
    seen: Sequence[str]
    coming: Sequence[str]
    going: Sequence[str]


def preview_extents(connection: sa.Connection, now: Iterable[Extent], then: Iterable[Extent]) -> Preview:
    """Counts what `then` opens beside `now`. It makes temporary tables, so the transaction is not read-only; the caller
    ends it. Raises CommandError for a filter that means nothing."""
    make_temporary(connection, _SEEN)
    wanted = {_NOW: [*now], _THEN: [*then]}
    for extent in dict.fromkeys([*wanted[_NOW], *wanted[_THEN]]):
        _add(connection, [side for side, extents in wanted.items() if extent in extents], extent)
    make_temporary(connection, _MARKED)
    keys = (_SEEN.c.kind, _SEEN.c.sourced_id, _SEEN.c.org_id)
    marked = sa.select(*keys, sa.func.min(_SEEN.c.side), sa.func.max(_SEEN.c.side)).group_by(*keys)
    connection.execute(_MARKED.insert().from_select([column.name for column in _MARKED.c], marked))
    by_school: dict[str, list[Counted]] = {}
    for row in _count(connection, sa.select(_MARKED).subquery(), "org_id"):
        by_school.setdefault(row.org_id, []).append(_read(row))
    named = sa.select(orgs.c.sourced_id, orgs.c.name).where(orgs.c.sourced_id.in_(by_school))
    schools = connection.execute(named.order_by(orgs.c.name, orgs.c.sourced_id)).all()
    # A person may have roles at several schools.
    person = (_MARKED.c.kind, _MARKED.c.sourced_id)
    sides = (sa.func.min(_MARKED.c.first).label("first"), sa.func.max(_MARKED.c.last).label("last"))
    found = {
        row.kind: _read(row) for row in _count(connection, sa.select(*person, *sides).group_by(*person).subquery())
    }
    return Preview(
        [found.get(kind, Counted(kind, 0, 0, 0, 0)) for kind in KINDS],
        [
            CountedSchool(key, name, sorted(by_school[key], key=lambda counted: KINDS.index(counted.kind)))
            for key, name in schools
        ],
        *(_name_students(connection, _IS[side](_MARKED.c)) for side in ("then", "come", "go")),
    )


def _add(connection: sa.Connection, sides: Sequence[str], extent: Extent) -> None:
    """Adds what an extent opens to the table of what is seen on these sides."""
    if extent.staff is None:
        granted = list_granted(extent)
        roles = sa.select(user_roles.c.user_id, user_roles.c.org_id, user_roles.c.role)
        roles = roles.where(user_roles.c.org_id.in_(granted))
        shared = classes.c.school_id.in_(granted)
    else:
        find_wanted(connection, extent)
        roles = sa.select(WANTED.c.sourced_id.label("user_id"), WANTED.c.org_id, WANTED.c.role)
        roles = roles.where(WANTED.c.type == users.name)
        shared = classes.c.sourced_id.in_(sa.select(WANTED.c.sourced_id).where(WANTED.c.type == classes.name))
    held = roles.subquery()
    kind = sa.case(
        (held.c.role == "student", "students"), (held.c.role.in_(GUARDIAN_ROLES), "guardians"), else_="staff"
    )
    # Few users are not active.
    gone = sa.select(users.c.sourced_id).where(users.c.status != "active")
    found = sa.union_all(
        sa.select(kind, held.c.user_id, held.c.org_id).where(held.c.user_id.not_in(gone)),
        sa.select(sa.literal("classes", CText), classes.c.sourced_id, classes.c.school_id).where(
            shared, classes.c.status == "active"
        ),
    ).subquery()
    for side in sides:
        rows = sa.select(sa.literal(side, CText), *found.c)
        connection.execute(_SEEN.insert().from_select([column.name for column in _SEEN.c], rows))


def _count(connection: sa.Connection, marked: sa.Subquery, *by: str) -> Sequence[Any]:
    """Counts marked records by kind, and by other columns."""
    keys = [marked.c[name] for name in ("kind", *by)]
    counts = (sa.func.count().filter(condition(marked.c)).label(f"of_{name}") for name, condition in _IS.items())
    return connection.execute(sa.select(*keys, *counts).group_by(*keys)).all()


def _read(row: Any) -> Counted:
    return Counted(row.kind, row.of_now, row.of_then, row.of_come, row.of_go)


def _name_students(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> list[str]:
    """The names of the first students, by id, for whom a condition holds."""
    own = sa.select(_MARKED.c.sourced_id).where(_MARKED.c.kind == "students", condition).distinct()
    first = own.order_by(_MARKED.c.sourced_id).limit(EXAMPLES)
    names = sa.select(users.c.given_name, users.c.family_name).where(users.c.sourced_id.in_(first))
    return [" ".join(row) for row in connection.execute(names.order_by(users.c.family_name, users.c.given_name))]
