"""A cache of verified access tokens: the signature is checked once, the expiry and the signing key at every use.

The key of an entry is the token's hash, so the process does not keep tokens in memory. The cache holds no state of the
client: the database checks the client and the signing key with every request.
"""

from __future__ import annotations

import hashlib
import threading
import time

from cachetools import LRUCache

from roster_service.auth.credentials.access_token import LEEWAY_SECONDS, AccessToken, read_access_token
from roster_service.auth.credentials.signing_keys import KeyRing

# An entry takes less than a kilobyte.
KEPT_TOKENS = 4096


class TokenReader:
    """Verifies the access tokens of one issuer, with a cache. Threads may share it."""

    def __init__(self, keys: KeyRing, issuer: str) -> None:
        self._keys = keys
        self._issuer = issuer
        self._verified: LRUCache[bytes, AccessToken] = LRUCache(KEPT_TOKENS)
        # An LRUCache is not thread-safe: a lookup reorders it.
        self._lock = threading.Lock()

    def read(self, token: str) -> AccessToken:
        """Returns the claims of an access token. Raises RefusedRequestError (BAD_TOKEN) as `read_access_token`."""
        digest = hashlib.sha256(token.encode()).digest()
        with self._lock:
            kept = self._verified.get(digest)
        if kept is not None and time.time() < kept.expires_at + LEEWAY_SECONDS and self._keys.has_public(kept.key_id):
            return kept
        claims = read_access_token(token, self._keys, issuer=self._issuer)
        with self._lock:
            self._verified[digest] = claims
        return claims
