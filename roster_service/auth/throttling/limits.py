"""The default limits of vendors on both interfaces, and the moving windows that they stand for.

A window covers the burst and the average: at most `burst` requests in `burst / requests_per_second` seconds. On the
vendor interface a second one covers the day.
"""

from __future__ import annotations

from dataclasses import dataclass

from limits import RateLimitItem, RateLimitItemPerDay, RateLimitItemPerSecond

from roster_service.auth.credentials.api_keys import Allowance

REQUESTS_PER_SECOND = 10
# The default burst is the requests of this many seconds, on both interfaces.
BURST_SECONDS = 2
REQUESTS_PER_DAY = 100_000
# Twice what one client that waits for each response can send to one worker.
ROSTERING_PER_SECOND = 3000
# The greatest value of each limit of a vendor, by the option of `roster vendor limits`.
MOST = {
    "per_second": 10_000,
    "burst": 100_000,
    "per_day": 1_000_000,
    "rostering_per_second": 100_000,
    "rostering_burst": 1_000_000,
    "rostering_at_once": 1000,
}
# Workers take requests of the rostering window in lots of this part of the burst.
LOTS = 100


@dataclass(frozen=True)
class RosteringAllowance:
    """The limits of a vendor on the rostering interface: requests a second on average, requests in a burst, requests at
    the same time. None: the service's default."""

    requests_per_second: int | None
    burst: int | None
    at_once: int | None


ROSTERING_DEFAULTS = RosteringAllowance(None, None, None)


def fill_allowance(allowance: Allowance) -> tuple[int, int, int]:
    """Returns (requests a second, burst, requests a day), with the defaults in place of None."""
    rate = allowance.requests_per_second or REQUESTS_PER_SECOND
    return rate, allowance.burst or rate * BURST_SECONDS, allowance.requests_per_day or REQUESTS_PER_DAY


def fill_rostering_rate(allowance: RosteringAllowance) -> tuple[int, int]:
    """Returns (requests a second, burst), with the defaults in place of None."""
    rate = allowance.requests_per_second or ROSTERING_PER_SECOND
    return rate, allowance.burst or rate * BURST_SECONDS


def make_windows(allowance: Allowance) -> tuple[RateLimitItem, RateLimitItem]:
    """Returns the two windows of an allowance, the short one first."""
    rate, burst, day = fill_allowance(allowance)
    short = RateLimitItemPerSecond(burst, burst // rate, namespace="vendor")
    return short, RateLimitItemPerDay(day, namespace="vendor")


def make_lots(allowance: RosteringAllowance) -> tuple[int, RateLimitItem]:
    """Returns (requests in a lot, window that counts lots). The lots make up the burst, or less by under a lot."""
    rate, burst = fill_rostering_rate(allowance)
    size = max(1, burst // LOTS)
    return size, RateLimitItemPerSecond(burst // size, burst // rate, namespace="rostering")
