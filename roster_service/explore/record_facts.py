"""What decides whether vendors see a record: the answers of the query filter (roster/visibility.py), and what words its
reasons take: the orgs of the record, the grants there, the words of its row.

`who_sees.py` makes the verdicts of it. Nothing here reads the contents of a record, so the access log and the change
log have no row of it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from roster_service.accounts.vendors import Vendor, list_vendors
from roster_service.db.tables import (
    CText,
    CTexts,
    api_keys,
    classes,
    enrollments,
    orgs,
    user_agents,
    user_roles,
    users,
    vendors,
    visible_orgs,
)
from roster_service.errors import CommandError
from roster_service.explore.whole_roster import find_ended_parts
from roster_service.roster.references import OF_PEOPLE, PERSONS
from roster_service.roster.visibility import (
    ContentRights,
    Opened,
    Viewer,
    is_kept,
    record_is_open,
    role_is_visible,
    row_is_visible,
)
from roster_service.roster.vocabulary import GUARDIAN_ROLES
from roster_service.rostering.endpoints import ENDPOINTS, Cardinality, Endpoint
from roster_service.schemas.file_presets import PRESETS
from roster_service.schemas.sharing_rules import name_rules
from roster_service.schemas.v1p1 import select_single_role
from roster_service.schemas.versions import VERSIONS
from roster_service.serving.path_filters import everything

# The orgs on which it depends whether a vendor sees a record.
_ORG_OF: Mapping[sa.Table, sa.Column[str]] = {
    orgs: orgs.c.sourced_id,
    classes: classes.c.school_id,
    enrollments: enrollments.c.school_id,
}
# The roles of people in files that leave out some.
_IN_NARROW_FILES = frozenset(role for preset in PRESETS.values() for role in preset.only.get(("users", "role"), ()))
# The words of `RecordFacts.following`.
_FOLLOWING = ("guardians", "classes", "agents", "in_narrow_files")
# The rights of every vendor, with guardians and without.
OF_EVERY_VENDOR = {
    guardians: ContentRights(
        viewer=Viewer.EVERY_VENDOR, guardians=guardians, metadata=frozenset(), metadata_keys=None, withheld=frozenset()
    )
    for guardians in (True, False)
}
_IS_VALID = sa.or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > sa.func.now())
VALID_KEYS = (
    sa.select(sa.func.count()).where(sa.and_(api_keys.c.vendor_id == vendors.c.id, _IS_VALID)).scalar_subquery()
).label("keys")


def find_endpoints(connection: sa.Connection, sourced_id: str) -> list[tuple[sa.Table, Endpoint]]:
    """Returns the single-record endpoints whose resource has a record with this id, with the tables of the records.
    Raises CommandError if there is none."""
    found = [
        (table, endpoint)
        for endpoint in ENDPOINTS
        if endpoint.cardinality is Cardinality.SINGLE and endpoint.path_filter is everything
        for table in (VERSIONS[0].records[endpoint.resource].table,)
        if connection.scalar(sa.select(sa.exists().where(table.c.sourced_id == sourced_id)))
    ]
    if not found:
        raise CommandError(f"the roster has no record {sourced_id}")
    return found


@dataclass(frozen=True)
class Place:
    """An org on which it depends whether a vendor sees a record, and its district. `role`: of the person there; None
    for other records."""

    role: str | None
    org_id: str
    name: str
    district_id: str | None

    @property
    def key(self) -> str:
        """The role and the org, as `_select_vendors` has those that are open."""
        return f"{self.role} {self.org_id}"

    @property
    def words(self) -> str:
        """For people."""
        return self.name if self.role is None else f"{self.role} at {self.name}"


@dataclass(frozen=True)
class RecordFacts:
    """A record and a vendor. `places`: of the record; `words`: of its row, by header, which say whether a file has it;
    `ended`: the parts of a person that the vendor interface has no more; `seen`: the row of `_select_vendors`."""

    vendor: Vendor
    table: sa.Table
    endpoint: Endpoint
    places: Sequence[Place]
    words: Mapping[str, str]
    ended: frozenset[str]
    seen: sa.Row[Any]

    @property
    def granted(self) -> Sequence[Place]:
        """The places that the grants of the vendor open."""
        return [place for place in self.places if place.org_id in self.seen.granted]

    @property
    def opened(self) -> Sequence[Place]:
        """Those by which the vendor sees the record: the rules of a grant may leave out a role of a person."""
        is_person = self.table in OF_PEOPLE
        return [place for place in self.granted if not is_person or place.key in self.seen.opened]

    @property
    def rules(self) -> str:
        """The rules that narrow all granted places, in words; blank if a grant opens one of them as a whole."""
        found = [self.vendor.list_rules(place.org_id, place.district_id) for place in self.granted]
        return name_rules(rules for of_place in found for rules in of_place) if all(found) else ""

    @property
    def following(self) -> frozenset[str]:
        """Of a person, which of `guardians` and `classes` the vendor sees, records of their own, with schools of their
        own; `agents`, whom it sees also without the scope of guardians, and those `in_narrow_files`, which have only
        some roles. Of a guardian, those whom the record names and who name it stand for the guardians: without one,
        nobody learns whose guardian it is."""
        return frozenset(word for word in _FOLLOWING if getattr(self.seen, word, False))


def read_facts(connection: sa.Connection, sourced_id: str, vendor_id: int | None = None) -> Iterator[RecordFacts]:
    """Yields the facts of the records with this id, for every vendor by e-mail, or for one. Raises CommandError if the
    roster has no such record."""
    known = {vendor.id: vendor for vendor in list_vendors(connection)}
    for table, endpoint in find_endpoints(connection, sourced_id):
        places = _read_places(connection, table, sourced_id)
        columns = [table.c[name] for name in ("status", "type", "role") if name in table.c]
        words = connection.execute(sa.select(*columns).where(table.c.sourced_id == sourced_id)).mappings().one()
        ended = find_ended_parts(connection, sourced_id) if table is users else frozenset[str]()
        found = _select_vendors(table)
        values = {"sourced_id": sourced_id, "org_ids": [place.org_id for place in places]}
        for seen in connection.execute(found if vendor_id is None else found.where(vendors.c.id == vendor_id), values):
            yield RecordFacts(known[seen.id], table, endpoint, places, dict(words), ended, seen)


def _read_places(connection: sa.Connection, table: sa.Table, sourced_id: str) -> list[Place]:
    """Reads the orgs on which it depends whether a vendor sees a record; none for a record that follows others."""
    role: sa.ColumnElement[Any]
    if table in OF_PEOPLE:
        role, org_id, own = user_roles.c.role, user_roles.c.org_id, user_roles.c.user_id
    elif table in _ORG_OF:
        role, org_id, own = sa.null(), _ORG_OF[table], table.c.sourced_id
    else:
        return []
    place = orgs.alias()
    rows = sa.select(role.label("role"), org_id.label("org_id"), place.c.name, place.c.district_id)
    rows = rows.where(own == sourced_id).outerjoin(place, place.c.sourced_id == org_id)
    return [Place(row.role, row.org_id, row.name or row.org_id, row.district_id) for row in connection.execute(rows)]


@functools.cache
def _select_vendors(table: sa.Table) -> sa.Select[Any]:
    """Selects the vendors, each with whether it sees the record `sourced_id` of a table, with guardians and without,
    and as a student of the vendor interface; the number of its valid keys; which of `org_ids`, the orgs of the record,
    its grants open, and the roles of the person that it sees there; of a person, the role in 1.1, with guardians and
    without, whether a student names the person, and what follows. To make it takes 18 ms."""
    with_guardians, without = OF_EVERY_VENDOR[True], OF_EVERY_VENDOR[False]
    sourced_id = sa.bindparam("sourced_id", type_=CText)
    is_user, own = table is users, user_roles.alias()

    def ask(of: sa.Table, *conditions: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
        return sa.select(of.c.sourced_id).where(*conditions).correlate(vendors).exists()

    def show_role(rights: ContentRights) -> sa.ColumnElement[Any]:
        shown = sa.select(select_single_role(rights)).where(users.c.sourced_id == sourced_id).correlate(vendors)
        return shown.scalar_subquery() if is_user else sa.null()

    def list_texts(found: sa.Select[Any]) -> sa.ColumnElement[Any]:
        return sa.func.array(found.correlate(vendors).scalar_subquery(), type_=CTexts)

    is_own = table.c.sourced_id == sourced_id
    is_student = ask(users, users.c.sourced_id == sourced_id, record_is_open(users, without, Opened.STUDENT))
    as_guardian, as_teacher = _select_named(sourced_id) if is_user else (sa.false(), sa.false())
    granted = sa.select(visible_orgs.c.org_id).where(
        visible_orgs.c.vendor_id == vendors.c.id,
        visible_orgs.c.shared,
        visible_orgs.c.org_id == sa.any_(sa.bindparam("org_ids", type_=CTexts)),
    )
    opened = sa.select(own.c.role + sa.literal_column("' '") + own.c.org_id).where(
        own.c.user_id == sourced_id, role_is_visible(own, with_guardians)
    )
    following = [ask(of, *conditions).label(word) for word, of, *conditions in _list_following(sourced_id)]
    columns = (
        vendors.c.id,
        VALID_KEYS,
        list_texts(opened).label("opened"),
        list_texts(granted).label("granted"),
        ask(table, is_own, row_is_visible(table, table, with_guardians)).label("with_guardians"),
        ask(table, is_own, row_is_visible(table, table, without)).label("without"),
        (is_student if table in OF_PEOPLE else sa.false()).label("student"),
        show_role(with_guardians).label("role_with_guardians"),
        show_role(without).label("role_without"),
        as_guardian.label("as_guardian"),
        as_teacher.label("as_teacher"),
        (ask(table, is_own, is_kept(PERSONS[table], Viewer.EVERY_VENDOR)) if table in PERSONS else sa.false()).label(
            "kept"
        ),
    )
    return sa.select(*columns, *(following if is_user else ())).order_by(vendors.c.email)


def select_guardians(sourced_id: str | sa.ColumnElement[str]) -> sa.Select[str]:
    """Selects the ids of a person's guardians: the agents who have a role of guardians."""
    roles = user_roles.alias()
    found = sa.select(user_agents.c.agent_id).join(roles, roles.c.user_id == user_agents.c.agent_id)
    return found.where(user_agents.c.user_id == sourced_id, roles.c.role.in_(GUARDIAN_ROLES))


