"""The limits of a vendor, and the state of a rate as the headers of an answer say it.

A window covers the burst and the average: at most `burst` requests in `burst / requests_per_second` seconds. On the
vendor interface a second one covers the day.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from roster_service.auth.credentials.api_keys import Allowance
from roster_service.auth.throttling.counters import Window

REQUESTS_PER_SECOND = 10
# The default burst is the requests of this many seconds, on both interfaces.
BURST_SECONDS = 2
REQUESTS_PER_DAY = 100_000
DAY_SECONDS = 24 * 60 * 60
# Twice what one client that waits for each response can send to one worker.
ROSTERING_PER_SECOND = 3000
# Workers take requests of the rostering window in lots of this part of the burst.
LOTS = 100


@dataclass(frozen=True)
class Rates:
    """What anybody may take in a minute, whoever it is. `tokens`: of a client, which needs one in an hour, also if each
    of its programs asks for its own; `token_requests`: of an address, for the clients of a vendor behind one;
    `ordering_seconds`: that the database spends on new filters and sorts of a vendor, a third of one of its
    processors."""

    tokens: int = 60
    token_requests: int = 600
    ordering_seconds: int = 20


RATES = Rates()


@dataclass(frozen=True)
class RosteringAllowance:
    """The limits of a vendor on the rostering interface: requests a second on average, requests in a burst, requests at
    the same time. None: the service's default."""

    requests_per_second: int | None
    burst: int | None
    at_once: int | None


ROSTERING_DEFAULTS = RosteringAllowance(None, None, None)


@dataclass(frozen=True)
class Limit:
    """A limit that an operator sets for a vendor. `name`: of the field of the form, and of the option of `roster vendor
    limits`; `words`: what is limited; `most`: its greatest value."""

    name: str
    words: str
    most: int


# In the order of the fields of `Allowance`, then of `RosteringAllowance`.
LIMITS = (
    Limit("per_second", "Requests a second on the vendor interface, on average", 10_000),
    Limit("burst", "Requests at once there; a multiple of those a second", 100_000),
    Limit("per_day", "Requests there in any 24 hours", 1_000_000),
    Limit("rostering_per_second", "Requests a second on OneRoster paths", 100_000),
    Limit("rostering_burst", "Requests at once there", 1_000_000),
    Limit("rostering_at_once", "Requests there that run at the same time", 1000),
)


def make_allowances(given: Mapping[str, int | None]) -> tuple[Allowance, RosteringAllowance]:
    """Returns the limits that an operator sets. `given`: by the names of `LIMITS`; None: the default."""
    values = [given[limit.name] for limit in LIMITS]
    return Allowance(*values[:3]), RosteringAllowance(*values[3:])


def list_own_limits(allowance: Allowance, rostering: RosteringAllowance) -> Mapping[str, int | None]:
    """Returns the limits of a vendor, by the names of `LIMITS`; None: it has none of its own."""
    own = (*dataclasses.astuple(allowance), *dataclasses.astuple(rostering))
    return dict(zip((limit.name for limit in LIMITS), own, strict=True))


def list_limits_in_force(allowance: Allowance, rostering: RosteringAllowance) -> Mapping[str, int | None]:
    """As `list_own_limits`, with the defaults; None: the service decides."""
    filled = (*fill_allowance(allowance), *fill_rostering_rate(rostering), rostering.at_once)
    return dict(zip((limit.name for limit in LIMITS), filled, strict=True))


def fill_allowance(allowance: Allowance) -> tuple[int, int, int]:
    """Returns (requests a second, burst, requests a day), with the defaults in place of None."""
    rate = allowance.requests_per_second or REQUESTS_PER_SECOND
    return rate, allowance.burst or rate * BURST_SECONDS, allowance.requests_per_day or REQUESTS_PER_DAY


def fill_rostering_rate(allowance: RosteringAllowance) -> tuple[int, int]:
    """Returns (requests a second, burst), with the defaults in place of None."""
    rate = allowance.requests_per_second or ROSTERING_PER_SECOND
    return rate, allowance.burst or rate * BURST_SECONDS


def make_windows(allowance: Allowance) -> tuple[Window, Window]:
    """Returns the two windows of an allowance, the short one first."""
    rate, burst, day = fill_allowance(allowance)
    return Window("vendor", burst, burst // rate), Window("vendor", day, DAY_SECONDS)


def make_lots(allowance: RosteringAllowance) -> tuple[int, Window]:
    """Returns (requests in a lot, window that counts lots). The lots make up the burst, or less by under a lot."""
    rate, burst = fill_rostering_rate(allowance)
    size = max(1, burst // LOTS)
    return size, Window("rostering", burst // size, burst // rate)


LIMIT, REMAINING, RESET = "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"
# Header -> its explanation.
RATE_HEADERS: Mapping[str, str] = {
    LIMIT: "Requests that the window takes",
    REMAINING: "Requests left in it",
    RESET: "Of the requests in it: seconds until the oldest of them leaves the window",
}


def describe_headers() -> dict[str, Any]:
    """Returns the OpenAPI header objects of the `RateLimit` headers."""
    return {name: {"description": text, "schema": {"type": "integer"}} for name, text in RATE_HEADERS.items()}


@dataclass(frozen=True)
class RateState:
    """The window of a vendor after a request: its limit, the requests left in it, and the instant at which its oldest
    request leaves it, in seconds since 1970. `admitted`: whether the request fits into it."""

    limit: int
    remaining: int
    resets_at: float
    admitted: bool

    @property
    def wait(self) -> int:
        """The seconds until a request is free again, rounded up."""
        return max(0, math.ceil(self.resets_at - time.time()))

    def make_headers(self) -> dict[str, str]:
        """Returns the `RateLimit` headers."""
        return {LIMIT: str(self.limit), REMAINING: str(max(0, self.remaining)), RESET: str(self.wait)}
