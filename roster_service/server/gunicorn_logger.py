"""The logger that `roster run` gives gunicorn: gunicorn's own, less what quotes a request."""

from __future__ import annotations

import logging
from typing import Any

from gunicorn import glogging

from roster_service.errors import describe_fault


class Logger(glogging.Logger):  # type: ignore[misc]  # gunicorn has no types
    """Writes no word of an exception, which can be the bytes of a request, and no access log."""

    def setup(self, cfg: Any) -> None:
        """Prepares the handlers, at the start and with each change of the configuration."""
        super().setup(cfg)
        self.error_log.addFilter(hide_messages)

    def access(self, resp: Any, req: Any, environ: Any, request_time: Any) -> None:
        """Nothing: its lines have query strings and ids of students. The service keeps an access log of its own."""


def hide_messages(record: logging.LogRecord) -> bool:
    """Leaves of each exception of a record its kind and its place. A filter of logging: every record passes."""
    if isinstance(record.args, tuple):
        record.args = tuple(type(one).__name__ if isinstance(one, BaseException) else one for one in record.args)
    error = record.exc_info and record.exc_info[1]
    if error:
        record.msg, record.args = f"{record.getMessage()}: {describe_fault(error)}", ()
        record.exc_info = record.exc_text = None
    return True
