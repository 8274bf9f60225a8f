"""The log of the service: one handler for every logger, one record a line, as JSON or as text for a terminal.

A record may have facts, which `facts` passes to the logger: in JSON they are members of the object. No record shows the
message of an exception, because that can quote personal data.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TextIO

from roster_service.errors import describe_fault

# The loggers of the service; other packages log from `warning` upwards.
OWN_LOGGERS = ("roster_service", "sync_scripts")
_FACTS = "facts"

# Changes a record before it is written, or drops it by returning False.
RecordFilter = Callable[[logging.LogRecord], bool]


class LogFormat(StrEnum):
    """How a record is written. AUTO: as text to a terminal, else as JSON."""

    AUTO = "auto"
    JSON = "json"
    TEXT = "text"


class LogLevel(StrEnum):
    """The least level that is written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def facts(**members: Any) -> dict[str, Any]:
    """Returns the argument `extra` of a logging call: facts of the record, of which those that are None are left
    out."""
    return {_FACTS: {name: value for name, value in members.items() if value is not None}}


def configure_logging(
    log_format: LogFormat, level: LogLevel, *filters: RecordFilter, stream: TextIO | None = None
) -> None:
    """Makes every logger of this process write to `stream` (the standard error), and replaces an earlier configuration.

    `filters`: they see each record before it is written.
    """
    stream = stream or sys.stderr
    handler = logging.StreamHandler(stream)
    is_text = log_format is LogFormat.TEXT or (log_format is LogFormat.AUTO and stream.isatty())
    handler.setFormatter(TextFormatter() if is_text else JsonFormatter())
    for each in (hide_messages, *filters):
        handler.addFilter(each)
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    for name in OWN_LOGGERS:
        logging.getLogger(name).setLevel(level.upper())


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


def get_facts(record: logging.LogRecord) -> Mapping[str, Any]:
    """Returns the facts of a record."""
    found: Mapping[str, Any] = record.__dict__.get(_FACTS, {})
    return found


def add_facts(record: logging.LogRecord, extra: Mapping[str, Any]) -> None:
    """Puts further facts before those of a record. `extra`: of `facts`."""
    record.__dict__.update({_FACTS: {**extra[_FACTS], **get_facts(record)}})


class JsonFormatter(logging.Formatter):
    """Writes a record as a JSON object: `time` (UTC), `level`, `logger`, `message` and its facts."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line of a record."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        members = {
            "time": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **get_facts(record),
        }
        return json.dumps(members, ensure_ascii=False, default=str)


class TextFormatter(logging.Formatter):
    """Writes a record for a person: the local time, the level where it is not `info`, the message, and its facts."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line of a record; a traceback adds lines to it."""
        at = datetime.fromtimestamp(record.created).strftime("%H:%M:%S")  # noqa: DTZ006  (the local time is meant)
        level = "" if record.levelno == logging.INFO else f"{record.levelname}: "
        shown = " ".join(f"{name}={value}" for name, value in get_facts(record).items())
        return f"{at} {level}{record.getMessage()}" + (f"  [{shown}]" if shown else "")
