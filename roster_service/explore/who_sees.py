"""Who sees a record, a person or another one, and why not. `access.py` has the schools and roles by which vendors see.

The query filter (roster/visibility.py) decides; a test compares the answers with those of the interfaces. No answer has
the contents of a record, so the access log and the change log have no row of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from roster_service.accounts.clients import list_clients
from roster_service.accounts.parts import PARTS, list_received
from roster_service.accounts.vendors import Vendor, find_vendor_by_id, list_vendors
from roster_service.accounts.ways import VENDOR_INTERFACE, Way, WayKind, explain_closed, list_ways
from roster_service.auth.scopes import ScopeName
from roster_service.change_log.actors import normalize_email
from roster_service.db.tables import (
    CTexts,
    academic_sessions,
    api_keys,
    classes,
    courses,
    demographics,
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
from roster_service.roster.person_parts import PersonPart
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
from roster_service.roster.withheld import WithheldField
from roster_service.rostering.endpoints import ENDPOINTS, Cardinality, Endpoint, Scopes
from roster_service.schemas.file_presets import PRESETS
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.sharing_rules import name_rules
from roster_service.schemas.v1p1 import select_single_role
from roster_service.schemas.versions import DEMOGRAPHICS, USERS, VERSIONS
from roster_service.serving.path_filters import everything

# The records that the vendor interface shows inside of students, and the permission flag that it takes.
_INSIDE_OF_STUDENTS: Mapping[sa.Table, PermissionFlag | None] = {
    orgs: None,
    demographics: PermissionFlag.DEMOGRAPHICS,
    **dict.fromkeys((enrollments, classes, courses, academic_sessions), PermissionFlag.ENROLLMENTS),
}
# The orgs on which it depends whether a vendor sees a record.
_ORG_OF: Mapping[sa.Table, sa.Column[str]] = {
    orgs: orgs.c.sourced_id,
    classes: classes.c.school_id,
    enrollments: enrollments.c.school_id,
}
KEPT = "the person is kept from this vendor"
_REFUSED = "the rules of its grants do not open it: only {}"
# What the record of a student has of those whom it names.
_OF_GUARDIANS = frozenset({"names", "email", "phone", "guardians"})
_OF_TEACHERS = frozenset({"names", "email", "classes"})
# The parts that show other records, which the vendor sees or not.
FOLLOWING = frozenset({"guardians", "classes"})
# The words of `list_following`.
_FOLLOWING_WORDS = ("guardians", "classes", "agents", "in_narrow_files")
# The roles of people in files that leave out some.
_IN_NARROW_FILES = frozenset(role for preset in PRESETS.values() for role in preset.only.get(("users", "role"), ()))
# Orgs that a reason names.
_NAMED = 5
# The rights of every vendor, with guardians and without.
OF_EVERY_VENDOR = {
    guardians: ContentRights(
        viewer=Viewer.EVERY_VENDOR, guardians=guardians, metadata=frozenset(), withheld=frozenset()
    )
    for guardians in (True, False)
}
_IS_VALID = sa.or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > sa.func.now())
VALID_KEYS = (
    sa.select(sa.func.count()).where(sa.and_(api_keys.c.vendor_id == vendors.c.id, _IS_VALID)).scalar_subquery()
).label("keys")


@dataclass(frozen=True)
class Verdict:
    """Whether a vendor sees a record. `kind`: of the record; `by`: the words of the way, or the name of a client
    without one; `reason`: in words, why it is shown or hidden; `only`: the rules of the grants that open its orgs, in
    words, blank for none; `parts`: of the person that it can show, as names of `PARTS`, None for all."""

    vendor: str
    kind: str
    by: str
    shown: bool
    reason: str
    only: str = ""
    parts: frozenset[str] | None = None

    def shows(self, part: str) -> bool:
        """Returns whether it can show a part of the person, a name of `PARTS`."""
        return self.parts is None or part in self.parts


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
class _Place:
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


def list_verdicts(connection: sa.Connection, sourced_id: str) -> list[Verdict]:
    """Returns for every vendor, by e-mail, whether each way that is open to it has the records with this id, and of a
    client without one, why. Raises CommandError if the roster has no such record."""
    clients = defaultdict(list)
    for client in list_clients(connection):
        clients[client.vendor].append(client)
    known = {item.email: item for item in list_vendors(connection)}
    open_ways = list_ways(connection)
    found: list[Verdict] = []
    for table, endpoint in find_endpoints(connection, sourced_id):
        places = _read_places(connection, table, sourced_id)
        words = _find_words(connection, table, sourced_id)
        kind = endpoint.resource.singular
        # The vendor interface has nothing inside of a student that is marked as deleted.
        ended = find_ended_parts(connection, sourced_id) if table is users else frozenset[PersonPart]()
        for vendor in connection.execute(_select_vendors(table, sourced_id, places)):
            granted = [place for place in places if place.org_id in vendor.granted]
            opened = _find_opened(table, granted, vendor)
            rules = _name_rules(known[vendor.email], granted)
            of_vendor = []
            for way in open_ways.get(vendor.email, ()):
                if way.kind is WayKind.API_KEY and table is users:
                    shown, reason, named = _judge_student(vendor, known[vendor.email], opened, rules)
                    parts = named - ended
                elif way.kind is WayKind.API_KEY:
                    shown, reason = _judge_inside(vendor, known[vendor.email], table, rules)
                    # The verdict on the person has the parts.
                    parts = frozenset()
                else:
                    shown, reason = _judge(vendor, way, endpoint, table, places, granted, opened, rules)
                    left_out = _explain_left_out(way, endpoint, vendor, words)
                    shown, reason = (False, left_out) if shown and left_out else (shown, reason)
                    parts = None
                of_vendor.append(Verdict(vendor.email, kind, way.words, shown, reason, rules, parts))
            having = {way.client.client_id for way in open_ways.get(vendor.email, ()) if way.client is not None}
            of_vendor += [
                Verdict(
                    *(vendor.email, kind, client.name, False),
                    explain_closed(client, known[vendor.email]),
                    rules,
                )
                for client in clients[vendor.email]
                if client.client_id not in having
            ]
            closed = known[vendor.email].closed
            if table is users and vendor.keys and closed is not None:
                of_vendor.append(Verdict(vendor.email, kind, VENDOR_INTERFACE, False, closed, rules))
            found += of_vendor or [Verdict(vendor.email, kind, "–", False, "it has no client")]
    return sorted(found, key=lambda it: (it.vendor, it.kind, it.by))


def select_guardians(sourced_id: str) -> sa.Select[str]:
    """Selects the ids of a person's guardians: the agents who have a role of guardians."""
    roles = user_roles.alias()
    found = sa.select(user_agents.c.agent_id).join(roles, roles.c.user_id == user_agents.c.agent_id)
    return found.where(user_agents.c.user_id == sourced_id, roles.c.role.in_(GUARDIAN_ROLES))


