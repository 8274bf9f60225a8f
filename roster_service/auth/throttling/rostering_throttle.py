"""The limits of a vendor on the rostering interface: requests a second with a burst, and requests at the same time.

A page is one round trip, so a call to the counters for each request would double its cost. A worker takes the requests
of a vendor in lots, and counts those of a lot by itself. So the limit is exact to one lot of each worker.

Requests at the same time are counted by the database: the admission of a request takes a slot of the vendor for its
transaction (`admit_client`). A vendor without a limit of its own may use every worker while it is alone; while this
worker serves other vendors too, the vendor may use all but one of the workers of a machine.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass

import sqlalchemy as sa

from roster_service.auth.throttling.counters import Counters
from roster_service.auth.throttling.limits import ROSTERING_DEFAULTS, RosteringAllowance, make_lots
from roster_service.auth.throttling.rate_state import RateState
from roster_service.db.tables import vendors

# The longest time without a look at the vendor's limits, which an operator may change.
LOT_SECONDS = 10
# The same for a vendor that has used up its window.
REFUSAL_SECONDS = 1
# A vendor counts as active for this long after a request.
ACTIVE_SECONDS = 10


@dataclass
class _Lot:
    """Requests that a worker may answer for a vendor until `ends_at`, in seconds of `time.monotonic`, or the refusal of
    a lot. `window`: (limit, requests left in the window beside this lot, reset in seconds since 1970) when it was
    taken; None if not known."""

    at_once: int | None
    is_refusal: bool
    left: int
    ends_at: float
    window: tuple[int, int, float] | None


class RosteringThrottle:
    """Counts the requests of vendors for one worker. Threads may share it."""

    def __init__(self, counters: Counters, accounts: sa.Engine, workers: int) -> None:
        """`accounts`: of the role that may read accounts. `workers`: of this machine."""
        self._counters = counters
        self._accounts = accounts
        self._shared_slots = max(1, workers - 1)
        # Both have at most as many entries as there are vendors with a valid token.
        self._lots: dict[int, _Lot] = {}
        # Vendor -> the instant of its last request, the latest last.
        self._active: OrderedDict[int, float] = OrderedDict()
        self._lock = threading.Lock()

    def count(self, vendor_id: int) -> RateState | None:
        """Counts a request, and returns the state of the vendor's window. None if the counters cannot be reached: then
        the request passes. Raises SQLAlchemyError if the database fails."""
        with self._lock:
            lot = self._lots.get(vendor_id)
            now = time.monotonic()
            if lot is None or now >= lot.ends_at or (lot.left == 0 and not lot.is_refusal):
                lot = self._lots[vendor_id] = self._take_lot(vendor_id, now)
            if not lot.is_refusal:
                lot.left -= 1
            if lot.window is None:
                return None
            limit, others, resets_at = lot.window
            return RateState(limit, others + lot.left, resets_at, admitted=not lot.is_refusal)

    def find_slots(self, vendor_id: int) -> int | None:
        """Returns how many requests of the vendor may run at the same time; None for any number. It takes a call of
        `count` as a request of the vendor."""
        with self._lock:
            now = time.monotonic()
            latest = next((other for other in reversed(self._active) if other != vendor_id), None)
            self._active[vendor_id] = now
            self._active.move_to_end(vendor_id)
            own = self._lots[vendor_id].at_once
            if own is not None:
                return own
            has_others = latest is not None and now - self._active[latest] < ACTIVE_SECONDS
            return self._shared_slots if has_others else None

    def _take_lot(self, vendor_id: int, now: float) -> _Lot:
        allowance = self._read_allowance(vendor_id)
        size, item = make_lots(allowance)
        admitted = self._counters.hit(item, str(vendor_id))
        found = self._counters.read_window(item, str(vendor_id))
        window = found and (item.amount * size, found.remaining * size, found.reset_time)
        if admitted:
            return _Lot(allowance.at_once, False, size, now + min(LOT_SECONDS, item.get_expiry()), window)
        wait = min(REFUSAL_SECONDS, found.reset_time - time.time()) if found else 0
        return _Lot(allowance.at_once, True, 0, now + wait, window)

    def _read_allowance(self, vendor_id: int) -> RosteringAllowance:
        columns = (vendors.c.rostering_per_second, vendors.c.rostering_burst, vendors.c.rostering_at_once)
        with self._accounts.connect() as connection:
            row = connection.execute(sa.select(*columns).where(vendors.c.id == vendor_id)).one_or_none()
        # The admission refuses the token of a vendor that is gone.
        return ROSTERING_DEFAULTS if row is None else RosteringAllowance(*row)
