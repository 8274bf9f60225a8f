"""The query filter: the first of the two layers that decide which rows a vendor sees.

The table `visible_orgs` has a row for each org that a vendor's grants open, `visible_labels` one for each visibility
label that these orgs open, and `visible_feeds` one for each feed of these; the `Viewer` says whose of these rows count.
A row is visible as follows:

- an org, if it lies in a granted district, is a granted school, or is the district of a granted school;
- a class, if its school is granted;
- a course, a user, demographics and an enrollment, if their label is open; it is the sync that knows what a label
  follows from (roster_service/roster/labels.py);
- a role of a user, if its org is granted, and guardians' roles only with the right to see guardians;
- what the rules of a grant open, if it is a member of the grant's group; such a grant opens no content of its orgs;
- nothing of a person who is kept from the vendor, whatever opens it;
- an academic session, if its feed brings a visible org: calendars have no org of their own in OneRoster.

A vendor without rows in these tables sees nothing. Every statement has these conditions, whatever its filter and sort.

The second layer is row-level security, written independently (roster_service/db/sql/policies): it compares the key that
the admission of a request has set for the transaction, not `vendor_id`, and it asks the orgs and never a label.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY

from roster_service.db import tables
from roster_service.db.tables import CText, Stamp
from roster_service.roster.references import PERSONS
from roster_service.roster.vocabulary import GUARDIAN_ROLES
from roster_service.roster.withheld import WithheldField

Value = TypeVar("Value")


class MetadataOf(Enum):
    """The kinds of record whose `metadata` a scope opens. No other record shows its `metadata`."""

    ORGS = "orgs"
    STUDENTS = "students"
    GUARDIANS = "guardians"
    DEMOGRAPHICS = "demographics"


class Viewer(Enum):
    """Whose visible orgs, labels and feeds count: of the vendor that a statement binds as `vendor_id`, as in every
    request; of the same, one with `has_rules`, whose groups and kept people count too; of each vendor, a row of
    `vendors` in an enclosing query; or all that there are, for an operator."""

    ONE_VENDOR = "one vendor"
    RULED_VENDOR = "one vendor with rules"
    EVERY_VENDOR = "every vendor"
    ALL_ORGS = "all orgs"


@dataclass(frozen=True)
class ContentRights:
    """The content rights of a caller: the part of its rights that changes the text of a statement. `viewer`: for whom
    the statement asks visibility; `guardians`: whether the caller sees guardians; `metadata`: the kinds whose metadata
    it sees, and `metadata_keys`: with these keys alone, None for all; `withheld`: the fields that it does not see;
    `joined`: whether the statement has joined the rows that several fields of a record are made of (`Record.joined`),
    so that no expression needs to read them."""

    viewer: Viewer
    guardians: bool
    metadata: frozenset[MetadataOf]
    metadata_keys: frozenset[str] | None
    withheld: frozenset[WithheldField]
    joined: bool = False

    @property
    def shown(self) -> tuple[tuple[str, object], ...]:
        """Each right, by its name, with the same text in every process: for keys, which a new right must not be missing
        from. The viewer and `joined` are none: they are about the statement."""
        rights = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        del rights["viewer"], rights["joined"]
        return tuple(
            (name, sorted(str(getattr(one, "value", one)) for one in right) if isinstance(right, frozenset) else right)
            for name, right in rights.items()
        )

    @property
    def of_rows(self) -> ContentRights:
        """The same rights without those that change only what of a record is seen: conditions of what records are seen
        need no others."""
        return dataclasses.replace(self, metadata=frozenset(), metadata_keys=None, withheld=frozenset())

    @property
    def of_texts(self) -> ContentRights:
        """The same rights, for a statement that has joined these rows."""
        return dataclasses.replace(self, joined=True)


def has_row(row: sa.FromClause, *conditions: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """Returns the condition that a row exists for which the conditions hold. `row`: a new alias of a table.

    All other tables in the conditions belong to an enclosing query, at any depth. Without `correlate_except`,
    SQLAlchemy would correlate with the next enclosing query only, and join the table once more, with all its rows.
    """
    return sa.exists(sa.select(sa.literal_column("1")).select_from(row).where(*conditions).correlate_except(row))


def has_label(row: sa.FromClause, condition: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """Returns the condition that the label of a record fulfils a condition. `row`: a labelled table or an alias of it;
    `condition`: of the columns of `visibility_labels`. Thousands of records have the same label."""
    labels = sa.select(tables.visibility_labels.c.id).where(condition).scalar_subquery()
    # As an array: a join would look the records of each label up.
    return row.c.label_id == sa.any_(sa.func.array(labels, type_=ARRAY(sa.Integer)))


def per_row(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """Returns the same condition in a form that PostgreSQL evaluates for each row that the other conditions leave.

    PostgreSQL plans a bare EXISTS as a join, and may begin with all visible rows to find those of one class. It cannot
    look into a CASE, so the other conditions determine the plan.
    """
    return sa.case((condition, 1), else_=0) != 0


VENDOR: sa.BindParameter[int] = sa.bindparam("vendor_id", type_=sa.Integer)
_VENDORS: Mapping[Viewer, sa.ColumnElement[int]] = {
    Viewer.ONE_VENDOR: VENDOR,
    Viewer.RULED_VENDOR: VENDOR,
    Viewer.EVERY_VENDOR: tables.vendors.c.id,
}
# The viewers of whom a group may open records, and from whom people may be kept; the statements of all others ask for
# neither.
_WITH_GROUPS = frozenset({Viewer.RULED_VENDOR, Viewer.EVERY_VENDOR})


def _is_seen(viewer: Viewer, seen: sa.FromClause, *conditions: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """Returns the condition that one of the viewer's rows of `seen`, an alias, fulfils the conditions."""
    if viewer is Viewer.ALL_ORGS:
        return sa.true()
    return has_row(seen, seen.c.vendor_id == _VENDORS[viewer], *conditions)