def list_following(connection: sa.Connection, sourced_id: str) -> Mapping[str, frozenset[str]]:
    """Returns for every vendor, by e-mail, whether it sees one of the `guardians` and one of the `classes` of a
    person, records of their own, with schools of their own; one of the `agents`, also without the scope of
    guardians, and one of those who are `in_narrow_files`, which have only some roles. Of a guardian, those whom the
    record names and who name it stand for the guardians: without one, nobody learns whose guardian it is."""

    def ask(
        table: sa.Table, condition: sa.ColumnElement[bool], name: str, *, guardians: bool = True
    ) -> sa.ColumnElement[bool]:
        is_visible = row_is_visible(table, table, OF_EVERY_VENDOR[guardians])
        return sa.select(table.c.sourced_id).where(condition, is_visible).correlate(vendors).exists().label(name)

    is_guardian = sa.exists().where(user_roles.c.user_id == sourced_id, user_roles.c.role.in_(GUARDIAN_ROLES))
    own = sa.select(user_agents.c.agent_id).where(user_agents.c.user_id == sourced_id, is_guardian)
    naming = sa.select(user_agents.c.user_id).where(user_agents.c.agent_id == sourced_id, is_guardian)
    agents = sa.select(user_agents.c.agent_id).where(user_agents.c.user_id == sourced_id)
    narrow = select_single_role(OF_EVERY_VENDOR[False]).in_(_IN_NARROW_FILES)
    asked = sa.select(
        vendors.c.email,
        ask(users, users.c.sourced_id.in_(sa.union(select_guardians(sourced_id), own, naming)), "guardians"),
        ask(enrollments, enrollments.c.user_id == sourced_id, "classes"),
        ask(users, users.c.sourced_id.in_(agents), "agents", guardians=False),
        ask(users, sa.and_(users.c.sourced_id.in_(agents), narrow), "in_narrow_files", guardians=False),
    )
    return {
        row.email: frozenset(name for name in _FOLLOWING_WORDS if getattr(row, name))
        for row in connection.execute(asked)
    }


