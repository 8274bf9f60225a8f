"""Which vendors see a record, and why, without the contents of the record: the look of nobody, so nothing is recorded.

The query filter (roster/visibility.py) decides; a test compares the answers with those of the interfaces.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql import visitors

from roster_service.accounts.clients import Client, list_clients
from roster_service.accounts.parts import PARTS, list_received
from roster_service.auth.scopes import ScopeName, make_content_rights, read_scopes
from roster_service.change_log.email_address import normalize_email
from roster_service.db.tables import (
    CTexts,
    api_keys,
    classes,
    demographics,
    enrollments,
    orgs,
    user_roles,
    users,
    vendors,
    visible_orgs,
)
from roster_service.errors import CommandError
from roster_service.roster.visibility import VENDOR, Opened, label_is_open, row_is_visible
from roster_service.roster.vocabulary import GUARDIAN_ROLES
from roster_service.rostering.endpoints import ENDPOINTS, Cardinality, Endpoint
from roster_service.schemas.versions import DEMOGRAPHICS, VERSIONS
from roster_service.serving.path_filters import everything

# The records of people.
OF_PEOPLE = (users, demographics)
# The orgs on which it depends whether a vendor sees a record.
_ORG_OF: Mapping[sa.Table, sa.Column[str]] = {
    orgs: orgs.c.sourced_id,
    classes: classes.c.school_id,
    enrollments: enrollments.c.school_id,
}
STUDENTS = "POST /v1/students"
# Orgs that a reason names.
_NAMED = 5


@dataclass(frozen=True)
class Verdict:
    """Whether a vendor sees a record. `kind`: of the record; `by`: the client, or the vendor interface; `reason`: in
    words, why it is shown or hidden."""

    vendor: str
    kind: str
    by: str
    shown: bool
    reason: str


def find_endpoints(connection: sa.Connection, sourced_id: str) -> list[tuple[sa.Table, Endpoint]]:
    """Returns the single-record endpoints whose resource has a record with this id, with the tables of the records.
    Raises CommandError if there is none."""
    records = VERSIONS[0].records
    found = [
        (records[endpoint.resource].table, endpoint)
        for endpoint in ENDPOINTS
        if endpoint.cardinality is Cardinality.SINGLE and endpoint.path_filter is everything
        if connection.scalar(
            sa.select(records[endpoint.resource].table.c.sourced_id).where(
                records[endpoint.resource].table.c.sourced_id == sourced_id
            )
        )
        is not None
    ]
    if not found:
        raise CommandError(f"the roster has no record {sourced_id}")
    return found


@dataclass(frozen=True)
class _Place:
    """An org on which it depends whether a vendor sees a record. `role`: of the person there, None for other
    records."""

    role: str | None
    org_id: str
    name: str


def list_verdicts(connection: sa.Connection, sourced_id: str) -> list[Verdict]:
    """Returns for every vendor, by e-mail, whether each of its clients sees the records with this id, and whether the
    vendor interface shows it the student. Raises CommandError if the roster has no such record."""
    clients = defaultdict(list)
    for client in list_clients(connection):
        clients[client.vendor].append(client)
    found: list[Verdict] = []
    for table, endpoint in find_endpoints(connection, sourced_id):
        places = read_places(connection, table, sourced_id)
        for vendor in connection.execute(_select_vendors(table, sourced_id)):
            granted = [place for place in places if place.org_id in vendor.granted]
            for client in clients[vendor.email]:
                shown, reason = _judge(vendor, client, endpoint, table, places, granted)
                found.append(Verdict(vendor.email, endpoint.resource.singular, client.name, shown, reason))
            if table is users and vendor.keys:
                reason = _name(granted) if vendor.student else "a grant opens no school where it is a student"
                shown = vendor.enabled and vendor.student
                reason = reason if vendor.enabled else "the vendor is disabled"
                found.append(Verdict(vendor.email, endpoint.resource.singular, STUDENTS, shown, reason))
            if not clients[vendor.email] and not (table is users and vendor.keys):
                found.append(Verdict(vendor.email, endpoint.resource.singular, "–", False, "it has no client"))
    return sorted(found, key=lambda it: (it.vendor, it.kind, it.by))


def explain_unseen(connection: sa.Connection, email: str, sourced_id: str, part: str | None) -> str:
    """Returns why a vendor does not see the record with this id, or a part of it, in words: the reasons of its clients.
    `part`: a name of `PARTS`. Raises CommandError if the roster has no such record."""
    verdicts = [it for it in list_verdicts(connection, sourced_id) if it.vendor == normalize_email(email)]
    # Demographics follow their person.
    own = [it for it in verdicts if not it.shown and it.kind != DEMOGRAPHICS.singular]
    own = [it for it in own if it.by != STUDENTS] or own
    if part is not None and part not in list_received(connection).get(normalize_email(email), {}):
        return f"it does not get {PARTS[part].words}"
    return "; ".join(dict.fromkeys(it.reason for it in own))


def _judge(
    vendor: sa.Row[Any],
    client: Client,
    endpoint: Endpoint,
    table: sa.Table,
    places: Sequence[_Place],
    granted: Sequence[_Place],
) -> tuple[bool, str]:
    """Whether a client sees a record, and why."""
    names = frozenset(scope.name for scope in read_scopes(client.scopes))
    guardians = ScopeName.GUARDIANS in names
    if not vendor.enabled or not client.enabled:
        return False, f"the {'client' if vendor.enabled else 'vendor'} is disabled"
    if not names.intersection(endpoint.access.value):
        return False, f"the client lacks {' and '.join(endpoint.access.value)}"
    if vendor.with_guardians if guardians else vendor.without:
        return True, _name(granted)
    return False, explain_hidden(table, places, {place.org_id for place in granted}, guardians=guardians)


def explain_hidden(table: sa.Table, places: Sequence[_Place], granted: Collection[str], *, guardians: bool) -> str:
    """Returns why a client does not see a record that the roster has. `granted`: the ids of the places that the grants
    of its vendor open; `guardians`: whether it sees guardians."""
    if table not in OF_PEOPLE:
        return "no grant of the vendor opens it"
    if not places:
        return "the person has no role at any org"
    if any(it.org_id in granted and (guardians or it.role not in GUARDIAN_ROLES) for it in places):
        return "the path does not have it"
    if any(it.org_id in granted for it in places):
        return "the person is a guardian, and the client lacks guardians.readonly"
    named = sorted({f"{it.role} at {it.name}" for it in places})
    return f"no grant of the vendor opens an org of the person: {', '.join(named)}"


def _name(granted: Sequence[_Place]) -> str:
    if not granted:
        return "a grant opens a record that leads to it"
    named = list(dict.fromkeys(it.name if it.role is None else f"{it.role} at {it.name}" for it in granted))
    more = f", and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return f"a grant opens {', '.join(named[:_NAMED])}{more}"


def read_places(connection: sa.Connection, table: sa.Table, sourced_id: str) -> list[_Place]:
    """Reads the orgs on which it depends whether a vendor sees a record; none for a record that follows others."""
    role: sa.ColumnElement[Any]
    if table in OF_PEOPLE:
        role, org_id, own = user_roles.c.role, user_roles.c.org_id, user_roles.c.user_id
    elif table in _ORG_OF:
        role, org_id, own = sa.null(), _ORG_OF[table], table.c.sourced_id
    else:
        return []
    place = orgs.alias()
    rows = sa.select(role.label("role"), org_id.label("org_id"), place.c.name).where(own == sourced_id)
    rows = rows.outerjoin(place, place.c.sourced_id == org_id)
    return [_Place(row.role, row.org_id, row.name or row.org_id) for row in connection.execute(rows)]


def _select_vendors(table: sa.Table, sourced_id: str) -> sa.Select[Any]:
    """Selects the vendors, each with whether it sees a record, with guardians and without, and as a student of the
    vendor interface; the number of its valid keys; and the places of the record that its grants open."""
    key = table.c.sourced_id

    def ask(condition: sa.ColumnElement[bool], name: str) -> sa.ColumnElement[bool]:
        return _of_each_vendor(sa.select(key).where(key == sourced_id, condition).exists()).label(name)

    valid = sa.or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > sa.func.now())
    keys = sa.select(sa.func.count()).where(api_keys.c.vendor_id == vendors.c.id, valid).scalar_subquery()
    # Withheld fields do not decide which records a vendor sees.
    with_guardians, without = (
        make_content_rights(frozenset(names), frozenset()) for names in ((ScopeName.GUARDIANS,), ())
    )
    student = label_is_open(users.c.label_id, without, Opened.STUDENT) if table is users else sa.false()
    opened = _select_places(table, sourced_id)
    granted = sa.select(visible_orgs.c.org_id).where(
        visible_orgs.c.vendor_id == vendors.c.id, visible_orgs.c.granted, visible_orgs.c.org_id.in_(opened)
    )
    return sa.select(
        vendors.c.id,
        vendors.c.email,
        vendors.c.enabled,
        keys.label("keys"),
        sa.func.array(granted.correlate(vendors).scalar_subquery(), type_=CTexts).label("granted"),
        ask(row_is_visible(table, table, with_guardians), "with_guardians"),
        ask(row_is_visible(table, table, without), "without"),
        ask(student, "student"),
    ).order_by(vendors.c.email)


def _select_places(table: sa.Table, sourced_id: str) -> sa.Select[Any]:
    if table in OF_PEOPLE:
        return sa.select(user_roles.c.org_id).where(user_roles.c.user_id == sourced_id)
    if table in _ORG_OF:
        return sa.select(_ORG_OF[table]).where(table.c.sourced_id == sourced_id)
    return sa.select(orgs.c.sourced_id).where(sa.false())


def _of_each_vendor(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """Returns a condition of visibility for the vendor of a row of `vendors`, in place of the bound one."""

    def replace(element: Any, **_: Any) -> Any:
        is_vendor = isinstance(element, sa.BindParameter) and element.key == VENDOR.key
        return vendors.c.id if is_vendor else None

    replaced: sa.ColumnElement[bool] = visitors.replacement_traverse(condition, {}, replace)
    return replaced