def _select_memberships(
    value: sa.ColumnElement[Any], table: sa.Table, sourced_id: sa.ColumnElement[str], viewer: Viewer
) -> tuple[sa.FromClause, sa.Select[Any]]:
    """Returns an alias of group_members, and the SELECT of `value` for the memberships of a record in the groups of the
    viewer. `value`: of the table group_members, or a constant."""
    member, seen = tables.group_members.alias(), tables.visible_groups.alias()
    shown = member.c[value.name] if isinstance(value, sa.Column) else value
    kind = (tables.users if table is tables.demographics else table).name
    rows = (
        sa.select(shown)
        .select_from(member.join(seen, seen.c.group_id == member.c.group_id))
        .where(seen.c.vendor_id == _VENDORS[viewer], member.c.type == kind, member.c.sourced_id == sourced_id)
    )
    return member, rows.correlate_except(member, seen)


def is_in_group(
    table: sa.Table,
    sourced_id: sa.ColumnElement[str],
    rights: ContentRights,
    condition: Callable[[Any], sa.ColumnElement[bool]] = lambda _member: sa.true(),
) -> sa.ColumnElement[bool]:
    """Returns the condition that a group of the viewer has the record with this id; False for a viewer without groups.
    `condition`: of the columns `org_id` and `role` of the membership."""
    if rights.viewer not in _WITH_GROUPS:
        return sa.false()
    member, rows = _select_memberships(sa.literal_column("1"), table, sourced_id, rights.viewer)
    return sa.exists(rows.where(_shows_role(member.c.role, rights), condition(member.c)))


def _shows_role(role: sa.ColumnElement[str], rights: ContentRights) -> sa.ColumnElement[bool]:
    return sa.true() if rights.guardians else role.not_in(GUARDIAN_ROLES)


