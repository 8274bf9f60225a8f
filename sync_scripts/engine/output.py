"""Output that cannot be written: who reads it has gone, or its disk is full. It decides nothing: how a run ended is in
the exit code and in sync_runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def survive_lost_output() -> Iterator[None]:
    """Around what is printed, and nothing else. After a stream has failed, it takes everything and keeps nothing: the
    interpreter would fail once more when it ends, with an exit code of its own."""
    try:
        yield
    except OSError:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
