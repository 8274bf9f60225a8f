"""From a bearer token to a caller: what the token says, held against what the database says now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import RSAKey
from sqlalchemy import Connection, Text, bindparam, text

from roster_service.access.roster_state import RosterState
from roster_service.access.scopes import Scope, ScopeName, make_sight, read_scopes
from roster_service.access.signing_keys import ALGORITHM, KeyRing
from roster_service.db.prepared import fetch_rows
from roster_service.db.visibility import Sight
from roster_service.errors import Problem, RefusedRequestError

TOKEN_TYPE = "at+jwt"  # noqa: S105  (RFC 9068: what tells an access token from any other JWT)
# Clocks of two machines may differ by this much.
LEEWAY_SECONDS = 60


@dataclass(frozen=True)
class Caller:
    """A client that asks, with everything that decides what it may see."""

    client_id: str
    vendor_id: int
    version: str
    scopes: frozenset[ScopeName]
    districts: tuple[str, ...]
    schools: tuple[str, ...]
    grant_version: int
    state: RosterState
    # A hash of what row-level security was told.
    opening: str
    # Whether the database keeps of these grants that they open every user; False: perhaps they do.
    everyone: bool

    @property
    def sight(self) -> Sight:
        """The part of these rights that shapes a statement."""
        return make_sight(self.scopes)


@dataclass(frozen=True)
class AccessToken:
    """The claims of a token whose signature, times, issuer and audience are right."""

    client_id: str
    grant_version: int
    client_version: int
    scopes: tuple[Scope, ...]
    # The key that signed it.
    key_id: str
    # Seconds since 1970.
    expires_at: float


def read_token(token: str, keys: KeyRing, *, issuer: str) -> AccessToken:
    """The claims of an access token.

    Raises RefusedRequestError (BAD_TOKEN), with the same words whatever is wrong but the time: altered, expired,
    signed by another key, another algorithm, another issuer or audience, another kind of token.
    """
    refusal = RefusedRequestError(Problem.BAD_TOKEN, "the access token is not valid; get a new one")
    try:
        decoded = jwt.decode(token, lambda unverified: _find_key(unverified, keys), algorithms=[ALGORITHM])
        if decoded.header.get("typ") != TOKEN_TYPE:
            raise refusal
        jwt.JWTClaimsRegistry(
            leeway=LEEWAY_SECONDS,
            iss={"essential": True, "value": issuer},
            aud={"essential": True, "value": make_audience(issuer)},
            exp={"essential": True},
            iat={"essential": True},
            client_id={"essential": True},
        ).validate(decoded.claims)
        return _read_claims(decoded.claims, str(decoded.header["kid"]))
    except (JoseError, ValueError, KeyError, TypeError):
        raise refusal from None


def _find_key(unverified: Any, keys: KeyRing) -> RSAKey:
    key_id = unverified.headers().get("kid")
    key = keys.find_public(key_id) if isinstance(key_id, str) else None
    if key is None:
        raise ValueError("no such key")
    return key


def _read_claims(claims: dict[str, Any], key_id: str) -> AccessToken:
    scopes = read_scopes(str(claims["scope"]).split())
    if not scopes or "\x00" in str(claims["client_id"]):
        raise ValueError("no token of this service")
    return AccessToken(
        client_id=str(claims["client_id"]),
        grant_version=int(claims["grant_version"]),
        client_version=int(claims["client_version"]),
        scopes=scopes,
        key_id=key_id,
        expires_at=float(claims["exp"]),
    )


def make_audience(issuer: str) -> str:
    """Whom an access token is for: the rostering interface, and no other door."""
    return f"{issuer}/ims/oneroster"


# The function runs as the owner of the accounts, which the one that serves requests cannot read; it tells row-level
# security in the same statement what the caller may see for the rest of the transaction.
_ADMIT = text("SELECT * FROM admit_client(:client, :client_version, :grant_version, :key_id, :guardians)").bindparams(
    bindparam("client", type_=Text), bindparam("key_id", type_=Text)
)


def find_caller(connection: Connection, token: AccessToken) -> Caller:
    """The caller behind a token, as the database knows it now, in one query; the transaction then reads what they may.

    Raises RefusedRequestError (BAD_TOKEN) where the client or its vendor is gone or disabled, where the grants or the
    secret changed after the token was made, and where the key that signed it is retired: the client gets a new token,
    and with it the narrower view.
    """
    scopes = frozenset(scope.name for scope in token.scopes)
    rows = fetch_rows(
        connection,
        _ADMIT,
        {
            "client": token.client_id,
            "client_version": token.client_version,
            "grant_version": token.grant_version,
            "key_id": token.key_id,
            "guardians": make_sight(scopes).guardians,
        },
    )
    if not rows:
        raise RefusedRequestError(Problem.BAD_TOKEN, "the access token is no longer valid; get a new one")
    (row,) = rows
    return Caller(
        client_id=token.client_id,
        vendor_id=row.vendor,
        version=token.scopes[0].version,
        scopes=scopes,
        districts=tuple(row.districts),
        schools=tuple(row.schools),
        grant_version=token.grant_version,
        state=RosterState(row.revision, row.as_of, row.deletions_since),
        opening=row.opening,
        everyone=row.everyone,
    )
