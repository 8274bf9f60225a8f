"""The hashes of vendors' passwords."""

from __future__ import annotations

from argon2 import PasswordHasher, Type


def test_passwords_are_hashed_as_owasp_says(production_hasher: PasswordHasher) -> None:
    """The least of OWASP's choices for argon2id with one lane: 19 MiB twice."""
    assert production_hasher.type is Type.ID
    assert production_hasher.time_cost >= 2
    assert production_hasher.memory_cost >= 19_456
    assert production_hasher.parallelism == 1
