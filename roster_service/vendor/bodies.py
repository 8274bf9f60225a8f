"""The bodies of the vendor interface: reads and checks those of requests, makes those of responses and of errors.

Refusals of a body name the key, and never quote a value.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any, NoReturn

from flask import Response, request
from marshmallow import Schema, ValidationError
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound, RequestEntityTooLarge

from roster_service.errors import (
    AGREEMENT_HEADER,
    BUSY_RETRY_SECONDS,
    NotAgreedError,
    Problem,
    RefusedRequestError,
    ThrottledRequestError,
)
from roster_service.http.request_facts import get_request_facts

ROOT = "/v1"
# Problem -> (HTTP status, code). The specification defines the first four.
FAILURES: dict[Problem, tuple[int, str]] = {
    Problem.API_KEY: (403, "Forbidden"),
    Problem.NO_TOKEN: (401, "unauthorized"),
    Problem.BAD_TOKEN: (401, "invalid-token"),
    Problem.ENDED_TOKEN: (401, "invalid-token"),
    Problem.PRIVILEGE: (403, "no-privilege"),
    Problem.NO_GRANT: (403, "no-privilege"),
    Problem.AGREEMENT: (403, "no-agreement"),
    Problem.CREDENTIALS: (401, "unauthorized"),
    # The caller learns no more than of a wrong password; the refused requests say it.
    Problem.DISABLED: (401, "unauthorized"),
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
    Problem.ENDED_TOKEN: 'Bearer realm="vendor", error="invalid_token"',
    Problem.CREDENTIALS: 'Bearer realm="vendor"',
    Problem.DISABLED: 'Bearer realm="vendor"',
}


def read_body(schema: Schema) -> dict[str, Any]:
    """Returns the body of the current request, as the schema loads it.

    Raises RefusedRequestError (PARAMETER) if the body is not a JSON object of this schema, and for query parameters.
    """
    if request.mimetype != "application/json":
        raise make_refusal("the `Content-Type` must be application/json")
    require_no_parameter("; put them into the body")
    try:
        body = json.loads(request.get_data().decode(), object_pairs_hook=_read_members, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise make_refusal("the body is no JSON") from None
    if not isinstance(body, dict):
        raise make_refusal("the body must be a JSON object")
    try:
        loaded: dict[str, Any] = schema.load(body)
    except ValidationError as error:
        raise make_refusal(_describe(error.messages, schema)) from None
    return loaded


def require_no_parameter(hint: str = "") -> None:
    """Raises RefusedRequestError (PARAMETER) if the current request has query parameters. `hint`: what to do."""
    if request.query_string:
        raise make_refusal(f"this path takes no query parameters{hint}")


def make_refusal(description: str) -> RefusedRequestError:
    """Returns the error that refuses a body or a parameter."""
    return RefusedRequestError(Problem.PARAMETER, description)


def _read_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise make_refusal(f"the key `{_clean(repeated)}` is given more than once")
    return members


def _refuse_constant(_word: str) -> NoReturn:
    raise ValueError("no JSON")


def _clean(name: str) -> str:
    """Returns a key of the caller's body, cut, and without lone surrogates, which UTF-8 cannot encode."""
    return name[:80].encode(errors="replace").decode()


def _describe(messages: Any, schema: Schema) -> str:
    return "; ".join(_describe_key(name, reasons, schema) for name, reasons in list(messages.items())[:5])


def _describe_key(name: str, reasons: Any, schema: Schema) -> str:
    if name not in schema.fields:
        near = difflib.get_close_matches(name, schema.fields, 1)
        known = ", ".join(f"`{key}`" for key in schema.fields)
        return f"there is no key `{_clean(name)}`; " + (f"did you mean `{near[0]}`?" if near else f"known: {known}")
    if isinstance(reasons, Mapping):
        index, [first, *_] = next(iter(reasons.items()))
        return f"the key `{name}`, item {index}: {first}"
    return f"the key `{name}`: {reasons[0]}"


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
    if isinstance(error, NotAgreedError):
        response.headers[AGREEMENT_HEADER] = error.words
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


def describe_long_body() -> str:
    """Returns what is wrong with a body that is too large."""
    return f"the body is longer than {request.max_content_length or 0:,} bytes"


def _to_refusal(error: HTTPException) -> RefusedRequestError:
    if isinstance(error, NotFound):
        return RefusedRequestError(Problem.UNKNOWN_PATH, f"there is no such path; {ROOT}/openapi.json lists all")
    if isinstance(error, MethodNotAllowed):
        return RefusedRequestError(Problem.METHOD, f"this path takes {name_method(error)}, not {request.method[:20]}")
    if isinstance(error, RequestEntityTooLarge):
        return RefusedRequestError(Problem.PARAMETER, describe_long_body())
    if error.code is not None and error.code < 500:
        return RefusedRequestError(Problem.PARAMETER, error.description or "the request cannot be read")
    return RefusedRequestError(Problem.INTERNAL, "the service failed")
