"""The permission token of the vendor interface (PJWT): a signed JWT with the vendor's districts, schools and flags.

The token carries the version of the vendor's grants, and is valid only while that is the current version: every change
of grants ends it.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import RSAKey

from roster_service.auth.credentials.access_token import LEEWAY_SECONDS
from roster_service.auth.credentials.api_keys import KeyHolder
from roster_service.auth.credentials.signing_keys import ALGORITHM, KeyRing
from roster_service.errors import Problem, RefusedRequestError

PERMISSION_TOKEN_TYPE = "pjwt+jwt"  # noqa: S105  (a type)
PERMISSION_TOKEN_SECONDS = 86_400


def make_permission_token(holder: KeyHolder, keys: KeyRing, *, issuer: str) -> tuple[str, datetime]:
    """Makes a permission token for the holder of an API key. Returns the token and its expiry, in UTC."""
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
    """Returns the `aud` claim of permission tokens, so that no other interface accepts one."""
    return f"{issuer}/v1"


def require_permission_token(token: str, holder: KeyHolder, keys: KeyRing, *, issuer: str) -> None:
    """Checks a permission token against the holder of the API key that came with it.

    Raises RefusedRequestError (BAD_TOKEN) if the token was altered, has expired, was signed with an unknown or retired
    key, has another algorithm, issuer, audience or type, belongs to another vendor or a disabled one, or is older than
    the last change of the grants. The message is the same in all these cases.
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
        # The leeway is for clocks that differ, not for the end: the token lasts 24 hours.
        if decoded.claims["exp"] <= time.time():
            raise refusal
    except (JoseError, ValueError, KeyError, TypeError):
        raise refusal from None
    if decoded.header.get("typ") != PERMISSION_TOKEN_TYPE or not holder.enabled:
        raise refusal


def _find_key(unverified: Any, holder: KeyHolder, keys: KeyRing) -> RSAKey:
    key_id = unverified.headers().get("kid")
    # The cache of the key ring may hold retired keys; the ids of the valid ones were read with the holder.
    key = keys.find_public(key_id) if isinstance(key_id, str) and key_id in holder.live_keys else None
    if key is None:
        raise ValueError("no such key")
    return key
