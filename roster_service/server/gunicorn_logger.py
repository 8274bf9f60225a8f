"""The logger that `roster run` configures for gunicorn: its log lines quote no request."""

from __future__ import annotations

import logging
from typing import Any

from gunicorn import glogging

from roster_service.errors import describe_fault


class Logger(glogging.Logger):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn's logger, without an access log, and without the messages of exceptions: these can quote the bytes of a
    request."""

    def setup(self, cfg: Any) -> None:
        """Sets up the handlers; gunicorn calls it at its start and after each change of the configuration."""
        super().setup(cfg)
        self.error_log.addFilter(hide_messages)

    def access(self, resp: Any, req: Any, environ: Any, request_time: Any) -> None:
        """Writes nothing: gunicorn's lines have query strings and ids of students. The service has its own access
        log."""


def hide_messages(record: logging.LogRecord) -> bool:
    """Replaces each exception in a log record by its type and traceback. A logging filter; it lets every record
    pass."""
    if isinstance(record.args, tuple):
        record.args = tuple(type(arg).__name__ if isinstance(arg, BaseException) else arg for arg in record.args)
    error = record.exc_info and record.exc_info[1]
    if error:
        record.msg, record.args = f"{record.getMessage()}: {describe_fault(error)}", ()
        record.exc_info = record.exc_text = None
    return True
