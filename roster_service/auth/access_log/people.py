"""The keyed hashes by which the access log tells whose records a disclosure had.

A row has no id of a person: it could outlive the person's record, and an erasure. The key of the hashes follows from
the secret key of the service, so a copy of the database alone does not tell whether a person is in a row.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from hashlib import blake2b

from roster_service.db.tables import HASH_BYTES

# The ids whose hashes a worker keeps: 90 MB with ids of 36 characters.
KEPT_HASHES = 500_000
_PURPOSE = b"roster access log"


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
