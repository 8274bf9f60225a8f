"""Secrets and passwords: how they are made, hashed, derived and checked.

A secret with 256 random bits cannot be guessed, so it needs no slow hash.

The secret of a client that signs requests is derived from the service's secret key: to verify a signature takes the
secret itself, and the database must not hold it in a form that can be read.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import secrets

import sqlalchemy as sa
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerifyMismatchError

from roster_service.db.tables import vendors
from roster_service.errors import CommandError

CLIENT_ID_PREFIX = "client-"
CLIENT_SECRET_PREFIX = "secret-"  # noqa: S105  (the readable part)
SALT_BYTES = 32


def make_client_id() -> str:
    """Returns a new OAuth client id. It has unreserved characters only, which every encoding of Basic credentials
    leaves as they are."""
    return CLIENT_ID_PREFIX + secrets.token_hex(8)


def make_api_key() -> str:
    """Returns a new API key: `key-`, eight characters by which people can name the key, and 256 random bits."""
    return make_secret(f"key-{secrets.token_hex(4)}-")


def make_password() -> str:
    """Returns a password of 144 random bits, for a vendor whose operator names none."""
    return secrets.token_urlsafe(18)


def make_secret(prefix: str) -> str:
    """Returns `prefix` and 256 random bits, in unreserved characters only."""
    return prefix + secrets.token_urlsafe(32)


def make_salt() -> bytes:
    """Returns the salt of a derived secret: 256 random bits."""
    return secrets.token_bytes(SALT_BYTES)


def derive_secret(secret_key: str, client_id: str, salt: bytes) -> str:
    """Returns the secret of a client that signs requests, of the form of `make_secret`.

    `secret_key`: of the service. The secret depends on the client id, so a salt that is copied to another client gives
    another secret.
    """
    derived = hmac.digest(secret_key.encode(), b"roster client secret " + client_id.encode() + b" " + salt, "sha256")
    return CLIENT_SECRET_PREFIX + base64.urlsafe_b64encode(derived).rstrip(b"=").decode()


def hash_secret(secret: str) -> bytes:
    """Returns the SHA-256 of a secret, which the database stores in its place."""
    return hashlib.sha256(secret.encode()).digest()


def verify_secret(secret: str, stored: bytes) -> bool:
    """Returns whether `stored` is the hash of `secret`. The comparison takes the same time for every secret."""
    return hmac.compare_digest(hash_secret(secret), stored)


MIN_CHARACTERS = 12
MAX_CHARACTERS = 256
# The parameters that OWASP recommends for argon2id. More memory would double the time of a login.
_HASHER = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)


@functools.cache
def _make_decoy_hash() -> str:
    """Returns a hash to verify against where no password is stored, so that the response time shows no difference."""
    return _HASHER.hash("nobody has this password")


def hash_password(password: str) -> str:
    """Returns the argon2id hash of a password. Raises CommandError if it is too short or too long."""
    if not MIN_CHARACTERS <= len(password) <= MAX_CHARACTERS:
        raise CommandError(f"a password has {MIN_CHARACTERS} to {MAX_CHARACTERS} characters")
    return _HASHER.hash(password)


def matches_password(stored: str | None, password: str) -> bool:
    """Returns whether `stored` is the hash of a password. None takes the same time as a hash: the time tells a caller
    nothing about the account."""
    try:
        _HASHER.verify(stored or _make_decoy_hash(), password)
    except (VerifyMismatchError, InvalidHashError):
        return False
    return stored is not None


def set_password(connection: sa.Connection, vendor_id: int, password: str) -> None:
    """Sets a vendor's password. Raises CommandError if it is too short or too long."""
    hashed = hash_password(password)
    connection.execute(sa.update(vendors).where(vendors.c.id == vendor_id).values(password_hash=hashed))


def verify_password(connection: sa.Connection, vendor_id: int, email: str, password: str) -> bool:
    """Returns whether the vendor with this id, enabled or not, has this e-mail and this password.

    An unknown e-mail, the e-mail of another vendor, and a vendor without a password take the same time as a wrong
    password: the time tells a caller nothing.
    """
    stored = connection.execute(
        sa.select(vendors.c.password_hash).where(vendors.c.id == vendor_id, vendors.c.email == email.strip().lower())
    ).scalar_one_or_none()
    return matches_password(stored, password)
