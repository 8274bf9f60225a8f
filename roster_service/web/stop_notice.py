"""Whether `roster run` is stopping.

`roster run` holds a pipe to the standard input of gunicorn and its workers, and writes nothing to it. When it stops,
or is killed, the pipe has no writer any more; each worker sees that by itself.
"""

from __future__ import annotations

import select

PIPE = 0
# Seconds from the announcement of a stop to the stop: load balancers look at intervals.
NOTICE_SECONDS = 5


def is_draining() -> bool:
    """Returns True if `roster run` is stopping or gone: the worker still serves, but no new requests should be sent to
    it. False as well where the process was started in another way."""
    poll = select.poll()
    # An end of the pipe without a writer is reported unasked.
    poll.register(PIPE, 0)
    return any(event & select.POLLHUP for _, event in poll.poll(0))
