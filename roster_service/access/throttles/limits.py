"""How much a vendor may ask: the defaults, and the two windows that an allowance means.

A burst and an average are one moving window: never more than `burst` in the seconds that a burst takes at the average.
"""

from __future__ import annotations

from roster_service.access.credentials.api_keys import Allowance

REQUESTS_PER_SECOND = 10
# A burst is this many seconds' worth, where nothing else is said.
BURST_SECONDS = 2
REQUESTS_PER_DAY = 100_000


def fill_allowance(allowance: Allowance) -> tuple[int, int, int]:
    """(requests a second, burst, requests a day), with the defaults where the allowance is silent."""
    rate = allowance.requests_per_second or REQUESTS_PER_SECOND
    return rate, allowance.burst or rate * BURST_SECONDS, allowance.requests_per_day or REQUESTS_PER_DAY


def format_windows(allowance: Allowance) -> str:
    """The windows of an allowance, as the `limits` library writes them."""
    rate, burst, day = fill_allowance(allowance)
    return f"{burst} per {burst // rate} second; {day} per 1 day"