def explain_unseen(connection: sa.Connection, email: str, sourced_id: str, part: str | None) -> str:
    """Returns why a vendor does not see the record with this id, or a part of it, in words: the reasons of its clients.
    `part`: a name of `PARTS`. Raises CommandError if the roster has no such record."""
    verdicts = [
        verdict for verdict in list_verdicts(connection, sourced_id) if verdict.vendor == normalize_email(email)
    ]
    # Demographics follow their person.
    own = [verdict for verdict in verdicts if not verdict.shown and verdict.kind != DEMOGRAPHICS.singular]
    own = [verdict for verdict in own if verdict.by != VENDOR_INTERFACE] or own
    if part is not None and part not in list_received(connection).get(normalize_email(email), {}):
        return f"it does not get {PARTS[part].words}"
    if part is not None and not own:
        return f"it sees the record without {PARTS[part].words}"
    return "; ".join(dict.fromkeys(verdict.reason for verdict in own))


def _judge(
    vendor: sa.Row[Any],
    way: Way,
    endpoint: Endpoint,
    table: sa.Table,
    places: Sequence[_Place],
    granted: Sequence[_Place],
    opened: Sequence[_Place],
    rules: str,
) -> tuple[bool, str]:
    """Whether the scopes of a way open a record, and why."""
    reasons = []
    for names in way.list_names().values() or [frozenset[ScopeName]()]:
        guardians = ScopeName.GUARDIANS in names
        if not names.intersection(endpoint.access.value):
            reasons.append(f"the client lacks {' and '.join(endpoint.access.value)}")
        elif vendor.with_guardians if guardians else vendor.without:
            return True, _name([place for place in opened if guardians or place.role not in GUARDIAN_ROLES], rules)
        else:
            # What is open with the scope is not kept by the rules.
            narrowing = "" if vendor.with_guardians else rules
            reasons.append(_explain_hidden(table, places, granted, vendor, narrowing, guardians=guardians))
    # That it lacks a scope says least.
    return False, next((reason for reason in reasons if not reason.startswith("the client lacks")), reasons[0])


def _judge_student(
    vendor: sa.Row[Any], known: Vendor, opened: Sequence[_Place], rules: str
) -> tuple[bool, str, frozenset[str]]:
    """Whether the vendor interface shows a person, why, and which parts: of a student all, of those whom the record of
    a student names some."""
    if vendor.student:
        return True, _name([place for place in opened if place.role not in GUARDIAN_ROLES], rules), frozenset(PARTS)
    named = dict[str, frozenset[str]]()
    if (
        vendor.as_guardian
        and PermissionFlag.CONTACTS in known.open_flags
        and WithheldField.AGENTS not in known.withheld
    ):
        named["a guardian"] = _OF_GUARDIANS
    if vendor.as_teacher and PermissionFlag.ENROLLMENTS in known.open_flags:
        named["a teacher"] = _OF_TEACHERS
    if named:
        words = f"it is named as {' and '.join(named)} of a student whom the vendor sees"
        return True, words, frozenset[str]().union(*named.values())
    return False, KEPT if vendor.kept else _explain_no_student(vendor, known, rules), frozenset()


def _judge_inside(vendor: sa.Row[Any], known: Vendor, table: sa.Table, rules: str) -> tuple[bool, str]:
    """Whether the vendor interface shows a record that is no person inside of students, and why."""
    flag = _INSIDE_OF_STUDENTS[table]
    if not vendor.without:
        return False, KEPT if vendor.kept else _REFUSED.format(rules) if rules else "no grant of the vendor opens it"
    if flag is not None and flag not in known.open_flags:
        return False, known.explain_flag(flag)
    if table is demographics and not vendor.student:
        return False, _explain_no_student(vendor, known, rules)
    return True, "the students whom the vendor sees are answered with it, as far as they have it"


