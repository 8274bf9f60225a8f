"""The default rate limits of vendors, and the two moving windows that an allowance stands for.

One window covers the burst and the average: at most `burst` requests in `burst / requests_per_second` seconds. The
other one covers the day.
"""

from __future__ import annotations

from limits import RateLimitItem, RateLimitItemPerDay, RateLimitItemPerSecond

from roster_service.access.credentials.api_keys import Allowance

REQUESTS_PER_SECOND = 10
# The default burst is the requests of this many seconds.
BURST_SECONDS = 2
REQUESTS_PER_DAY = 100_000


def fill_allowance(allowance: Allowance) -> tuple[int, int, int]:
    """Returns (requests a second, burst, requests a day), with the defaults in place of None."""
    rate = allowance.requests_per_second or REQUESTS_PER_SECOND
    return rate, allowance.burst or rate * BURST_SECONDS, allowance.requests_per_day or REQUESTS_PER_DAY


def make_windows(allowance: Allowance) -> tuple[RateLimitItem, RateLimitItem]:
    """Returns the two windows of an allowance, the short one first."""
    rate, burst, day = fill_allowance(allowance)
    short = RateLimitItemPerSecond(burst, burst // rate, namespace="vendor")
    return short, RateLimitItemPerDay(day, namespace="vendor")
