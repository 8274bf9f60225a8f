"""A record: its references both ways, its history, and its JSON on every interface."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from roster_service.access_log.entries import PersonHasher
from roster_service.access_log.reports import AccessLogFilter, count_unsearchable
from roster_service.access_log.writer import move_rows_of_ended_workers
from roster_service.accounts.vendors import read_vendor_names
from roster_service.change_log.actors import OperatorRole
from roster_service.change_log.changes import Verb
from roster_service.console.filters import from_segment
from roster_service.console.record_cells import name_record
from roster_service.console.screen import Form, Screen
from roster_service.console.views.roster import LONGEST, find_shown_person
from roster_service.console.visit import Outcome, Shown, Submission, Visit
from roster_service.db.deadline import limit_statements
from roster_service.errors import CommandError
from roster_service.explore.known_people import KnownPerson, list_alike
from roster_service.explore.person import MissingCause, PersonCard, ShownParts, list_causes, list_shown, read_card
from roster_service.explore.person_grid import COLUMNS, GridRow, make_grid
from roster_service.explore.references import References, read_references
from roster_service.explore.rejected_rows import Explanation, explain_record
from roster_service.explore.vendor_view import VENDOR_INTERFACE, show_as
from roster_service.explore.who_sees import VendorVerdict, Verdict, explain
from roster_service.explore.whole_roster import RIGHTS, read_body, read_records, read_student
from roster_service.feeds.change_history import RecordChange, read_record_history
from roster_service.schemas.versions import CLASSES, COURSES, USERS, V1P2, VERSIONS, Resource
from roster_service.serving.plan import make_resource_view

HISTORY = 50
# The references that a record should have, by their titles; of people only those with one of these roles have classes.
EXPECTED: Mapping[Resource, frozenset[str]] = {
    CLASSES: frozenset({"Teachers", "Students", "Terms"}),
    COURSES: frozenset({"Classes"}),
    USERS: frozenset({"Schools"}),
}
ENROLLED = frozenset({"student", "teacher"})


@dataclass(frozen=True)
class ShownReferences(References):
    """References, with the `query` of the list of all of them; None if there is no such list."""

    query: str | None


@dataclass(frozen=True)
class Face:
    """The JSON of a record on an interface, as `text`; None if the interface does not have it."""

    title: str
    text: str | None


@dataclass(frozen=True)
class RosterRecord:
    """A record with the wanted id. A demographic record has the id of its user, so there can be several. `explanation`:
    the rejected rows that name it; None if there are none."""

    kind: str
    name: str
    feed: str
    status: str
    modified: str
    type: str
    explanation: Explanation | None
    references: Sequence[ShownReferences]
    history: Sequence[RecordChange]
    faces: Sequence[Face]


@dataclass(frozen=True)
class PersonPage:
    """What a page of a person begins with. `card`: None for a person who is not in the roster; `columns`, `grid`: who
    sees which part; `alike`: the others who may be meant where the person is taken out; `shown`: what the access log
    has of the person; `unsearchable`: the rows that do not tell whether they have the person; `missing`: why rows of
    ended workers may be missing, None if none are."""

    known: KnownPerson
    card: PersonCard | None
    causes: Sequence[MissingCause]
    columns: Sequence[str]
    grid: Sequence[GridRow]
    alike: Sequence[KnownPerson]
    shown: Sequence[ShownParts]
    unsearchable: int
    missing: str | None


@dataclass(frozen=True)
class RecordPage:
    """The records with one id, and which vendors see them. `person`: None unless the id is that of a person; `names`:
    of the vendors, by e-mail; `versions`: of the look of a vendor."""

    sourcedId: str  # noqa: N815  (the name in OneRoster)
    person: PersonPage | None
    records: Sequence[RosterRecord]
    verdicts: Sequence[Verdict]
    names: Mapping[str, str]
    versions: Sequence[str]


@dataclass(frozen=True)
class ShownView:
    """What a client, or the holder of an API key, gets. `request`: the method and the path; `text`: the JSON of the
    answer, None if it is refused; `refusal`: why, else None."""

    client: str
    request: str
    refusal: str | None
    text: str | None


@dataclass(frozen=True)
class Look:
    """A record as the clients of a vendor get it."""

    sourcedId: str  # noqa: N815  (the name in OneRoster)
    views: Sequence[ShownView]


def read_record(visit: Visit) -> RecordPage:
    """Reads the records with the id of the path. Raises CommandError if the roster has none."""
    # Before the first statement of the connection, which has one snapshot.
    missing = move_rows_of_ended_workers(visit.tools.owner, visit.settings.access_log_folder)
    sourced_id = from_segment(visit.place["sourced_id"])
    with limit_statements(visit.connection, LONGEST):
        found = [record for resource in V1P2.records for record in _read(visit, resource, sourced_id)]
    explained = explain(visit.connection, sourced_id) if found else []
    known = None
    if not found or any(record.kind == USERS.singular for record in found):
        known = find_shown_person(visit, sourced_id)
    if not found and known is None:
        raise CommandError(f"the roster has no record {sourced_id[:256]}")
    person = None if known is None else _read_person(visit, known, explained, missing)
    versions = [*(version.prefix for version in VERSIONS), VENDOR_INTERFACE]
    return RecordPage(
        sourcedId=sourced_id,
        person=person,
        records=found,
        verdicts=[verdict for of_vendor in explained for verdict in of_vendor.records],
        names=read_vendor_names(visit.connection),
        versions=versions,
    )


def _read_person(
    visit: Visit, known: KnownPerson, explained: Sequence[VendorVerdict], missing: str | None
) -> PersonPage:
    connection, hasher = visit.connection, PersonHasher(visit.settings.read_secret_key())
    wanted = AccessLogFilter(person=hasher.hash_id(known.sourcedId))
    return PersonPage(
        known=known,
        card=read_card(connection, known.sourcedId) if known.name else None,
        causes=list(list_causes(connection, known, visit.settings)),
        columns=list(COLUMNS),
        grid=make_grid(explained) if known.name else [],
        alike=list_alike(connection, known.sourcedId) if visit.may(Verb.PERSON_HIDE) else [],
        shown=list_shown(connection, wanted),
        unsearchable=count_unsearchable(connection, wanted, hasher.check),
        missing=missing,
    )


def look(sent: Submission) -> Outcome:
    """Shows the record as the clients of a vendor get it. The change log records it."""
    sourced_id = from_segment(sent.place["sourced_id"])
    with sent.change() as connection:
        found = show_as(
            connection,
            sent.tools.serving,
            sent.actor,
            sourced_id,
            sent.form.get("vendor", ""),
            sent.get("version"),
            sent.settings,
        )
    shown = [ShownView(view.client, f"{view.method} {view.path}", view.refusal, _write(view.body)) for view in found]
    return Shown("look", f"As {sent.form.get('vendor', '')} sees it", Look(sourced_id, shown))


def _read(visit: Visit, resource: Resource, sourced_id: str) -> Iterator[RosterRecord]:
    connection, record = visit.connection, V1P2.records[resource]
    for found in read_records(connection, make_resource_view(record, RIGHTS), [sourced_id]):
        yield RosterRecord(
            kind=resource.singular,
            name=name_record(resource, found.body),
            feed=found.feed,
            status=found.body["status"],
            modified=found.body["dateLastModified"],
            type=resource.plural,
            explanation=explain_record(connection, resource.plural, sourced_id, found.feed),
            references=[
                ShownReferences(
                    **vars(references),
                    query=_list_all(references.facet, references.collection, sourced_id),
                )
                for references in read_references(
                    connection, record.table, sourced_id, _find_expected(resource, found.body)
                )
            ],
            history=read_record_history(connection, record.table, sourced_id, HISTORY),
            faces=list(_read_faces(visit, resource, sourced_id)),
        )


def _find_expected(resource: Resource, body: Mapping[str, Any]) -> frozenset[str]:
    """The titles of the references that the page shows even if there are none: a person looks for them."""
    if body["status"] != "active":
        return frozenset()
    if resource is USERS and {role["role"] for role in body["roles"]} & ENROLLED:
        return frozenset({"Schools", "Classes"})
    return EXPECTED.get(resource, frozenset())


def _list_all(facet: str | None, kind: str, sourced_id: str) -> str | None:
    return None if facet is None else urlencode({"kind": kind, facet: sourced_id})


def _read_faces(visit: Visit, resource: Resource, sourced_id: str) -> Iterator[Face]:
    for version in VERSIONS:
        body = read_body(
            visit.connection, version.records[resource], sourced_id, visit.tools.service_url + version.root
        )
        yield Face(version.title, _write(body))
    if resource is USERS:
        yield Face("POST /v1/students", _write(read_student(visit.connection, sourced_id)))


def _write(body: Mapping[str, Any] | None) -> str | None:
    return None if body is None else json.dumps(body, ensure_ascii=False, indent=2)


SCREENS = (Screen("record", "/records/<id:sourced_id>", "Record", OperatorRole.VIEWER, read_record, None, None),)
FORMS = (Form("record", "look", Verb.SHOW, look, None),)
