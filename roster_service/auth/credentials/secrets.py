"""Secrets that the service makes: 256 random bits after a readable prefix, stored as SHA-256 and shown once.

A secret with 256 random bits cannot be guessed, so it needs no slow hash.

The secret of a client that signs requests is derived from the service's secret key: to verify a signature takes the
secret itself, and the database must not hold it in a form that can be read.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

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
