"""The rate limits of failed logins: for an e-mail address, and for all logins with a vendor's API keys.

Both counters belong to the vendor whose API key the login uses, so no vendor can slow down the logins of another. The
counters store a hash of the e-mail address.
"""

from __future__ import annotations

import hashlib

from limits import RateLimitItem, RateLimitItemPerMinute

from roster_service.access.throttling.counters import Counters

PER_ACCOUNT = RateLimitItemPerMinute(5, namespace="login-account")
PER_KEY = RateLimitItemPerMinute(20, namespace="login-key")


class LoginThrottle:
    """Counts failed logins."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters

    def find_wait(self, vendor_id: int, email: str) -> int:
        """Returns the seconds until this vendor may try to log in with this e-mail again; 0 if it may now."""
        waits = [
            self._counters.find_wait(item, *names)
            for item, names in _list_counters(vendor_id, email)
            if not self._counters.has_room(item, *names)
        ]
        return max((int(wait) + 1 for wait in waits), default=0)

    def count_failure(self, vendor_id: int, email: str) -> None:
        """Counts a failed login."""
        for item, names in _list_counters(vendor_id, email):
            self._counters.hit(item, *names)


def _list_counters(vendor_id: int, email: str) -> tuple[tuple[RateLimitItem, tuple[str, ...]], ...]:
    account = hashlib.sha256(email.strip().lower().encode()).hexdigest()[:32]
    return (PER_ACCOUNT, (str(vendor_id), account)), (PER_KEY, (str(vendor_id),))
