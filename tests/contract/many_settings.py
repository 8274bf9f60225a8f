"""The application of a gunicorn of the tests: one for each kind of settings, which the request names in a header."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from flask import Flask

from roster_service.app import create_app
from roster_service.settings import Settings
from roster_service.web import request_log
from tests.rates import UNBOUNDED

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

HEADER = "X-Settings-Of-Test"
# The first request of an application takes long.
request_log.SLOW_SECONDS = 60


@functools.cache
def make_app(variables: str) -> Flask:
    """The application with these variables, a JSON object, beside those of the environment."""
    settings = Settings.read(os.environ | json.loads(variables))
    return create_app(settings, str(settings.database_url), UNBOUNDED)


def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Hands the request to its application, as gunicorn has read it, without the header."""
    return make_app(environ.pop(f"HTTP_{HEADER.upper().replace('-', '_')}"))(environ, start_response)
