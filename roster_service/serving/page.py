"""The results of reads: JSON texts of records, and their encoding into the body of a response."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from roster_service.serving.statements import HREF_ROOT


@dataclass(frozen=True)
class Page:
    """The records of a page as JSON texts.

    `pieces`: each has one record, or several joined by commas; `HREF_ROOT` stands for the root of the hrefs. `records`:
    the number of records in `pieces`. `people`: the ids of the people whose records these are, and of those whom a
    record of the vendor interface names beside them, with repetitions. `parts`: the number of the parts of people in
    them (`roster/person_parts.py`). `total`: the number of records on all pages."""

    pieces: Sequence[str]
    records: int
    people: Sequence[str]
    parts: int
    total: int

    def encode(self, head: str, tail: str, base_url: str) -> bytes:
        """Returns the records, joined by commas, between `head` and `tail`, with hrefs below `base_url`, as UTF-8.

        A page can have many megabytes. The encoding and the replacement work on one piece at a time, which fits into
        the processor's cache; the encoding comes first, because the text is longer with the roots in it.
        """
        placeholder, root = HREF_ROOT.encode(), escape_root(base_url).encode()
        records = b",".join([piece.encode().replace(placeholder, root) for piece in self.pieces])
        return b"".join((head.encode(), records, tail.encode()))


def put_root(text: str, base_url: str) -> str:
    """Returns the JSON text of a record with hrefs below `base_url`."""
    return text.replace(HREF_ROOT, escape_root(base_url))


def escape_root(text: str) -> str:
    """Escapes the root of hrefs for use inside a JSON string. A Host header can have any characters."""
    return json.dumps(text)[1:-1]
