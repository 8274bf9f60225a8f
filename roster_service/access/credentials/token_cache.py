"""Access tokens that were verified lately: a signature is checked once, its time and its key at every use.

Kept by the token's hash, so that no memory of the process holds a token. What the database says of the client and of
the key is no part of it: that is asked anew by every request.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict

from roster_service.access.credentials.access_token import LEEWAY_SECONDS, AccessToken, read_access_token
from roster_service.access.credentials.signing_keys import KeyRing

# Each takes less than a kilobyte.
KEPT_TOKENS = 4096


class TokenReader:
    """Reads the access tokens of one issuer."""

    def __init__(self, keys: KeyRing, issuer: str) -> None:
        self._keys = keys
        self._issuer = issuer
        self._verified: OrderedDict[bytes, AccessToken] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, token: str) -> AccessToken:
        """The claims of an access token; RefusedRequestError (BAD_TOKEN) as `read_access_token` has it."""
        digest = hashlib.sha256(token.encode()).digest()
        with self._lock:
            kept = self._verified.get(digest)
            if kept is not None:
                self._verified.move_to_end(digest)
        if kept is not None and time.time() < kept.expires_at + LEEWAY_SECONDS and self._keys.knows(kept.key_id):
            return kept
        claims = read_access_token(token, self._keys, issuer=self._issuer)
        with self._lock:
            self._verified[digest] = claims
            if len(self._verified) > KEPT_TOKENS:
                self._verified.popitem(last=False)
        return claims