def _list_following(sourced_id: sa.ColumnElement[str]) -> Iterator[tuple[Any, ...]]:
    """The words of `RecordFacts.following`, with the table and the conditions of each."""
    with_guardians, without = OF_EVERY_VENDOR[True], OF_EVERY_VENDOR[False]
    is_guardian = sa.exists().where(user_roles.c.user_id == sourced_id, user_roles.c.role.in_(GUARDIAN_ROLES))
    own = sa.select(user_agents.c.agent_id).where(user_agents.c.user_id == sourced_id, is_guardian)
    naming = sa.select(user_agents.c.user_id).where(user_agents.c.agent_id == sourced_id, is_guardian)
    is_related = users.c.sourced_id.in_(sa.union(select_guardians(sourced_id), own, naming))
    agents = sa.select(user_agents.c.agent_id).where(user_agents.c.user_id == sourced_id)
    is_agent = (users.c.sourced_id.in_(agents), row_is_visible(users, users, without))
    is_taken = row_is_visible(enrollments, enrollments, with_guardians)
    yield "guardians", users, is_related, row_is_visible(users, users, with_guardians)
    yield "classes", enrollments, enrollments.c.user_id == sourced_id, is_taken
    yield "agents", users, *is_agent
    yield "in_narrow_files", users, *is_agent, select_single_role(without).in_(_IN_NARROW_FILES)


