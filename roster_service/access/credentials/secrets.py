"""Secrets that the service makes: 256 random bits after a readable prefix, stored as SHA-256 and shown once.

A secret with 256 random bits cannot be guessed, so it needs no slow hash.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

CLIENT_ID_PREFIX = "client-"
CLIENT_SECRET_PREFIX = "secret-"  # noqa: S105  (the readable part)


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


def hash_secret(secret: str) -> bytes:
    """Returns the SHA-256 of a secret, which the database stores in its place."""
    return hashlib.sha256(secret.encode()).digest()


def verify_secret(secret: str, stored: bytes) -> bool:
    """Returns whether `stored` is the hash of `secret`. The comparison takes the same time for every secret."""
    return hmac.compare_digest(hash_secret(secret), stored)
