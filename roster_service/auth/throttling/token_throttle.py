"""The rate limits of the token endpoint: tokens of a client, and requests of a network address.

Every request counts for its address. Only a request with the right secret counts for the client, so nobody can use up
the limit of somebody else's client. The counters store a hash of the client id or address.
"""

from __future__ import annotations

import hashlib
import math

from limits import RateLimitItem, RateLimitItemPerMinute

from roster_service.auth.throttling.counters import Counters


class TokenThrottle:
    """The two counters of the token endpoint."""

    def __init__(self, counters: Counters, *, per_client: int, per_address: int) -> None:
        """`per_client`: tokens in any minute; `per_address`: requests in any minute."""
        self._counters = counters
        self._per_client = RateLimitItemPerMinute(per_client, namespace="token-client")
        self._per_address = RateLimitItemPerMinute(per_address, namespace="token-address")

    def count_client(self, client_id: str) -> int:
        """Counts a token of a client. Returns 0 if the client may have it, else the seconds until its next token."""
        return self._count(self._per_client, client_id)

    def count_address(self, address: str) -> int:
        """Counts a request of an address. Returns 0 if it may pass, else the seconds until the next request."""
        return self._count(self._per_address, address)

    def _count(self, item: RateLimitItem, name: str) -> int:
        hashed = hashlib.sha256(name.encode()).hexdigest()[:32]
        if self._counters.hit(item, hashed):
            return 0
        return max(1, math.ceil(self._counters.find_wait(item, hashed)))