def make_stamp(table: sa.Table, row: sa.FromClause, rights: ContentRights) -> sa.ColumnElement[Any]:
    """Returns the stamp of a record as the viewer sees it: where groups of the viewer have it, no earlier than it came
    into them; no earlier than it came back to the viewer, or than an agent whom it names was kept or came back."""
    stamp: sa.ColumnElement[Any] = row.c.date_last_modified
    if rights.viewer is not Viewer.RULED_VENDOR or table not in GROUPED:
        return stamp
    member, rows = _select_memberships(tables.group_members.c.since, table, row.c.sourced_id, rights.viewer)
    latest = [rows.with_only_columns(sa.func.max(member.c.since)).where(_shows_role(member.c.role, rights))]
    if table in PERSONS:
        kept, person_id = tables.kept_people.alias(), row.c[PERSONS[table].name]
        changed = kept.c.user_id == person_id
        if table is tables.users:
            changed |= person_id == sa.any_(kept.c.named_by)
        moved = sa.select(sa.func.max(sa.func.greatest(kept.c.since, kept.c.until)))
        latest.append(moved.where(kept.c.vendor_id == VENDOR, changed).correlate_except(kept))
    # GREATEST passes over NULL.
    return sa.func.greatest(stamp, *(found.scalar_subquery() for found in latest), type_=Stamp)


def select_whole_districts() -> sa.Select[str]:
    """Returns a query for the ids of the districts that are granted to the bound vendor with all their orgs."""
    visible = tables.visible_orgs.alias()
    return sa.select(visible.c.org_id).where(visible.c.vendor_id == VENDOR, visible.c.whole_district)


def read_admission() -> sa.ColumnElement[str]:
    """Returns an expression for the key with which the transaction has admitted its caller. NULL if it has admitted
    none."""
    return sa.func.nullif(sa.func.current_setting("roster.visibility_key", True), "", type_=CText)


def find_visible_set(seen: Any) -> sa.ColumnElement[str]:
    """Returns an expression for which records the admitted caller sees of a feed: its visible orgs, whether it sees
    guardians, and its floor, where that hides departures. `seen`: the columns of a row of `visible_feeds`."""
    hides = _find_floor(seen) >= seen.first_departure
    return sa.type_coerce(_name_orgs(seen) + sa.case((hides, _name_floor(seen)), else_=""), CText)


def name_view(seen: Any) -> sa.ColumnElement[str]:
    """Returns an expression for what the admitted caller may see, as a pull keeps it: the same, with the floor in any
    case. A change of its rights makes another one, and no sync or purge does that leaves the orgs as they are. `seen`:
    of the row of WHOLE."""
    return sa.type_coerce(_name_orgs(seen) + _name_floor(seen), CText)


def _name_orgs(seen: Any) -> sa.ColumnElement[str]:
    guardians = sa.func.current_setting("roster.guardians", True) == "true"
    named: sa.ColumnElement[str] = seen.visible_set + sa.case((guardians, " with guardians"), else_="")
    return named


def _name_floor(seen: Any) -> sa.ColumnElement[str]:
    # Not as an instant, whose text depends on the session.
    epoch = sa.cast(sa.func.extract("epoch", _find_floor(seen)), CText)
    return sa.literal_column("' since '", CText) + epoch


def _find_floor(seen: Any) -> sa.ColumnElement[Any]:
    # GREATEST passes over NULL.
    return sa.func.greatest(seen.floor, read_client_instant("floor"), type_=Stamp)


def read_client_instant(name: str) -> sa.ColumnElement[Any]:
    """Returns an expression for an instant of the admitted client: its `floor`, or its part in `as_of`. NULL where a
    vendor is admitted without a client."""
    return sa.cast(sa.func.nullif(sa.func.current_setting(f"roster.{name}", True), ""), Stamp)


# What `admit_client` sets where all slots of the vendor are taken, and where the vendor has no grant.
NO_SLOT = "no slot"
NO_GRANT = "no grant"


def read_refusal() -> sa.ColumnElement[str]:
    """Returns an expression for the reason for which the transaction has not admitted its caller: `NO_SLOT`,
    `NO_GRANT`, or words for `find_not_agreed`; NULL for no reason, or that its rights have ended."""
    return sa.func.nullif(sa.func.current_setting("roster.refusal", True), "", type_=CText)


