"""What a read gives: a page of records, or one record, as JSON texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from roster_service.query.statements import HREF_ROOT


@dataclass(frozen=True)
class Page:
    """The records of a page as JSON texts, one or several joined by commas in each piece; how many they are, and how
    many there are on all pages.

    Where a ref begins, `HREF_ROOT` stands for the root that it is built on.
    """

    pieces: Sequence[str]
    records: int
    total: int

    def encode(self, head: str, tail: str, base_url: str) -> bytes:
        """The records, joined by commas, between `head` and `tail`, with refs that are built on `base_url`.

        A page can have many megabytes: each piece is small enough to stay near the processor, and the whole is put
        together once.
        """
        root = _escape(base_url)
        made = [piece.replace(HREF_ROOT, root).encode() for piece in self.pieces] or [b""]
        made[0] = head.encode() + made[0]
        made[-1] += tail.encode()
        return b",".join(made)


def put_root(text: str, base_url: str) -> str:
    """The text of a record, with refs that are built on `base_url`."""
    return text.replace(HREF_ROOT, _escape(base_url))


def _escape(text: str) -> str:
    """As a part of a JSON string: a Host header can hold what JSON must escape."""
    return json.dumps(text)[1:-1]
