"""The WSGI entry of a gunicorn of the tests: the service as `wsgi.py` makes it, with rates that nobody meets."""

from __future__ import annotations

import functools

from roster_service.app import create_app
from roster_service.server.entry import open_application
from tests.rates import UNBOUNDED

app = open_application(functools.partial(create_app, rates=UNBOUNDED))
