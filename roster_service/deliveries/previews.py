"""Files for an operator: the zip that a vendor would get, and a collection as lines of JSON. Each is recorded in the
change log, and is no disclosure, because the vendor gets nothing."""

from __future__ import annotations

import contextlib
import tempfile
from io import BufferedRandom
from typing import IO

import sqlalchemy as sa

from roster_service.change_log.actors import Actor
from roster_service.change_log.changes import Subject, Verb, recorded
from roster_service.deliveries.accounts import CHANGED, Delivery
from roster_service.deliveries.choices import choose_client, require_preset
from roster_service.deliveries.package import Package, is_open, plan_collection, write_package
from roster_service.deliveries.sources import make_source, make_token, open_snapshots
from roster_service.errors import CommandError
from roster_service.rostering.endpoints import ENDPOINTS
from roster_service.schemas.file_presets import Preset
from roster_service.schemas.versions import VERSIONS
from roster_service.serving.page import escape_root
from roster_service.serving.record_stream import admit, select_records, stream_rows
from roster_service.serving.statements import join_rows, make_record_json
from roster_service.settings import Settings


def preview_package(
    owner: sa.Engine,
    actor: Actor,
    email: str,
    preset_name: str,
    client_id: str | None,
    settings: Settings,
    *,
    digest: str | None = None,
) -> tuple[Package, IO[bytes]]:
    """Makes the zip that a vendor would get now, in a private file without a name, at its beginning. `owner`: of the
    owner of the tables; `client_id`: None for the only client with scopes of the preset's version; `digest`: of the
    file that waits, which this one is to be.

    Raises CommandError for an unknown vendor, preset or client, for another file than one with `digest`, and as
    `write_package`.
    """
    preset = require_preset(preset_name)
    with owner.connect() as connection:
        client = choose_client(connection, email, preset.version, client_id)
    with contextlib.ExitStack() as closing:
        out = closing.enter_context(tempfile.TemporaryFile())
        package = _write(owner, client.client_id, preset, out, settings)
        if digest is not None:
            _require_same(package, digest)
        _record(owner, actor, Verb.DELIVERY_PREVIEW, Subject("file", preset_name, vendor=client.vendor))
        out.seek(0)
        closing.pop_all()
    return package, out


def require_same_file(owner: sa.Engine, found: Delivery, digest: str, settings: Settings) -> None:
    """Raises CommandError if the file of a delivery would now be another one than that with a digest, and as
    `write_package`."""
    with tempfile.TemporaryFile() as out:
        _require_same(_write(owner, found.client_id, require_preset(found.preset), out, settings), digest)


def _write(owner: sa.Engine, client_id: str, preset: Preset, out: BufferedRandom, settings: Settings) -> Package:
    with owner.connect() as connection:
        source = make_source(connection, client_id, preset, settings)
    with open_snapshots(owner, settings) as snapshots, snapshots.connect() as snapshot:
        return write_package(snapshot, source, out)


def _require_same(package: Package, digest: str) -> None:
    if package.digest != digest:
        raise CommandError(
            f"{CHANGED} since this file was made, so the file of now is another one, SHA-256 {package.digest}; make "
            "the file anew, look at that one, and approve it"
        )


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
