"""From a bearer token to a caller: what the token says, held against what the database says now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import RSAKey
from sqlalchemy import Connection, Select, bindparam, func, select, true

from roster_service.access.roster_state import RosterState
from roster_service.access.scopes import Scope, ScopeName, make_sight, read_scopes
from roster_service.access.signing_keys import ALGORITHM, KeyRing
from roster_service.db.tables import CTexts, oauth_clients, roster_state, vendor_grants, vendors
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
        return _read_claims(decoded.claims)
    except (JoseError, ValueError, KeyError, TypeError):
        raise refusal from None


def _find_key(unverified: Any, keys: KeyRing) -> RSAKey:
    key_id = unverified.headers().get("kid")
    key = keys.find_public(key_id) if isinstance(key_id, str) else None
    if key is None:
        raise ValueError("no such key")
    return key


def _read_claims(claims: dict[str, Any]) -> AccessToken:
    scopes = read_scopes(str(claims["scope"]).split())
    if not scopes or "\x00" in str(claims["client_id"]):
        raise ValueError("no token of this service")
    return AccessToken(
        client_id=str(claims["client_id"]),
        grant_version=int(claims["grant_version"]),
        client_version=int(claims["client_version"]),
        scopes=scopes,
    )


def make_audience(issuer: str) -> str:
    """Whom an access token is for: the rostering interface, and no other door."""
    return f"{issuer}/ims/oneroster"


def _make_caller_query() -> Select[Any, Any, Any, Any, Any, Any, Any]:
    own = vendor_grants.c.vendor_id == vendors.c.id
    single = vendor_grants.c.school_id.is_not(None)
    districts = select(vendor_grants.c.district_id).where(own, ~single).scalar_subquery()
    schools = select(vendor_grants.c.school_id).where(own, single).scalar_subquery()
    return (
        select(
            vendors.c.id,
            vendors.c.grant_version,
            func.array(districts, type_=CTexts).label("districts"),
            func.array(schools, type_=CTexts).label("schools"),
            roster_state.c.revision,
            roster_state.c.as_of,
            roster_state.c.deletions_since,
        )
        .select_from(oauth_clients.join(vendors).join(roster_state, true()))
        .where(
            oauth_clients.c.client_id == bindparam("client"),
            oauth_clients.c.enabled,
            vendors.c.enabled,
            oauth_clients.c.version == bindparam("client_version"),
            vendors.c.grant_version == bindparam("grant_version"),
        )
    )


# Every request runs it, so it is built once.
_CALLER = _make_caller_query()


def find_caller(connection: Connection, token: AccessToken) -> Caller:
    """The caller behind a token, as the database knows it now, in one query.

    Raises RefusedRequestError (BAD_TOKEN) where the client or its vendor is gone or disabled, or where the grants or
    the secret changed after the token was made: the client gets a new token, and with it the narrower view.
    """
    row = connection.execute(
        _CALLER,
        {
            "client": token.client_id,
            "client_version": token.client_version,
            "grant_version": token.grant_version,
        },
    ).one_or_none()
    if row is None:
        raise RefusedRequestError(Problem.BAD_TOKEN, "the access token is no longer valid; get a new one")
    return Caller(
        client_id=token.client_id,
        vendor_id=row.id,
        version=token.scopes[0].version,
        scopes=frozenset(scope.name for scope in token.scopes),
        districts=tuple(row.districts),
        schools=tuple(row.schools),
        grant_version=row.grant_version,
        state=RosterState(row.revision, row.as_of, row.deletions_since),
    )
