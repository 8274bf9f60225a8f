"""The Flask blueprint of each version: its 41 paths, its OpenAPI document, and the refusals before routing."""

from __future__ import annotations

from collections.abc import Callable

from flask import Flask, Response, current_app, request
from flask_smorest import Blueprint
from oneroster_filter import parse
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound

from roster_service.errors import (
    AGREEMENT_HEADER,
    BUSY_RETRY_SECONDS,
    ErrorProfile,
    NotAgreedError,
    Problem,
    RefusedRequestError,
    ThrottledRequestError,
)
from roster_service.http.request_facts import add_rate_headers, get_request_facts
from roster_service.rostering.endpoints import ENDPOINTS
from roster_service.rostering.openapi import STATUS_PATH, describe_endpoint, describe_status, make_api
from roster_service.rostering.operations import Operation, describe_request
from roster_service.rostering.paths import read_raw_path
from roster_service.rostering.pipeline import Services, answer_operation, answer_status, read_query_string
from roster_service.rostering.status_info import STATUS_INFO, make_failure
from roster_service.schemas.versions import V1P2, VERSIONS, Version

# The paths at which clients of OneRoster 1.2 look for the OpenAPI document of a provider.
DISCOVERY_PATHS = {
    V1P2: (
        "/discovery/onerosterv1p2rostersservice_openapi3_v1p0.json",
        "/discovery/imsorv1p2_rostering_openapi3_v1p0.json",
    )
}
# What is below it and of no version has a wrong version prefix.
ROOT = "/ims/oneroster"
NO_VERSION = "no version has its root here; the roots are " + " and ".join(
    f"{version.root} ({version.title})" for version in VERSIONS
)
NO_PATH = "there is no such path; the OpenAPI document, openapi.json below the root of the version, lists all"
# The name of the error profiles of the versions, among the extensions of the application.
PROFILES = "roster_error_profiles"
CHALLENGES = {
    Problem.NO_TOKEN: 'Bearer realm="roster"',
    Problem.BAD_TOKEN: 'Bearer realm="roster", error="invalid_token"',
    Problem.ENDED_TOKEN: 'Bearer realm="roster", error="invalid_token"',
    Problem.BAD_SIGNATURE: 'OAuth realm="roster"',
    Problem.SCOPE: 'Bearer realm="roster", error="insufficient_scope"',
}


def set_error_profile(app: Flask, v1p2_errors: ErrorProfile) -> None:
    """Sets the form of errors and warnings in OneRoster 1.2; 1.1 has the form of the specification."""
    app.extensions[PROFILES] = dict.fromkeys(VERSIONS, ErrorProfile.SPECIFICATION) | {V1P2: v1p2_errors}


def find_error_profile(path: str) -> ErrorProfile:
    """Returns the form of an error at a path."""
    profiles: dict[Version, ErrorProfile] = current_app.extensions[PROFILES]
    return next((profiles[version] for version in VERSIONS if is_below(version, path)), ErrorProfile.SPECIFICATION)


def register_rostering(app: Flask, services: Services, contact: str | None = None) -> None:
    """Registers both versions of the rostering interface on the application, which has its error profile. `contact`:
    whom clients may ask."""
    app.before_request(refuse_other_methods)
    # The first filter of a worker would wait for the grammar.
    parse("status='active'")
    for version in VERSIONS:
        blueprint = Blueprint(version.prefix, __name__, url_prefix=version.root)
        profile = app.extensions[PROFILES][version]
        signed = services.signed_requests is not None and version.allows_signatures
        for endpoint in ENDPOINTS:
            view = blueprint.doc(**describe_endpoint(endpoint, version, profile, signed=signed))(
                make_rostering_view(Operation(endpoint, version, services.limits, profile), services)
            )
            rule = endpoint.path.replace("{", "<id:").replace("}", ">")
            blueprint.add_url_rule(rule, endpoint=endpoint.name, view_func=view, methods=["GET"])
        status = blueprint.doc(**describe_status(version, signed=signed))(make_status_view(version, services))
        blueprint.add_url_rule(STATUS_PATH, endpoint="getStatus", view_func=status, methods=["GET"])
        blueprint.after_request(add_rate_headers)
        api = make_api(app, version, services.limits, profile, services.public_url, signed=signed, contact=contact)
        api.register_blueprint(blueprint)
        for path in DISCOVERY_PATHS.get(version, ()):
            app.add_url_rule(version.root + path, endpoint=path, view_func=api.show_document)


def make_rostering_view(operation: Operation, services: Services) -> Callable[..., Response]:
    """Returns the Flask view function of an operation; it takes the ids of the path as keyword arguments."""

    def view(**path_ids: str) -> Response:
        return answer_operation(operation, services, path_ids)

    view.__doc__ = operation.endpoint.summary
    return view


def make_status_view(version: Version, services: Services) -> Callable[[], Response]:
    """Returns the Flask view function of the states of the feeds."""

    def view() -> Response:
        return answer_status(version, services)

    return view


def is_rostering(path: str) -> bool:
    """Whether a path belongs to the rostering interface, even if no endpoint or no version has it."""
    return path == ROOT or path.startswith(ROOT + "/")


def is_below(version: Version, path: str) -> bool:
    """Whether a path belongs to a version."""
    return path == version.root or path.startswith(version.root + "/")


def refuse_other_methods() -> None:
    """Refuses every method except GET with 400, before the service checks the token and the path."""
    if request.method != "GET" and is_rostering(request.path):
        raise RefusedRequestError(
            Problem.METHOD, f"this interface is read-only and accepts only GET, not {request.method[:20]}"
        )


def to_problem(error: HTTPException) -> RefusedRequestError:
    """Converts an error of Flask or Werkzeug into a refusal of this interface."""
    if isinstance(error, NotFound) and not any(is_below(version, request.path) for version in VERSIONS):
        return RefusedRequestError(Problem.VERSION, NO_VERSION)
    if isinstance(error, NotFound):
        return RefusedRequestError(Problem.UNKNOWN_PATH, NO_PATH)
    if isinstance(error, MethodNotAllowed):
        return RefusedRequestError(Problem.METHOD, "this interface is read-only and accepts only GET")
    if error.code is not None and error.code < 500:
        return RefusedRequestError(Problem.PARAMETER, error.description or "the request cannot be read")
    return RefusedRequestError(Problem.INTERNAL, "the service failed")


def answer_refusal(error: RefusedRequestError) -> Response:
    """Makes the response for a refusal; all refusals of this interface pass through here."""
    get_request_facts().refusal = error.problem
    asked = describe_request(request.method, read_raw_path(request.environ), read_query_string())
    response = Response(
        make_failure(error.problem, error.description, asked, find_error_profile(request.path)),
        status=STATUS_INFO[error.problem][0],
        mimetype="application/json",
    )
    if error.problem in CHALLENGES:
        response.headers["WWW-Authenticate"] = CHALLENGES[error.problem]
    if isinstance(error, ThrottledRequestError):
        response.headers["Retry-After"] = str(error.seconds)
    if error.problem is Problem.BUSY:
        response.headers["Retry-After"] = str(BUSY_RETRY_SECONDS)
    if isinstance(error, NotAgreedError):
        response.headers[AGREEMENT_HEADER] = error.words
    response.headers["Cache-Control"] = "no-store"
    return response
