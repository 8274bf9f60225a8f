"""The end of the processes that tests start."""

from __future__ import annotations

import subprocess
from typing import Any

from tests.conditions import PATIENCE_SECONDS


def end(process: subprocess.Popen[Any]) -> None:
    """Ends a process by SIGTERM, and kills it if that takes longer than a minute; TimeoutExpired then.

    A background job of a shell ignores SIGINT, and so do its children, and leaving the block of a `Popen` waits without
    a limit."""
    process.terminate()
    try:
        process.wait(PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
