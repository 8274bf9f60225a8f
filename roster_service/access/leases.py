"""For how long a worker goes by what the database told it of a caller and of the roster.

Only answers without a record of the roster go by it: that nothing has changed, and that a page is empty. Whoever asks
again and again costs the database a few questions a second then, not one a request.

A command that takes something away, or changes the roster, ends after every lease that was given before: once it has
ended, no worker goes by what was.
"""

from __future__ import annotations

import time

LEASE_SECONDS = 0.05


class Lease:
    """How long one thing that the database said holds; at first, not at all."""

    def __init__(self) -> None:
        self._end = float("-inf")

    @property
    def holds(self) -> bool:
        """Whether it still holds."""
        return time.monotonic() < self._end

    def renew(self, asked_at: float) -> None:
        """The database said it again. `asked_at`: when the question was sent, by the monotonic clock: what was changed
        since, the answer may not know."""
        self._end = asked_at + LEASE_SECONDS


def outlast_leases() -> None:
    """Returns when every lease has ended that was given for what was true until now."""
    time.sleep(LEASE_SECONDS)
