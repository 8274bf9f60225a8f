"""The WSGI entry of a process with the console alone, which `roster console` starts."""

from roster_service.app import create_console
from roster_service.server.entry import open_application

app = open_application(create_console)
