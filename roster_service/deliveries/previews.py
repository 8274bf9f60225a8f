"""Files for an operator: the zip that a vendor would get, and a collection as lines of JSON. Each is recorded in the
change log, and is no disclosure, because the vendor gets nothing."""

from __future__ import annotations

import contextlib
import tempfile
from typing import IO

import sqlalchemy as sa

from roster_service.change_log.actors import Actor
from roster_service.change_log.changes import Subject, Verb, recorded
from roster_service.deliveries.choices import choose_client, require_preset
from roster_service.deliveries.package import Package, is_open, plan_collection, write_package
from roster_service.deliveries.sources import make_source, make_token, open_snapshots
from roster_service.errors import CommandError
from roster_service.rostering.endpoints import ENDPOINTS
from roster_service.schemas.versions import VERSIONS
from roster_service.serving.page import escape_root
from roster_service.serving.record_stream import admit, select_records, stream_rows
from roster_service.serving.statements import join_rows, make_record_json
from roster_service.settings import Settings


def preview_package(
    owner: sa.Engine, actor: Actor, email: str, preset_name: str, client_id: str | None, settings: Settings
) -> tuple[Package, IO[bytes]]:
    """Makes the zip that a vendor would get now, in a private file without a name, at its beginning. `owner`: of the
    owner of the tables; `client_id`: None for the only client with scopes of the preset's version.

    Raises CommandError for an unknown vendor, preset or client, and as `write_package`.
    """
    preset = require_preset(preset_name)
    with owner.connect() as connection:
        client = choose_client(connection, email, preset.version, client_id)
        source = make_source(connection, client.client_id, preset, settings)
    with contextlib.ExitStack() as closing:
        out = closing.enter_context(tempfile.TemporaryFile())
        with open_snapshots(owner, settings) as snapshots, snapshots.connect() as snapshot:
            package = write_package(snapshot, source, out)
        _record(owner, actor, Verb.DELIVERY_PREVIEW, Subject("file", preset_name, vendor=client.vendor))
        out.seek(0)
        closing.pop_all()
    return package, out


def export_collection(
    owner: sa.Engine,
    actor: Actor,
    email: str,
    version_prefix: str,
    collection: str,
    client_id: str | None,
    out: IO[str],
    settings: Settings,
) -> int:
    """Writes the active records of a collection as a vendor gets them, the JSON of each on a line, ordered by id.
    Returns their number. Raises CommandError for an unknown vendor, client or collection, and one that its scopes do
    not open."""
    version = next(version for version in VERSIONS if version.prefix == version_prefix)
    endpoint = next((endpoint for endpoint in ENDPOINTS if endpoint.path == f"/{collection}"), None)
    if endpoint is None:
        known = ", ".join(endpoint.path[1:] for endpoint in ENDPOINTS if endpoint.path.count("/") == 1)
        raise CommandError(f"there is no collection {collection[:40]}; there are {known}")
    with owner.connect() as connection:
        client = choose_client(connection, email, version, client_id)
        token = make_token(connection, client.client_id, version)
    if not is_open(endpoint, token):
        raise CommandError(f"the client {client.name} lacks {' and '.join(endpoint.access.value)}")
    plan = plan_collection(endpoint, version, token)
    root = escape_root(f"{settings.find_root_url()}{version.root}")
    number = 0
    with open_snapshots(owner, settings) as snapshots, snapshots.connect() as snapshot:
        admit(snapshot, token.admission, token.vendor_id)
        text, source = make_record_json(plan.shape), join_rows(plan.shape, plan.shape.view.record.table)
        rows = select_records(snapshot, plan, token.vendor_id, text, base_url=root).select_from(source)
        for (body,) in stream_rows(snapshot, rows):
            out.write(body + "\n")
            number += 1
    _record(owner, actor, Verb.EXPORT, Subject(endpoint.resource.plural, endpoint.path, vendor=client.vendor))
    return number


def _record(owner: sa.Engine, actor: Actor, verb: Verb, subject: Subject) -> None:
    with owner.begin() as connection, recorded(connection, actor, verb, subject, dict):
        pass
