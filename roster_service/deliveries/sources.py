"""Whose roster a file has: the client of a vendor, with its rights as they are now."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from roster_service.auth.agreed_rights import note_ended
from roster_service.auth.credentials.tokens import AccessToken
from roster_service.auth.registered_client import find_client
from roster_service.db.engine import make_snapshot_engine
from roster_service.db.roles import DatabaseRole, make_role_urls
from roster_service.db.tables import feeds, visible_feeds
from roster_service.deliveries.package import Source
from roster_service.errors import CommandError, NotAgreedError, RefusedRequestError
from roster_service.schemas.file_presets import Preset
from roster_service.schemas.versions import Version
from roster_service.settings import Settings

_SECONDS = 600


@contextmanager
def open_snapshots(owner: sa.Engine, settings: Settings) -> Iterator[sa.Engine]:
    """Yields an engine of the serving role, each of whose transactions reads one snapshot. `owner`: as the owner of the
    tables. A refusal of the client in the block becomes a CommandError."""
    with owner.connect() as connection:
        url = make_role_urls(connection, settings.role_password)[DatabaseRole.SERVING]
    engine = make_snapshot_engine(url)
    try:
        yield engine
    except RefusedRequestError as error:
        if isinstance(error, NotAgreedError):
            note_ended(owner)
        raise CommandError(str(error)) from None
    finally:
        engine.dispose()


def make_token(connection: sa.Connection, client_id: str, version: Version) -> AccessToken:
    """Returns the claims of the client, as a token with all its scopes of the version would have them now. Raises
    CommandError if it gets no token."""
    registered = find_client(connection, client_id, even_disabled=True)
    # Its secret may have ended: a file needs none.
    if registered is None or (registered.disabled or "").endswith("is disabled"):
        raise CommandError(f"{'there is no such client' if registered is None else registered.disabled}")
    held = tuple(scope for scope in registered.scopes if scope.version == version.prefix)
    if not held:
        raise CommandError(f"the client has no scope of {version.title} any more, or its agreement allows none")
    return registered.make_token(held, time.time() + _SECONDS)


def make_source(connection: sa.Connection, client_id: str, preset: Preset, settings: Settings) -> Source:
    """Returns the source of a package. Raises CommandError as `make_token`."""
    token = make_token(connection, client_id, preset.version)
    seen = sa.select(feeds.c.id, feeds.c.name).join(visible_feeds, visible_feeds.c.feed_id == feeds.c.id)
    rows = connection.execute(seen.where(visible_feeds.c.vendor_id == token.vendor_id))
    return Source(preset, token, settings.read_secret_key(), {row.id: row.name for row in rows})
