"""Failed logins slow down those that follow: per account, and per vendor's key.

Both counters belong to the vendor whose API key is used, so nobody can slow another vendor's logins. They hold a hash
of the e-mail, not the e-mail.
"""

from __future__ import annotations

import hashlib
import time

from limits import RateLimitItem, RateLimitItemPerMinute
from limits.storage import Storage
from limits.strategies import MovingWindowRateLimiter

PER_ACCOUNT = RateLimitItemPerMinute(5, namespace="login-account")
PER_KEY = RateLimitItemPerMinute(20, namespace="login-key")


class LoginThrottle:
    """Counts failed logins; a storage that is away slows nobody."""

    def __init__(self, storage: Storage) -> None:
        self._windows = MovingWindowRateLimiter(storage)
        self._away = storage.base_exceptions

    def find_wait(self, vendor_id: int, email: str) -> int:
        """How many seconds until the next try; 0: now."""
        try:
            waits = [
                self._windows.get_window_stats(item, *names).reset_time - time.time()
                for item, names in _counters(vendor_id, email)
                if not self._windows.test(item, *names)
            ]
        except self._away:
            return 0
        return max((int(wait) + 1 for wait in waits), default=0)

    def count_failure(self, vendor_id: int, email: str) -> None:
        """Counts a failure."""
        try:
            for item, names in _counters(vendor_id, email):
                self._windows.hit(item, *names)
        except self._away:
            pass


def _counters(vendor_id: int, email: str) -> tuple[tuple[RateLimitItem, tuple[str, ...]], ...]:
    account = hashlib.sha256(email.strip().lower().encode()).hexdigest()[:32]
    return (PER_ACCOUNT, (str(vendor_id), account)), (PER_KEY, (str(vendor_id),))
