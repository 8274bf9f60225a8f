"""A consumer that signs its requests with OAuth 1.0a, written from RFC 5849: it shares no code with the service."""

from __future__ import annotations

import hmac
import secrets
import time
from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import quote, unquote_plus

HASHES = {"HMAC-SHA1": "sha1", "HMAC-SHA256": "sha256"}


def encode(text: str) -> str:
    """The encoding of section 3.6: every character but the unreserved ones."""
    return quote(text, safe="")


def make_protocol(client_id: str, method: str = "HMAC-SHA1", **changed: str | None) -> dict[str, str]:
    """The protocol parameters of a request that is made now; `changed`: other values, None for one that is missing."""
    made: dict[str, str | None] = {
        "oauth_consumer_key": client_id,
        "oauth_signature_method": method,
        "oauth_timestamp": str(int(time.time())),
        "oauth_nonce": secrets.token_hex(8),
        "oauth_version": "1.0",
    }
    return {name: text for name, text in (made | changed).items() if text is not None}


def sign(secret: str, method: str, url: str, query: str, protocol: Mapping[str, str], more: str = "") -> str:
    """The signature of a request. `query`, and the form `more`: as they are sent."""
    parameters = [*protocol.items()]
    for part in filter(None, [*query.split("&"), *more.split("&")]):
        name, _, text = part.partition("=")
        parameters.append((unquote_plus(name), unquote_plus(text)))
    normalized = "&".join("=".join(pair) for pair in sorted((encode(name), encode(text)) for name, text in parameters))
    base = "&".join(map(encode, (method, url, normalized)))
    digest = HASHES.get(protocol.get("oauth_signature_method", ""), "sha1")
    return b64encode(hmac.digest(f"{encode(secret)}&".encode(), base.encode(), digest)).decode()


def make_header(protocol: Mapping[str, str], signature: str | None) -> str:
    """The `Authorization` header."""
    sent = {**protocol} if signature is None else {**protocol, "oauth_signature": signature}
    return "OAuth " + ", ".join(f'{name}="{encode(text)}"' for name, text in sent.items())
