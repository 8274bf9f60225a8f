"""The worker of gunicorn, and how one follows another.

gunicorn's master makes each worker, with a number that grows, and forks it. The master and all workers share a piece of
memory: the greatest number, and a state for each of the last numbers.

gunicorn's own workers read each request with a thread of its own or with the whole worker, so that clients which send
slowly stop a service of a few workers.
"""

from __future__ import annotations

import mmap
import os
import signal
import struct
import time
from types import FrameType
from typing import TYPE_CHECKING, Any

from gunicorn.workers.base import Worker as BaseWorker

from roster_service.web.time_limit import NOTICE_SECONDS, is_draining

# More than the workers of two generations.
SLOTS = 4096
BORN, READY = 1, 2
_NEWEST = struct.Struct("q")


class Succession:
    """The states of workers by their numbers. Made before the first fork."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _NEWEST.size + SLOTS)

    def add(self, number: int) -> None:
        """Notes a worker that is about to be forked; the master calls this."""
        self._set(number, BORN)
        _NEWEST.pack_into(self._memory, 0, number)

    def set_ready(self, number: int) -> None:
        """Notes that a worker answers requests."""
        self._set(number, READY)

    def has_successors(self, number: int, workers: int) -> bool:
        """Returns whether a worker is of a generation that is being replaced. `workers`: the number of a generation."""
        return self._find_newest() - number >= workers

    def has_ready_successors(self, number: int, workers: int) -> bool:
        """Returns whether as many newer workers as a generation has answer requests."""
        newer = range(number + 1, self._find_newest() + 1)[-SLOTS:]
        return sum(self._memory[self._place(number)] == READY for number in newer) >= workers

    def _find_newest(self) -> int:
        return int(_NEWEST.unpack_from(self._memory, 0)[0])

    def _set(self, number: int, state: int) -> None:
        self._memory[self._place(number)] = state

    @staticmethod
    def _place(number: int) -> int:
        return _NEWEST.size + number % SLOTS


if TYPE_CHECKING:
    from roster_service.server.http_server import HttpServer

# Seconds between two signs of life to gunicorn's master, and the longest time until a signal is seen.
TICK_SECONDS = 0.5
# Seconds for which a worker that gunicorn replaces goes on accepting connections until its successors are ready, at
# most; and those of a worker that has none.
HANDOVER_SECONDS = 60
ALONE_SECONDS = 10
# Seconds that a worker which no longer accepts connections has for the requests that it has.
FINISH_SECONDS = 10


# Made in gunicorn's master, which imports this module.
succession = Succession()


class Worker(BaseWorker):  # type: ignore[misc]  # gunicorn has no types
    """A worker process, which answers one request at a time.

    SIGTERM ends it with a handover, because gunicorn sends it to the workers that a reload replaces. SIGQUIT, SIGINT,
    SIGABRT, and SIGTERM while `roster run` stops end it at once. In each case it answers the requests that it has.
    """

    _ends_at_once = False
    _ended_at: float | None = None
    _draining_since: float | None = None

    def __init__(self, age: int, *arguments: Any) -> None:
        super().__init__(age, *arguments)
        succession.add(age)

    def run(self) -> None:
        """Serves until gunicorn's master ends the worker or is gone."""
        # Imported here to keep gunicorn's master process, which imports this module, small.
        from roster_service.server.http_server import HttpServer

        sockets = [listener.sock for listener in self.sockets]
        server = HttpServer(self.wsgi, sockets, has_siblings=self.cfg.workers > 1)
        succession.set_ready(self.age)
        while self._is_accepting(server):
            self._take_turn(server)
        server.set_ending()
        server.stop_accepting()
        deadline = time.monotonic() + FINISH_SECONDS
        while time.monotonic() < deadline and not server.is_quiet():
            self._take_turn(server)

    def handle_quit(self, sig: int, frame: FrameType | None) -> None:
        """SIGQUIT and SIGINT. gunicorn's own method ends the process in the middle of a request."""
        self._ends_at_once = True
        self.alive = False

    def handle_abort(self, sig: int, frame: FrameType | None) -> None:
        """SIGABRT, for a request that takes too long; the SystemExit of gunicorn's own method ends that request."""
        self._ends_at_once = True
        super().handle_abort(sig, frame)

    def _take_turn(self, server: HttpServer) -> None:
        self.notify()
        self.nr += server.take_turn(TICK_SECONDS)

    def _is_accepting(self, server: HttpServer) -> bool:
        """Whether to accept connections. If not, or not for long, connections end with their next response."""
        if self._ends_at_once or self.ppid != os.getppid():
            return False
        now = time.monotonic()
        if is_draining():
            server.set_ending()
            self._draining_since = self._draining_since or now
            if self.alive and now - self._draining_since > NOTICE_SECONDS:
                # `roster run` was killed, or it has sent the same signal.
                os.kill(self.ppid, signal.SIGTERM)
                return False
            return bool(self.alive)
        if self.nr >= self.max_requests:
            self.alive = False
        if self.alive:
            return True
        server.set_ending()
        self._ended_at = self._ended_at or now
        if succession.has_successors(self.age, self.cfg.workers):
            return (
                not succession.has_ready_successors(self.age, self.cfg.workers)
                and now - self._ended_at < HANDOVER_SECONDS
            )
        return now - self._ended_at < ALONE_SECONDS
