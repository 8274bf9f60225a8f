"""What grants open beside what others open, counted before a change of them: by kind and school, with examples.

It reads the rules as groups are made, and makes none. Records that are deleted do not count, nor do people who are kept
from the vendor.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from roster_service.db.tables import CText, classes, orgs, user_roles, users
from roster_service.feeds.sharing_members import GRANTED, WANTED, Extent, describe_table, find_wanted, make_temporary
from roster_service.roster.visibility import VENDOR, Viewer, is_kept
from roster_service.roster.vocabulary import GUARDIAN_ROLES

GUARDIANS = "guardians"
KINDS = ("students", "classes", "staff", GUARDIANS)
EXAMPLES = 5
# Each record, and whether it is open on either side of the change, 1 or 0. `then` is a word of SQL.
_MARKED = describe_table("marked_members", "kind", "sourced_id", "org_id", numbers=["before", "after"])
_IS: Mapping[str, Callable[[Any], sa.ColumnElement[bool]]] = {
    "now": lambda marked: marked.before == 1,
    "then": lambda marked: marked.after == 1,
    "come": lambda marked: marked.before < marked.after,
    "go": lambda marked: marked.before > marked.after,
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
class SharingPreview:
    """What a change opens and closes. `counts`: of each kind that the vendor can get; `seen`: the names of some
    students that are open after it; `coming`, `going`: of some that it opens or closes; `notes`: what else to know,
    in sentences."""

    counts: Sequence[Counted]
    schools: Sequence[CountedSchool]
    seen: Sequence[str]
    coming: Sequence[str]
    going: Sequence[str]
    notes: Sequence[str] = ()


def preview_extents(
    connection: sa.Connection,
    vendor_id: int | None,
    now: Iterable[Extent],
    then: Iterable[Extent],
    kinds: Collection[str],
) -> SharingPreview:
    """Counts what `then` opens to a vendor beside `now`. `vendor_id`: None for one that is not there yet; `kinds`: of
    `KINDS`, those that count. It makes temporary tables, so the transaction is not read-only; the caller ends it.
    Raises CommandError for a filter that means nothing."""
    sides = {"before": [*now], "after": [*then]}
    extents = dict(enumerate(dict.fromkeys(itertools.chain(*sides.values()))))
    find_wanted(connection, extents)
    make_temporary(connection, _MARKED)
    seen = _select_seen([number for number, extent in extents.items() if extent.staff is None])
    keys = (seen.c.kind, seen.c.sourced_id, seen.c.org_id)
    is_in = (
        sa.case((seen.c.grant_id.in_([number for number, extent in extents.items() if extent in side]), 1), else_=0)
        for side in sides.values()
    )
    marked = sa.select(*map(sa.func.max, is_in), *keys).group_by(*keys)
    of_vendor = marked.params({VENDOR.key: vendor_id})
    connection.execute(_MARKED.insert().from_select([*sides, *(key.name for key in keys)], of_vendor))
    by_school: dict[str, list[Counted]] = {}
    for row in _count(connection, sa.select(_MARKED).where(_MARKED.c.kind.in_(kinds)).subquery(), "org_id"):
        by_school.setdefault(row.org_id, []).append(_read(row))
    named = sa.select(orgs.c.sourced_id, orgs.c.name).where(orgs.c.sourced_id.in_(by_school))
    schools = connection.execute(named.order_by(orgs.c.name, orgs.c.sourced_id)).all()
    # A person may have roles at several schools.
    person = (_MARKED.c.kind, _MARKED.c.sourced_id)
    flags = (sa.func.max(_MARKED.c[side]).label(side) for side in sides)
    found = {
        row.kind: _read(row) for row in _count(connection, sa.select(*person, *flags).group_by(*person).subquery())
    }
    return SharingPreview(
        [found.get(kind, Counted(kind, 0, 0, 0, 0)) for kind in KINDS if kind in kinds],
        [
            CountedSchool(key, name, sorted(by_school[key], key=lambda counted: KINDS.index(counted.kind)))
            for key, name in schools
        ],
        *(_name_students(connection, _IS[side](_MARKED.c)) for side in ("then", "come", "go")),
    )


def _select_seen(whole: Collection[int]) -> sa.Subquery:
    """Selects what extents open to the bound vendor, with the number of the extent. `whole`: the extents without
    rules."""
    at = GRANTED.c.grant_id.in_(whole)
    held = sa.union_all(
        sa.select(GRANTED.c.grant_id, user_roles.c.user_id, user_roles.c.org_id, user_roles.c.role).where(
            at, user_roles.c.org_id == GRANTED.c.org_id
        ),
        sa.select(WANTED.c.grant_id, WANTED.c.sourced_id, WANTED.c.org_id, WANTED.c.role).where(
            WANTED.c.type == users.name
        ),
    ).subquery()
    shared = sa.union_all(
        sa.select(GRANTED.c.grant_id, classes.c.sourced_id).where(at, classes.c.school_id == GRANTED.c.org_id),
        sa.select(WANTED.c.grant_id, WANTED.c.sourced_id).where(WANTED.c.type == classes.name),
    ).subquery()
    kind = sa.case(
        (held.c.role == "student", "students"), (held.c.role.in_(GUARDIAN_ROLES), "guardians"), else_="staff"
    ).label("kind")
    # Few users are not active.
    gone = sa.select(users.c.sourced_id).where(users.c.status != "active")
    return sa.union_all(
        sa.select(held.c.grant_id, kind, held.c.user_id.label("sourced_id"), held.c.org_id).where(
            held.c.user_id.not_in(gone), ~is_kept(held.c.user_id, Viewer.RULED_VENDOR)
        ),
        sa.select(shared.c.grant_id, sa.literal("classes", CText), shared.c.sourced_id, classes.c.school_id).where(
            classes.c.sourced_id == shared.c.sourced_id, classes.c.status == "active"
        ),
    ).subquery()


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
