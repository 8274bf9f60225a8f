"""The end of the processes that tests start."""

from __future__ import annotations

import signal
import subprocess
from typing import Any

from tests.conditions import PATIENCE_SECONDS


def end(process: subprocess.Popen[Any]) -> None:
    """Ends a process as Ctrl-C does, and kills it if that takes longer than a minute; TimeoutExpired then.

    After SIGTERM, the service would go on for 5 s, for load balancers. Leaving the block of a `Popen` waits without a
    limit."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
