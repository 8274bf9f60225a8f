"""gunicorn as a process of its own: its options, its start and its stop."""

from __future__ import annotations

import contextlib
import json
import math
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from roster_service.db.deadline import GRACE_SECONDS
from roster_service.settings import Settings

WORKER_CLASS = "roster_service.server.gunicorn_worker.Worker"
LOGGER_CLASS = "roster_service.server.gunicorn_logger.Logger"
# The time of a request beside its waits for the database: for JSON, and sending the response.
SPARE_SECONDS = 30
# The time that gunicorn has to end by itself, and a little less for its workers.
STOP_SECONDS = 25
GRACEFUL_SECONDS = 22


def make_options(settings: Settings) -> dict[str, Any]:
    """Returns gunicorn's options for `roster run`."""
    return {
        "bind": settings.host_and_port,
        "workers": settings.workers,
        "worker_class": WORKER_CLASS,
        "timeout": find_worker_timeout(settings),
        "graceful_timeout": GRACEFUL_SECONDS,
        "logger_class": LOGGER_CLASS,
        "loglevel": "warning",
        # A socket in the home folder by which other programs of the user change the workers.
        "control_socket_disable": True,
    }


def find_worker_timeout(settings: Settings) -> int:
    """Returns the seconds after which gunicorn takes a worker for hung: more than the longest request takes."""
    return settings.request_seconds + math.ceil(GRACE_SECONDS) + SPARE_SECONDS


def start(application: str, options: Mapping[str, Any], **process: Any) -> subprocess.Popen[bytes]:
    """Starts gunicorn. It stops by itself if this process ends. `application`: `module:name`; `process`: arguments of
    `subprocess.Popen`."""
    command = [sys.executable, "-m", "roster_service.server.gunicorn_app", application, json.dumps(options)]
    # The pipe: see `stop_notice`.
    return subprocess.Popen(command, stdin=subprocess.PIPE, **process)  # noqa: S603  (our own server)


def announce_stop(child: subprocess.Popen[bytes], seconds: float) -> None:
    """Lets the workers say that they are draining, while they still serve, for so many seconds."""
    if child.stdin is not None:
        child.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(seconds)


def stop(child: subprocess.Popen[bytes]) -> None:
    """Stops gunicorn. It may finish its requests, for at most `STOP_SECONDS`."""
    announce_stop(child, 0)
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
