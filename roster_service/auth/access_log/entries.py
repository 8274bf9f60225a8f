"""The entries of the access log and of the usage counters, as a request makes them."""

from __future__ import annotations

import json
import os
from binascii import hexlify
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from oneroster_filter import fold_tree, parse

from roster_service.errors import Problem


@dataclass(frozen=True)
class Entry:
    """A request, for the usage counters. `vendor_id`: None for a refused request without valid credentials;
    `caller`: an OAuth client id, or the prefix of an API key, without valid credentials the one that the request names;
    `address`: the network address that it came from; `path`: as it is documented, without ids; `bytes`: of the response
    body; `records`: in the response; `refused_for`: why it is refused (4xx), None if it is not."""

    at: datetime
    vendor_id: int | None
    caller: str | None
    address: str | None
    method: str
    path: str
    status: int
    bytes: int
    records: int
    refused_for: Problem | None = None


@dataclass(frozen=True, kw_only=True)
class Disclosure:
    """A response with records. `caller`, `address`, `path`: as of an entry. `scope`: the scopes of the token, or the
    permission flags of the vendor, separated by spaces. `districts`: the sourcedIds of those that the vendor's grants
    opened, None if they changed during the request. `filter`: the filter or the keys of the body, with every value
    masked. `people`: the hashes of the people whose records these are (`PersonHasher.hash_people`)."""

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
    request_id: str

    def make_line(self) -> bytes:
        """Returns the row of the access log as a line of JSON, with a new id: the table takes a row with a known id
        only once."""
        row = {**vars(self), "at": self.at.isoformat(), "entry_id": os.urandom(16).hex()}
        # As PostgreSQL reads bytes. They have nothing that JSON escapes, and can be most of the line.
        people = hexlify(row.pop("people"))
        return b'%b, "people": "\\\\x%b"}\n' % (json.dumps(row)[:-1].encode(), people)


def mask_filter(text: str | None) -> str | None:
    """Returns a filter with every value replaced by `*`. The filter must be one that the request could parse."""
    if text is None:
        return None
    return fold_tree(parse(text), lambda clause: f"{clause.field}{clause.operator.value}'*'", " AND ".join, " OR ".join)
