"""Rates that no test meets: tests come from one address, and ask as fast as they can."""

from __future__ import annotations

from roster_service.auth.throttling.limits import Rates

UNBOUNDED = Rates(tokens=10**6, token_requests=10**6, ordering_seconds=3600)
