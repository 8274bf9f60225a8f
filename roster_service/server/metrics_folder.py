"""The folder in which the workers share their metrics, so that any of them can show those of all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator

from roster_service.metrics import MULTIPROCESS_FOLDER
from roster_service.settings import Settings


@contextlib.contextmanager
def share_metrics(settings: Settings) -> Iterator[None]:
    """Makes an empty folder, and names it to the processes that the block starts. Does nothing where no metrics are
    shown, or where the operator has named a folder."""
    if settings.metrics_token is None or MULTIPROCESS_FOLDER in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="roster-metrics-") as folder:
        os.environ[MULTIPROCESS_FOLDER] = folder
        try:
            yield
        finally:
            del os.environ[MULTIPROCESS_FOLDER]
