"""A collection as a client of a vendor gets it: an operator looks with the rights of the client, and the look is
recorded. As `explore/vendor_view.py` for a record, it counts no request and leaves no row in the access log."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import sqlalchemy as sa

from roster_service.accounts.clients import find_listed_client
from roster_service.auth.access_log.entries import mask_filter
from roster_service.auth.registered_client import find_client
from roster_service.change_log.actors import Actor
from roster_service.change_log.changes import Subject, Verb, recorded
from roster_service.db.round_trip import RoundTrips
from roster_service.errors import CommandError, RefusedRequestError
from roster_service.rostering.endpoints import ENDPOINTS
from roster_service.rostering.operations import Address, Operation, show_page
from roster_service.schemas.versions import VERSIONS
from roster_service.serving.orderings import Orderings
from roster_service.serving.params import Limits
from roster_service.serving.reader import Reader
from roster_service.serving.request import AuthorizedRequest
from roster_service.settings import Settings

# The pages of a client's own pulls stay as they are: the look has a caller of its own, who begins none.
_CALLER = "an operator who looks"
_SECONDS = 60
# Orderings that a look may make, in megabytes.
_NONE = 0


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
    found = next((it for it in ENDPOINTS if it.path == f"/{collection}" and not it.ids), None)
    wanted = next((it for it in VERSIONS if it.prefix == version), None)
    if found is None or wanted is None:
        raise CommandError("choose a version and a collection")
    registered = find_client(connection, client_id)
    if registered is None:
        raise CommandError(f"the client {client.name} or its vendor {client.vendor} is disabled, and gets nothing")
    held = tuple(scope for scope in registered.scopes if scope.version == wanted.prefix)
    if not held:
        raise CommandError(f"the client {client.name} has no scope of {wanted.title}")
    token = registered.make_token(held, time.time() + _SECONDS)
    limits = Limits(settings.default_limit, settings.max_limit, settings.filter_length)
    asked = {"filter": filter_, "limit": str(window[1]), "offset": str(window[0])}
    query = urlencode({name: value for name, value in asked.items() if value}, quote_via=quote)
    address = Address(settings.public_url or f"http://{settings.host_and_port}", wanted.root + found.path, query)
    shown = (client.vendor, client.name, f"{address.path}?{query}")
    try:
        operation = Operation(found, wanted, limits, settings.v1p2_errors)
        planned = operation.plan(token, token.admission, address, {})
    except RefusedRequestError as error:
        return CollectionView(*shown, (), 0, str(error))
    # A value of the filter can be the name of a child.
    name = " ".join(filter(None, (address.path, mask_filter(filter_))))
    with recorded(connection, actor, Verb.SHOW, Subject(found.resource.plural, name, vendor=client.vendor), dict):
        round_trips = RoundTrips(serving)
        try:
            reader = Reader(round_trips, Orderings(serving, _NONE), settings.pull_minutes)
            request = AuthorizedRequest(planned.plan, token.vendor_id, _CALLER, token.admission, {})
            read = reader.read_aside(request)
        except RefusedRequestError as error:
            return CollectionView(*shown, (), 0, str(error))
        finally:
            round_trips.close()
        body = json.loads(show_page(planned, read.page, read.state.revision).body)
        return CollectionView(*shown, body[found.resource.plural], read.page.total, None)
