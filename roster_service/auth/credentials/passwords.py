"""Passwords: stored as argon2id, and checked with the same work whether the account exists or not."""

from __future__ import annotations

import functools

import sqlalchemy as sa
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerifyMismatchError

from roster_service.db.tables import vendors
from roster_service.errors import CommandError

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
    """Returns whether the enabled vendor with this id has this e-mail and this password.

    An unknown e-mail, the e-mail of another vendor, and a vendor without a password take the same time as a wrong
    password: the time tells a caller nothing.
    """
    stored = connection.execute(
        sa.select(vendors.c.password_hash).where(
            vendors.c.id == vendor_id, vendors.c.email == email.strip().lower(), vendors.c.enabled
        )
    ).scalar_one_or_none()
    return matches_password(stored, password)
