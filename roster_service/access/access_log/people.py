"""The keyed hashes by which the access log tells whose records a disclosure had.

A row has no id of a person: it could outlive the person's record, and an erasure. The key of the hashes follows from
the secret key of the service, so a copy of the database alone does not tell whether a person is in a row.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from hashlib import blake2b

# 48 bits. A question about one person also finds rows of another one with the same hash: among ten million people there
# is such a person with a probability of 4e-8.
HASH_BYTES = 6
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

    def hash_id(self, sourced_id: str) -> bytes:
        """Returns the keyed hash of an id."""
        hashing = self._keyed.copy()
        hashing.update(sourced_id.encode())
        return hashing.digest()

    def hash_people(self, ids: Iterable[str]) -> bytes:
        """Returns what a row stores of these people: `check` and the hash of each, once; nothing if there are none."""
        hashes = [self.hash_id(sourced_id) for sourced_id in dict.fromkeys(ids)]
        return self.check + b"".join(hashes) if hashes else b""
