"""Compresses responses with records for clients that accept it: with zstd if the client accepts it, else with gzip.

The packages `zstandard` and `isal` are an extra (`roster-service[compression]`). Without the first there is no zstd;
without the second, zlib of the standard library makes gzip.

Measured on pages of users, as MB of JSON a second and compression ratio: zstd at level 1: 780 and 7.5; gzip by isal:
870 and 5.1; gzip by zlib at its fastest level: 170 and 4.8. At these speeds compression saves time on every network
except the loopback interface.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping

from flask import Flask, Response, request
from werkzeug.datastructures import Accept

from roster_service.http.request_facts import get_request_facts


def find_codings() -> Mapping[str, Callable[[bytes], bytes]]:
    """The codings that the installed packages offer, in the order in which the service prefers them."""
    codings: dict[str, Callable[[bytes], bytes]] = {}
    try:
        import zstandard
    except ImportError:
        pass
    else:
        codings["zstd"] = lambda body: zstandard.ZstdCompressor(level=1).compress(body)
    try:
        from isal import igzip
    except ImportError:
        codings["gzip"] = lambda body: gzip.compress(body, 1, mtime=0)
    else:
        codings["gzip"] = lambda body: igzip.compress(body, 1, mtime=0)
    return codings


CODINGS = find_codings()
# A smaller answer fits into one packet of most networks as it is.
LEAST_BYTES = 1000


def register_compression(app: Flask) -> None:
    """Registers the hook that compresses response bodies of `LEAST_BYTES` and more."""

    def compress(response: Response) -> Response:
        # Only responses with records: the compressed length of a response with a secret could reveal the secret.
        if response.status_code != 200 or get_request_facts().records is None:
            return response
        coding = choose_coding(request.accept_encodings)
        if coding is not None and (response.content_length or 0) >= LEAST_BYTES:
            response.set_data(CODINGS[coding](response.get_data()))
            response.headers["Content-Encoding"] = coding
            weaken_tag(response)
        return response

    app.after_request(compress)


def choose_coding(accepted: Accept) -> str | None:
    """Returns the coding with the highest quality for the client (RFC 9110, section 12.5.3), or None for the plain
    body."""
    if not accepted:
        return None
    # A coding that neither the header nor a `*` names is not acceptable. `identity` is, unless the header refuses it.
    plain = accepted.quality("identity") if "identity" in accepted.values() or "*" in accepted.values() else 0
    best = max(CODINGS, key=accepted.quality)
    return best if accepted.quality(best) > 0 and accepted.quality(best) >= plain else None


def weaken_tag(response: Response) -> None:
    """Makes the entity tag weak, because the compressed and the plain body share it."""
    tag, _ = response.get_etag()
    if tag is not None:
        response.set_etag(tag, weak=True)
