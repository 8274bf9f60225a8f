"""The counters of all throttles, and what each throttle does while they cannot be reached.

A circuit breaker bounds the delay: after a failure, this process leaves the counters alone for `PAUSE_SECONDS`, and
then lets a request try them again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from limits import RateLimitItem, WindowStats
from limits.storage import MemoryStorage, Storage
from limits.strategies import MovingWindowRateLimiter

PAUSE_SECONDS = 5.0

Answer = TypeVar("Answer")
_log = logging.getLogger(__name__)


class WhenAway(Enum):
    """What a throttle does while the counters cannot be reached. The text is that of `docs/run.md`."""

    OPENS = "requests pass"
    COUNTS_ALONE = "each worker counts by itself"


@dataclass(frozen=True)
class Throttle:
    """What a throttle counts, and what it does while the counters cannot be reached."""

    counted: str
    when_away: WhenAway


# By the namespace of the counters. A vendor must not lose the roster because Redis is away. But an outage must not give
# a guesser of passwords, which people choose, as many tries as they like. Client secrets have 256 random bits.
THROTTLES: Mapping[str, Throttle] = {
    "login-account": Throttle("failed logins with an e-mail address", WhenAway.COUNTS_ALONE),
    "login-key": Throttle("failed logins with the API keys of a vendor", WhenAway.COUNTS_ALONE),
    "operator-account": Throttle("failed logins of an operator from an address", WhenAway.COUNTS_ALONE),
    "operator-address": Throttle("failed logins of operators from an address", WhenAway.COUNTS_ALONE),
    "operator-browser": Throttle("failed logins from a browser of an operator", WhenAway.COUNTS_ALONE),
    "operator-code": Throttle("wrong one-time codes of an operator", WhenAway.COUNTS_ALONE),
    "token-client": Throttle("tokens of a client", WhenAway.OPENS),
    "token-address": Throttle("requests of an address for tokens", WhenAway.OPENS),
    "vendor": Throttle("requests of a vendor on `/v1`", WhenAway.OPENS),
    "rostering": Throttle("requests of a vendor on the rostering interface", WhenAway.OPENS),
    "orderings": Throttle("time of the database for new filters and sorts of a vendor", WhenAway.OPENS),
}


class Counters:
    """Exact moving windows in a storage that all workers share. The namespace of an item is a key of `THROTTLES`."""

    def __init__(self, storage: Storage) -> None:
        self._shared = MovingWindowRateLimiter(storage)
        self._errors = storage.base_exceptions
        # Made by the first failure, and dropped with its counters when the storage is back.
        self._own: MovingWindowRateLimiter | None = None
        self._tries_at = float("-inf")

    def hit(self, item: RateLimitItem, *names: str, cost: int = 1) -> bool:
        """Counts `cost` hits, unless they do not fit into the window of `item`. Returns whether it has counted them;
        True if it knows nothing."""
        return self._ask(lambda limiter: limiter.hit(item, *names, cost=cost), item, unknown=True)

    def has_room(self, item: RateLimitItem, *names: str) -> bool:
        """Returns whether a hit would be counted now; True if it knows nothing."""
        return self._ask(lambda limiter: limiter.test(item, *names), item, unknown=True)

    def read_window(self, item: RateLimitItem, *names: str) -> WindowStats | None:
        """Returns the window's number of hits to come, and the instant at which its oldest hit leaves it, in seconds
        since 1970. None if it knows nothing."""
        return self._ask(lambda limiter: limiter.get_window_stats(item, *names), item, unknown=None)

    def find_wait(self, item: RateLimitItem, *names: str) -> float:
        """Returns the seconds until the oldest hit leaves the window; 0 if it knows nothing."""
        window = self.read_window(item, *names)
        return 0.0 if window is None else window.reset_time - time.time()

    def _ask(self, ask: Callable[[MovingWindowRateLimiter], Answer], item: RateLimitItem, *, unknown: Answer) -> Answer:
        if time.monotonic() >= self._tries_at:
            try:
                answer = ask(self._shared)
            except self._errors as error:
                self._set_away(error)
            else:
                self._set_back()
                return answer
        own = self._own
        if own is None or THROTTLES[item.namespace].when_away is WhenAway.OPENS:
            return unknown
        return ask(own)

    def _set_away(self, error: Exception) -> None:
        self._tries_at = time.monotonic() + PAUSE_SECONDS
        if self._own is None:
            self._own = MovingWindowRateLimiter(MemoryStorage())
            # Without the driver's message, which can quote the address with a password.
            _log.warning("throttle: the counters cannot be reached (%s)", type(error).__name__)

    def _set_back(self) -> None:
        if self._own is not None:
            self._own = None
            _log.warning("throttle: the counters can be reached again")
