"""The Flask application: joins the doors, and is the one place where an error becomes an answer."""

from __future__ import annotations

import logging

from flask import Flask, Response, jsonify, request
from psycopg2.errors import QueryCanceled
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from werkzeug.exceptions import HTTPException

from roster_service.access.signing_keys import KeyRing, ensure_signing_key
from roster_service.db.engine import make_engine, make_reading_engine, require_reachable
from roster_service.db.migrate import require_current
from roster_service.docs import register_docs
from roster_service.errors import Problem, RefusedRequestError
from roster_service.oauth.token_endpoint import register_oauth
from roster_service.query.params import Limits
from roster_service.rostering import blueprints as rostering
from roster_service.rostering.paths import EncodedIds, IdConverter
from roster_service.rostering.views import Surroundings
from roster_service.settings import Settings

log = logging.getLogger(__name__)

# Tokens and forms are small; nothing else has a body.
MAX_BODY_BYTES = 64 * 1024
POOL_SIZE = 4


def create_app(settings: Settings, database_url: str) -> Flask:
    """The application on a database that is migrated.

    Raises DatabaseUnavailableError where the database does not answer or is not migrated.
    """
    writing = make_engine(database_url)
    require_reachable(writing)
    require_current(writing)
    with writing.begin() as connection:
        ensure_signing_key(connection, settings.read_secret_key())
    writing.dispose()

    engine = make_reading_engine(database_url, statement_seconds=settings.statement_seconds, pool_size=POOL_SIZE)
    keys = KeyRing(engine, settings.read_secret_key())
    issuer = settings.public_url or f"http://{settings.host}:{settings.port}"

    app = Flask("roster_service", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    app.url_map.converters["id"] = IdConverter
    # Two slashes in a row are an empty id, not a client's slip.
    app.url_map.merge_slashes = False
    app.extensions["roster_engine"] = engine
    here = Surroundings(
        engine=engine,
        keys=keys,
        limits=Limits(settings.default_limit, settings.max_limit, settings.filter_length),
        issuer=issuer,
        public_url=settings.public_url,
    )
    rostering.register_rostering(app, here)
    register_oauth(app, engine, keys, issuer=issuer, seconds=settings.token_seconds)
    register_docs(app)
    register_error_handlers(app)
    app.after_request(add_common_headers)
    app.wsgi_app = EncodedIds(app.wsgi_app)  # type: ignore[method-assign]  # Flask's own way of adding middleware
    return app


def add_common_headers(response: Response) -> Response:
    """What every answer carries."""
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def register_error_handlers(app: Flask) -> None:
    """Every error, from wherever it comes, leaves through the door that the request came in by."""

    def on_refusal(error: RefusedRequestError) -> Response:
        return rostering.answer_refusal(error)

    def on_http_error(error: HTTPException) -> Response | HTTPException:
        if rostering.is_rostering(request.path):
            return rostering.answer_refusal(rostering.to_problem(error))
        if error.code is None or error.code < 400:
            return error
        response = jsonify({"error": error.name.lower().replace(" ", "_"), "error_description": error.description})
        response.status_code = error.code
        # `Allow`, `Retry-After` and the like.
        response.headers.update({name: value for name, value in error.get_headers() if name != "Content-Type"})
        return response

    def on_database_error(error: DBAPIError) -> Response:
        # Its kind alone: a driver's message can quote the values of a statement.
        log.error("database: %s, SQLSTATE %s", type(error.orig).__name__, getattr(error.orig, "pgcode", None))
        if isinstance(error.orig, QueryCanceled):
            return answer_failure(Problem.BUSY, "the query took too long; ask for less", 503)
        if isinstance(error, OperationalError):
            return answer_failure(Problem.BUSY, "the database does not answer; try again", 503)
        return answer_failure(Problem.INTERNAL, "the service failed; the failure is in its log", 500)

    def on_full_pool(_error: PoolTimeoutError) -> Response:
        log.error("database: every connection is in use")
        return answer_failure(Problem.BUSY, "the service is busy; try again", 503)

    def on_fault(error: Exception) -> Response:
        log.error("fault: %s", type(error).__name__, exc_info=error)
        return answer_failure(Problem.INTERNAL, "the service failed; the failure is in its log", 500)

    def answer_failure(problem: Problem, description: str, status: int) -> Response:
        if rostering.is_rostering(request.path):
            return rostering.answer_refusal(RefusedRequestError(problem, description))
        response = jsonify({"error": "server_error", "error_description": description})
        response.status_code = status
        return response

    app.register_error_handler(RefusedRequestError, on_refusal)
    app.register_error_handler(HTTPException, on_http_error)
    app.register_error_handler(DBAPIError, on_database_error)
    app.register_error_handler(PoolTimeoutError, on_full_pool)
    app.register_error_handler(Exception, on_fault)
