"""`python -m tests.faults.killed_undo POINT ARGUMENTS`: loads an export as `load_oneroster ARGUMENTS`, and kills itself
at a point."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from roster_service.feeds.run_history import STEPS
from sync_scripts import load_oneroster
from sync_scripts.engine import load, run_record

# The beginning of each step; when the copy of the export is made, before the commit; and after the commit.
KEPT, COMMITTED = "kept", "committed"
POINTS = (*STEPS, KEPT, COMMITTED)


def kill_at(point: str | None) -> None:
    """Ends this process as a crash does, if this is its point."""
    if point == sys.argv[1]:
        os.kill(os.getpid(), signal.SIGKILL)


def watch(module: ModuleType, name: str, find_before: Callable[..., str | None], after: str | None = None) -> None:
    """Lets the engine call a function, by its name in a module, with a point before and after."""
    inner: Callable[..., Any] = getattr(module, name)

    def call(*arguments: Any) -> Any:
        kill_at(find_before(*arguments))
        done = inner(*arguments)
        kill_at(after)
        return done

    setattr(module, name, call)


def main() -> None:
    """Loads the export."""
    watch(load, "name_session", lambda _connection, _feed, step: str(step))
    watch(run_record, "keep_for_undo", lambda *_: None, KEPT)
    watch(load, "drop_export", lambda *_: COMMITTED)
    load_oneroster.main(sys.argv[2:])


if __name__ == "__main__":
    main()
