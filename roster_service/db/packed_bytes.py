"""Texts of bytes of one size that stand one after the other in a column, such as hashes of people."""

from __future__ import annotations

import struct


def split_bytes(joined: bytes, size: int) -> tuple[bytes, ...]:
    """Returns the texts of `size` bytes each. Raises struct.error for a rest."""
    return struct.unpack(f"{size}s" * (len(joined) // size), joined)
