"""Turns errors into responses, in the format of the interface that the request was sent to."""

from __future__ import annotations

import logging

from flask import Flask, Response, current_app, request
from psycopg2.errors import QueryCanceled
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound, RequestEntityTooLarge

from roster_service.auth.agreed_rights import note_ended
from roster_service.auth.scopes import TOKEN_PATH
from roster_service.db.deadline import OverdueError
from roster_service.db.outages import Outage
from roster_service.errors import (
    FAULT_DESCRIPTION,
    DatabaseUnavailableError,
    Problem,
    RefusedRequestError,
    describe_fault,
    show_message,
)
from roster_service.http.request_facts import get_request_facts
from roster_service.http.stages import make_json
from roster_service.rostering import blueprints as rostering
from roster_service.vendor import bodies as vendor
from roster_service.web.guides import NOT_FOUND, prefers_html, show_text

log = logging.getLogger(__name__)

DATABASE = Outage("the database", "requests are answered 503 until it does")

NO_PATH = "there is no such path; the answer at / lists the addresses of this service"
UNAVAILABLE = "the database does not answer; try again"
# The status of a refusal of the token endpoint -> its reason; that of any other is PARAMETER.
TOKEN_PROBLEMS = {405: Problem.METHOD, 429: Problem.RATE}
OVERDUE = "the query took too long; ask for less"


def register_error_handlers(app: Flask) -> None:
    """Registers the handlers. Flask calls the one whose class is nearest to that of the error."""
    app.register_error_handler(RefusedRequestError, handle_refusal)
    app.register_error_handler(HTTPException, handle_http_error)
    app.register_error_handler(DBAPIError, handle_database_error)
    app.register_error_handler(DatabaseUnavailableError, handle_unavailable)
    app.register_error_handler(PoolTimeoutError, handle_full_pool)
    app.register_error_handler(OverdueError, handle_overdue)
    app.register_error_handler(Exception, handle_fault)
    app.after_request(note_success)


def note_success(response: Response) -> Response:
    """Ends an outage of the database with the first response that needed it: one to a vendor or an operator whose
    credentials are valid."""
    known = get_request_facts()
    if response.status_code < 500 and (known.vendor is not None or known.has_operator):
        DATABASE.end()
    return response


def handle_refusal(error: RefusedRequestError) -> Response:
    """Returns the response to a request that the vendor or the rostering interface refuses."""
    if error.problem is Problem.AGREEMENT:
        note_ended(current_app.extensions["roster_counting_engine"])
    return vendor.answer_refusal(error) if vendor.is_vendor(request.path) else rostering.answer_refusal(error)


def handle_http_error(error: HTTPException) -> Response | HTTPException:
    """Returns the response to an error of Flask: an unknown path, a wrong method, a body that is too large."""
    if rostering.is_rostering(request.path):
        return rostering.answer_refusal(rostering.to_problem(error))
    if error.code is None or error.code < 400:
        return error
    if vendor.is_vendor(request.path):
        return vendor.answer_http_error(error)
    if error.code in (403, 404) and prefers_html():
        return show_text(*(NOT_FOUND if error.code == 404 else (error.name, _describe(error))), error.code)
    # RFC 6749 defines the code for a malformed request only; the other codes are the names of the statuses.
    word = "invalid_request" if error.code == 400 else error.name.lower().replace(" ", "_")
    if request.path == TOKEN_PATH:
        get_request_facts().refusal = TOKEN_PROBLEMS.get(error.code, Problem.PARAMETER)
    response = make_json({"error": word, "error_description": _describe(error)}, error.code)
    # `Allow`, `Retry-After` and the like.
    response.headers.update({name: value for name, value in error.get_headers() if name != "Content-Type"})
    return response


def _describe(error: HTTPException) -> str:
    """Returns what is wrong with the request and what to do, which the texts of Flask do not say."""
    if isinstance(error, NotFound):
        return NO_PATH
    if isinstance(error, MethodNotAllowed):
        return f"this path takes {vendor.name_method(error)}"
    if isinstance(error, RequestEntityTooLarge):
        return vendor.describe_long_body()
    return error.description or error.name


def handle_database_error(error: DBAPIError) -> Response:
    """Returns the response to an error of the database. The log gets its type and SQLSTATE only, because the driver's
    message can quote the values of a statement."""
    state = getattr(error.orig, "pgcode", None)
    kind = type(error.orig).__name__ + (f", SQLSTATE {state}" if state else "")
    if error.statement is None and not state:
        # A login that failed: no statement was sent, so the words of the server quote none. (An error while rows are
        # fetched has no statement either, but a state.)
        kind = f"{kind}: {str(error.orig).strip().partition(chr(10))[0]}"
    if isinstance(error.orig, QueryCanceled):
        get_request_facts().failure = kind
        return answer_failure(Problem.BUSY, OVERDUE, 503)
    # A connection that was lost on the way can fail in other ways, when it is given back for example.
    if isinstance(error, OperationalError) or error.connection_invalidated:
        DATABASE.add_failure(kind)
        return answer_failure(Problem.BUSY, UNAVAILABLE, 503)
    log.error("database: %s%s", kind, show_message(error))
    return answer_failure(Problem.INTERNAL, FAULT_DESCRIPTION, 500)


def handle_unavailable(_error: DatabaseUnavailableError) -> Response:
    """Returns the response for a database that the service cannot use yet. `LateApp` has logged the reason."""
    return answer_failure(Problem.BUSY, UNAVAILABLE, 503)


def handle_full_pool(_error: PoolTimeoutError) -> Response:
    """Returns the response for a request that got no database connection in time."""
    get_request_facts().failure = "every connection is in use"
    return answer_failure(Problem.BUSY, "the service is busy; try again", 503)


def handle_overdue(_error: OverdueError) -> Response:
    """Returns the response for a request that has used up its database time (`limit_time`)."""
    get_request_facts().failure = "its time is up"
    return answer_failure(Problem.BUSY, OVERDUE, 503)


def handle_fault(error: Exception) -> Response:
    """Returns the response to an unexpected error."""
    log.error("fault: %s", describe_fault(error))
    return answer_failure(Problem.INTERNAL, FAULT_DESCRIPTION, 500)


def answer_failure(problem: Problem, description: str, status: int) -> Response:
    """Returns the error response of the interface that the request was sent to. `status`: for an address of neither the
    rostering nor the vendor interface."""
    if rostering.is_rostering(request.path) or vendor.is_vendor(request.path):
        return handle_refusal(RefusedRequestError(problem, description))
    # RFC 6749 defines both codes, for the other endpoint of OAuth.
    word = "temporarily_unavailable" if problem is Problem.BUSY else "server_error"
    return make_json({"error": word, "error_description": description}, status)
