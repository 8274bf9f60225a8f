"""What `roster run` does when it gets a signal."""

from __future__ import annotations

import os
import signal
import subprocess
from types import FrameType

TERMINAL = 0


class Terminated(KeyboardInterrupt):
    """SIGTERM has arrived."""


class RunSignals:
    """SIGINT and SIGTERM end `roster run`. SIGHUP lets gunicorn replace its workers, or ends `roster run` if it is sent
    because the terminal has closed."""

    def __init__(self) -> None:
        self._had_terminal = os.isatty(TERMINAL)
        self._server: subprocess.Popen[bytes] | None = None

    def register(self) -> None:
        """Registers the handlers. A SIGHUP that is ignored, as below nohup, stays ignored."""
        signal.signal(signal.SIGTERM, self._terminate)
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            signal.signal(signal.SIGHUP, self._hang_up)

    def forward_to(self, server: subprocess.Popen[bytes]) -> None:
        """Sends each further SIGHUP to gunicorn. It must have started: a SIGHUP before that would end it."""
        self._server = server

    def _terminate(self, _signal: int, _frame: FrameType | None) -> None:
        raise Terminated

    def _hang_up(self, _signal: int, _frame: FrameType | None) -> None:
        if self._had_terminal and not os.isatty(TERMINAL):
            raise KeyboardInterrupt
        if self._server is not None:
            self._server.send_signal(signal.SIGHUP)