def org_id_is_visible(org_id: sa.ColumnElement[str], viewer: Viewer) -> sa.ColumnElement[bool]:
    """Returns the condition that the org with this id is visible: granted, or the district above a granted school."""
    visible = tables.visible_orgs.alias()
    return _is_seen(viewer, visible, visible.c.org_id == org_id)


def org_id_is_granted(org_id: sa.ColumnElement[str], viewer: Viewer) -> sa.ColumnElement[bool]:
    """Returns the condition that the people, classes and enrollments of the org with this id are visible.

    It is an EXISTS, for which PostgreSQL looks up the org of each row if there are few rows, and hashes all granted
    orgs if there are many.
    """
    visible = tables.visible_orgs.alias()
    return _is_seen(viewer, visible, visible.c.org_id == org_id, visible.c.granted)


def org_id_is_shared(org_id: sa.ColumnElement[str], viewer: Viewer) -> sa.ColumnElement[bool]:
    """Returns the condition that the org with this id is granted, with rules or without."""
    visible = tables.visible_orgs.alias()
    return _is_seen(viewer, visible, visible.c.org_id == org_id, visible.c.shared)


def is_kept(person_id: sa.ColumnElement[str], viewer: Viewer) -> sa.ColumnElement[bool]:
    """Returns the condition that the person with this id is kept from the viewer."""
    kept = tables.kept_people.alias()
    return has_row(kept, kept.c.vendor_id == _VENDORS[viewer], kept.c.user_id == person_id, kept.c.until.is_(None))


def departure_is_visible(departure: sa.FromClause) -> sa.ColumnElement[bool]:
    """Returns the condition that a departure is for the vendor alone; or for all, and its person was not kept from the
    vendor at the time."""
    kept = tables.kept_people.alias()
    was_kept = has_row(
        kept,
        kept.c.vendor_id == VENDOR,
        kept.c.user_id == departure.c.person_id,
        kept.c.since < departure.c.departed_at,
        sa.or_(kept.c.until.is_(None), departure.c.departed_at <= kept.c.until),
    )
    return (departure.c.vendor_id == VENDOR) | ((departure.c.vendor_id == 0) & ~was_kept)


def role_is_visible(role: sa.FromClause, rights: ContentRights) -> sa.ColumnElement[bool]:
    """Returns the condition that a row of user_roles is visible."""
    # A user has few roles. For a join, PostgreSQL would hash the visible orgs anew for each user of a page.
    granted = per_row(org_id_is_granted(role.c.org_id, rights.viewer))
    if rights.viewer in _WITH_GROUPS:
        held = is_in_group(
            tables.users, role.c.user_id, rights, lambda m: (m.org_id == role.c.org_id) & (m.role == role.c.role)
        )
        granted = (granted | per_row(held)) & ~per_row(is_kept(role.c.user_id, rights.viewer))
    return granted if rights.guardians else granted & role.c.role.not_in(GUARDIAN_ROLES)


def user_is_visible(user_id: sa.ColumnElement[str], rights: ContentRights, *roles: str) -> sa.ColumnElement[bool]:
    """Returns the condition that the user with this id is visible; with `roles`, that one of these roles makes it
    visible. It is for parts of records, which the policy of the roles guards; of a row of users, the label tells."""
    role = tables.user_roles.alias()
    conditions = [role.c.user_id == user_id, role_is_visible(role, rights)]
    if roles:
        conditions.append(role.c.role.in_(roles))
    return has_row(role, *conditions)


class Opened(Enum):
    """What a label opens of a user: a role that makes the user visible."""

    STUDENT = "student"
    TEACHER = "teacher"


