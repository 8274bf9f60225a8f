"""The rate limits of the vendor interface: a short window and a daily one for each vendor, which both paths share.

The limits belong to the vendor, not to its API key: during the rotation of a key, both keys share them.
"""

from __future__ import annotations

from roster_service.auth.credentials.api_keys import Allowance
from roster_service.auth.throttling.counters import Counters
from roster_service.auth.throttling.limits import make_windows
from roster_service.auth.throttling.rate_state import RateState


class VendorThrottle:
    """Counts the requests of each vendor."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters

    def count(self, vendor_id: int, allowance: Allowance) -> RateState | None:
        """Counts a request, and returns the state of the window that it exceeds, else of the short one. None if the
        counters cannot be reached: then the request passes."""
        short, day = make_windows(allowance)
        exceeded = next((item for item in (short, day) if not self._counters.hit(item, str(vendor_id))), None)
        item = exceeded or short
        window = self._counters.read_window(item, str(vendor_id))
        if window is None:
            return None
        return RateState(item.amount, window.remaining, window.reset_time, admitted=exceeded is None)
