"""Output that cannot be written, because its reader has gone or its disk is full. Lost output does not change the
outcome of a run, which is in the exit code and in sync_runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def survive_lost_output() -> Iterator[None]:
    """Wraps printing, and nothing else. It redirects a failed stream to the null device; otherwise the interpreter
    would fail to flush the stream at its end and exit with a code of its own."""
    try:
        yield
    except OSError:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
