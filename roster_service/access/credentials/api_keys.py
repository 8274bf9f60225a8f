"""API keys of the vendor interface: issued, replaced, and looked up with all that is known of their vendor.

A key is looked up in the database by every request, so what an administrator changes counts at once in every worker.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection, LargeBinary, bindparam, func, insert, or_, text, update

from roster_service.access.credentials.secrets import hash_secret, make_api_key
from roster_service.access.roster_state import RosterState
from roster_service.db.round_trip import Call
from roster_service.db.tables import api_keys

_KEY = re.compile(r"(?P<prefix>key-[0-9a-f]{8})-[A-Za-z0-9_-]{43}", re.ASCII)


@dataclass(frozen=True)
class IssuedKey:
    """A new key in clear, which is shown once, and the readable beginning of it that is kept."""

    prefix: str
    api_key: str


@dataclass(frozen=True)
class Allowance:
    """How much a vendor may ask: on average a second, at once, and a day; None: the service's default."""

    requests_per_second: int | None
    burst: int | None
    requests_per_day: int | None


@dataclass(frozen=True)
class KeyHolder:
    """The vendor behind an API key, as the database knows it now."""

    key_hash: bytes
    vendor_id: int
    key_prefix: str
    enabled: bool
    grant_version: int
    districts: tuple[str, ...]
    schools: tuple[str, ...]
    flags: frozenset[str]
    allowance: Allowance
    # The ids of the keys whose signatures count now.
    live_keys: frozenset[str]
    state: RosterState

    def admit(self, *, guardians: bool) -> Call:
        """What admits the vendor in the transaction that it is sent in: then that transaction reads what the vendor may
        see, and nothing else."""
        return Call(_ADMIT, {"key_hash": self.key_hash, "guardians": guardians})


def issue_key(connection: Connection, vendor_id: int) -> IssuedKey:
    """Makes a key for a vendor; those it has stay as they are."""
    made = make_api_key()
    matched = _KEY.fullmatch(made)
    if matched is None:
        raise RuntimeError("a key of our making is no key")
    row = {"key_hash": hash_secret(made), "vendor_id": vendor_id, "prefix": matched["prefix"]}
    connection.execute(insert(api_keys).values(row))
    return IssuedKey(matched["prefix"], made)


def rotate_key(connection: Connection, vendor_id: int, grace: timedelta) -> IssuedKey:
    """Makes a new key; the ones before it end after `grace`, and none of them later than it would have."""
    ends = func.now() + grace
    lasting = or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > ends)
    connection.execute(update(api_keys).where(api_keys.c.vendor_id == vendor_id, lasting).values(expires_at=ends))
    return issue_key(connection, vendor_id)


# The function runs as the owner of the accounts, which the one that serves requests cannot read.
_ADMIT = text("SELECT * FROM admit_key_holder(:key_hash, :guardians)").bindparams(
    bindparam("key_hash", type_=LargeBinary)
)


def find_key_holder(connection: Connection, key: str) -> KeyHolder | None:
    """Whose key this is; None for a text that is none, for an unknown one, and for one that has ended."""
    if _KEY.fullmatch(key) is None:
        return None
    key_hash = hash_secret(key)
    row = connection.execute(_ADMIT, {"key_hash": key_hash, "guardians": False}).one_or_none()
    if row is None:
        return None
    return KeyHolder(
        key_hash=key_hash,
        vendor_id=row.vendor,
        key_prefix=row.key_prefix,
        enabled=row.enabled,
        grant_version=row.grant_version,
        districts=tuple(row.districts),
        schools=tuple(row.schools),
        flags=frozenset(row.flags),
        allowance=Allowance(row.requests_per_second, row.burst, row.requests_per_day),
        live_keys=frozenset(row.live_keys),
        state=RosterState(row.revision, row.as_of, row.deletions_since),
    )
