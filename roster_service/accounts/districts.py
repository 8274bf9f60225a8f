"""The districts and schools that can be granted, how a command names one, and what ends with a district.

A reference never leads into another feed, so a district lies in one feed. Two feeds may bring the same district under
different ids; they have its identifier in common.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from roster_service.accounts.vendors import end_vendor_grants, invalidate_tokens
from roster_service.change_log.actors import Actor
from roster_service.change_log.changes import State, Subject, Verb, recorded
from roster_service.db.tables import (
    CTexts,
    classes,
    enrollments,
    feeds,
    orgs,
    user_roles,
    users,
    vendor_grants,
    vendors,
    visibility_labels,
)
from roster_service.errors import CommandError
from roster_service.feeds.roster_state import begin_change_of_rights
from roster_service.roster.visibility import VENDOR, Viewer, has_label, is_kept
from roster_service.roster.visible_orgs import forget_agreed
from roster_service.roster.vocabulary import GRADES

DISTRICT, SCHOOL, ACTIVE, STUDENT = "district", "school", "active", "student"


@dataclass(frozen=True)
class ListedOrg:
    """A district or a school, with the number of its active records. `users`: those with a role at it or, for a
    district, at an org below it; `schools`: 1 for a school."""

    sourcedId: str  # noqa: N815  (the name in OneRoster)
    name: str
    identifier: str | None
    district: str | None
    feed: str
    schools: int
    classes: int
    users: int
    enrollments: int


def list_districts(connection: sa.Connection) -> list[ListedOrg]:
    """Lists the active districts by name."""
    return _list_orgs(connection, orgs.c.type == DISTRICT, orgs.c.district_id)


def list_schools(connection: sa.Connection, district_id: str | None) -> list[ListedOrg]:
    """Lists the active schools by name: all, or those of a district."""
    own = orgs.c.type == SCHOOL
    return _list_orgs(connection, own if district_id is None else sa.and_(own, orgs.c.district_id == district_id), None)


def count_people(connection: sa.Connection) -> Mapping[str, int]:
    """Counts the active people of each feed by its name, as the lists count those of its districts: with a role there.
    A feed without any is absent."""
    here = user_roles.join(users, users.c.sourced_id == user_roles.c.user_id)
    here = here.join(orgs, orgs.c.sourced_id == user_roles.c.org_id)
    people = sa.func.count(sa.distinct(users.c.sourced_id))
    counted = sa.select(feeds.c.name, people).select_from(here.join(feeds, feeds.c.id == users.c.feed_id))
    counted = counted.where(users.c.status == ACTIVE, orgs.c.district_id.is_not(None)).group_by(feeds.c.name)
    found: dict[str, int] = dict(connection.execute(counted).all())
    return found


def _list_orgs(
    connection: sa.Connection, wanted: sa.ColumnElement[bool], district: sa.ColumnElement[str] | None
) -> list[ListedOrg]:
    """`district`: the column by which records below a district count with it; None: records count with their own
    school."""
    key = orgs.c.sourced_id if district is None else district
    counts = [
        _count(
            connection, key, orgs.c.sourced_id, sa.select(orgs).where(orgs.c.type == SCHOOL, orgs.c.status == ACTIVE)
        ),
        _count(connection, key, classes.c.school_id, sa.select(classes).where(classes.c.status == ACTIVE)),
        _count(
            connection,
            key,
            user_roles.c.org_id,
            sa.select(user_roles)
            .join(users, users.c.sourced_id == user_roles.c.user_id)
            .where(users.c.status == ACTIVE),
            sa.distinct(user_roles.c.user_id),
        ),
        _count(connection, key, enrollments.c.school_id, sa.select(enrollments).where(enrollments.c.status == ACTIVE)),
    ]
    above = orgs.alias()
    rows = (
        sa.select(orgs, above.c.name.label("district_name"), feeds.c.name.label("feed"))
        .outerjoin(above, above.c.sourced_id == orgs.c.district_id)
        .join(feeds, feeds.c.id == orgs.c.feed_id)
        .where(wanted, orgs.c.status == ACTIVE)
        .order_by(orgs.c.name, orgs.c.sourced_id)
    )
    return [
        ListedOrg(
            row.sourced_id,
            row.name,
            row.identifier,
            row.district_name,
            row.feed,
            *(count.get(row.sourced_id, 0) for count in counts),
        )
        for row in connection.execute(rows)
    ]


@dataclass(frozen=True)
class DistrictName:
    """An active district. `words`: the name; beside one that another district has too, the identifier, the feed and the
    number of active students."""

    sourcedId: str  # noqa: N815  (the name in OneRoster)
    words: str
    schools: int


def list_named_districts(connection: sa.Connection) -> list[DistrictName]:
    """Lists the active districts by name."""
    schools = count_schools(connection)
    rows = sa.select(orgs.c.sourced_id, orgs.c.name, orgs.c.identifier, feeds.c.name.label("feed"))
    rows = rows.join(feeds, feeds.c.id == orgs.c.feed_id).where(orgs.c.type == DISTRICT, orgs.c.status == ACTIVE)
    found = connection.execute(rows.order_by(orgs.c.name, orgs.c.sourced_id)).all()
    names = Counter(row.name for row in found)

    def describe(row: Any) -> str:
        if names[row.name] == 1:
            return str(row.name)
        students = read_students(connection, row.sourced_id).count_at(None)
        return f"{row.name} ({row.identifier or row.sourced_id}, feed {row.feed}, {students:,} students)"

    return [DistrictName(row.sourced_id, describe(row), schools.get(row.sourced_id, 0)) for row in found]


def count_schools(connection: sa.Connection) -> dict[str, int]:
    """Returns the number of active schools of each district."""
    counted = sa.select(orgs.c.district_id, sa.func.count()).where(orgs.c.type == SCHOOL, orgs.c.status == ACTIVE)
    schools: dict[str, int] = dict(connection.execute(counted.group_by(orgs.c.district_id)).all())
    return schools


@dataclass(frozen=True)
class Students:
    """The active students of a district. `alike`: (orgs at which they are students, grades, how many they are); an org
    may lie in another district of the feed."""

    alike: Sequence[tuple[Sequence[str], Sequence[str], int]]

    def count_at(self, schools: Sequence[str] | None) -> int:
        """Returns how many have a role at one of these schools, or at any org of the district (None)."""
        return sum(number for _, number in self._choose(schools))

    def count_by_org(self) -> Counter[str]:
        """Returns how many have a role at each org."""
        found: Counter[str] = Counter()
        for held, _, number in self.alike:
            found.update(dict.fromkeys(held, number))
        return found

    def list_grades(self, schools: Sequence[str] | None) -> list[str]:
        """Lists the grades of those with a role at one of these schools, or at any org of the district (None)."""
        return sort_grades(code for grades, _ in self._choose(schools) for code in grades)

    def _choose(self, schools: Sequence[str] | None) -> Iterator[tuple[Sequence[str], int]]:
        for held, grades, number in self.alike:
            if schools is None or not set(schools).isdisjoint(held):
                yield grades, number


def read_students(connection: sa.Connection, district_id: str, vendor_id: int | None = None) -> Students:
    """Reads the active students of a district. `vendor_id`: of a vendor, who does not see those that are kept from
    it."""
    own = sa.select(orgs.c.sourced_id).where(orgs.c.district_id == district_id)
    # The label of a user names the orgs of the roles.
    are_here = visibility_labels.c.student_orgs.bool_op("&&")(sa.func.array(own.scalar_subquery(), type_=CTexts))
    counted = (
        sa.select(users.c.label_id, users.c.grades, sa.func.count().label("students"))
        .where(users.c.status == ACTIVE, has_label(users, are_here), ~is_kept(users.c.sourced_id, Viewer.RULED_VENDOR))
        .group_by(users.c.label_id, users.c.grades)
        .subquery()
    )
    rows = sa.select(visibility_labels.c.student_orgs, counted.c.grades, counted.c.students).join(
        counted, counted.c.label_id == visibility_labels.c.id
    )
    found = connection.execute(rows, {VENDOR.key: vendor_id})
    return Students([(held, grades or (), number) for held, grades, number in found])


def list_school_names(connection: sa.Connection, district_id: str) -> list[tuple[str, str]]:
    """Lists the active schools of a district by name: sourcedId, name."""
    own = (orgs.c.type == SCHOOL, orgs.c.district_id == district_id, orgs.c.status == ACTIVE)
    rows = sa.select(orgs.c.sourced_id, orgs.c.name).where(*own).order_by(orgs.c.name, orgs.c.sourced_id)
    return [(key, name) for key, name in connection.execute(rows)]


def list_all_grades(connection: sa.Connection, column: sa.Column[Any] = users.c.grades) -> list[str]:
    """Lists the grades of all active users, or of all active records of the table of `column`."""
    lists = sa.select(column).where(column.table.c.status == ACTIVE).distinct()
    return sort_grades(code for found in connection.scalars(lists) for code in found or ())


def sort_grades(codes: Iterable[str]) -> list[str]:
    """Returns the grades, each once: the codes of CEDS in their order, before other texts."""
    order = {code: number for number, code in enumerate(GRADES.words)}
    return sorted(set(codes), key=lambda code: (order.get(code, len(order)), code))


def list_subjects(connection: sa.Connection, district_id: str | None, schools: Sequence[str], most: int) -> list[str]:
    """Lists the subjects of the most active classes of these schools of a district, or of all of it (none), or of all
    districts (None), by name. `most`: how many at most."""
    subject = sa.func.unnest(classes.c.subjects, type_=sa.Text)
    own = [classes.c.status == ACTIVE]
    if schools:
        own.append(classes.c.school_id.in_(schools))
    elif district_id is not None:
        own.append(classes.c.school_id.in_(sa.select(orgs.c.sourced_id).where(orgs.c.district_id == district_id)))
    named = sa.select(subject.label("name")).where(*own).subquery()
    found = sa.select(named.c.name).group_by(named.c.name).order_by(sa.func.count().desc(), named.c.name).limit(most)
    return sorted(connection.scalars(found))


def _count(
    connection: sa.Connection,
    key: sa.ColumnElement[str],
    place: sa.ColumnElement[str],
    rows: sa.Select[Any],
    what: sa.ColumnElement[Any] | None = None,
) -> dict[str, int]:
    """The number of rows by the `key` of the org in their column `place`."""
    number = sa.func.count() if what is None else sa.func.count(what)
    counted = rows.with_only_columns(key, number).group_by(key)
    if place.table is not orgs:
        counted = counted.join(orgs, orgs.c.sourced_id == place)
    found: dict[str, int] = dict(connection.execute(counted).all())
    return found


def find_org(connection: sa.Connection, name: str, kind: str, district_id: str | None) -> str:
    """Returns the sourcedId of the org of type `kind` that `name` names: by its sourcedId or identifier, else by a name
    that only one active org has. `district_id`: the district that it must lie in, or None. Raises CommandError unless
    there is exactly one such org."""
    own = _list_conditions(kind, district_id)
    ids = _find_ids(connection, *own, sa.or_(orgs.c.sourced_id == name, orgs.c.identifier == name))
    ids = ids or _find_ids(connection, *own, orgs.c.name == name, orgs.c.status == ACTIVE)
    if len(ids) != 1:
        count = "no" if not ids else "more than one"
        raise _refuse_org(f"{count} {kind} with the sourcedId, identifier or name {name!r}", kind, district_id)
    return ids[0]


def require_org(connection: sa.Connection, sourced_id: str, kind: str, district_id: str | None) -> str:
    """Returns the sourcedId of an org of type `kind`, which may be the identifier of another. `district_id`: as for
    `find_org`. Raises CommandError if there is no such org."""
    if not _find_ids(connection, *_list_conditions(kind, district_id), orgs.c.sourced_id == sourced_id):
        raise _refuse_org(f"no {kind} with the sourcedId {sourced_id!r}", kind, district_id)
    return sourced_id


def _list_conditions(kind: str, district_id: str | None) -> list[sa.ColumnElement[bool]]:
    return [orgs.c.type == kind, *([] if district_id is None else [orgs.c.district_id == district_id])]


def _refuse_org(found: str, kind: str, district_id: str | None) -> CommandError:
    place = "" if district_id is None else f" in district {district_id}"
    return CommandError(f"there is {found}{place}; `roster {kind} list` shows all")


def _find_ids(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> Sequence[str]:
    return connection.scalars(sa.select(orgs.c.sourced_id).where(*conditions)).all()


@dataclass(frozen=True)
class EndedDistrict:
    """A district as `end_district` leaves it. `ids`: its sourcedIds; `feeds`: the feeds that brought it, to be removed;
    `vendors`: the e-mails of the vendors that had a grant."""

    name: str
    ids: tuple[str, ...]
    feeds: tuple[str, ...]
    vendors: tuple[str, ...]


def end_district(connection: sa.Connection, actor: Actor, district: str) -> EndedDistrict:
    """Ends all grants of a district and of its schools, so that no vendor sees it any more. Returns the feeds that the
    caller removes after the commit, with all their records: the removal is a run of the sync.

    `district` is a sourcedId, an identifier or a unique name. Raises CommandError if there is no such district, and if
    a feed also brings another one: its next export would bring the district back.
    """
    found = _find_districts(connection, district)
    ids = tuple(row.sourced_id for row in found)
    _require_own_feeds(connection, found)
    subject = Subject("district", found[0].sourced_id)
    of_district = vendor_grants.c.district_id.in_(ids)
    holding = sa.select(vendor_grants.c.vendor_id).where(of_district)
    holders = connection.execute(sa.select(vendors.c.id, vendors.c.email).where(vendors.c.id.in_(holding))).all()
    names = tuple(sorted({row.feed for row in found}))

    def read_state() -> State:
        left = sa.select(vendors.c.email).join(vendor_grants).where(of_district).distinct().order_by(vendors.c.email)
        return {"feeds": list(names), "granted_to": list(connection.scalars(left))}

    begin_change_of_rights(connection)
    with recorded(connection, actor, Verb.DISTRICT_REMOVE, subject, read_state):
        end_vendor_grants(connection, of_district)
        forget_agreed(connection, *ids)
        for holder in holders:
            invalidate_tokens(connection, holder.id)
    return EndedDistrict(found[0].name, ids, names, tuple(sorted(holder.email for holder in holders)))


def _find_districts(connection: sa.Connection, name: str) -> Sequence[Any]:
    """Returns the rows of a district, one for each feed that brings it."""
    named = _select(connection, sa.or_(orgs.c.sourced_id == name, orgs.c.identifier == name))
    named = named or _select(connection, orgs.c.name == name, orgs.c.status == ACTIVE)
    identifiers = {row.identifier for row in named if row.identifier}
    if not named or len(identifiers | {row.sourced_id for row in named if not row.identifier}) > 1:
        count = "no" if not named else "more than one"
        hint = "`roster district list` shows all"
        raise CommandError(f"there is {count} district with the sourcedId, identifier or name {name!r}; {hint}")
    return _select(connection, orgs.c.identifier.in_(identifiers)) if identifiers else named


def _select(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> Sequence[Any]:
    columns = (orgs.c.sourced_id, orgs.c.name, orgs.c.identifier, orgs.c.feed_id, feeds.c.name.label("feed"))
    joined = orgs.join(feeds, feeds.c.id == orgs.c.feed_id)
    wanted = sa.select(*columns).select_from(joined).where(orgs.c.type == DISTRICT, *conditions)
    return connection.execute(wanted.order_by(orgs.c.sourced_id)).all()


def _require_own_feeds(connection: sa.Connection, found: Sequence[Any]) -> None:
    own = [row.sourced_id for row in found]
    others = _select(
        connection,
        orgs.c.feed_id.in_({row.feed_id for row in found}),
        orgs.c.sourced_id.not_in(own),
        orgs.c.status == ACTIVE,
    )
    if others:
        names = ", ".join(sorted({row.name for row in others}))
        raise CommandError(
            f"the feed {others[0].feed} also brings {names}: let its export leave the district out, and load it; until "
            "then, `roster vendor revoke` ends the grants"
        )
