"""What the processors spend on processes and on what these have started."""

from __future__ import annotations

import contextlib
from pathlib import Path

import psutil


def find_postmaster(cluster: Path) -> int:
    """The process of the PostgreSQL that runs on a cluster."""
    return int((cluster / "postmaster.pid").read_text().split()[0])


def read_processor_seconds(*roots: int) -> float:
    """The processor time of these processes and of all below them, also of those that have ended and whose end was
    awaited."""
    spent = 0.0
    for root in map(psutil.Process, roots):
        for process in (root, *root.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                spent += sum(process.cpu_times()[:4])
    return spent
