"""OAuth clients, as the check of their credentials needs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from roster_service.auth.agreed_rights import find_rights, read_rights
from roster_service.auth.credentials.tokens import AccessToken
from roster_service.auth.scopes import Scope, read_scopes
from roster_service.db.tables import oauth_clients, vendors
from roster_service.roster.withheld import WithheldField


@dataclass(frozen=True)
class RegisteredClient:
    """A client with all that the check of its credentials needs of it and of its vendor. `secret_hashes`: of its
    secret, and of the previous one during its grace; `salts`: what the same secrets are derived from, none for a client
    that may not sign requests; `scopes`, `metadata_keys`: those that its agreement allows, None for all; `disabled`:
    why it gets no token in spite of the right secret, only if `find_client` was asked for disabled clients, too;
    `not_agreed`: why its agreement lets it read nothing now, None for nothing."""

    client_id: str
    secret_hashes: tuple[bytes, ...]
    salts: tuple[bytes, ...]
    scopes: tuple[Scope, ...]
    client_version: int
    vendor_id: int
    grant_version: int
    visibility_key: str
    withheld: frozenset[WithheldField]
    metadata_keys: frozenset[str] | None
    has_rules: bool
    disabled: str | None = None
    not_agreed: str | None = None

    def make_token(self, scopes: Sequence[Scope], expires_at: float) -> AccessToken:
        """Returns the claims of an access token of the client with these scopes, which no key has signed.
        `expires_at`: in seconds since 1970."""
        return AccessToken(
            client_id=self.client_id,
            vendor_id=self.vendor_id,
            grant_version=self.grant_version,
            client_version=self.client_version,
            visibility_key=self.visibility_key,
            withheld=self.withheld,
            metadata_keys=self.metadata_keys,
            has_rules=self.has_rules,
            scopes=tuple(scopes),
            key_id=None,
            expires_at=expires_at,
        )


def find_client(connection: sa.Connection, client_id: str, *, even_disabled: bool = False) -> RegisteredClient | None:
    """Returns the client with this id, or None if it is unknown, its secrets have ended, or it or its vendor is
    disabled. `even_disabled`: returns such a client, too, with the reason in `disabled`."""
    has_ended = (oauth_clients.c.secret_expires_at <= sa.func.now()).label("has_ended")
    in_grace = (oauth_clients.c.previous_secret_ends_at > sa.func.now()).label("in_grace")
    of_vendor = (
        vendors.c.grant_version,
        vendors.c.visibility_key,
        vendors.c.enabled.label("vendor_enabled"),
        vendors.c.has_rules,
        *read_rights(),
    )
    row = connection.execute(
        sa.select(oauth_clients, has_ended, in_grace, *of_vendor)
        .select_from(oauth_clients.join(vendors))
        .where(oauth_clients.c.client_id == client_id)
    ).one_or_none()
    if row is None:
        return None
    secrets = [] if row.has_ended else [(row.secret_hash, row.secret_salt)]
    if row.in_grace:
        secrets.append((row.previous_secret_hash, row.previous_secret_salt))
    reasons = {
        "the client is disabled": not row.enabled,
        "the vendor of the client is disabled": not row.vendor_enabled,
        "the secret of the client has ended": not secrets,
    }
    disabled = next((reason for reason, holds in reasons.items() if holds), None)
    if disabled and not even_disabled:
        return None
    rights = find_rights(row)
    # The holder of the right secret learns why there is no token, even if the secret has ended.
    secrets = secrets or [(row.secret_hash, row.secret_salt)]
    return RegisteredClient(
        client_id=row.client_id,
        secret_hashes=tuple(bytes(hashed) for hashed, _ in secrets),
        salts=tuple(bytes(salt) for _, salt in secrets if salt is not None),
        scopes=rights.limit(read_scopes(row.scopes)),
        client_version=row.version,
        vendor_id=row.vendor_id,
        grant_version=row.grant_version,
        visibility_key=str(row.visibility_key),
        withheld=rights.withheld,
        metadata_keys=rights.metadata_keys,
        has_rules=row.has_rules,
        disabled=disabled,
        not_agreed=row.not_agreed,
    )
