"""Shelves that somebody walks are filled, and count as used: by a thread of each worker, beside its requests."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from queue import Full, Queue

from sqlalchemy import Engine
from sqlalchemy.exc import ProgrammingError, SQLAlchemyError

from roster_service.query.documents import key_of, reads_documents
from roster_service.query.plan import Outline, View
from roster_service.query.shelves import Means, fill

# A shelf that is in use says so this often, and is looked at whether anything of it is missing.
TOUCH_SECONDS = 60
# Filling one may take this long; what is then missing is added when it is asked for again.
FILL_SECONDS = 600
REMEMBERED = 256

_log = logging.getLogger(__name__)


class Shelving:
    """The views that one worker's callers walk, and the thread that fills their shelves."""

    def __init__(self, engine: Engine, megabytes: int) -> None:
        """`engine`: of the tables' owner. `megabytes`: what all documents together may take; 0: none are kept."""
        self._engine = engine
        self._megabytes = megabytes
        self._noted: OrderedDict[str, float] = OrderedDict()
        self._wanted: Queue[View] = Queue(REMEMBERED)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def note(self, outline: Outline) -> None:
        """Remembers that records like these are walked."""
        if not self._megabytes or not reads_documents(outline):
            return
        key, now = key_of(outline.view), time.monotonic()
        with self._lock:
            if now - self._noted.get(key, float("-inf")) < TOUCH_SECONDS:
                return
            self._noted[key] = now
            self._noted.move_to_end(key)
            if len(self._noted) > REMEMBERED:
                self._noted.popitem(last=False)
            if self._thread is None:
                # Not before it is needed: a process that forks has no thread to lose.
                self._thread = threading.Thread(target=self._run, name="shelving", daemon=True)
                self._thread.start()
        try:
            self._wanted.put_nowait(outline.view)
        except Full:
            # It is noted again.
            return

    def _run(self) -> None:
        while True:
            view = self._wanted.get()
            try:
                fill(self._engine, view, Means.of(self._megabytes, FILL_SECONDS))
            except ProgrammingError as error:
                # Of a service that is not the tables' owner.
                _log.warning("documents are kept by the nightly sync alone: %s", type(error.orig).__name__)
                self._megabytes = 0
            except SQLAlchemyError as error:
                _log.warning("documents could not be kept: %s", type(error).__name__)