def _explain_no_student(vendor: sa.Row[Any], known: Vendor, rules: str) -> str:
    """Why the vendor interface shows nothing of a person who is not kept from the vendor."""
    if not known.grants:
        return "the vendor has no grant"
    if vendor.as_guardian and WithheldField.AGENTS in known.withheld:
        return "it is named as a guardian alone, and who that is (`agents`) is withheld from the vendor"
    lacking = [(vendor.as_guardian, "a guardian", PermissionFlag.CONTACTS)]
    lacking += [(vendor.as_teacher, "a teacher", PermissionFlag.ENROLLMENTS)]
    for is_named, role, flag in lacking:
        if is_named:
            return f"it would be named as {role} of a student, and {known.explain_flag(flag)}"
    return _REFUSED.format(rules) if rules else "no grant opens a school where it is a student"


def _explain_left_out(
    way: Way, endpoint: Endpoint, vendor: sa.Row[Any], words: Mapping[str, frozenset[str]]
) -> str | None:
    """Why a file has no row of a record that its client sees; None if it may have one. `words`: of the record, by
    header."""
    preset, file = way.preset, endpoint.resource.plural
    if preset is None:
        return None
    [names] = way.list_names().values()
    if "active" not in words["status"]:
        return "its files have active records alone"
    if (preset.files is not None and file not in preset.files) or not names.intersection(Scopes.CORE.value):
        return f"its files have no {file}"
    role = vendor.role_with_guardians if ScopeName.GUARDIANS in names else vendor.role_without
    for (of, header), taken in preset.only.items():
        own = {role} if header == "role" and of == USERS.plural else words.get(header, ())
        if of == file and taken.isdisjoint(own):
            return f"the receiver takes no such {header}: only {' and '.join(sorted(taken))}"
    return None


def explain_left_out(
    connection: sa.Connection, way: Way, endpoint: Endpoint, table: sa.Table, sourced_id: str, vendor_id: int
) -> str | None:
    """Returns why the files of a delivery have no row of a record that its client sees; None if they may have one."""
    places = _read_places(connection, table, sourced_id)
    [vendor] = connection.execute(_select_vendors(table, sourced_id, places).where(vendors.c.id == vendor_id))
    return _explain_left_out(way, endpoint, vendor, _find_words(connection, table, sourced_id))


def _find_words(connection: sa.Connection, table: sa.Table, sourced_id: str) -> Mapping[str, frozenset[str]]:
    """The words of a record that say whether a file has it, by header."""
    columns = [table.c[name] for name in ("status", "type", "role") if name in table.c]
    row = connection.execute(sa.select(*columns).where(table.c.sourced_id == sourced_id)).mappings().one()
    return {name: frozenset({str(word)}) for name, word in row.items()}


def explain_hidden(
    connection: sa.Connection, table: sa.Table, sourced_id: str, vendor_id: int, *, guardians: bool
) -> str:
    """Returns why a client of a vendor does not see a record that the roster has. `guardians`: whether it sees
    guardians."""
    places = _read_places(connection, table, sourced_id)
    [vendor] = connection.execute(_select_vendors(table, sourced_id, places).where(vendors.c.id == vendor_id))
    granted = [place for place in places if place.org_id in vendor.granted]
    rules = "" if vendor.with_guardians else _name_rules(find_vendor_by_id(connection, vendor_id), granted)
    return _explain_hidden(table, places, granted, vendor, rules, guardians=guardians)


def _find_opened(table: sa.Table, granted: Sequence[_Place], vendor: sa.Row[Any]) -> Sequence[_Place]:
    """The places of these by which the vendor sees the record: the rules of a grant may leave out a role of a
    person."""
    return [place for place in granted if table not in OF_PEOPLE or place.key in vendor.opened]


def _name_rules(vendor: Vendor, granted: Sequence[_Place]) -> str:
    """The rules that narrow all of these places, in words; blank if a grant opens one of them as a whole."""
    found = [vendor.list_rules(place.org_id, place.district_id) for place in granted]
    return name_rules(rules for of_place in found for rules in of_place) if all(found) else ""