def label_is_open(
    label_id: sa.ColumnElement[int], rights: ContentRights, opened: Opened | None = None
) -> sa.ColumnElement[bool]:
    """Returns the condition that the label with this number opens its records; with `opened`, that it opens users with
    this role. Raises ValueError if only some labels are open to a viewer of all orgs: no rows tell which."""
    seen = tables.visible_labels.alias()
    conditions = tuple(_is_open(seen, rights, opened))
    if conditions and rights.viewer is Viewer.ALL_ORGS:
        raise ValueError("a viewer of all orgs sees guardians, and asks for no role")
    return _is_seen(rights.viewer, seen, seen.c.label_id == label_id, *conditions)


def record_is_open(row: sa.FromClause, rights: ContentRights, opened: Opened | None = None) -> sa.ColumnElement[bool]:
    """Returns the condition that the label or a group of `row` opens the record: the table of a record or an alias of
    it; or the departures, for what has left. `opened`: as for `label_is_open`."""
    by_label = label_is_open(row.c.label_id, rights, opened)
    return join_groups(row, by_label, rights, lambda it: sa.true() if opened is None else it.role == opened.value)


def join_groups(
    row: sa.FromClause,
    by_label: sa.ColumnElement[bool],
    rights: ContentRights,
    condition: Callable[[Any], sa.ColumnElement[bool]],
) -> sa.ColumnElement[bool]:
    """Returns the condition that a row is opened by its label or by a group of the viewer, and not kept from it. `row`:
    as for `record_is_open`; `by_label`: of a viewer without groups; `condition`: of the columns `org_id` and `role` of
    a membership."""
    if rights.viewer not in _WITH_GROUPS:
        return by_label
    if row is tables.departures:
        by_group = group_is_visible(row.c.group_id, rights) & _shows_role(row.c.role, rights) & condition(row.c)
        return (by_label | by_group) & departure_is_visible(row)
    table = tables.metadata.tables[str(row.element if isinstance(row, sa.Alias) else row)]
    opened = by_label | is_in_group(table, row.c.sourced_id, rights, condition)
    return opened & ~is_kept(row.c[PERSONS[table].name], rights.viewer) if table in PERSONS else opened


def group_is_visible(group_id: sa.ColumnElement[int], rights: ContentRights) -> sa.ColumnElement[bool]:
    """Returns the condition that a group is one of the viewer, who has groups."""
    seen = tables.visible_groups.alias()
    return has_row(seen, seen.c.vendor_id == _VENDORS[rights.viewer], seen.c.group_id == group_id)


def _is_open(seen: sa.FromClause, rights: ContentRights, opened: Opened | None) -> Iterator[sa.ColumnElement[bool]]:
    if not rights.guardians:
        yield seen.c.without_guardians
    if opened is not None:
        yield seen.c[f"opens_{opened.value}s"]


def _session_is_visible(session: sa.FromClause, rights: ContentRights) -> sa.ColumnElement[bool]:
    if rights.viewer is Viewer.ALL_ORGS:
        return sa.true()
    # An array, which PostgreSQL makes once a statement: a class shows several sessions.
    seen = tables.visible_feeds.alias()
    feeds = sa.select(seen.c.feed_id).where(seen.c.vendor_id == _VENDORS[rights.viewer]).correlate_except(seen)
    return session.c.feed_id == sa.any_(sa.func.array(feeds.scalar_subquery(), type_=ARRAY(sa.Integer)))


def session_id_is_visible(session_id: sa.ColumnElement[str], rights: ContentRights) -> sa.ColumnElement[bool]:
    """Returns the condition that the academic session with this id is visible."""
    session = tables.academic_sessions.alias()
    return session_id.in_(
        sa.select(session.c.sourced_id).where(row_is_visible(tables.academic_sessions, session, rights))
    )


# The tables whose rows are visible by their label.
_BY_LABEL = frozenset({tables.courses, tables.users, tables.demographics, tables.enrollments})
# The tables whose records a group may open.
GROUPED = frozenset({tables.classes, *_BY_LABEL})
_VISIBLE: Mapping[sa.Table, Callable[[sa.FromClause, ContentRights], sa.ColumnElement[bool]]] = {
    tables.orgs: lambda org, rights: org_id_is_visible(org.c.sourced_id, rights.viewer),
    tables.academic_sessions: _session_is_visible,
    tables.classes: lambda taught, rights: org_id_is_granted(taught.c.school_id, rights.viewer),
    **dict.fromkeys(_BY_LABEL, lambda row, rights: label_is_open(row.c.label_id, rights)),
}


