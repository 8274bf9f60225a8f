"""Outages of what the service depends on: one log line when one begins, one when it ends, and a count in between."""

from __future__ import annotations

import logging
import threading
import time

from roster_service.logs import facts
from roster_service.metrics import FAILURES

log = logging.getLogger(__name__)


class Outage:
    """Whether a dependency fails at present. Threads of a worker share it; each worker logs by itself.

    `name`: of the dependency, as in "the database"; `consequence`: what the service does meanwhile.
    """

    def __init__(self, name: str, consequence: str) -> None:
        self._name = name
        self._consequence = consequence
        self._lock = threading.Lock()
        self._began: float | None = None
        self._failures = 0

    def add_failure(self, kind: str) -> None:
        """Counts a failure, and logs the first one. `kind`: of the error, without its message."""
        FAILURES.labels(self._name).inc()
        with self._lock:
            self._failures += 1
            if self._began is not None:
                return
            self._began = time.monotonic()
        log.error("%s does not answer (%s); %s", self._name, kind, self._consequence)

    def end(self) -> None:
        """Logs that the dependency answers again, if it failed before."""
        # Without the lock: almost every call finds no outage.
        if self._began is None:
            return
        with self._lock:
            began, failures = self._began, self._failures
            self._began, self._failures = None, 0
        if began is not None:
            seconds = round(time.monotonic() - began, 1)
            log.warning("%s answers again", self._name, extra=facts(seconds=seconds, failures=failures))
