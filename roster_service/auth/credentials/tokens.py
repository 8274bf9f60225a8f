"""The tokens of both interfaces: access tokens (OAuth 2.0), permission tokens (PJWT).

Verified access tokens are cached by their hash, so the process does not keep tokens in memory. The cache holds no state
of the client: the database checks the client and the signing key with every request.

A permission token is a signed JWT with the districts, schools and flags of a vendor. It carries the version of the
vendor's grants, and is valid only while that is the current version: every change of grants ends it.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from cachetools import LRUCache
from joserfc import jwt
from joserfc.errors import ExpiredTokenError, JoseError
from joserfc.jwk import RSAKey

from roster_service.auth.credentials.api_keys import KeyHolder
from roster_service.auth.credentials.signing_keys import ALGORITHM, KeyRing
from roster_service.auth.scopes import TOKEN_PATH, Scope, ScopeName, make_content_rights, read_scopes
from roster_service.db.round_trip import Call
from roster_service.errors import Problem, RefusedRequestError
from roster_service.roster.visibility import ContentRights
from roster_service.roster.withheld import FIELDS_DIGEST, WithheldField

TOKEN_TYPE = "at+jwt"  # noqa: S105  (RFC 9068: the `typ` of an access token)
# The clocks of two machines may differ by this much.
LEEWAY_SECONDS = 60
# The function runs as the owner of the tables, because the role that serves requests cannot read accounts. If all
# claims of the token still hold, it sets the settings that the policies read, for the rest of the transaction.
_ADMIT = sa.text(
    "SELECT admit_client("
    ":client, :vendor, :client_version, :grant_version, CAST(:visibility_key AS uuid), :key_id, :guardians, "
    "CAST(:slots AS integer))"
).bindparams(*(sa.bindparam(name, type_=sa.Text) for name in ("client", "visibility_key", "key_id")))
# An entry takes less than a kilobyte.
KEPT_TOKENS = 4096
PERMISSION_TOKEN_TYPE = "pjwt+jwt"  # noqa: S105  (a type)
PERMISSION_TOKEN_SECONDS = 86_400


@dataclass(frozen=True)
class AccessToken:
    """The claims of an access token whose signature, times, issuer and audience were verified; or what a token of the
    client would say, for a signed request. `visibility_key`: the vendor's random key for this version of its grants,
    which row-level security compares; `withheld`, and `metadata_keys`, None for all: a change of these, too, gives the
    grants another version; `has_rules`: whether one of the grants has rules; `key_id`: of the key that signed the
    token, None for a client that was admitted by a signed request; `expires_at`: seconds since 1970."""

    client_id: str
    vendor_id: int
    grant_version: int
    client_version: int
    visibility_key: str
    withheld: frozenset[WithheldField]
    metadata_keys: frozenset[str] | None
    has_rules: bool
    scopes: tuple[Scope, ...]
    key_id: str | None
    expires_at: float

    @property
    def caller(self) -> str:
        """The client, as logs name it."""
        return self.client_id

    @property
    def version(self) -> str:
        """The OneRoster version of the scopes, `v1p1` or `v1p2`. A token has scopes of one version only."""
        return self.scopes[0].version

    @cached_property
    def scope_names(self) -> frozenset[ScopeName]:
        """The scopes without their version."""
        return frozenset(scope.name for scope in self.scopes)

    @cached_property
    def short_scopes(self) -> str:
        """The scopes in their short spelling, separated by spaces."""
        return " ".join(scope.short for scope in self.scopes)

    @cached_property
    def tag_facts(self) -> str:
        """The facts of the caller that an entity tag depends on, one a line."""
        facts = (str(self.vendor_id), str(self.grant_version), ",".join(sorted(self.scope_names)))
        return "\n".join((*facts, ",".join(sorted(self.withheld)), *sorted(self.rights.metadata_keys or ())))

    @cached_property
    def rights(self) -> ContentRights:
        """The content rights of these scopes, less the withheld fields."""
        return make_content_rights(self.scope_names, self.withheld, self.metadata_keys, has_rules=self.has_rules)

    @cached_property
    def admission(self) -> Call:
        """The call that admits the client for one transaction: row-level security then shows that transaction the rows
        that the client may see, and no others."""
        values = {
            "client": self.client_id,
            "vendor": self.vendor_id,
            "client_version": self.client_version,
            "grant_version": self.grant_version,
            "visibility_key": self.visibility_key,
            "key_id": self.key_id,
            "guardians": self.rights.guardians,
            "slots": None,
        }
        return Call(_ADMIT, values)

    def admit(self, slots: int | None) -> Call:
        """Returns the admission that takes one of so many slots of the vendor, or none for None. Equal arguments give
        the same call."""
        if slots is None:
            return self.admission
        if slots not in self._admissions:
            self._admissions[slots] = Call(_ADMIT, {**self.admission.values, "slots": slots})
        return self._admissions[slots]

    @cached_property
    def _admissions(self) -> dict[int, Call]:
        return {}


def sign_access_token(token: AccessToken, keys: KeyRing, *, issuer: str) -> str:
    """Returns the access token with these claims: a JWT (RFC 9068), which carries the versions of the grants and of the
    client, the visibility key, and the withheld fields, and ends when one of them changes."""
    claims = {
        "iss": issuer,
        "aud": make_access_token_audience(issuer),
        "sub": token.client_id,
        "client_id": token.client_id,
        "iat": int(time.time()),
        "exp": int(token.expires_at),
        "jti": secrets.token_hex(16),
        "scope": " ".join(map(str, token.scopes)),
        "vendor_id": token.vendor_id,
        "grant_version": token.grant_version,
        "client_version": token.client_version,
        "visibility_key": token.visibility_key,
        "withheld": sorted(token.withheld),
        "fields": FIELDS_DIGEST,
        "metadata_keys": None if token.metadata_keys is None else sorted(token.metadata_keys),
        "has_rules": token.has_rules,
    }
    return _sign(TOKEN_TYPE, claims, keys)


def _sign(kind: str, claims: dict[str, Any], keys: KeyRing) -> str:
    [key] = keys.read_private().keys
    return jwt.encode({"alg": ALGORITHM, "typ": kind, "kid": key.kid}, claims, key, algorithms=[ALGORITHM])


def read_access_token(token: str, keys: KeyRing, *, issuer: str) -> AccessToken:
    """Verifies an access token and returns its claims.

    Raises RefusedRequestError (BAD_TOKEN) if the token was altered, was signed with an unknown key, or has another
    algorithm, issuer, audience or type, and (ENDED_TOKEN) if it has expired. The message is the same in all these
    cases.
    """
    message = f"the access token is not valid; get a new one from {TOKEN_PATH}"
    refusal = RefusedRequestError(Problem.BAD_TOKEN, message)
    try:
        decoded = jwt.decode(token, lambda unverified: _find_key(unverified, keys), algorithms=[ALGORITHM])
        if decoded.header.get("typ") != TOKEN_TYPE:
            raise refusal
        jwt.JWTClaimsRegistry(
            leeway=LEEWAY_SECONDS,
            iss={"essential": True, "value": issuer},
            aud={"essential": True, "value": make_access_token_audience(issuer)},
            exp={"essential": True},
            iat={"essential": True},
            client_id={"essential": True},
        ).validate(decoded.claims)
        return _read_claims(decoded.claims, str(decoded.header["kid"]))
    except ExpiredTokenError:
        raise RefusedRequestError(Problem.ENDED_TOKEN, message) from None
    except (JoseError, ValueError, KeyError, TypeError):
        raise refusal from None


def _find_key(unverified: Any, keys: KeyRing) -> RSAKey:
    key_id = unverified.headers().get("kid")
    key = keys.find_public(key_id, is_live=False) if isinstance(key_id, str) else None
    if key is None:
        raise ValueError("no such key")
    return key


def _read_claims(claims: dict[str, Any], key_id: str) -> AccessToken:
    scopes = read_scopes(str(claims["scope"]).split())
    vendor_id = int(claims["vendor_id"])
    if not scopes or "\x00" in str(claims["client_id"]) or not 0 < vendor_id < 2**31:
        raise ValueError("no token of this service")
    # A worker of another version goes on beside this one after an upgrade.
    if claims["fields"] != FIELDS_DIGEST:
        raise ValueError("it lists what another version can withhold")
    return AccessToken(
        client_id=str(claims["client_id"]),
        vendor_id=vendor_id,
        grant_version=int(claims["grant_version"]),
        client_version=int(claims["client_version"]),
        visibility_key=str(UUID(claims["visibility_key"])),
        withheld=frozenset(map(WithheldField, claims["withheld"])),
        metadata_keys=None if claims["metadata_keys"] is None else frozenset(map(str, claims["metadata_keys"])),
        has_rules=bool(claims["has_rules"]),
        scopes=scopes,
        key_id=key_id,
        expires_at=float(claims["exp"]),
    )


def make_access_token_audience(issuer: str) -> str:
    """Returns the `aud` claim of access tokens, so that no other interface accepts one."""
    return f"{issuer}/ims/oneroster"


class TokenReader:
    """Verifies the access tokens of one issuer, with a cache. Threads may share it."""

    def __init__(self, keys: KeyRing, issuer: str) -> None:
        self._keys = keys
        self._issuer = issuer
        self._verified: LRUCache[bytes, AccessToken] = LRUCache(KEPT_TOKENS)
        # An LRUCache is not thread-safe: a lookup reorders it.
        self._lock = threading.Lock()

    def read(self, token: str) -> AccessToken:
        """Returns the claims of an access token. Raises RefusedRequestError as `read_access_token`."""
        digest = hashlib.sha256(token.encode()).digest()
        with self._lock:
            kept = self._verified.get(digest)
        if kept is not None and time.time() < kept.expires_at + LEEWAY_SECONDS and self._keys.has_public(kept.key_id):
            return kept
        claims = read_access_token(token, self._keys, issuer=self._issuer)
        with self._lock:
            self._verified[digest] = claims
        return claims


def make_permission_token(holder: KeyHolder, keys: KeyRing, *, issuer: str) -> tuple[str, datetime]:
    """Makes a permission token for the holder of an API key. Returns the token and its expiry, in UTC."""
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
    return _sign(PERMISSION_TOKEN_TYPE, claims, keys), datetime.fromtimestamp(ends_at, UTC)


def make_permission_token_audience(issuer: str) -> str:
    """Returns the `aud` claim of permission tokens, so that no other interface accepts one."""
    return f"{issuer}/v1"


def require_permission_token(token: str, holder: KeyHolder, keys: KeyRing, *, issuer: str) -> None:
    """Checks a permission token against the holder of the API key that came with it.

    Raises RefusedRequestError (BAD_TOKEN) if the token was altered, was signed with an unknown or retired key, has
    another algorithm, issuer, audience or type, belongs to another vendor or a disabled one, or is older than the last
    change of the grants, and (ENDED_TOKEN) if it has expired. The message is the same in all these cases.
    """
    message = "the permission token is not valid; log in again"
    refusal = RefusedRequestError(Problem.BAD_TOKEN, message)
    try:
        decoded = jwt.decode(token, lambda unverified: _find_live_key(unverified, holder, keys), algorithms=[ALGORITHM])
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
            raise ExpiredTokenError("exp")
    except ExpiredTokenError:
        raise RefusedRequestError(Problem.ENDED_TOKEN, message) from None
    except (JoseError, ValueError, KeyError, TypeError):
        raise refusal from None
    if decoded.header.get("typ") != PERMISSION_TOKEN_TYPE or not holder.enabled:
        raise refusal


def _find_live_key(unverified: Any, holder: KeyHolder, keys: KeyRing) -> RSAKey:
    key_id = unverified.headers().get("kid")
    # The cache of the key ring may hold retired keys; the ids of the valid ones were read with the holder.
    is_live = isinstance(key_id, str) and key_id in holder.live_keys
    key = keys.find_public(key_id, is_live=True) if is_live else None
    if key is None:
        raise ValueError("no such key")
    return key
