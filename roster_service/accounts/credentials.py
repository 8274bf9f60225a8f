"""The credentials of vendors, API keys and client secrets: when each was made, ends, and was used last."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

import sqlalchemy as sa

from roster_service.db.tables import Stamp, api_keys, last_uses, oauth_clients, vendors


class CredentialKind(StrEnum):
    """The kind of a credential."""

    API_KEY = "api key"
    CLIENT_SECRET = "client secret"  # noqa: S105  (a kind)


@dataclass(frozen=True)
class ListedCredential:
    """A credential, without its secret. `name`: the prefix of an API key, or a client id; `vendor`:
    its e-mail; `enabled`: whether its vendor is, and its client; `earlier_ends_at`: the end of the secret that this one
    has replaced, None if that has ended. Instants are ISO 8601, UTC; None: it has no end, or it was never used."""

    kind: CredentialKind
    name: str
    vendor: str
    enabled: bool
    created_at: str
    expires_at: str | None
    used_at: str | None
    used_from: str | None
    earlier_ends_at: str | None = None

    def has_ended(self, now: datetime) -> bool:
        """Returns whether it is not valid any more, nor the secret that it has replaced."""
        return self.ends_within(0, now) and self.earlier_ends_at is None

    def is_unused(self, days: int, now: datetime) -> bool:
        """Returns whether nobody has used it for so many days, since its making at the most."""
        return datetime.fromisoformat(self.used_at or self.created_at) < now - timedelta(days=days)

    def ends_within(self, days: int, now: datetime) -> bool:
        """Returns whether it ends in so many days."""
        return self.expires_at is not None and datetime.fromisoformat(self.expires_at) <= now + timedelta(days=days)

    def announce(self, day: date, days: int, before: date) -> str | None:
        """Returns what to say on a day: `days` days before the last day of the credential, and on the day before it,
        or, once for both, on the first day after these on which something is said, unless it is disabled. `before`: the
        day on which something was said last. The days are in UTC."""
        if self.expires_at is None or not self.enabled:
            return None
        # The instant is the beginning of the day after, unless the credential was replaced with a grace.
        last = (datetime.fromisoformat(self.expires_at) - timedelta(milliseconds=1)).date()
        if day > last or not any(before < last - timedelta(days=step) <= day for step in (days, 1)):
            return None
        return f"the {self.kind} {self.name} of {self.vendor} is valid until {last}, UTC"


def list_credentials(connection: sa.Connection) -> list[ListedCredential]:
    """Lists all credentials, also those that have ended and those of disabled vendors and clients, ordered by vendor.
    The end of a client secret is that of the newest one."""
    keys = sa.select(
        sa.literal(CredentialKind.API_KEY.value).label("kind"),
        api_keys.c.vendor_id,
        api_keys.c.prefix.label("name"),
        sa.true().label("enabled"),
        api_keys.c.created_at,
        api_keys.c.expires_at,
        # The keys before it are rows of their own.
        sa.cast(sa.null(), Stamp).label("earlier_ends_at"),
    )
    secrets = sa.select(
        sa.literal(CredentialKind.CLIENT_SECRET.value).label("kind"),
        oauth_clients.c.vendor_id,
        oauth_clients.c.client_id.label("name"),
        oauth_clients.c.enabled,
        oauth_clients.c.created_at,
        oauth_clients.c.secret_expires_at.label("expires_at"),
        sa.case((oauth_clients.c.previous_secret_ends_at > sa.func.now(), oauth_clients.c.previous_secret_ends_at)),
    )
    found = sa.union_all(keys, secrets).subquery()
    is_enabled = sa.and_(found.c.enabled, vendors.c.enabled).label("is_enabled")
    used = sa.and_(last_uses.c.vendor_id == found.c.vendor_id, last_uses.c.caller == found.c.name)
    rows = (
        sa.select(found, vendors.c.email, is_enabled, last_uses.c.used_at, last_uses.c.address)
        .join(vendors, vendors.c.id == found.c.vendor_id)
        .outerjoin(last_uses, used)
        .order_by(vendors.c.email, found.c.kind, found.c.created_at, found.c.name)
    )
    return [
        ListedCredential(
            kind=CredentialKind(row.kind),
            name=row.name,
            vendor=row.email,
            enabled=row.is_enabled,
            created_at=_format(row.created_at),
            expires_at=row.expires_at and _format(row.expires_at),
            used_at=row.used_at and _format(row.used_at),
            used_from=row.address,
            earlier_ends_at=row.earlier_ends_at and _format(row.earlier_ends_at),
        )
        for row in connection.execute(rows)
    ]


def _format(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat(timespec="seconds")
