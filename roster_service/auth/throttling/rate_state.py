"""How much of a rate limit is left, as the `RateLimit` headers say it."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