def _select_named(sourced_id: sa.ColumnElement[str]) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
    """The conditions that a student of the vendor interface names the user as a guardian, and as a teacher."""
    role, taking, teaching = user_roles.alias(), enrollments.alias(), enrollments.alias()
    is_student = record_is_open(users, OF_EVERY_VENDOR[False], Opened.STUDENT)
    of_agent = sa.select(user_agents.c.user_id).where(user_agents.c.agent_id == sourced_id)
    is_guardian = sa.and_(
        role.c.user_id == sourced_id, role.c.role.in_(GUARDIAN_ROLES), role_is_visible(role, OF_EVERY_VENDOR[True])
    )
    guardian = sa.select(users.c.sourced_id).where(
        users.c.sourced_id.in_(of_agent), is_student, sa.exists().where(is_guardian)
    )
    teacher = sa.select(users.c.sourced_id).where(
        users.c.sourced_id == taking.c.user_id,
        is_student,
        *(taking.c.role == "student", taking.c.status == "active"),
        row_is_visible(enrollments, taking, OF_EVERY_VENDOR[False]),
        *(teaching.c.user_id == sourced_id, teaching.c.class_id == taking.c.class_id),
        *(teaching.c.role == "teacher", teaching.c.status == "active"),
        row_is_visible(enrollments, teaching, OF_EVERY_VENDOR[False]),
    )
    return guardian.correlate(vendors).exists(), teacher.correlate(vendors).exists()
