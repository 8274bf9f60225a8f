"""Secrets of our making: 256 random bits behind a readable prefix, stored as their SHA-256, shown once.

A random secret of that size needs no slow hash: there is nothing to guess.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

CLIENT_ID_PREFIX = "client-"
CLIENT_SECRET_PREFIX = "secret-"  # noqa: S105  (the readable part)


def make_client_id() -> str:
    """A new OAuth client id; only unreserved characters, so that no spelling of Basic credentials changes it."""
    return CLIENT_ID_PREFIX + secrets.token_hex(8)


def make_api_key() -> str:
    """A new API key: `key-`, eight characters that people may name it by, and 256 random bits."""
    return make_secret(f"key-{secrets.token_hex(4)}-")


def make_password() -> str:
    """A password for a vendor that brings none: 144 random bits."""
    return secrets.token_urlsafe(18)


def make_secret(prefix: str) -> str:
    """A new secret of 256 random bits behind `prefix`; only unreserved characters."""
    return prefix + secrets.token_urlsafe(32)


def hash_secret(secret: str) -> bytes:
    """What is stored of a secret."""
    return hashlib.sha256(secret.encode()).digest()


def verify_secret(secret: str, stored: bytes) -> bool:
    """Whether `secret` is the one whose hash is `stored`, in a time that tells nothing."""
    return hmac.compare_digest(hash_secret(secret), stored)
