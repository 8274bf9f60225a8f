"""Errors into answers: every error, from wherever it comes, leaves through the door that the request came in by."""

from __future__ import annotations

import logging

from flask import Flask, Response, jsonify, request
from psycopg2.errors import QueryCanceled
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from werkzeug.exceptions import HTTPException

from roster_service.db.deadline import OverdueError
from roster_service.errors import (
    BUSY_RETRY_SECONDS,
    FAULT_DESCRIPTION,
    DatabaseUnavailableError,
    Problem,
    RefusedRequestError,
    describe_fault,
)
from roster_service.rostering import blueprints as rostering
from roster_service.vendor import responses as vendor

log = logging.getLogger(__name__)

AWAY = "the database does not answer; try again"
TOO_LONG = "the query took too long; ask for less"


def register_error_handlers(app: Flask) -> None:
    """Registers a handler for each family of errors; the nearest one answers."""
    app.register_error_handler(RefusedRequestError, handle_refusal)
    app.register_error_handler(HTTPException, handle_http_error)
    app.register_error_handler(DBAPIError, handle_database_error)
    app.register_error_handler(DatabaseUnavailableError, handle_unavailable)
    app.register_error_handler(PoolTimeoutError, handle_full_pool)
    app.register_error_handler(OverdueError, handle_overdue)
    app.register_error_handler(Exception, handle_fault)


def handle_refusal(error: RefusedRequestError) -> Response:
    """A refusal of one of the two interfaces."""
    return vendor.answer_refusal(error) if vendor.is_vendor(request.path) else rostering.answer_refusal(error)


def handle_http_error(error: HTTPException) -> Response | HTTPException:
    """An error of the framework: an unknown path, a wrong method, a body that is too large."""
    if rostering.is_rostering(request.path):
        return rostering.answer_refusal(rostering.to_problem(error))
    if error.code is None or error.code < 400:
        return error
    if vendor.is_vendor(request.path):
        return vendor.answer_http_error(error)
    # RFC 6749 has a word for a request that cannot be read; for the others the name of the status will do.
    word = "invalid_request" if error.code == 400 else error.name.lower().replace(" ", "_")
    response = jsonify({"error": word, "error_description": error.description})
    response.status_code = error.code
    response.headers["Cache-Control"] = "no-store"
    # `Allow`, `Retry-After` and the like.
    response.headers.update({name: value for name, value in error.get_headers() if name != "Content-Type"})
    return response


def handle_database_error(error: DBAPIError) -> Response:
    """The log gets the kind alone: a driver's message can quote the values of a statement."""
    log.error("database: %s, SQLSTATE %s", type(error.orig).__name__, getattr(error.orig, "pgcode", None))
    if isinstance(error.orig, QueryCanceled):
        return answer_failure(Problem.BUSY, TOO_LONG, 503)
    if isinstance(error, OperationalError):
        return answer_failure(Problem.BUSY, AWAY, 503)
    return answer_failure(Problem.INTERNAL, FAULT_DESCRIPTION, 500)


def handle_unavailable(_error: DatabaseUnavailableError) -> Response:
    """The database cannot be used yet; the log has been told why."""
    return answer_failure(Problem.BUSY, AWAY, 503)


def handle_full_pool(_error: PoolTimeoutError) -> Response:
    """Every connection of this worker was in use for too long."""
    log.error("database: every connection is in use")
    return answer_failure(Problem.BUSY, "the service is busy; try again", 503)


def handle_overdue(_error: OverdueError) -> Response:
    """The queries of a request took too long together, or one of them did and another one would be next."""
    log.error("database: the time of a request is up")
    return answer_failure(Problem.BUSY, TOO_LONG, 503)


def handle_fault(error: Exception) -> Response:
    """A fault of our own."""
    log.error("fault: %s", describe_fault(error))
    return answer_failure(Problem.INTERNAL, FAULT_DESCRIPTION, 500)


def answer_failure(problem: Problem, description: str, status: int) -> Response:
    """The answer of the door that the request came in by."""
    if rostering.is_rostering(request.path) or vendor.is_vendor(request.path):
        return handle_refusal(RefusedRequestError(problem, description))
    response = jsonify({"error": "server_error", "error_description": description})
    response.status_code = status
    response.headers["Cache-Control"] = "no-store"
    if problem is Problem.BUSY:
        response.headers["Retry-After"] = str(BUSY_RETRY_SECONDS)
    return response
