"""The rate limits of failed logins: for an account and for the origin of the login.

The origin of a vendor's login is the vendor whose API key it uses, so no vendor can slow down the logins of another.
The origin of an operator's login is the network address, or the browser if the operator logged in with it before: so
nobody can keep an operator out. Only one-time codes count for the account alone, because a guesser of codes has the
password. The counters store a hash of the e-mail address.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_network

from limits import RateLimitItem, RateLimitItemPerMinute

from roster_service.auth.throttling.counters import Counters
from roster_service.change_log.email_address import normalize_email
from roster_service.errors import TooManyTriesError

VENDOR_ACCOUNT = RateLimitItemPerMinute(5, namespace="login-account")
VENDOR_KEY = RateLimitItemPerMinute(20, namespace="login-key")
OPERATOR_ACCOUNT = RateLimitItemPerMinute(5, namespace="operator-account")
OPERATOR_ADDRESS = RateLimitItemPerMinute(20, namespace="operator-address")
OPERATOR_BROWSER = RateLimitItemPerMinute(5, namespace="operator-browser")
OPERATOR_CODE = RateLimitItemPerMinute(5, namespace="operator-code")


@dataclass(frozen=True)
class LoginAttempt:
    """A login, as the counters that a failure of it counts in: each a limit and the names of its subject."""

    counters: Sequence[tuple[RateLimitItem, tuple[str, ...]]]

    @classmethod
    def of_vendor(cls, vendor_id: int, email: str) -> LoginAttempt:
        """Returns the login with an API key of this vendor and this e-mail."""
        vendor = str(vendor_id)
        return cls(((VENDOR_ACCOUNT, (vendor, _hash_account(email))), (VENDOR_KEY, (vendor,))))

    @classmethod
    def of_operator(cls, email: str, address: str | None, browser: str | None) -> LoginAttempt:
        """Returns the login of an operator with this e-mail. `address`: of the network; `browser`: the id of a browser
        with which the operator logged in before, None for any other."""
        if browser is not None:
            return cls(((OPERATOR_BROWSER, (browser,)),))
        origin = _find_network(address)
        return cls(((OPERATOR_ACCOUNT, (_hash_account(email), origin)), (OPERATOR_ADDRESS, (origin,))))

    @classmethod
    def of_code(cls, email: str, browser: str | None) -> LoginAttempt:
        """Returns the use of a one-time code by an operator who has proved the password. `browser`: as for
        `of_operator`."""
        return cls(((OPERATOR_CODE, (_hash_account(email), browser or "")),))


class LoginThrottle:
    """Counts failed logins."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters

    def find_wait(self, attempt: LoginAttempt) -> int:
        """Returns the seconds until such a login may be tried; 0 if it may now."""
        waits = [
            self._counters.find_wait(item, *names)
            for item, names in attempt.counters
            if not self._counters.has_room(item, *names)
        ]
        return max((int(wait) + 1 for wait in waits), default=0)

    def require_room(self, attempt: LoginAttempt) -> None:
        """Raises TooManyTriesError if such a login has to wait."""
        wait = self.find_wait(attempt)
        if wait:
            raise TooManyTriesError(wait)

    def count_failure(self, attempt: LoginAttempt) -> None:
        """Counts a failed login."""
        for item, names in attempt.counters:
            self._counters.hit(item, *names)


def _find_network(address: str | None) -> str:
    """Returns the address, of IPv6 the network that one subscriber has."""
    try:
        return str(ip_network(f"{address}/64", strict=False)) if ":" in (address or "") else address or ""
    except ValueError:
        return address or ""


def _hash_account(email: str) -> str:
    return hashlib.sha256(normalize_email(email).encode()).hexdigest()[:32]
