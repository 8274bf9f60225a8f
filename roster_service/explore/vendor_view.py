"""A record as a vendor gets it: an operator looks with the rights of the vendor's clients, and the look is recorded.

The answer is made by the stages of a request after its token, with both layers of visibility. It counts no request, and
leaves no row in the access log, because the vendor gets nothing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa

from roster_service.accounts.clients import Client, list_clients
from roster_service.accounts.vendors import Vendor, find_vendor
from roster_service.auth.credentials.access_token import AccessToken
from roster_service.auth.credentials.api_keys import find_holder_of
from roster_service.auth.registered_client import find_client
from roster_service.change_log.actors import Actor
from roster_service.change_log.changes import Subject, Verb, recorded
from roster_service.db.round_trip import RoundTrips
from roster_service.db.tables import orgs, user_roles, users, visible_orgs
from roster_service.errors import CommandError, Problem, RefusedRequestError
from roster_service.explore.record_access import OF_PEOPLE, explain_hidden, find_endpoints, read_places
from roster_service.feeds.exclusions import IdHasher
from roster_service.rostering.endpoints import Endpoint
from roster_service.rostering.operations import Address, Operation, show_record
from roster_service.schemas.versions import VERSIONS, Version
from roster_service.serving.orderings import Orderings
from roster_service.serving.params import Limits
from roster_service.serving.reader import Reader
from roster_service.serving.students import StudentsParams, find_student, name_district
from roster_service.settings import Settings

STUDENT = "student"
_SECONDS = 60
VENDOR_INTERFACE, STUDENTS_PATH = "v1", "/v1/students"


@dataclass(frozen=True)
class VendorView:
    """What a client, or the holder of an API key, gets for a record. `client_id`: or the prefix of the key; `version`:
    or `VENDOR_INTERFACE`; `method`, `path`: of the request; `body`: the JSON of the answer, of `STUDENTS_PATH` the one
    student; None if it is refused; `refusal`: why, else None."""

    client_id: str
    client: str
    version: str
    method: str
    path: str
    body: Any
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
    """Shows a record as the clients of a vendor get it, in each version of their scopes; a student also as the vendor
    interface shows it, with all parts that the flags of the vendor allow. `version`: only in this one. `serving`: logs
    in as the serving role.

    Raises CommandError for an unknown vendor, an id that no record has, and a vendor without clients for a record that
    is no student.
    """
    vendor = find_vendor(connection, email)
    clients = [item for item in list_clients(connection) if item.vendor == vendor.email]
    endpoints = find_endpoints(connection, sourced_id)
    is_student = connection.scalar(sa.select(_has_student_role(sourced_id)))
    if not clients and not is_student:
        raise CommandError(f"the vendor {vendor.email} has no client, and so gets nothing from the rostering interface")
    # The change log names people by a keyed hash.
    is_person = any(table in OF_PEOPLE for table, _ in endpoints)
    name = IdHasher(settings.read_secret_key()).name_id(sourced_id) if is_person else sourced_id
    kind = "person" if is_person else endpoints[0][1].resource.singular
    with recorded(connection, actor, Verb.SHOW, Subject(kind, name, vendor=vendor.email), dict):
        look = _Look(connection, serving, vendor, settings)
        views = [
            view
            for client in clients
            for wanted in VERSIONS
            if version in (None, wanted.prefix)
            for _, endpoint in endpoints
            for view in look.show(client, wanted, endpoint, sourced_id)
        ]
        if is_student and version in (None, VENDOR_INTERFACE):
            views.append(look.show_student(sourced_id))
        return views


def _has_student_role(sourced_id: str) -> sa.ColumnElement[bool]:
    return sa.exists().where(user_roles.c.user_id == sourced_id, user_roles.c.role == STUDENT)


@dataclass(frozen=True)
class _Look:
    """The look of an operator at the records of a vendor."""

    connection: sa.Connection
    serving: sa.Engine
    vendor: Vendor
    settings: Settings

    def show(self, client: Client, version: Version, endpoint: Endpoint, sourced_id: str) -> Iterator[VendorView]:
        """Yields the view of a client; nothing if it has no scope of the version."""
        registered = find_client(self.connection, client.client_id)
        held = () if registered is None else tuple(it for it in registered.scopes if it.version == version.prefix)
        path = version.root + endpoint.path.replace("{sourcedId}", quote(sourced_id, safe=""))
        shown = (client.client_id, client.name, version.prefix, "GET", path)
        if registered is None:
            if any(text.startswith(f"{version.prefix}/") for text in client.scopes):
                which = "client" if self.vendor.enabled else "vendor"
                yield VendorView(*shown, None, f"the {which} is disabled")
        elif held:
            token = registered.make_token(held, time.time() + _SECONDS)
            try:
                yield VendorView(*shown, self._read(token, version, endpoint, path, sourced_id), None)
            except RefusedRequestError as error:
                hidden = error.problem is Problem.UNKNOWN_RECORD
                yield VendorView(*shown, None, self._explain(token, endpoint, sourced_id) if hidden else str(error))

    def show_student(self, sourced_id: str) -> VendorView:
        """Returns the view of the vendor interface."""
        holder = find_holder_of(self.connection, self.vendor.id)
        shown = ("-" if holder is None else holder.key_prefix, "API key", VENDOR_INTERFACE, "POST", STUDENTS_PATH)
        if not self.vendor.enabled:
            return VendorView(*shown, None, "the vendor is disabled")
        if holder is None:
            return VendorView(*shown, None, "the vendor has no valid API key")
        district = self.connection.execute(self._select_student_district(sourced_id)).first()
        if district is None:
            return VendorView(*shown, None, self._explain_table(users, sourced_id, guardians=True))
        params = StudentsParams(districtlea=district.lea, limit=1, offset=0, include=sorted(holder.flags))
        try:
            with self._open_reader() as reader:
                text = find_student(reader, self.serving, holder, params, sourced_id)
        except RefusedRequestError as error:
            return VendorView(*shown, None, str(error))
        return VendorView(*shown, text and json.loads(text), None if text else "no page has the student")

    def _select_student_district(self, sourced_id: str) -> sa.Select[str]:
        """Selects the `districtlea` of a district in which the vendor sees the user as a student."""
        own, district = orgs.alias(), orgs.alias()
        seen = user_roles.join(own, own.c.sourced_id == user_roles.c.org_id)
        seen = seen.join(visible_orgs, visible_orgs.c.org_id == own.c.sourced_id)
        seen = seen.join(district, district.c.sourced_id == own.c.district_id)
        is_own = (user_roles.c.user_id == sourced_id) & (user_roles.c.role == STUDENT)
        is_seen = (visible_orgs.c.vendor_id == self.vendor.id) & visible_orgs.c.granted
        lea = name_district(district)
        return sa.select(lea.label("lea")).select_from(seen).where(is_own, is_seen).order_by(lea).limit(1)

    @contextmanager
    def _open_reader(self) -> Iterator[Reader]:
        round_trips = RoundTrips(self.serving)
        try:
            yield Reader(round_trips, Orderings(self.serving, 0), self.settings.pull_minutes)
        finally:
            round_trips.close()

    def _read(self, token: AccessToken, version: Version, endpoint: Endpoint, path: str, sourced_id: str) -> Any:
        settings = self.settings
        limits = Limits(settings.default_limit, settings.max_limit, settings.filter_length)
        operation = Operation(endpoint, version, limits, settings.v1p2_errors)
        address = Address(settings.public_url or f"http://{settings.host_and_port}", path, "")
        planned = operation.plan(token, token.admission, address, {"sourcedId": sourced_id})
        with self._open_reader() as reader:
            record = reader.read_record(planned.authorized_request)
            return json.loads(show_record(planned, record.text, record.person).body)

    def _explain(self, token: AccessToken, endpoint: Endpoint, sourced_id: str) -> str:
        """Why the client does not see a record that the roster has."""
        return self._explain_table(
            VERSIONS[0].records[endpoint.resource].table, sourced_id, guardians=token.rights.guardians
        )

    def _explain_table(self, table: sa.Table, sourced_id: str, *, guardians: bool) -> str:
        """Why the vendor does not see a record of a table. `guardians`: whether it sees guardians."""
        places = read_places(self.connection, table, sourced_id)
        opened = sa.select(visible_orgs.c.org_id).where(
            visible_orgs.c.vendor_id == self.vendor.id, visible_orgs.c.granted
        )
        granted = self.connection.scalars(opened.where(visible_orgs.c.org_id.in_([it.org_id for it in places]))).all()
        return explain_hidden(table, places, granted, guardians=guardians)
