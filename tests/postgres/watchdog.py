"""Run beside a test process: ends all that it started once it is gone, which the end of standard input tells.

A server that a test process starts is no child of it, and a process that is killed stops nothing.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys

# Every process that the test process starts has it in its environment, with the folder as its value.
VARIABLE = "TESTS_ROSTER_FOLDER"


def main(folder: str) -> None:
    """Waits, ends the processes, and removes the folder."""
    sys.stdin.read()
    import psutil

    ended = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid != os.getpid() and process.environ().get(VARIABLE) == folder:
                # PostgreSQL frees its shared memory.
                process.send_signal(signal.SIGQUIT if process.name() == "postgres" else signal.SIGKILL)
                ended.append(process)
    psutil.wait_procs(ended, timeout=10)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1])
