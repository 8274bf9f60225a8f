"""The application of gunicorn: its settings, its logger, its process and the folder of its metrics.

gunicorn's own command would also take options from the environment and from a file in the current folder. APPLICATION:
`module:name`; OPTIONS: a JSON object of gunicorn's settings.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gunicorn import glogging
from gunicorn.app.base import BaseApplication
from gunicorn.util import import_app

from roster_service.db.deadline import GRACE_SECONDS
from roster_service.errors import SettingError
from roster_service.logs import configure_logging
from roster_service.metrics import MULTIPROCESS_FOLDER
from roster_service.settings import Settings
from roster_service.web.request_log import add_request_facts


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


def set_up_log(settings: Settings) -> None:
    """Makes this process write its log as the settings say, with the facts of the request in each line."""
    configure_logging(settings.log_format, settings.log_level, add_request_facts)


class Logger(glogging.Logger):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn's logger, without handlers of its own. The service logs each request itself; the worker has no caller of
    gunicorn's access log, whose lines would have query strings and ids of students."""

    def setup(self, cfg: Any) -> None:
        """Sets up the loggers; gunicorn calls it at its start and after each change of the configuration."""
        super().setup(cfg)
        try:
            settings = Settings.read(os.environ)
        except SettingError:
            # The first worker refuses them with a sentence, and gunicorn stops.
            settings = Settings()
        set_up_log(settings)
        self.error_log.handlers.clear()
        self.error_log.propagate = True


WORKER_CLASS = "roster_service.server.gunicorn_worker.Worker"
LOGGER_CLASS = "roster_service.server.gunicorn_app.Logger"
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


if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


class GunicornApplication(BaseApplication):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn, in this process."""

    def __init__(self, application: str, options: Mapping[str, Any]) -> None:
        self._application = application
        self._options = options
        super().__init__()

    def load_config(self) -> None:
        """Sets the options; gunicorn calls it at its start, and for a reload."""
        for name, value in self._options.items():
            self.cfg.set(name, value)

    def load(self) -> WSGIApplication:
        """Imports the application; each worker calls it."""
        return import_app(self._application)  # type: ignore[no-any-return]


if __name__ == "__main__":
    GunicornApplication(sys.argv[1], json.loads(sys.argv[2])).run()
