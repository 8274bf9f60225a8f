"""The permission token of the vendor interface (PJWT): a signed JWT that says which districts, schools and flags.

What it says is what the database said when it was made. It carries the version of the grants, and counts only while
that is the current one, so it can be neither altered nor outlive a change.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import RSAKey

from roster_service.access.credentials.access_token import LEEWAY_SECONDS
from roster_service.access.credentials.api_keys import KeyHolder
from roster_service.access.credentials.signing_keys import ALGORITHM, KeyRing
from roster_service.errors import Problem, RefusedRequestError

PERMISSION_TOKEN_TYPE = "pjwt+jwt"  # noqa: S105  (a type)
PERMISSION_TOKEN_SECONDS = 86_400


def make_permission_token(holder: KeyHolder, keys: KeyRing, *, issuer: str) -> tuple[str, datetime]:
    """A permission token for the holder of a key, and when it ends."""
    [key] = keys.read_private().keys
    made_at = int(time.time())
    ends_at = made_at + PERMISSION_TOKEN_SECONDS
    claims = {
        "iss": issuer,
        "aud": make_permission_token_audience(issuer),
        "sub": str(holder.vendor_id),
        "districts": list(holder.districts),
        "schools": list(holder.schools),
        "flags": sorted(holder.flags),
        "ver": holder.grant_version,
        "iat": made_at,
        "exp": ends_at,
    }
    token = jwt.encode(
        {"alg": ALGORITHM, "typ": PERMISSION_TOKEN_TYPE, "kid": key.kid}, claims, key, algorithms=[ALGORITHM]
    )
    return token, datetime.fromtimestamp(ends_at, UTC)


def make_permission_token_audience(issuer: str) -> str:
    """Whom a permission token is for: the vendor interface, and no other door."""
    return f"{issuer}/v1"


def require_permission_token(token: str, holder: KeyHolder, keys: KeyRing, *, issuer: str) -> None:
    """Holds a permission token against the holder of the API key that came with it.

    Raises RefusedRequestError (BAD_TOKEN), with the same words whatever is wrong: altered, expired, another key or one
    that is retired, another algorithm, issuer, audience or kind of token, another vendor's, a disabled vendor's, or
    made before the grants changed.
    """
    refusal = RefusedRequestError(Problem.BAD_TOKEN, "the permission token is not valid; log in again")
    try:
        decoded = jwt.decode(token, lambda unverified: _find_key(unverified, holder, keys), algorithms=[ALGORITHM])
        jwt.JWTClaimsRegistry(
            leeway=LEEWAY_SECONDS,
            iss={"essential": True, "value": issuer},
            aud={"essential": True, "value": make_permission_token_audience(issuer)},
            sub={"essential": True, "value": str(holder.vendor_id)},
            ver={"essential": True, "value": holder.grant_version},
            exp={"essential": True},
            iat={"essential": True},
        ).validate(decoded.claims)
    except (JoseError, ValueError, KeyError, TypeError):
        raise refusal from None
    if decoded.header.get("typ") != PERMISSION_TOKEN_TYPE or not holder.enabled:
        raise refusal


def _find_key(unverified: Any, holder: KeyHolder, keys: KeyRing) -> RSAKey:
    key_id = unverified.headers().get("kid")
    # The ring remembers keys; which of them still count was read with the holder.
    key = keys.find_public(key_id) if isinstance(key_id, str) and key_id in holder.live_keys else None
    if key is None:
        raise ValueError("no such key")
    return key
