"""`python -m tests.faults.killed_delivery STEP`: sends the delivery `nightly`, and kills itself at a step."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from roster_service.deliveries.accounts import Delivery
from roster_service.deliveries.sender import Sender
from roster_service.deliveries.sftp import Receiver, open_sftp
from roster_service.roster.revisions import open_roster_engine
from roster_service.settings import Settings

BEFORE, WHILE, UPLOADED, PLACED = "before", "while", "uploaded", "placed"
STEPS = (BEFORE, WHILE, UPLOADED, PLACED)


def kill_at(step: str) -> None:
    """Ends this process as a crash does, if this is its step."""
    if sys.argv[1:] == [step]:
        os.kill(os.getpid(), signal.SIGKILL)


class Watched:
    """The folder of a receiver, with the steps."""

    def __init__(self, inner: Receiver) -> None:
        self._inner = inner

    def putfo(self, file: IO[bytes], name: str, /, *, confirm: bool) -> None:
        """Writes a file; in two parts, between which the process may end."""
        kill_at(BEFORE)
        if sys.argv[1:] == [WHILE]:
            content = file.read()
            part = os.memfd_create("part")
            os.write(part, content[: len(content) // 2])
            os.lseek(part, 0, os.SEEK_SET)
            with os.fdopen(part, "rb") as half:
                self._inner.putfo(half, name, confirm=confirm)
            kill_at(WHILE)
        self._inner.putfo(file, name, confirm=confirm)

    def posix_rename(self, old: str, new: str, /) -> None:
        """Renames a file."""
        kill_at(UPLOADED)
        self._inner.posix_rename(old, new)
        kill_at(PLACED)

    def __getattr__(self, name: str) -> Any:
        """The methods without steps."""
        return getattr(self._inner, name)


@contextmanager
def connect(to: Delivery, secret: str, settings: Settings) -> Iterator[Any]:
    """A connection that is watched."""
    with open_sftp(to, secret, settings) as inner:
        yield Watched(inner)


def main() -> None:
    """Sends the delivery."""
    settings = Settings.from_environ(os.environ)
    with open_roster_engine(settings) as engine:
        print(Sender(engine, settings, connect=connect).deliver("nightly"))


if __name__ == "__main__":
    main()
