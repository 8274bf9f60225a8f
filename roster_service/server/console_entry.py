"""The WSGI entry of a process with the console alone, which `roster console` starts."""

from __future__ import annotations

from roster_service.app import create_console
from roster_service.server.entry import open_application
from roster_service.server.late_app import LateApp


def open_console() -> LateApp:
    """Returns the application of this worker, as `open_application`."""
    return open_application(create_console)