def row_is_visible(table: sa.Table, row: sa.FromClause, rights: ContentRights) -> sa.ColumnElement[bool]:
    """Returns the condition that `row`, the table or an alias of it, is visible. Raises KeyError for a table without a
    rule."""
    visible = _VISIBLE[table](row, rights)
    return join_groups(row, visible, rights, lambda _member: sa.true()) if table in GROUPED else visible


def find_visible_rows(table: sa.Table, rights: ContentRights) -> sa.ColumnElement[bool]:
    """Returns the same condition on a table in the form with which PostgreSQL begins: it reads the rows of each open
    label by the index. (Of a join with the labels, it expects too many rows, and reads the whole table.)"""
    if table not in _BY_LABEL or rights.viewer is not Viewer.ONE_VENDOR:
        return row_is_visible(table, table, rights)
    seen = tables.visible_labels.alias()
    numbers = sa.select(seen.c.label_id).where(seen.c.vendor_id == VENDOR, *_is_open(seen, rights, None))
    return table.c.label_id == sa.any_(sa.func.array(numbers.scalar_subquery(), type_=ARRAY(sa.Integer)))


def departure_is_shown(departure: sa.FromClause) -> sa.ColumnElement[bool]:
    """Returns the condition that a departure is later than the floors of the vendor and of the client, of a feed that
    the vendor sees. An earlier departure would name a record that the caller never saw."""
    seen = tables.visible_feeds.alias()
    own = read_client_instant("floor")
    return has_row(
        seen,
        seen.c.vendor_id == VENDOR,
        seen.c.feed_id == departure.c.feed_id,
        seen.c.floor < departure.c.departed_at,
        sa.or_(own.is_(None), own < departure.c.departed_at),
    )


# The name under which a statement joins the roles of a user that the caller sees, in one row.
SEEN_ROLES = "seen_roles"
# The roles of the users whose metadata is of a kind.
_OF_ROLES: Mapping[MetadataOf, tuple[str, ...]] = {
    MetadataOf.STUDENTS: ("student",),
    MetadataOf.GUARDIANS: GUARDIAN_ROLES,
}


def read_joined(name: str, column: str, kind: type[sa.types.TypeEngine[Value]]) -> sa.ColumnElement[Value]:
    """Returns a column, of this type, of what a statement has joined under a name."""
    return sa.literal_column(f"{name}.{column}", kind)


def select_seen_roles(rights: ContentRights, more: Mapping[str, sa.ColumnElement[Any]]) -> sa.Select[Any]:
    """Returns the SELECT of one row for a row of users: the `number` of the user's roles that the caller sees, whether
    some show metadata of a kind, and `more`, aggregates of these roles by name."""
    role = tables.user_roles
    kinds = (
        sa.func.coalesce(sa.func.bool_or(role.c.role.in_(roles)), sa.false()).label(f"of_{kind.value}")
        for kind, roles in _OF_ROLES.items()
    )
    columns = (sa.func.count().label("number"), *kinds, *(column.label(name) for name, column in more.items()))
    return sa.select(*columns).where(role.c.user_id == tables.users.c.sourced_id, role_is_visible(role, rights))


def user_metadata_is_visible(rights: ContentRights) -> sa.ColumnElement[bool] | None:
    """Returns the condition that the metadata of a row of users is visible; None if the caller sees no user's
    metadata."""
    kinds = [kind for kind in _OF_ROLES if kind in rights.metadata]
    if not kinds:
        return None
    if rights.joined:
        return sa.or_(*(read_joined(SEEN_ROLES, f"of_{kind.value}", sa.Boolean) for kind in kinds))
    return user_is_visible(tables.users.c.sourced_id, rights, *(role for kind in kinds for role in _OF_ROLES[kind]))
