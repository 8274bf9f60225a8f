"""A drop box in memory that behaves as servers of receivers do, and ends the process at a step if asked to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from types import SimpleNamespace
from typing import IO

import pytest

from roster_service.deliveries.sender import Sender
from roster_service.deliveries.sftp import Receiver


class Killed(BaseException):
    """The process ends here: nothing after it is done."""


class Kind(Enum):
    """What a server allows."""

    POSIX = "posix-rename"
    FREE_NAMES = "a rename to a free name"
    NO_RENAME = "no rename"


@dataclass
class DropBox:
    """The files of a receiver. `kill_at`: the number of the step at which the process ends; `consumes`: whether it
    takes each file away once it has its name, as those in `taken`; `steps`: how many there were; `drops`: whether the
    connection ends with the next rename, which is done without an answer; `is_late`: whether the answer to the next
    rename comes too late; `is_cut`: whether the connection ends while the next file is uploaded; `removes`:
    what it answers to a removal, which a TimeoutError does not hinder."""

    kind: Kind = Kind.POSIX
    consumes: bool = False
    kill_at: int | None = None
    fails: int = 0
    steps: int = 0
    drops: bool = False
    is_down: bool = False
    is_late: bool = False
    is_cut: bool = False
    removes: Exception | None = None
    files: dict[str, bytes] = field(default_factory=dict)
    taken: list[tuple[str, bytes]] = field(default_factory=list)

    @contextmanager
    def connect(self, *_to: object) -> Iterator[Receiver]:
        """A connection."""
        if self.fails:
            self.fails -= 1
            raise ConnectionResetError(104, "Connection reset by peer")
        self.is_down = False
        self._step()
        yield self

    def _step(self) -> None:
        self.steps += 1
        if self.is_down:
            raise ConnectionResetError(104, "Connection reset by peer")
        if self.kill_at == self.steps:
            raise Killed

    def putfo(self, file: IO[bytes], name: str, /, *, confirm: bool) -> None:
        """Writes a file, half of it if the process ends meanwhile."""
        content = file.read()
        self.files[name] = content[: len(content) // 2]
        self._step()
        self.is_down, self.is_cut = self.is_cut, False
        if self.is_down:
            raise ConnectionResetError(104, "Connection reset by peer")
        self.files[name] = content
        self._step()
        assert not confirm

    def stat(self, name: str, /) -> SimpleNamespace:
        """The size of a file."""
        return SimpleNamespace(st_size=len(self.files[name]))

    def posix_rename(self, old: str, new: str, /) -> None:
        """Renames a file in place of another one."""
        self._step()
        if self.kind is not Kind.POSIX:
            raise OSError(95, "Operation not supported")
        self._rename(old, new)
        if self.is_late:
            self.is_late = False
            raise TimeoutError

    def rename(self, old: str, new: str, /) -> None:
        """Renames a file to a free name."""
        self._step()
        if self.kind is Kind.NO_RENAME or new in self.files:
            raise PermissionError(13, "Permission denied")
        self._rename(old, new)

    def _rename(self, old: str, new: str) -> None:
        self.files[new] = self.files.pop(old)
        if self.consumes:
            self.taken.append((new, self.files.pop(new)))
        self.is_down, self.drops = self.drops, False
        self._step()

    def remove(self, name: str, /) -> None:
        """Removes a file."""
        self._step()
        if self.removes is not None and not isinstance(self.removes, TimeoutError):
            raise self.removes
        if name not in self.files:
            raise FileNotFoundError(2, "No such file")
        del self.files[name]
        if self.removes is not None:
            raise self.removes
        self._step()


def use_drop_box(monkeypatch: pytest.MonkeyPatch) -> DropBox:
    """Makes one the receiver of every delivery of this process."""
    made = DropBox()
    monkeypatch.setattr(Sender.__init__, "__defaults__", (made.connect,))
    return made
