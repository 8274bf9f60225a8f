"""A record as a vendor gets it: an operator looks with the rights of the vendor's clients, and the look is recorded.

The answer is made by the stages of a request after its token, with both layers of visibility. It counts no request, and
leaves no row in the access log, because the vendor gets nothing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, select

from roster_service.access.clients import Client, find_client, list_clients
from roster_service.access.credentials.access_token import AccessToken
from roster_service.access.vendors import Vendor, find_vendor
from roster_service.cache.orderings import Orderings
from roster_service.db.actors import Actor
from roster_service.db.changes import Subject, Verb, recorded
from roster_service.db.exclusions import IdHasher
from roster_service.db.round_trip import RoundTrips
from roster_service.db.tables import visible_orgs
from roster_service.errors import CommandError, Problem, RefusedRequestError
from roster_service.query.params import Limits
from roster_service.reads.reader import Reader
from roster_service.record_access import OF_PEOPLE, explain_hidden, find_endpoints, read_places
from roster_service.rostering.endpoints import Endpoint
from roster_service.rostering.operations import Address, Operation, show_record
from roster_service.schemas.versions import VERSIONS, Version
from roster_service.settings import Settings

_SECONDS = 60


@dataclass(frozen=True)
class VendorView:
    """What a client gets for a record. `path`: that it asks for; `body`: the JSON of the answer, None if it is refused;
    `refusal`: why, else None."""

    client_id: str
    client: str
    version: str
    path: str
    body: Any
    refusal: str | None


def show_as(
    connection: Connection,
    serving: Engine,
    actor: Actor,
    sourced_id: str,
    email: str,
    version: str | None,
    settings: Settings,
) -> list[VendorView]:
    """Shows a record as the clients of a vendor get it, in each version of their scopes; `version`: only in this one.
    `serving`: logs in as the serving role.

    Raises CommandError for an unknown vendor, a vendor without clients, and an id that no record has.
    """
    vendor = find_vendor(connection, email)
    clients = [item for item in list_clients(connection) if item.vendor == vendor.email]
    endpoints = find_endpoints(connection, sourced_id)
    if not clients:
        raise CommandError(f"the vendor {vendor.email} has no client, and so gets nothing from the rostering interface")
    # The change log names people by a keyed hash.
    is_person = any(table in OF_PEOPLE for table, _ in endpoints)
    name = IdHasher(settings.read_secret_key()).name_id(sourced_id) if is_person else sourced_id
    kind = "person" if is_person else endpoints[0][1].resource.singular
    with recorded(connection, actor, Verb.SHOW, Subject(kind, name, vendor=vendor.email), dict):
        look = _Look(connection, serving, vendor, settings)
        return [
            view
            for client in clients
            for wanted in VERSIONS
            if version in (None, wanted.prefix)
            for _, endpoint in endpoints
            for view in look.show(client, wanted, endpoint, sourced_id)
        ]


@dataclass(frozen=True)
class _Look:
    """The look of an operator at the records of a vendor."""

    connection: Connection
    serving: Engine
    vendor: Vendor
    settings: Settings

    def show(self, client: Client, version: Version, endpoint: Endpoint, sourced_id: str) -> Iterator[VendorView]:
        """Yields the view of a client; nothing if it has no scope of the version."""
        registered = find_client(self.connection, client.client_id)
        held = () if registered is None else tuple(it for it in registered.scopes if it.version == version.prefix)
        path = version.root + endpoint.path.replace("{sourcedId}", quote(sourced_id, safe=""))
        shown = (client.client_id, client.name, version.prefix, path)
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

    def _read(self, token: AccessToken, version: Version, endpoint: Endpoint, path: str, sourced_id: str) -> Any:
        settings = self.settings
        limits = Limits(settings.default_limit, settings.max_limit, settings.filter_length)
        operation = Operation(endpoint, version, limits, settings.v1p2_errors)
        address = Address(settings.public_url or f"http://{settings.host_and_port}", path, "")
        planned = operation.plan(token, token.admission, address, {"sourcedId": sourced_id})
        round_trips = RoundTrips(self.serving)
        try:
            reader = Reader(round_trips, Orderings(self.serving, 0), settings.pull_minutes)
            record = reader.read_record(planned.authorized_request)
            return json.loads(show_record(planned, record.text, record.person).body)
        finally:
            round_trips.close()

    def _explain(self, token: AccessToken, endpoint: Endpoint, sourced_id: str) -> str:
        """Why the client does not see a record that the roster has."""
        table = VERSIONS[0].records[endpoint.resource].table
        places = read_places(self.connection, table, sourced_id)
        opened = select(visible_orgs.c.org_id).where(visible_orgs.c.vendor_id == self.vendor.id, visible_orgs.c.granted)
        granted = self.connection.scalars(opened.where(visible_orgs.c.org_id.in_([it.org_id for it in places]))).all()
        return explain_hidden(table, places, granted, guardians=token.rights.guardians)
