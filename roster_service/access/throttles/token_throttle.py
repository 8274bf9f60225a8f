"""How often a client may get a token, and an address may ask for one.

The address counts with every request, the client once its secret was right: so nobody can use up another's share. The
counters hold a hash of the name. A storage that is away slows nobody.
"""

from __future__ import annotations

import hashlib
import math
import time

from limits import RateLimitItem, RateLimitItemPerMinute
from limits.storage import Storage
from limits.strategies import MovingWindowRateLimiter


class TokenThrottle:
    """The two counters of the token endpoint."""

    def __init__(self, storage: Storage, *, per_client: int, per_address: int) -> None:
        """`per_client`, `per_address`: how many in any minute."""
        self._windows = MovingWindowRateLimiter(storage)
        self._away = storage.base_exceptions
        self._per_client = RateLimitItemPerMinute(per_client, namespace="token-client")
        self._per_address = RateLimitItemPerMinute(per_address, namespace="token-address")

    def count_client(self, client_id: str) -> int:
        """Counts a token of a client; how many seconds it has to wait for it, 0: none."""
        return self._count(self._per_client, client_id)

    def count_address(self, address: str) -> int:
        """Counts a request of an address; how many seconds it has to wait, 0: none."""
        return self._count(self._per_address, address)

    def _count(self, item: RateLimitItem, name: str) -> int:
        hashed = hashlib.sha256(name.encode()).hexdigest()[:32]
        try:
            if self._windows.hit(item, hashed):
                return 0
            return max(1, math.ceil(self._windows.get_window_stats(item, hashed).reset_time - time.time()))
        except self._away:
            return 0
