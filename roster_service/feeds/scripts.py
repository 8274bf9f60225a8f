"""Running the scripts of the sync, which this package does not import, on the database of a connection: to their end,
or in the background."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from roster_service.db.roles import find_owner_url
from roster_service.errors import CommandError
from roster_service.settings import override

# The file that takes the output of a script in the background, that with its process, and the folder of such files in
# the data folder.
OUTPUT, PROCESS, FOLDER = "output.txt", "process.txt", "background"
# The exit codes of a load that needs its export no more: loaded, loaded but for single rows, held with a copy of it.
TAKEN = (0, 1, 3)


# Sets the bounds of its own process, which stay when it becomes the script: the time is kept without a parent.
_SET_BOUNDS = (
    "import os, resource, signal, sys; signal.alarm(int(sys.argv[1])); "
    "resource.setrlimit(resource.RLIMIT_DATA, (int(sys.argv[2]),) * 2); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[3:]])"
)


@dataclass(frozen=True)
class Bounds:
    """The bounds of a script in the background: seconds until it is ended, and bytes of memory."""

    seconds: int
    memory_bytes: int


def run_script(connection: sa.Connection, name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs `python -m sync_scripts.NAME ARGUMENTS` and returns its exit code and output."""
    return subprocess.run(  # noqa: S603  (our own script)
        _make_command(name, arguments),
        env=_make_environment(connection),
        capture_output=True,
        text=True,
        check=False,
    )


@dataclass(frozen=True)
class Background:
    """A script in the background, or its end. `report`: the JSON object that it printed, None before that; `text`:
    everything that it printed if it ended without one; `ended`: when it wrote that, None while it runs."""

    is_running: bool
    report: Mapping[str, Any] | None
    text: str
    ended: datetime | None = None

    @property
    def has_run(self) -> bool:
        """Whether it made a run, which says how it ended: a refused export has no run number, but its reasons."""
        return self.report is not None and ("run" in self.report or "rejections" in self.report)

    def ended_before(self, instant: str) -> bool:
        """Returns whether it ended before an instant of ISO 8601."""
        return self.ended is not None and self.ended < datetime.fromisoformat(instant)

    @property
    def message(self) -> str | None:
        """The reason why the script did nothing, as it said it; None while it runs and after a good end."""
        if self.is_running:
            return None
        if self.report is None:
            return self.text or "the process ended without a word; nothing was changed"
        message = self.report.get("message")
        return None if message is None else str(message)


def start_script(
    connection: sa.Connection,
    home: Path,
    folder: Path,
    name: str,
    *arguments: str | Path,
    drop: Path | None = None,
    bounds: Bounds | None = None,
) -> None:
    """Starts a script of the sync as `run_script` does, and returns at once. It goes on when this process ends. Its
    output goes into a file in `folder`, which only the owner can read; `read_background` reads it. `home`: the data
    folder; `drop`: the folder of an export, to delete when it is loaded.

    Raises CommandError if a script with this folder is still running, and if the disk takes no file.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(folder / OUTPUT, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise CommandError(f"{folder} cannot be written: {error.strerror}") from None
    with os.fdopen(descriptor, "r+b") as output:
        # The lock belongs to the open file, which the process inherits: it ends with the process, however that ends.
        try:
            fcntl.flock(output, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CommandError("this has been started already, and is under way") from None
        output.truncate(0)
        process = subprocess.Popen(  # noqa: S603  (our own script)
            _make_command(name, arguments, bounds),
            env=_make_environment(connection, ROSTER_HOME=str(home.resolve())),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # A signal for the group of this process, such as that of a terminal, is not for the script.
            start_new_session=True,
        )
    with os.fdopen(os.open(folder / PROCESS, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(str(process.pid))
    threading.Thread(target=_wait, args=(process, drop), daemon=True).start()


def name_folder(home: Path, task: str, subject: str) -> Path:
    """Returns the folder of a script that does a task on a subject, whose name may have any sign. `home`: the data
    folder."""
    return home / FOLDER / f"{task}-{hashlib.sha256(subject.encode()).hexdigest()[:16]}"


def read_background(folder: Path) -> Background | None:
    """Returns the script that was last started with this folder; None if there was none."""
    try:
        with (folder / OUTPUT).open("rb") as output:
            try:
                fcntl.flock(output, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return Background(True, None, "")
            text = output.read().decode(errors="replace").strip()
            ended = datetime.fromtimestamp(os.fstat(output.fileno()).st_mtime, UTC)
    except OSError:
        return None
    return Background(False, _find_report(text), text, ended)


def end_script(folder: Path) -> None:
    """Ends the script that runs with this folder, if one does, and what it has started."""
    found = read_background(folder)
    if found is not None and found.is_running:
        # While it holds the lock of its output, no other process has its number. Its session is its group.
        with contextlib.suppress(OSError, ValueError):
            os.killpg(int((folder / PROCESS).read_text(encoding="utf-8")), signal.SIGKILL)


def _wait(process: subprocess.Popen[bytes], folder: Path | None) -> None:
    """Waits for the end of a script, because otherwise the system keeps its process."""
    if process.wait() in TAKEN and folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def _find_report(text: str) -> Mapping[str, Any] | None:
    """The last line that is a JSON object: warnings may come before it, and the place of a fault after it."""
    for line in reversed(text.splitlines()):
        with contextlib.suppress(ValueError):
            found = json.loads(line)
            if isinstance(found, dict):
                return found
    return None


def _make_command(name: str, arguments: Sequence[str | Path], bounds: Bounds | None = None) -> list[str | Path]:
    before = [] if bounds is None else ["-c", _SET_BOUNDS, str(bounds.seconds), str(bounds.memory_bytes)]
    return [sys.executable, *before, "-m", f"sync_scripts.{name}", *arguments]


def _make_environment(connection: sa.Connection, **values: str) -> dict[str, str]:
    """The environment of a script. `values`: of settings, beside the database."""
    url = find_owner_url(connection).render_as_string(hide_password=False)
    return override(os.environ, {"ROSTER_DATABASE_URL": url, **values})
