"""The blueprint of a version: its 41 paths from the rows, its document, and the refusals that come before routing."""

from __future__ import annotations

from collections.abc import Callable

from flask import Flask, Response, request
from flask_smorest import Blueprint
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound

from roster_service.errors import BUSY_RETRY_SECONDS, Problem, RefusedRequestError
from roster_service.rostering.endpoints import ENDPOINTS
from roster_service.rostering.openapi import describe_endpoint, make_api
from roster_service.rostering.operations import Operation
from roster_service.rostering.status_info import STATUS_INFO, make_failure
from roster_service.schemas.versions import V1P2, VERSIONS
from roster_service.web.pipeline import Services, answer, describe_this_request

# Where 1.2 says that a provider serves its own document.
DISCOVERY_PATHS = {V1P2: "/discovery/onerosterv1p2rostersservice_openapi3_v1p0.json"}
CHALLENGES = {
    Problem.NO_TOKEN: 'Bearer realm="roster"',
    Problem.BAD_TOKEN: 'Bearer realm="roster", error="invalid_token"',
}


def register_rostering(app: Flask, services: Services) -> None:
    """Registers both versions."""
    app.before_request(refuse_other_methods)
    for version in VERSIONS:
        blueprint = Blueprint(version.prefix, __name__, url_prefix=version.root, description=version.title)
        for endpoint in ENDPOINTS:
            described = describe_endpoint(endpoint, version, services.limits)
            view = blueprint.doc(**described)(
                make_rostering_view(Operation(endpoint, version, services.limits), services)
            )
            rule = endpoint.path.replace("{", "<id:").replace("}", ">")
            # A trailing slash is taken as if it were not there, without a redirect.
            blueprint.add_url_rule(rule, endpoint=endpoint.name, view_func=view, methods=["GET"], strict_slashes=False)
        api = make_api(app, version)
        api.register_blueprint(blueprint)
        if version in DISCOVERY_PATHS:
            app.add_url_rule(
                version.root + DISCOVERY_PATHS[version],
                endpoint=f"{version.prefix}_discovery",
                view_func=app.view_functions[f"{version.prefix}-api-docs.openapi_json"],
            )


def make_rostering_view(operation: Operation, services: Services) -> Callable[..., Response]:
    """The view function of an operation; it takes the ids of the path by name."""

    def view(**path_ids: str) -> Response:
        return answer(operation, services, path_ids)

    view.__doc__ = operation.endpoint.summary
    return view


def is_rostering(path: str) -> bool:
    """Whether an address belongs to this interface, known path or not."""
    return any(path == version.root or path.startswith(version.root + "/") for version in VERSIONS)


def refuse_other_methods() -> None:
    """Anything but GET is refused with 400, before the token and the path are looked at."""
    if request.method != "GET" and is_rostering(request.path):
        raise RefusedRequestError(Problem.METHOD, f"this interface is read-only: GET, not {request.method[:20]}")


def to_problem(error: HTTPException) -> RefusedRequestError:
    """What an error of the framework means here."""
    if isinstance(error, NotFound):
        return RefusedRequestError(Problem.UNKNOWN_PATH, "there is no such path")
    if isinstance(error, MethodNotAllowed):
        return RefusedRequestError(Problem.METHOD, "this interface is read-only: GET alone")
    if error.code is not None and error.code < 500:
        return RefusedRequestError(Problem.PARAMETER, error.description or "the request cannot be read")
    return RefusedRequestError(Problem.INTERNAL, "the service failed")


def answer_refusal(error: RefusedRequestError) -> Response:
    """The one place where a refusal of this interface becomes an answer."""
    response = Response(
        make_failure(error.problem, error.description, describe_this_request()),
        status=STATUS_INFO[error.problem][0],
        mimetype="application/json",
    )
    if error.problem in CHALLENGES:
        response.headers["WWW-Authenticate"] = CHALLENGES[error.problem]
    if error.problem is Problem.BUSY:
        response.headers["Retry-After"] = str(BUSY_RETRY_SECONDS)
    response.headers["Cache-Control"] = "no-store"
    return response
