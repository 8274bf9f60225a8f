"""The rate limits of failed logins of operators: for an e-mail address, and for a network address."""

from __future__ import annotations

import hashlib

from limits import RateLimitItem, RateLimitItemPerMinute

from roster_service.access.email_address import normalize_email
from roster_service.access.throttling.counters import Counters

PER_ACCOUNT = RateLimitItemPerMinute(5, namespace="operator-account")
PER_ADDRESS = RateLimitItemPerMinute(20, namespace="operator-address")


class OperatorThrottle:
    """Counts failed logins."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters

    def find_wait(self, email: str, address: str | None) -> int:
        """Returns the seconds until a login with this e-mail from this network address may be tried; 0 if it may
        now."""
        waits = [
            self._counters.find_wait(item, name)
            for item, name in _list_counters(email, address)
            if not self._counters.has_room(item, name)
        ]
        return max((int(wait) + 1 for wait in waits), default=0)

    def count_failure(self, email: str, address: str | None) -> None:
        """Counts a failed login."""
        for item, name in _list_counters(email, address):
            self._counters.hit(item, name)


def _list_counters(email: str, address: str | None) -> tuple[tuple[RateLimitItem, str], ...]:
    account = hashlib.sha256(normalize_email(email).encode()).hexdigest()[:32]
    return (PER_ACCOUNT, account), (PER_ADDRESS, address or "")
