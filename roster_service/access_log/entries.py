"""What a request adds to the access log and the usage counters: entries, districts, hashes of people.

A row has no id of a person: it could outlive the record of the person, and an erasure. The key of the hashes follows
from the secret key of the service, so a copy of the database alone does not tell whether a person is in a row.
"""

from __future__ import annotations

import hmac
import json
import os
from binascii import hexlify
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b

import sqlalchemy as sa
from oneroster_filter import fold_tree
from oneroster_filter.typing import TypedExpr

from roster_service.db.tables import HASH_BYTES, CText, CTexts, vendors

# The ids whose hashes a worker keeps: 90 MB with ids of 36 characters.
KEPT_HASHES = 500_000
_PURPOSE = b"roster access log"


@dataclass(frozen=True)
class Entry:
    """A request, for the usage counters. `vendor_id`: None for a refused request without valid credentials;
    `caller`: an OAuth client id, or the prefix of an API key, without valid credentials the one that the request names;
    `address`: the network address that it came from; `path`: as it is documented, without ids; `bytes`: of the response
    body; `records`: in the response; `cause`: why it is refused (4xx), the text of a `Problem`, or NOTHING_FOUND; None
    otherwise. With a cause, also its `request_id`, and the `fields` that its filter, sort and selection name."""

    at: datetime
    vendor_id: int | None
    caller: str | None
    address: str | None
    method: str
    path: str
    status: int
    bytes: int
    records: int
    cause: str | None = None
    request_id: str = ""
    fields: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Disclosure:
    """A response with records. `caller`, `address`, `path`: as of an entry. `scope`: the scopes of the token, or the
    permission flags of the vendor, separated by spaces. `districts`: the sourcedIds of those that the vendor's grants
    opened, None if they changed during the request. `filter`: the filter or the keys of the body, with every value
    masked. `people`: the hashes of the people whose records these are (`PersonHasher.hash_people`). `parts`: the
    number of the parts of people that the response had, or by which it was chosen (`roster/person_parts.py`)."""

    at: datetime
    vendor_id: int
    caller: str
    address: str | None
    method: str
    path: str
    scope: str
    districts: Sequence[str] | None
    filter: str | None
    records: int
    people: bytes
    parts: int
    request_id: str

    def make_line(self) -> bytes:
        """Returns the row of the access log as a line of JSON, with a new id: the table takes a row with a known id
        only once."""
        row = {**vars(self), "at": self.at.isoformat(), "entry_id": os.urandom(16).hex()}
        # As PostgreSQL reads bytes. They have nothing that JSON escapes, and can be most of the line.
        people = hexlify(row.pop("people"))
        return b'%b, "people": "\\\\x%b"}\n' % (json.dumps(row)[:-1].encode(), people)


def mask_filter(filter_: TypedExpr | None) -> str | None:
    """Returns the text of a filter with every value replaced by `*`."""
    if filter_ is None:
        return None
    return fold_tree(filter_, lambda clause: f"{clause.field}{clause.operator.value}'*'", " AND ".join, " OR ".join)


class GrantedDistricts:
    """The districts of each vendor's grants. Every change of grants gives them another version, so the districts of a
    version are read once. Threads may share it."""

    def __init__(self, accounts: sa.Engine) -> None:
        """`accounts`: of the role that may read accounts."""
        self._accounts = accounts
        # Vendor -> the latest version of its grants that was read, and the districts.
        self._known: dict[int, tuple[int, Sequence[str]]] = {}

    def find(self, vendor_id: int, grant_version: int) -> Sequence[str] | None:
        """Returns the sourcedIds of the districts that this version of the grants opens, whole or by single schools;
        None if the grants have changed since. Raises SQLAlchemyError if the database fails."""
        known = self._known.get(vendor_id)
        if known is None or known[0] != grant_version:
            known = self._read(vendor_id)
            if known is None:
                return None
            self._known[vendor_id] = known
        return known[1] if known[0] == grant_version else None

    def _read(self, vendor_id: int) -> tuple[int, Sequence[str]] | None:
        agreed = sa.func.agreed_grants(vendors.c.id).table_valued(sa.column("district_id", CText))
        ordered = sa.select(agreed.c.district_id).distinct().order_by(agreed.c.district_id)
        with self._accounts.connect() as connection:
            granted = sa.func.array(ordered.scalar_subquery(), type_=CTexts).label("districts")
            columns = (vendors.c.grant_version, granted)
            row = connection.execute(sa.select(*columns).where(vendors.c.id == vendor_id)).one_or_none()
        return None if row is None else (row.grant_version, tuple(row.districts))


class PersonHasher:
    """Hashes the ids of people with the key of a service. Threads may share it. `secret_key`: of the service.

    `check`: begins each row with people, and tells with which key its hashes were made.
    """

    def __init__(self, secret_key: str) -> None:
        # To copy this state takes two thirds of the time of making one from the key.
        self._keyed = blake2b(key=hmac.digest(secret_key.encode(), _PURPOSE, "sha256"), digest_size=HASH_BYTES)
        # An id has at least one character.
        self.check = self.hash_id("")
        self._kept = _KeptHashes(self)

    def hash_id(self, sourced_id: str) -> bytes:
        """Returns the keyed hash of an id."""
        hashing = self._keyed.copy()
        hashing.update(sourced_id.encode())
        return hashing.digest()

    def hash_people(self, ids: Iterable[str]) -> bytes:
        """Returns what a row stores of these people: `check` and the hash of each, once; nothing if there are none. The
        order of the hashes is that of a set, which tells nothing of the order of the ids on the page."""
        hashes = b"".join(set(map(self._kept.__getitem__, ids)))
        return self.check + hashes if hashes else b""


class _KeptHashes(dict[str, bytes]):
    """The hashes that a worker has made, by id. A full one gives up its newest hash: vendors that read all people of a
    larger roster in turn would find nothing, if it gave up the oldest."""

    def __init__(self, hasher: PersonHasher) -> None:
        super().__init__()
        self._hasher = hasher

    def __missing__(self, sourced_id: str) -> bytes:
        if len(self) >= KEPT_HASHES:
            self.popitem()
        made = self[sourced_id] = self._hasher.hash_id(sourced_id)
        return made
