"""The keys that sign the tokens of both interfaces. The service makes them and stores them in the database.

The newest key signs. An older key still verifies until the last token that it signed has expired.

All workers and machines on one database share the keys. The private keys are encrypted with the service's secret key,
so a copy of the database does not suffice to sign a token.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import sqlalchemy as sa
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from joserfc.jwk import KeySet, RSAKey

from roster_service.change_log.actors import Actor
from roster_service.change_log.changes import State, Subject, Verb, recorded
from roster_service.db.tables import signing_keys
from roster_service.errors import SettingError
from roster_service.settings import Settings

ALGORITHM = "RS256"
KEY_BITS = 2048
# The advisory lock that keeps two workers, starting on an empty database, from making two keys.
KEY_LOCK = 0x526F7375


class KeyRing:
    """The signing keys, with a cache of the public ones. It reads the public keys again when a token names an unknown
    key id: at most once in `pause` seconds, unless the caller knows that the database has the key."""

    pause = 1.0

    def __init__(self, engine: sa.Engine, secret_key: str) -> None:
        self._engine = engine
        self._seal = make_seal(secret_key)
        self._public: Mapping[str, dict[str, Any]] = {}
        self._read_at = float("-inf")

    def read_public(self) -> Mapping[str, dict[str, Any]]:
        """Reads the public keys (JWK) that still verify, by key id, and replaces the cache with them."""
        columns = sa.select(signing_keys.c.key_id, signing_keys.c.public_jwk).order_by(signing_keys.c.created_at)
        with self._engine.connect() as connection:
            rows = connection.execute(columns.where(_verifies())).all()
        self._read_at = time.monotonic()
        self._public = {row.key_id: row.public_jwk for row in rows}
        return self._public

    def find_public(self, key_id: str, *, is_live: bool) -> RSAKey | None:
        """Returns the public key with this id, or None. An unknown id makes it read the keys again, at most once in
        `pause` seconds. `is_live`: the caller has just read in the database that the key verifies; then it is read
        without a pause, because no stranger made the id up.

        The key may have been retired since it was cached: the database checks that when it admits the caller.
        """
        if key_id not in self._public and (is_live or time.monotonic() - self._read_at > self.pause):
            self.read_public()
        jwk = self._public.get(key_id)
        return None if jwk is None else RSAKey.import_key(jwk)

    def has_public(self, key_id: str | None) -> bool:
        """Returns whether the public key with this id is in the cache. It reads nothing."""
        return key_id in self._public

    def read_private(self) -> KeySet:
        """Reads the private key that signs: a set of one key.

        Raises SettingError if another secret key than the service's has sealed it.
        """
        with self._engine.connect() as connection:
            return KeySet([_read_signing_key(connection, self._seal)])


def _verifies() -> sa.ColumnElement[bool]:
    """Returns the condition that a key still verifies."""
    return sa.or_(signing_keys.c.retired_at.is_(None), signing_keys.c.retired_at > sa.func.now())


def _read_signing_key(connection: sa.Connection, seal: Fernet) -> RSAKey:
    newest = sa.select(signing_keys.c.key_id, signing_keys.c.private_sealed).order_by(signing_keys.c.created_at.desc())
    row = connection.execute(newest.where(signing_keys.c.retired_at.is_(None)).limit(1)).one()
    try:
        pem = seal.decrypt(bytes(row.private_sealed))
    except InvalidToken:
        raise SettingError(
            "the signing key was sealed with another ROSTER_SECRET_KEY than the one that is set, or kept in the data "
            "folder; set the one that sealed it, or, if it is lost, run `roster keys rotate --lost`"
        ) from None
    # The service made this key, and the seal shows that nobody has changed it. To check its numbers, as of a key of
    # others, takes most of the time of a token.
    private = cast(RSAPrivateKey, load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=True))
    return RSAKey(private, pem, {"kid": row.key_id, "use": "sig", "alg": ALGORITHM})


def make_seal(secret_key: str) -> Fernet:
    """Returns the cipher that encrypts private keys at rest."""
    return Fernet(base64.urlsafe_b64encode(hashlib.sha256(secret_key.encode()).digest()))


def ensure_signing_key(connection: sa.Connection, secret_key: str) -> None:
    """Makes a signing key if there is none.

    Raises SettingError if another secret key has sealed the newest signing key: the service could sign no token.
    """
    connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": KEY_LOCK})
    if not _has_signing_key(connection):
        add_signing_key(connection, secret_key)
    _read_signing_key(connection, make_seal(secret_key))


def require_secret_key(connection: sa.Connection, settings: Settings) -> str:
    """Returns the secret key of the service for a command, which makes none of its own where the service has one: what
    the command sealed or hashed would be of no use to the service.

    Before the first start of the service there is no signing key: a command that may write makes it, so that a service
    with another secret key says so.

    Raises SettingError if the command has no secret key, or another one than that which sealed the signing key.
    """
    found = find_given_key(connection, settings)
    if connection.scalar(sa.text("SHOW transaction_read_only")) == "off":
        ensure_signing_key(connection, found)
    elif _has_signing_key(connection):
        _read_signing_key(connection, make_seal(found))
    return found


def find_given_key(connection: sa.Connection, settings: Settings) -> str:
    """Returns the secret key that a command was given, whichever it is; makes one before there is a signing key. Raises
    SettingError if it was given none."""
    if not _has_signing_key(connection):
        return settings.read_secret_key()
    found = settings.find_secret_key()
    if found is None:
        raise SettingError(
            f"this command has no ROSTER_SECRET_KEY, and {settings.secret_key_path} is not there; give it the settings "
            "of the service. If the key is lost, set a new one, and run `roster keys rotate --lost`"
        )
    return found


def _has_signing_key(connection: sa.Connection) -> bool:
    known = sa.select(signing_keys.c.key_id).where(signing_keys.c.retired_at.is_(None))
    return connection.execute(known).first() is not None


def add_signing_key(connection: sa.Connection, secret_key: str) -> str:
    """Makes a key that signs from now on. Returns its id."""
    key = RSAKey.generate_key(KEY_BITS, {"use": "sig", "alg": ALGORITHM}, auto_kid=True)
    sealed = make_seal(secret_key).encrypt(key.as_pem(private=True))
    connection.execute(
        sa.insert(signing_keys).values(key_id=key.kid, public_jwk=key.as_dict(private=False), private_sealed=sealed)
    )
    return str(key.kid)


def rotate_signing_key(
    connection: sa.Connection, actor: Actor, secret_key: str, lasting: timedelta, *, is_lost: bool
) -> str:
    """Makes a key that signs from now on, and returns its id. Older keys verify for `lasting`, or shorter if they
    already have an earlier end: to verify takes no secret key.

    `is_lost`: whether the secret key that sealed the present key is lost. Otherwise `secret_key` must be that one, or
    the service could not open the new key; raises SettingError.
    """

    def read_state() -> State:
        return {key.key_id: key.retired_at for key in list_signing_keys(connection)}

    with recorded(connection, actor, Verb.KEYS_ROTATE, Subject("service", "signing keys"), read_state):
        if not is_lost:
            ensure_signing_key(connection, secret_key)
        ends = sa.func.now() + lasting
        longer = sa.or_(signing_keys.c.retired_at.is_(None), signing_keys.c.retired_at > ends)
        connection.execute(sa.update(signing_keys).where(longer).values(retired_at=ends))
        return add_signing_key(connection, secret_key)


@dataclass(frozen=True)
class ListedKey:
    """A signing key for the command line. `state` is `signs`, `verifies` or `retired`; instants are ISO 8601, UTC."""

    key_id: str
    state: str
    created_at: str
    retired_at: str | None


def list_signing_keys(connection: sa.Connection) -> list[ListedKey]:
    """Lists all keys, newest first."""
    columns = (
        signing_keys.c.key_id,
        signing_keys.c.created_at,
        signing_keys.c.retired_at,
        _verifies().label("verifies"),
    )
    rows = connection.execute(sa.select(*columns).order_by(signing_keys.c.created_at.desc(), signing_keys.c.key_id))
    return [
        ListedKey(
            row.key_id,
            "signs" if row.retired_at is None else "verifies" if row.verifies else "retired",
            _format(row.created_at),
            row.retired_at and _format(row.retired_at),
        )
        for row in rows
    ]


def _format(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat(timespec="seconds")
