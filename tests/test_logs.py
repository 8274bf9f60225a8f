"""Log records as lines: JSON for programs, text for people, and no message of an exception in either."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from io import StringIO

import pytest

from roster_service.logs import (
    JsonFormatter,
    LogFormat,
    LogLevel,
    TextFormatter,
    configure_logging,
    facts,
    hide_messages,
)

SECRET = "a pupil's name"


class Terminal(StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        """True, as for a terminal."""
        return True


def make_record(message: str, *args: object, level: int = logging.INFO, **named: object) -> logging.LogRecord:
    """A record as a logger makes it."""
    record = logging.getLogger("made").makeRecord(
        "made", level, "file.py", 1, message, args, None, extra=facts(**named)
    )
    record.created = 1_795_000_000.25
    return record


def test_json_has_the_facts_as_members() -> None:
    line = JsonFormatter().format(make_record("of %d %s", 2, "Zoë", vendor=7, client=None))
    assert json.loads(line) == {
        "time": "2026-11-18T11:06:40.250Z",
        "level": "info",
        "logger": "made",
        "message": "of 2 Zoë",
        "vendor": 7,
    }


def test_a_newline_in_a_message_makes_no_second_line() -> None:
    assert "\n" not in JsonFormatter().format(make_record("first\nsecond"))


@pytest.mark.parametrize(
    ("level", "named", "end"),
    [
        (logging.INFO, {}, "00:00 done"),
        (logging.WARNING, {}, "00:00 WARNING: done"),
        (logging.INFO, {"vendor": 7, "status": 200}, "00:00 done  [vendor=7 status=200]"),
    ],
)
def test_text_is_the_message_and_the_facts(level: int, named: dict[str, object], end: str) -> None:
    record = make_record("done", level=level, **named)
    record.created = 0
    assert TextFormatter().format(record).endswith(end)


def test_an_exception_is_its_type_and_place() -> None:
    try:
        raise ValueError(SECRET)
    except ValueError as error:
        record = make_record("a fault: %s", error)
        record.exc_info = (ValueError, error, error.__traceback__)
    assert hide_messages(record)
    for formatter in (JsonFormatter(), TextFormatter()):
        line = formatter.format(record)
        assert "a fault: ValueError" in line
        assert "test_logs.py" in line
        assert SECRET not in line


@pytest.mark.shows(
    "Logs and transport",
    "A fault is logged with its place and without its words, except in Python's development mode.",
)
@pytest.mark.parametrize(("options", "is_shown"), [((), False), (("-X", "dev"), True)], ids=["service", "development"])
def test_a_message_is_shown_in_development_mode_alone(options: tuple[str, ...], is_shown: bool) -> None:
    code = f"from roster_service.errors import describe_fault; print(describe_fault(ValueError({SECRET!r})))"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDEVMODE"}
    done = subprocess.run(
        [sys.executable, *options, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert (SECRET in done.stdout) is is_shown
    assert "ValueError" in done.stdout


@pytest.mark.parametrize(
    ("log_format", "stream", "is_json"),
    [
        (LogFormat.AUTO, StringIO(), True),
        (LogFormat.AUTO, Terminal(), False),
        (LogFormat.JSON, Terminal(), True),
        (LogFormat.TEXT, StringIO(), False),
    ],
)
def test_the_format_follows_the_stream_unless_it_is_set(log_format: LogFormat, stream: StringIO, is_json: bool) -> None:
    root = logging.getLogger()
    handlers, level, own = root.handlers[:], root.level, logging.getLogger("roster_service").level
    root.handlers.clear()
    try:
        configure_logging(log_format, LogLevel.INFO, stream=stream)
        logging.getLogger("roster_service.x").info("heard")
        logging.getLogger("another.package").info("not heard")
    finally:
        root.handlers[:], root.level = handlers, level
        logging.getLogger("roster_service").setLevel(own)
    (line,) = stream.getvalue().splitlines()
    assert line.startswith("{") is is_json
    assert "heard" in line
