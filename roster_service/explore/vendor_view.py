"""What a vendor sees: an operator looks at a record or a collection with the rights of a vendor's clients, and the look
is recorded.

The answer is made by the stages of a request after its token, with both layers of visibility. It counts no request, and
leaves no row in the access log, because the vendor gets nothing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlencode

import sqlalchemy as sa

from roster_service.access_log.entries import mask_filter
from roster_service.accounts.clients import Client, find_listed_client, list_clients
from roster_service.accounts.parts import DELIVERIES_PATH
from roster_service.accounts.vendors import find_vendor
from roster_service.accounts.ways import FILE_METHOD, STUDENTS_PATH, Way, WayKind, explain_closed, list_ways
from roster_service.auth.credentials.api_keys import find_holder_of
from roster_service.auth.credentials.tokens import AccessToken
from roster_service.auth.registered_client import find_client
from roster_service.change_log.actors import Actor
from roster_service.change_log.changes import Subject, Verb, recorded
from roster_service.db.round_trip import RoundTrips
from roster_service.db.tables import oauth_clients, orgs, user_roles, users
from roster_service.errors import CommandError, Problem, RefusedRequestError
from roster_service.explore.record_facts import RecordFacts, read_facts
from roster_service.explore.who_sees import explain_hidden, explain_left_out, judge_student
from roster_service.feeds.exclusions import IdHasher
from roster_service.roster.references import OF_PEOPLE, PERSONS
from roster_service.roster.visibility import VENDOR, Viewer, org_id_is_shared
from roster_service.rostering.endpoints import ENDPOINTS, Endpoint
from roster_service.rostering.operations import Operation, PlannedRequest, RequestAddress, show_page, show_record
from roster_service.schemas.versions import VERSIONS, Version
from roster_service.serving.orderings import Orderings
from roster_service.serving.params import Limits
from roster_service.serving.reader import Reader
from roster_service.serving.students import StudentsParams, find_student, name_district
from roster_service.settings import Settings

STUDENT = "student"
VENDOR_INTERFACE = "v1"
# The caller of a look. It begins no pull, so the pages of a client's own pulls stay as they are.
_CALLER = "an operator who looks"
_SECONDS = 60
# Orderings that a look may make, in megabytes.
_NO_ORDERINGS = 0


@dataclass(frozen=True)
class VendorView:
    """What a client, the holder of an API key, or the receiver of files gets for a record. `client_id`: or the prefix
    of the key; `client`: its name, or the words of the delivery; `version`: or `VENDOR_INTERFACE`; `method`, `path`: of
    the request, or as the access log has a file; `body`: the JSON of the answer, of `STUDENTS_PATH` the one student, of
    a file the record that its row is made of; None if it is refused; `refusal`: why, else None."""

    client_id: str
    client: str
    version: str
    method: str
    path: str
    body: Any
    refusal: str | None


@dataclass(frozen=True)
class CollectionView:
    """A page that a client gets. `path`: with its query, as the client asks for it; `records`: their JSON; `total`: on
    all pages; `refusal`: why there are none, else None."""

    vendor: str
    client: str
    path: str
    records: Sequence[Mapping[str, Any]]
    total: int
    refusal: str | None


def show_as(
    connection: sa.Connection,
    serving: sa.Engine,
    actor: Actor,
    sourced_id: str,
    email: str,
    version: str | None,
    settings: Settings,
) -> list[VendorView]:
    """Shows a record as the clients of a vendor get it, in each version of their scopes, and its files; a student also
    as the vendor interface shows it, with all parts that the flags of the vendor allow. `version`: only in this one.
    `serving`: logs in as the serving role.

    Raises CommandError for an unknown vendor, an id that no record has, and a vendor without clients for a record that
    is no student, and that no student names.
    """
    vendor = find_vendor(connection, email)
    clients = list_clients(connection, oauth_clients.c.vendor_id == vendor.id)
    records, ways = list(read_facts(connection, sourced_id, vendor.id)), list_ways(connection).get(vendor.email, ())
    user = next((facts for facts in records if facts.table is users), None)
    is_student = user is not None and any(place.role == STUDENT for place in user.places)
    naming = None
    if user is not None and not is_student and any(way.kind is WayKind.API_KEY for way in ways):
        is_named, reason, _ = judge_student(user)
        naming = reason if is_named else None
    if not clients and not is_student and naming is None:
        raise CommandError(f"the vendor {vendor.email} has no client, and so gets nothing from the rostering interface")
    # The change log names people by a keyed hash, and what is theirs: an id may have that of the person in it.
    is_of_person = any(facts.table in PERSONS for facts in records)
    name = IdHasher(settings.read_secret_key()).name_id(sourced_id) if is_of_person else sourced_id
    is_person = any(facts.table in OF_PEOPLE for facts in records)
    kind = "person" if is_person else records[0].endpoint.resource.singular
    with recorded(connection, actor, Verb.SHOW, Subject(kind, name, vendor=vendor.email), dict):
        look = _Look(connection, serving, settings)
        views = [
            view
            for client in clients
            for wanted in VERSIONS
            if version in (None, wanted.prefix)
            for facts in records
            for view in look.show_record(facts, client, ways, wanted, sourced_id)
        ]
        if user is not None and (is_student or naming is not None) and version in (None, VENDOR_INTERFACE):
            views.append(look.show_student(user, sourced_id, naming))
        return views


def show_collection_as(
    connection: sa.Connection,
    serving: sa.Engine,
    actor: Actor,
    client_id: str,
    version: str,
    collection: str,
    filter_: str | None,
    window: tuple[int, int],
    settings: Settings,
) -> CollectionView:
    """Shows a page of a collection as a client gets it. `serving`: logs in as the serving role; `window`: (records to
    skip, records to read).

    Raises CommandError for an unknown client, a disabled one, and an unknown version or collection.
    """
    client = find_listed_client(connection, client_id)
    found = next((endpoint for endpoint in ENDPOINTS if endpoint.path == f"/{collection}" and not endpoint.ids), None)
    wanted = next((known for known in VERSIONS if known.prefix == version), None)
    if found is None or wanted is None:
        raise CommandError("choose a version and a collection")
    if _list_own(client, list_ways(connection).get(client.vendor, ())):
        token = _make_token(connection, client, wanted)
    else:
        closed = explain_closed(client, find_vendor(connection, client.vendor))
        raise CommandError(f"{client.name} gets nothing: {closed}")
    if token is None:
        raise CommandError(f"the client {client.name} has no scope of {wanted.title}")
    asked = {"filter": filter_, "limit": str(window[1]), "offset": str(window[0])}
    query = urlencode({name: value for name, value in asked.items() if value}, quote_via=quote)
    path = wanted.root + found.path
    shown = (client.vendor, client.name, f"{path}?{query}")
    look = _Look(connection, serving, settings)
    try:
        planned = look.plan(token, wanted, found, path, query, {})
    except RefusedRequestError as error:
        return CollectionView(*shown, (), 0, str(error))
    # A value of the filter can be the name of a child.
    name = " ".join(filter(None, (path, mask_filter(planned.plan.filter))))
    with recorded(connection, actor, Verb.SHOW, Subject(found.resource.plural, name, vendor=client.vendor), dict):
        try:
            with look.open_reader() as reader:
                read = reader.read_aside(replace(planned.authorized_request, caller=_CALLER))
        except RefusedRequestError as error:
            return CollectionView(*shown, (), 0, str(error))
    body = json.loads(show_page(planned, read.page).body)
    return CollectionView(*shown, body[found.resource.plural], read.page.total, None)


def _list_own(client: Client, ways: Sequence[Way]) -> list[Way]:
    return [way for way in ways if way.client is not None and way.client.client_id == client.client_id]


def _make_token(connection: sa.Connection, client: Client, version: Version) -> AccessToken | None:
    """Returns a token with all scopes of a client of a version; None if it has none."""
    # Nobody needs its secret for a file, and a link makes the next one.
    registered = find_client(connection, client.client_id, even_disabled=True)
    held = [] if registered is None else [scope for scope in registered.scopes if scope.version == version.prefix]
    return registered.make_token(held, time.time() + _SECONDS) if registered is not None and held else None


def _is_student(sourced_id: str) -> sa.ColumnElement[bool]:
    return sa.and_(user_roles.c.user_id == sourced_id, user_roles.c.role == STUDENT)


@dataclass(frozen=True)
class _Look:
    """A look of an operator: what it reads with."""

    connection: sa.Connection
    serving: sa.Engine
    settings: Settings

    @contextmanager
    def open_reader(self) -> Iterator[Reader]:
        round_trips = RoundTrips(self.serving)
        try:
            yield Reader(round_trips, Orderings(self.serving, _NO_ORDERINGS))
        finally:
            round_trips.close()

    def plan(
        self,
        token: AccessToken,
        version: Version,
        endpoint: Endpoint,
        path: str,
        query: str,
        path_ids: Mapping[str, str],
    ) -> PlannedRequest:
        """Plans the request of a client. Raises RefusedRequestError."""
        settings = self.settings
        limits = Limits(settings.max_limit)
        address = RequestAddress(settings.find_root_url(), path, query)
        operation = Operation(endpoint, version, limits, settings.v1p2_errors)
        return operation.plan(token, token.admission, address, path_ids)

    def show_record(
        self, facts: RecordFacts, client: Client, ways: Sequence[Way], version: Version, sourced_id: str
    ) -> Iterator[VendorView]:
        """Yields the view of a client, and those of its files; nothing if it has no scope of the version. `ways`: of
        the vendor."""
        token = _make_token(self.connection, client, version)
        if token is None:
            return
        own = _list_own(client, ways)
        path = version.root + facts.endpoint.path.replace("{sourcedId}", quote(sourced_id, safe=""))
        shown = (client.client_id, client.name, version.prefix, "GET", path)
        if not own:
            yield VendorView(*shown, None, explain_closed(client, facts.vendor))
            return
        seen = self._read(facts, token, version, path, sourced_id)
        if any(way.preset is None for way in own):
            yield VendorView(*shown, *seen)
        for way in own:
            if way.preset is not None and way.preset.version is version:
                left_out = explain_left_out(facts, way)
                path = f"{DELIVERIES_PATH}{way.preset.name}"
                of_file = (client.client_id, way.words, version.prefix, FILE_METHOD, path)
                yield VendorView(*of_file, *(seen if left_out is None or seen[1] else (None, left_out)))

    def _read(
        self, facts: RecordFacts, token: AccessToken, version: Version, path: str, sourced_id: str
    ) -> tuple[Any, str | None]:
        """Returns the JSON of a record and None, or None and why it is refused."""
        try:
            planned = self.plan(token, version, facts.endpoint, path, "", {"sourcedId": sourced_id})
            with self.open_reader() as reader:
                record = reader.read_record(planned.authorized_request)
            return json.loads(show_record(planned, record.text, record.person, record.parts).body), None
        except RefusedRequestError as error:
            hidden, guardians = error.problem is Problem.UNKNOWN_RECORD, token.rights.guardians
            return None, explain_hidden(facts, guardians=guardians) if hidden else str(error)

    def show_student(self, facts: RecordFacts, sourced_id: str, naming: str | None) -> VendorView:
        """Returns the view of the vendor interface. `naming`: why a student names the person, who is none."""
        vendor = facts.vendor
        with self.serving.connect() as serving:
            holder = find_holder_of(self.connection, serving, vendor.id)
        shown = ("-" if holder is None else holder.key_prefix, "API key", VENDOR_INTERFACE, "POST", STUDENTS_PATH)
        if naming is not None:
            return VendorView(*shown, None, f"by itself, but inside of a student: {naming}")
        if vendor.closed is not None:
            return VendorView(*shown, None, vendor.closed)
        if holder is None:
            return VendorView(*shown, None, "the vendor has no valid API key")
        lea = self.connection.scalar(_select_student_district(sourced_id), {VENDOR.key: vendor.id})
        if lea is None:
            return VendorView(*shown, None, explain_hidden(facts, guardians=True))
        params = StudentsParams(districtlea=lea, limit=1, offset=0, include=sorted(holder.flags))
        try:
            with self.open_reader() as reader:
                text = find_student(reader, self.serving, holder, params, sourced_id)
        except RefusedRequestError as error:
            return VendorView(*shown, None, str(error))
        return VendorView(*shown, text and json.loads(text), None if text else "no page has the student")


def _select_student_district(sourced_id: str) -> sa.Select[str]:
    """Selects the `districtlea` of a district in which the bound vendor sees the user as a student."""
    own, district = orgs.alias(), orgs.alias()
    seen = user_roles.join(own, own.c.sourced_id == user_roles.c.org_id)
    lea = name_district(district)
    is_seen = org_id_is_shared(own.c.sourced_id, Viewer.ONE_VENDOR)
    found = sa.select(lea).select_from(seen.join(district, district.c.sourced_id == own.c.district_id))
    return found.where(_is_student(sourced_id), is_seen).order_by(lea).limit(1)
