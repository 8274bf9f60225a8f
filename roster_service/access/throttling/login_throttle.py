"""The rate limits of failed logins: for an e-mail address, and for all logins with a vendor's API keys.

Both counters belong to the vendor whose API key the login uses, so no vendor can slow down the logins of another. The
counters store a hash of the e-mail address.
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
    """Counts failed logins. If the storage fails, logins pass."""

    def __init__(self, storage: Storage) -> None:
        self._windows = MovingWindowRateLimiter(storage)
        self._storage_errors = storage.base_exceptions

    def find_wait(self, vendor_id: int, email: str) -> int:
        """Returns the seconds until this vendor may try to log in with this e-mail again; 0 if it may now."""
        try:
            waits = [
                self._windows.get_window_stats(item, *names).reset_time - time.time()
                for item, names in _list_counters(vendor_id, email)
                if not self._windows.test(item, *names)
            ]
        except self._storage_errors:
            return 0
        return max((int(wait) + 1 for wait in waits), default=0)

    def count_failure(self, vendor_id: int, email: str) -> None:
        """Counts a failed login."""
        try:
            for item, names in _list_counters(vendor_id, email):
                self._windows.hit(item, *names)
        except self._storage_errors:
            pass


def _list_counters(vendor_id: int, email: str) -> tuple[tuple[RateLimitItem, tuple[str, ...]], ...]:
    account = hashlib.sha256(email.strip().lower().encode()).hexdigest()[:32]
    return (PER_ACCOUNT, (str(vendor_id), account)), (PER_KEY, (str(vendor_id),))
