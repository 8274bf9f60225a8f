"""API keys of the vendor interface: how they are issued, replaced, and looked up together with their vendor.

Every request looks its key up in the database, so a change by an operator takes effect in every worker at once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa

from roster_service.auth.agreed_rights import find_rights
from roster_service.auth.credentials.secrets import hash_secret, make_api_key
from roster_service.db.round_trip import Call
from roster_service.db.tables import api_keys
from roster_service.feeds.roster_state import RosterState
from roster_service.roster.withheld import WithheldField

_KEY = re.compile(r"(?P<prefix>key-[0-9a-f]{8})-[A-Za-z0-9_-]{43}", re.ASCII)


@dataclass(frozen=True)
class IssuedKey:
    """A new key in clear text, which is shown once, and its readable prefix, which the database keeps."""

    prefix: str
    api_key: str


@dataclass(frozen=True)
class Allowance:
    """The rate limits of a vendor: requests a second on average, requests at once, requests a day. None: the service's
    default."""

    requests_per_second: int | None
    burst: int | None
    requests_per_day: int | None


@dataclass(frozen=True)
class KeyHolder:
    """The vendor that holds an API key, and its grants, as this request has read them from the database. `districts`:
    granted as a whole; `schools`: granted singly; both are sourcedIds; `flags`: permission flags; `withheld`: from the
    vendor; of all of these, what its agreement allows; `not_agreed`: why that lets it read nothing now, None for
    nothing; `has_rules`: whether one of its grants has rules; `live_keys`: the ids of the signing keys that are valid
    now; `state`: of the roster."""

    key_hash: bytes
    vendor_id: int
    key_prefix: str
    enabled: bool
    grant_version: int
    districts: tuple[str, ...]
    schools: tuple[str, ...]
    flags: frozenset[str]
    withheld: frozenset[WithheldField]
    not_agreed: str | None
    has_rules: bool
    allowance: Allowance
    live_keys: frozenset[str]
    state: RosterState

    @property
    def caller(self) -> str:
        """The key, as logs name it."""
        return self.key_prefix

    @property
    def short_scopes(self) -> str:
        """The permission flags, separated by spaces."""
        return " ".join(sorted(self.flags))

    def admit(self, *, guardians: bool, of_any_version: bool = False) -> Call:
        """Returns the call that admits the vendor for one transaction: row-level security then shows that transaction
        the rows of the vendor's grants, and no others. `guardians`: whether it shows guardians too; `of_any_version`:
        whether it admits the vendor after a change of its rights, too."""
        version = None if of_any_version else self.grant_version
        return Call(_ADMIT, {"key_hash": self.key_hash, "guardians": guardians, "version": version})


def issue_key(connection: sa.Connection, vendor_id: int, expires_at: datetime | None) -> IssuedKey:
    """Makes a key for a vendor. The vendor's other keys stay valid. `expires_at`: None for a key without an end."""
    made = make_api_key()
    matched = _KEY.fullmatch(made)
    if matched is None:
        raise RuntimeError("make_api_key made a text that is no API key")
    row = {"key_hash": hash_secret(made), "vendor_id": vendor_id, "prefix": matched["prefix"]}
    connection.execute(sa.insert(api_keys).values(**row, expires_at=expires_at))
    return IssuedKey(matched["prefix"], made)


def rotate_key(
    connection: sa.Connection, vendor_id: int, grace: timedelta, expires_at: datetime | None = None
) -> IssuedKey:
    """Makes a new key for a vendor, with the end `expires_at`. The vendor's other keys end after `grace`, or earlier if
    they already have an earlier end."""
    ends = sa.func.now() + grace
    lasting = sa.or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > ends)
    connection.execute(sa.update(api_keys).where(api_keys.c.vendor_id == vendor_id, lasting).values(expires_at=ends))
    return issue_key(connection, vendor_id, expires_at)


# The function runs as the owner of the tables, because the role that serves requests cannot read accounts.
_ADMIT = sa.text("SELECT * FROM admit_key_holder(:key_hash, :guardians, CAST(:version AS integer))").bindparams(
    sa.bindparam("key_hash", type_=sa.LargeBinary)
)


def find_key_holder(connection: sa.Connection, key: str) -> KeyHolder | None:
    """Returns the vendor that holds an API key, which may be disabled. None for a text that is no API key, an unknown
    key, and a key that has ended."""
    return None if _KEY.fullmatch(key) is None else _find_holder(connection, hash_secret(key))


def find_holder_of(connection: sa.Connection, serving: sa.Connection, vendor_id: int) -> KeyHolder | None:
    """Returns a vendor as the holder of the newest of its API keys; None if it has no valid one. `connection`: reads
    the keys; `serving`: as the serving role, which alone admits a vendor beside the owner of the tables."""
    newest = (
        sa.select(api_keys.c.key_hash).where(api_keys.c.vendor_id == vendor_id).order_by(api_keys.c.created_at.desc())
    )
    holders = (_find_holder(serving, bytes(key_hash)) for key_hash in connection.scalars(newest).all())
    return next((holder for holder in holders if holder is not None), None)


def _find_holder(connection: sa.Connection, key_hash: bytes) -> KeyHolder | None:
    row = connection.execute(_ADMIT, {"key_hash": key_hash, "guardians": False, "version": None}).one_or_none()
    if row is None:
        return None
    rights = find_rights(row)
    return KeyHolder(
        key_hash=key_hash,
        vendor_id=row.vendor,
        key_prefix=row.key_prefix,
        enabled=row.enabled,
        grant_version=row.grant_version,
        districts=tuple(row.districts),
        schools=tuple(row.schools),
        flags=rights.flags,
        withheld=rights.withheld,
        not_agreed=row.not_agreed,
        has_rules=row.has_rules,
        allowance=Allowance(row.requests_per_second, row.burst, row.requests_per_day),
        live_keys=frozenset(row.live_keys),
        state=RosterState(row.revision, row.as_of, row.deletions_since),
    )
