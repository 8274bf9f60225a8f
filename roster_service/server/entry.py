"""What a worker of gunicorn does at its start: settings, log, database, application."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import sys
from collections.abc import Callable, Mapping

from flask import Flask

from roster_service.app import create_app, create_console, create_service
from roster_service.db.deadline import end_waits_at_the_deadline
from roster_service.db.embedded_server import open_database
from roster_service.errors import RosterServiceError
from roster_service.server.gunicorn_app import set_up_log
from roster_service.server.late_app import LateApp
from roster_service.server.role_addresses import DESCRIPTOR, read_addresses
from roster_service.settings import Settings


def open_service() -> LateApp:
    """Returns the application of a worker that serves vendors: below `roster run` without the address of the owner of
    the tables, alone with the database of the settings."""
    if DESCRIPTOR not in os.environ:
        return open_application(create_app)
    descriptor = int(os.environ[DESCRIPTOR])
    # `roster run` has read the file of settings, and hands down what it does not withhold.
    return _open(Settings.from_environ, lambda settings: lambda: create_service(settings, read_addresses(descriptor)))


def open_application(make: Callable[[Settings, str], Flask]) -> LateApp:
    """Returns the application of this worker. `make`: makes it of the settings and the URL of the database. A setting
    that is wrong ends the process."""

    def begin(settings: Settings) -> Callable[[], Flask]:
        # Kept open until the worker ends.
        database = contextlib.ExitStack()
        atexit.register(database.close)
        return functools.partial(make, settings, database.enter_context(open_database(settings)))

    return _open(Settings.read, begin)


def _open(read: Callable[[Mapping[str, str]], Settings], begin: Callable[[Settings], Callable[[], Flask]]) -> LateApp:
    try:
        settings = read(os.environ)
        set_up_log(settings)
        make_app = begin(settings)
        end_waits_at_the_deadline()
        app = LateApp(make_app, settings.request_seconds, settings.v1p2_errors)
        app.start()
    except RosterServiceError as error:
        # gunicorn reads exit code 4 as "the application failed to load": it stops, and does not restart workers for
        # ever.
        sys.stderr.write(f"roster: {error}\n")
        sys.exit(4)
    return app


def open_console() -> LateApp:
    """Returns the application of this worker in a process with the console alone, which `roster console` starts."""
    return open_application(create_console)
