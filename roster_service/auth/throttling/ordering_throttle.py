"""The bound on the work of the database for the new orderings and counts of a vendor: seconds in any minute.

Each filter or sort that nobody has asked for since the last sync makes the database read, sort and store a collection.
The bound counts the time that this took, in fiftieths of a second, each at least one. Work that is under way when the
bound is reached goes on, so the bound can be exceeded by one ordering of each worker.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from limits import RateLimitItemPerMinute

from roster_service.auth.throttling.counters import Counters
from roster_service.errors import ThrottledRequestError

PARTS_OF_A_SECOND = 50


class OrderingThrottle:
    """Counts the work for each vendor. Threads may share it."""

    def __init__(self, counters: Counters, seconds: int) -> None:
        """`seconds`: of work in any minute, for one vendor."""
        self._counters = counters
        self._item = RateLimitItemPerMinute(seconds * PARTS_OF_A_SECOND, namespace="orderings")

    def require_room(self, vendor_id: int) -> None:
        """Raises ThrottledRequestError if the vendor has used its time up."""
        if not self._counters.has_room(self._item, str(vendor_id)):
            wait = math.ceil(self._counters.find_wait(self._item, str(vendor_id)))
            raise ThrottledRequestError(
                "your new filters and sorts have taken too much of the database in the last minute; pages of those "
                "that you asked for before are answered, and `Retry-After` says when new ones are",
                max(1, wait),
            )

    @contextmanager
    def measure(self, vendor_id: int) -> Iterator[None]:
        """Counts the time of the block, also if it fails."""
        began = time.monotonic()
        try:
            yield
        finally:
            parts = math.ceil((time.monotonic() - began) * PARTS_OF_A_SECOND)
            # Work that does not fit into what is left uses all of it up.
            if not self._counters.hit(self._item, str(vendor_id), cost=min(parts, self._item.amount)):
                window = self._counters.read_window(self._item, str(vendor_id))
                if window is not None and window.remaining > 0:
                    self._counters.hit(self._item, str(vendor_id), cost=window.remaining)
