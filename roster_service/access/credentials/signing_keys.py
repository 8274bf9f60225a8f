"""The keys that sign access tokens: made by the service, kept in the database, the private half sealed.

The newest one signs. The one before it verifies until the last of its tokens has ended.

Every worker and machine that shares the database shares the keys. The private half is encrypted with the service's
secret key, so a copy of the database alone signs nothing.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography.fernet import Fernet, InvalidToken
from joserfc.jwk import KeySet, RSAKey
from sqlalchemy import ColumnElement, Connection, Engine, func, insert, or_, select, text, update

from roster_service.db.tables import signing_keys
from roster_service.errors import SettingError

ALGORITHM = "RS256"
KEY_BITS = 2048
# Two workers that start on an empty database make one key, not two.
KEY_LOCK = 0x526F7375


class KeyRing:
    """The signing keys as one process knows them: read when a key id is new, at most once every `pause` seconds."""

    pause = 1.0

    def __init__(self, engine: Engine, secret_key: str) -> None:
        self._engine = engine
        self._seal = make_seal(secret_key)
        self._public: Mapping[str, dict[str, Any]] = {}
        self._read_at = float("-inf")

    def read_public(self) -> Mapping[str, dict[str, Any]]:
        """The public halves of all keys that still verify, by key id."""
        columns = select(signing_keys.c.key_id, signing_keys.c.public_jwk).order_by(signing_keys.c.created_at)
        with self._engine.connect() as connection:
            rows = connection.execute(columns.where(_verifies())).all()
        self._read_at = time.monotonic()
        self._public = {row.key_id: row.public_jwk for row in rows}
        return self._public

    def find_public(self, key_id: str) -> RSAKey | None:
        """The public key with this id, or None; a stranger's id makes the ring read again, but not too often.

        A key that was retired since may be found; whether its signatures count now is read with the caller.
        """
        if key_id not in self._public and time.monotonic() - self._read_at > self.pause:
            self.read_public()
        jwk = self._public.get(key_id)
        return None if jwk is None else RSAKey.import_key(jwk)

    def knows(self, key_id: str) -> bool:
        """Whether the key with this id verified when the ring was read last."""
        return key_id in self._public

    def read_private(self) -> KeySet:
        """The newest key with its private half, to sign with.

        Raises SettingError where the sealed key cannot be opened: it was sealed with another secret key.
        """
        with self._engine.connect() as connection:
            return KeySet([_read_signing_key(connection, self._seal)])


def _verifies() -> ColumnElement[bool]:
    """Whether the signatures of a key count now."""
    return or_(signing_keys.c.retired_at.is_(None), signing_keys.c.retired_at > func.now())


def _read_signing_key(connection: Connection, seal: Fernet) -> RSAKey:
    newest = select(signing_keys.c.key_id, signing_keys.c.private_sealed).order_by(signing_keys.c.created_at.desc())
    row = connection.execute(newest.where(signing_keys.c.retired_at.is_(None)).limit(1)).one()
    try:
        pem = seal.decrypt(bytes(row.private_sealed))
    except InvalidToken:
        raise SettingError(
            "the signing key was sealed with another ROSTER_SECRET_KEY than the one that is set, or kept in the data "
            "folder; set the one that sealed it"
        ) from None
    return RSAKey.import_key(pem, {"kid": row.key_id, "use": "sig", "alg": ALGORITHM})


def make_seal(secret_key: str) -> Fernet:
    """The cipher that seals private keys at rest."""
    return Fernet(base64.urlsafe_b64encode(hashlib.sha256(secret_key.encode()).digest()))


def ensure_signing_key(connection: Connection, secret_key: str) -> None:
    """Makes the first signing key where there is none.

    Raises SettingError where the newest one was sealed with another secret key: no token could be signed.
    """
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": KEY_LOCK})
    if connection.execute(select(signing_keys.c.key_id).where(signing_keys.c.retired_at.is_(None))).first() is None:
        add_signing_key(connection, secret_key)
    _read_signing_key(connection, make_seal(secret_key))


def add_signing_key(connection: Connection, secret_key: str) -> str:
    """Makes a key that signs from now on; returns its id."""
    key = RSAKey.generate_key(KEY_BITS, {"use": "sig", "alg": ALGORITHM}, auto_kid=True)
    sealed = make_seal(secret_key).encrypt(key.as_pem(private=True))
    connection.execute(
        insert(signing_keys).values(key_id=key.kid, public_jwk=key.as_dict(private=False), private_sealed=sealed)
    )
    return str(key.kid)


def rotate_signing_key(connection: Connection, secret_key: str, lasting: timedelta) -> str:
    """Makes a key that signs from now on; those before it verify for `lasting`, and none longer than it would have.

    Raises SettingError where the service's secret key is another one: the service could not open the new key.
    """
    ensure_signing_key(connection, secret_key)
    ends = func.now() + lasting
    longer = or_(signing_keys.c.retired_at.is_(None), signing_keys.c.retired_at > ends)
    connection.execute(update(signing_keys).where(longer).values(retired_at=ends))
    return add_signing_key(connection, secret_key)


@dataclass(frozen=True)
class ListedKey:
    """A key of the service: `state` is `signs`, `verifies` or `retired`. Instants are ISO 8601."""

    key_id: str
    state: str
    created_at: str
    retired_at: str | None


def list_signing_keys(connection: Connection) -> list[ListedKey]:
    """Every key, the newest first."""
    columns = (
        signing_keys.c.key_id,
        signing_keys.c.created_at,
        signing_keys.c.retired_at,
        _verifies().label("verifies"),
    )
    rows = connection.execute(select(*columns).order_by(signing_keys.c.created_at.desc(), signing_keys.c.key_id))
    return [
        ListedKey(
            row.key_id,
            "signs" if row.retired_at is None else "verifies" if row.verifies else "retired",
            _show(row.created_at),
            row.retired_at and _show(row.retired_at),
        )
        for row in rows
    ]


def _show(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat(timespec="seconds")