def _explain_hidden(
    table: sa.Table,
    places: Sequence[_Place],
    granted: Sequence[_Place],
    vendor: sa.Row[Any],
    rules: str,
    *,
    guardians: bool,
) -> str:
    if vendor.kept:
        return KEPT
    if rules:
        return _REFUSED.format(rules)
    if table not in OF_PEOPLE:
        return "no grant of the vendor opens it"
    if not places:
        return "the person has no role at any org"
    if any(guardians or place.role not in GUARDIAN_ROLES for place in granted):
        return "the path does not have it"
    if granted:
        return "the person is a guardian, and the client lacks guardians.readonly"
    named = sorted({f"{place.role} at {place.name}" for place in places})
    return f"the vendor has no grant where the person is: {', '.join(named)}"


def _name(granted: Sequence[_Place], rules: str) -> str:
    if not granted:
        return "a grant opens a record that leads to it"
    named = list(
        dict.fromkeys(place.name if place.role is None else f"{place.role} at {place.name}" for place in granted)
    )
    more = f", and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return f"a grant opens {', '.join(named[:_NAMED])}{more}{f', only {rules}' if rules else ''}"


def _read_places(connection: sa.Connection, table: sa.Table, sourced_id: str) -> list[_Place]:
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
    return [_Place(row.role, row.org_id, row.name or row.org_id, row.district_id) for row in connection.execute(rows)]


def _select_vendors(table: sa.Table, sourced_id: str, places: Sequence[_Place]) -> sa.Select[Any]:
    """Selects the vendors, each with whether it sees a record, with guardians and without, and as a student of the
    vendor interface; the number of its valid keys; the orgs of the record that its grants open, and the roles of the
    person that it sees there; the role of the person in 1.1, with guardians and without."""
    key = table.c.sourced_id

    def ask(condition: sa.ColumnElement[bool], name: str) -> sa.ColumnElement[bool]:
        return sa.select(key).where(key == sourced_id, condition).correlate(vendors).exists().label(name)

    def show_role(rights: ContentRights) -> sa.ColumnElement[Any]:
        shown = sa.select(select_single_role(rights)).where(users.c.sourced_id == sourced_id).correlate(vendors)
        return shown.scalar_subquery() if table is users else sa.null()

    with_guardians, without = OF_EVERY_VENDOR[True], OF_EVERY_VENDOR[False]
    is_student = (users.c.sourced_id == sourced_id, record_is_open(users, without, Opened.STUDENT))
    student = sa.select(users.c.sourced_id).where(*is_student).correlate(vendors).exists()
    as_guardian, as_teacher = _select_named(sourced_id) if table is users else (sa.false(), sa.false())
    granted = sa.select(visible_orgs.c.org_id).where(
        visible_orgs.c.vendor_id == vendors.c.id,
        visible_orgs.c.shared,
        visible_orgs.c.org_id == sa.any_(sa.literal([place.org_id for place in places], CTexts)),
    )
    own = user_roles.alias()
    opened = sa.select(own.c.role + sa.literal_column("' '") + own.c.org_id).where(
        own.c.user_id == sourced_id, role_is_visible(own, with_guardians)
    )
    return sa.select(
        vendors.c.email,
        VALID_KEYS,
        sa.func.array(opened.correlate(vendors).scalar_subquery(), type_=CTexts).label("opened"),
        sa.func.array(granted.correlate(vendors).scalar_subquery(), type_=CTexts).label("granted"),
        ask(row_is_visible(table, table, with_guardians), "with_guardians"),
        ask(row_is_visible(table, table, without), "without"),
        (student if table in (users, demographics) else sa.false()).label("student"),
        show_role(with_guardians).label("role_with_guardians"),
        show_role(without).label("role_without"),
        as_guardian.label("as_guardian"),
        as_teacher.label("as_teacher"),
        (ask(is_kept(PERSONS[table], Viewer.EVERY_VENDOR), "kept") if table in PERSONS else sa.false().label("kept")),
    ).order_by(vendors.c.email)


def _select_named(sourced_id: str) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
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
