"""The JSON responses of paths that belong to neither the vendor nor the rostering interface."""

from __future__ import annotations

from collections.abc import Mapping

from flask import Response, jsonify

from roster_service.errors import BUSY_RETRY_SECONDS


def make_json(members: Mapping[str, object], status: int) -> Response:
    """Returns a response that caches must not store. One that says that the service is busy or away (503) says when to
    try again."""
    response = jsonify(members)
    response.status_code = status
    response.headers["Cache-Control"] = "no-store"
    if status == 503:
        response.headers["Retry-After"] = str(BUSY_RETRY_SECONDS)
    return response
