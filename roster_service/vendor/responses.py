"""The responses of the vendor interface, and the table of its error codes."""

from __future__ import annotations

import json
from typing import Any

from flask import Response, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound

from roster_service.errors import BUSY_RETRY_SECONDS, Problem, RefusedRequestError, ThrottledRequestError
from roster_service.http.request_facts import get_request_facts

ROOT = "/v1"

# Problem -> (HTTP status, code). The specification defines the first four.
FAILURES: dict[Problem, tuple[int, str]] = {
    Problem.API_KEY: (403, "Forbidden"),
    Problem.NO_TOKEN: (401, "unauthorized"),
    Problem.BAD_TOKEN: (401, "invalid-token"),
    Problem.PRIVILEGE: (403, "no-privilege"),
    Problem.CREDENTIALS: (401, "unauthorized"),
    Problem.PARAMETER: (400, "bad-request"),
    Problem.RATE: (429, "rate-limited"),
    Problem.PULL_ENDED: (410, "pull-ended"),
    Problem.UNKNOWN_PATH: (404, "not-found"),
    Problem.METHOD: (405, "method-not-allowed"),
    Problem.BUSY: (503, "unavailable"),
    Problem.INTERNAL: (500, "internal"),
}
CHALLENGES = {
    Problem.NO_TOKEN: 'Bearer realm="vendor"',
    Problem.BAD_TOKEN: 'Bearer realm="vendor", error="invalid_token"',
    Problem.CREDENTIALS: 'Bearer realm="vendor"',
}


def is_vendor(path: str) -> bool:
    """Returns whether a path belongs to this interface, even if the interface does not have it."""
    return path == ROOT or path.startswith(ROOT + "/")


def make_response(body: str, status: int = 200) -> Response:
    """Returns a response with a JSON body, which caches must not store."""
    response = Response(body, status=status, mimetype="application/json")
    response.headers["Cache-Control"] = "no-store"
    return response


def answer_refusal(error: RefusedRequestError) -> Response:
    """Returns the response to a refused request; all refusals of this interface pass through here."""
    facts = get_request_facts()
    facts.refusal = error.problem
    status, code = FAILURES[error.problem]
    body: dict[str, Any] = {"code": code, "message": error.description, "requestId": facts.id}
    response = make_response(json.dumps(body, ensure_ascii=False), status)
    if error.problem in CHALLENGES:
        response.headers["WWW-Authenticate"] = CHALLENGES[error.problem]
    if isinstance(error, ThrottledRequestError):
        response.headers["Retry-After"] = str(error.seconds)
    if error.problem is Problem.BUSY:
        response.headers["Retry-After"] = str(BUSY_RETRY_SECONDS)
    return response


def answer_http_error(error: HTTPException) -> Response:
    """Returns the response to a request that Flask refuses: an unknown path, another method, a body that is too
    large."""
    response = answer_refusal(_to_refusal(error))
    response.headers.update({name: value for name, value in error.get_headers() if name == "Allow"})
    return response


def name_method(error: MethodNotAllowed) -> str:
    """Returns the method that a path takes."""
    return "GET" if "GET" in (error.valid_methods or ()) else "POST"


def _to_refusal(error: HTTPException) -> RefusedRequestError:
    if isinstance(error, NotFound):
        return RefusedRequestError(Problem.UNKNOWN_PATH, f"there is no such path; {ROOT}/openapi.json lists all")
    if isinstance(error, MethodNotAllowed):
        return RefusedRequestError(Problem.METHOD, f"this path takes {name_method(error)}, not {request.method[:20]}")
    if error.code is not None and error.code < 500:
        return RefusedRequestError(Problem.PARAMETER, error.description or "the request cannot be read")
    return RefusedRequestError(Problem.INTERNAL, "the service failed")
