"""The turns of the callers of a worker: which request it answers next."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

from roster_service.server.http_channel import Caller, Channel

# A worker in which callers wait for each other ends a connection of the one with the fewest after so many responses, at
# most once in so many seconds: its client connects again, and a worker that is idle accepts sooner than this one.
CONTENDED_RESPONSES = 8
MOVE_SECONDS = 1.0
# Seconds between two responses 429 of a worker to a caller whose next requests are waiting.
REFUSAL_SECONDS = 0.1


@dataclass
class CallerQueue:
    """The channels of a caller whose request has arrived, the one that has waited longest first."""

    channels: list[Channel] = field(default_factory=list)
    waits_until: float = 0

    def find_ready(self) -> Channel | None:
        """Returns the next channel. A client that sends several requests at once gets the next response when it has
        read the one before."""
        return next((channel for channel in self.channels if not channel.total_outbufs_len), None)


class SerialTasks:
    """waitress's dispatcher: keeps the channels whose request has arrived, and runs one at a time when told to.

    The callers take turns: a caller with many connections delays another one by a single request. A caller whose
    request was answered 429 waits for `refusal_seconds`, so that its next ones do not keep the processor busy. There
    are at most as many queues as connections.
    """

    def __init__(self, *, has_siblings: bool = False) -> None:
        """`has_siblings`: whether other workers may take a connection."""
        self._has_siblings = has_siblings
        # The responses for which another caller waited, without a pause of `MOVE_SECONDS`, and the instant of the last.
        self._contended = 0
        self._contended_at = self._moved_at = -math.inf
        # By their callers; the next one comes first.
        self._queues: dict[Caller, CallerQueue] = {}
        self._last_caller: Caller | None = None
        self.refusal_seconds: float = REFUSAL_SECONDS

    def add_task(self, channel: Channel) -> None:
        """Queues a channel; waitress calls this."""
        self._queues.setdefault(channel.find_caller(), CallerQueue()).channels.append(channel)

    def find_wait(self, most: float) -> float:
        """Returns the seconds until `run_next` would answer a request, `most` if there is none."""
        ready = [queue.waits_until for queue in self._queues.values() if queue.find_ready() is not None]
        return max(0, min(most, min(ready, default=math.inf) - time.monotonic()))

    def run_next(self) -> int:
        """Answers the request that has waited longest, of the caller whose turn it is. Returns the number of requests
        that it answered, 0 or 1."""
        if self._last_caller in self._queues:
            # Only now: the callers whose requests have arrived since then come before it.
            self._queues[self._last_caller] = self._queues.pop(self._last_caller)
        now = time.monotonic()
        for caller, queue in self._queues.items():
            channel = queue.find_ready()
            if channel is not None and queue.waits_until <= now:
                self._answer(caller, queue, channel)
                return 1
        return 0

    def _answer(self, caller: Caller, queue: CallerQueue, channel: Channel) -> None:
        self._last_caller = caller
        if self._should_move(queue):
            channel.requests[0].connection_close = True
        queue.channels.remove(channel)
        channel.service()
        if channel.was_throttled and not caller.is_address:
            queue.waits_until = time.monotonic() + self.refusal_seconds
        if not queue.channels:
            del self._queues[caller]

    def _should_move(self, queue: CallerQueue) -> bool:
        """Returns whether the connection that is answered next shall end, for its client to find another worker."""
        others = [other for other in self._queues.values() if other is not queue]
        now = time.monotonic()
        if not others or not self._has_siblings:
            return False
        if now - self._contended_at > MOVE_SECONDS:
            self._contended = 0
        self._contended, self._contended_at = self._contended + 1, now
        is_smallest = all(len(queue.channels) <= len(other.channels) for other in others)
        if self._contended < CONTENDED_RESPONSES or not is_smallest or now - self._moved_at < MOVE_SECONDS:
            return False
        self._contended, self._moved_at = 0, now
        return True
