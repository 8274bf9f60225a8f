"""The OpenAPI document of a version, made from the endpoints, schemas and parameters that serve the requests."""

from __future__ import annotations

from typing import Any

from flask import Flask
from flask_smorest import Api

from roster_service import __version__
from roster_service.access.scopes import EXPLANATIONS, TOKEN_PATH
from roster_service.access.throttling.rate_state import describe_headers
from roster_service.errors import ErrorProfile
from roster_service.query.params import FILTER, LIMIT, Limits, Parameter
from roster_service.rostering.endpoints import Cardinality, Endpoint
from roster_service.rostering.operations import COUNT, list_parameters
from roster_service.rostering.status_info import ERROR_SCHEMAS, WARNING_HEADER, StatusInfo, StatusInfoSet
from roster_service.schemas.versions import Version

COLLECTION_HEADERS: dict[str, Any] = {
    "Link": {"description": "next, last, first, prev (RFC 8288)", "schema": {"type": "string"}},
}
RECORD_HEADERS: dict[str, Any] = {
    COUNT: {"description": "Number of records on all pages; 1 for a single record", "schema": {"type": "integer"}},
    "X-Roster-Revision": {
        "description": "Changes when a sync changes the roster",
        "schema": {"type": "integer"},
    },
    "X-Roster-As-Of": {
        "description": "The instant for the next `dateLastModified>`",
        "schema": {"type": "string", "format": "date-time"},
    },
    "X-Roster-Deletions-Since": {
        "description": "Tombstones older than this may be purged",
        "schema": {"type": "string", "format": "date-time"},
    },
    "ETag": {"description": "For `If-None-Match`", "schema": {"type": "string"}},
}
WARNING_HEADERS: dict[str, Any] = {
    WARNING_HEADER: {
        "description": "Only if the service ignored a part of the request: a JSON object with the code and the text",
        "schema": {"type": "string"},
    }
}
RETRY_HEADERS: dict[str, Any] = {
    "Retry-After": {"description": "Seconds after which to try again", "schema": {"type": "integer"}}
}
# Of every response to a request whose token names a vendor.
RATE_HEADERS = describe_headers()
# The statuses of refusals that a client may send again as they are.
RETRIED = (429, 503)
FAILURES = {
    400: "The method, the version prefix, a parameter or the filter is not accepted",
    401: "No token, or one that is no longer valid",
    403: "The token lacks the scope",
    404: "No such record, or the caller may not see it",
    429: "Too many requests of the vendor in the window, or at the same time",
    500: "The service failed",
    503: "The database is busy or unavailable; try again",
}


class RosteringApi(Api):  # type: ignore[misc]  # flask-smorest has no types
    """The OpenAPI document of one version, without the error handlers of flask-smorest."""

    ERROR_SCHEMA = StatusInfo

    def _register_error_handlers(self) -> None:
        """Registers nothing: flask-smorest's handlers would change the error bodies of the whole application."""


def make_api(app: Flask, version: Version) -> RosteringApi:
    """Returns the API of a version, which serves its document at `<root>/openapi.json`."""
    prefix = f"{version.prefix.upper()}_"
    app.config |= {
        f"{prefix}API_TITLE": f"Roster Service: {version.title}",
        f"{prefix}API_VERSION": __version__,
        f"{prefix}OPENAPI_VERSION": "3.0.3",
        f"{prefix}OPENAPI_URL_PREFIX": version.root,
        f"{prefix}OPENAPI_JSON_PATH": "openapi.json",
        f"{prefix}API_SPEC_OPTIONS": {
            "info": {"description": "Read-only roster data. Every path is GET; any other method answers 400."},
        },
    }
    api = RosteringApi(app, config_prefix=prefix)
    api.spec.components.security_scheme(
        "oauth2",
        {
            "type": "oauth2",
            "flows": {
                "clientCredentials": {
                    "tokenUrl": TOKEN_PATH,
                    "scopes": {f"{version.prefix}/{name}": text for name, text in EXPLANATIONS.items()},
                }
            },
        },
    )
    for record in version.records.values():
        # Without explicit names, apispec would invent a name for the second model of one schema.
        api.spec.components.schema(record.__name__, schema=record)
        api.spec.components.schema(f"{record.__name__}Selection", schema=record(partial=True))
    return api


def describe_endpoint(endpoint: Endpoint, version: Version, limits: Limits, profile: ErrorProfile) -> dict[str, Any]:
    """Returns the OpenAPI operation object of an endpoint. `profile`: the form of errors and warnings."""
    collection = endpoint.cardinality is Cardinality.COLLECTION
    headers = RATE_HEADERS | RECORD_HEADERS | (COLLECTION_HEADERS if collection else {})
    if profile is not ErrorProfile.SPECIFICATION:
        headers |= WARNING_HEADERS
    content = {"application/json": {"schema": make_envelope(endpoint, version, profile)}}
    responses: dict[str, Any] = {
        "200": {"description": endpoint.summary, "headers": headers, "content": content},
        "304": {
            "description": "Not changed since the answer with the entity tag of `If-None-Match`",
            "headers": RATE_HEADERS,
        },
    }
    for status, reason in FAILURES.items():
        if status != 404 or not collection:
            responses[str(status)] = {
                "description": reason,
                "headers": RATE_HEADERS | (RETRY_HEADERS if status in RETRIED else {}),
                "content": {"application/json": {"schema": ERROR_SCHEMAS[profile]}},
            }
    return {
        "summary": endpoint.summary,
        "operationId": endpoint.name,
        "tags": [endpoint.resource.plural],
        "security": [{"oauth2": [f"{version.prefix}/{name}"]} for name in endpoint.access.value],
        "parameters": [_describe_parameter(parameter, limits) for parameter in list_parameters(endpoint)],
        "responses": responses,
    }


def make_envelope(endpoint: Endpoint, version: Version, profile: ErrorProfile) -> dict[str, Any]:
    """Returns the model of a response: one key for the records, and an optional `statusInfoSet` for warnings, which the
    official profile gives in a header."""
    record = version.records[endpoint.resource]
    # With `fields`, a record has only the requested fields, so even required ones may be missing.
    record_model: dict[str, Any] = {"anyOf": [record, record(partial=True)]}
    if endpoint.cardinality is Cardinality.COLLECTION:
        key, value = endpoint.resource.plural, {"type": "array", "items": record_model}
    else:
        key, value = endpoint.resource.singular, record_model
    return {
        "type": "object",
        "required": [key],
        "properties": {key: value} | ({} if profile is ErrorProfile.OFFICIAL else {"statusInfoSet": StatusInfoSet}),
        "additionalProperties": False,
    }


def _describe_parameter(parameter: Parameter, limits: Limits) -> dict[str, Any]:
    schema = dict(parameter.schema)
    if parameter is LIMIT:
        schema |= {"default": limits.default_limit, "maximum": limits.max_limit}
    if parameter is FILTER:
        schema |= {"maxLength": limits.filter_length}
    style = {"style": "form", "explode": False} if parameter.repeatable else {}
    return {
        "name": parameter.name,
        "in": "query",
        "required": False,
        "schema": schema,
        "description": parameter.explanation,
        **style,
    }
