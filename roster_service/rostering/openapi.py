"""The OpenAPI document of a version, made from the endpoints, schemas and parameters that serve the requests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from flask import Flask
from marshmallow import Schema
from oneroster_filter import OPERATORS, FieldType

from roster_service import __version__
from roster_service.auth.scopes import EXPLANATIONS, TOKEN_PATH, Scope, ScopeName, make_content_rights
from roster_service.auth.signed_requests import METHODS
from roster_service.auth.throttling.limits import describe_headers as describe_rate_headers
from roster_service.errors import ErrorProfile
from roster_service.feeds import roster_state
from roster_service.http import openapi
from roster_service.http.openapi import DocumentApi
from roster_service.rostering.endpoints import ENDPOINTS, Cardinality, Endpoint
from roster_service.rostering.openapi_tokens import RETRIED, RETRY_AFTER, add_token_operations
from roster_service.rostering.operations import COUNT, list_parameters
from roster_service.rostering.status_info import ERROR_SCHEMAS, WARNING_HEADER, StatusInfoSet, shape_failure
from roster_service.schemas.roster_status import RosterStatus
from roster_service.schemas.versions import Resource, Version
from roster_service.serving.params import FIELDS, FILTER, LIMIT, SORT, Limits, Parameter
from roster_service.serving.plan import ResourceView, is_sortable, make_resource_view

# The names of the standard.
SECURITY_SCHEME = "OAuth2CC"
SIGNATURE_SCHEME = "OAuth1"
PATH_NAMES = {name: re.sub("Id$", "SourcedId", name) for row in ENDPOINTS for name in row.ids if name != "sourcedId"}
STANDARD_VERSIONS = {"v1p1": "1.1", "v1p2": "1.2"}

RATE_HEADERS = describe_rate_headers()
STATE_HEADERS = roster_state.describe_headers("dateLastModified>")
HEADERS: Mapping[str, Any] = {
    **RATE_HEADERS,
    COUNT: {"description": "Number of records on all pages; 1 for a single record", "schema": {"type": "integer"}},
    "Link": {"description": "next, last, first, prev (RFC 8288)", "schema": {"type": "string"}},
    **STATE_HEADERS,
    "ETag": {"description": "For `If-None-Match`", "schema": {"type": "string"}},
    RETRY_AFTER: {"description": "Seconds to wait", "schema": {"type": "integer"}},
    **openapi.AGREEMENT_HEADERS,
    WARNING_HEADER: {
        "description": "Only if the service ignored a part of the request: a JSON object with the code and the text",
        "schema": {"type": "string"},
    },
}
RECORD_HEADERS = (*RATE_HEADERS, COUNT, *STATE_HEADERS, "ETag")
STATUS_PATH = "/status"
STATUS_TAG = {"name": "Status", "description": "Whether the sync of tonight is done"}
FAILURES = {
    400: ("BadRequest", "The method, the version prefix, a parameter or the filter is not accepted"),
    401: ("Unauthorized", "No token, or one that is no longer valid"),
    403: ("Forbidden", "The token lacks the scope, nothing is granted to the vendor, or its agreement does not hold"),
    404: ("NotFound", "No such record, or the caller may not see it"),
    410: ("Gone", "The pull that the page belongs to cannot go on: begin again with the first page"),
    429: (
        "TooManyRequests",
        "Too many requests of the vendor in the window, or at the same time, or its new filters and sorts have taken "
        "too much of the database",
    ),
    500: ("InternalServerError", "The service failed"),
    503: ("ServiceUnavailable", "The database is busy or unavailable; try again"),
}
# The statuses that only one kind of path has.
ONLY = {404: Cardinality.SINGLE, 410: Cardinality.COLLECTION}
NOT_MODIFIED = "NotModified"
TAG_END = "Management"
EVERY_RIGHT = make_content_rights(frozenset(ScopeName), frozenset(), None)

DESCRIPTION = """The rostering service of {title}, read-only: every path takes GET, and any other method gets 400.
Roster Service {release} serves it.

`limit` and `offset` select a page, `X-Total-Count` counts the records of all pages, and `Link` leads to the others.
A record that left the SIS is `tobedeleted` for some days, which the guide says. For a delta, ask for
`filter=dateLastModified>'…'` with the `X-Roster-As-Of` of your last pull; if that is older than
`X-Roster-Deletions-Since`, pull all records.
"""


def make_api(
    app: Flask,
    version: Version,
    limits: Limits,
    profile: ErrorProfile,
    public_url: str | None,
    *,
    signed: bool,
    contact: str | None,
) -> DocumentApi:
    """Returns the API of a version, which serves its document at `<root>/openapi.json`.

    `profile`: the form of errors and warnings; `public_url`: the address that clients use, None for the address of each
    request; `signed`: whether the service takes signed requests of this version; `contact`: whom clients may ask.
    """
    examples = openapi.load_examples()[version.prefix]
    described: list[tuple[Schema, Any]] = [
        (record(), examples["records"][resource.plural]) for resource, record in version.records.items()
    ]
    refusals = [info for by_name in examples["refusals"].values() for info in by_name.values()]
    described.append((ERROR_SCHEMAS[profile](), [shape_failure(info, profile) for info in refusals]))
    api = DocumentApi(
        app,
        name=version.prefix,
        root=version.root,
        public_url=public_url,
        info={
            "title": f"Roster Service: {version.title}",
            "version": STANDARD_VERSIONS[version.prefix],
            "description": DESCRIPTION.format(title=version.title, release=__version__),
        },
        examples=openapi.collect_field_examples(described),
        path_names=PATH_NAMES,
        contact=contact,
    )
    components = api.spec.components
    _add_security_schemes(api, version, signed=signed)
    for name, header in HEADERS.items():
        if name != WARNING_HEADER or profile is not ErrorProfile.SPECIFICATION:
            components.header(name, header)
    for tag in dict.fromkeys(map(make_tag, ENDPOINTS)):
        api.spec.tag({"name": tag, "description": f"Paths that begin with /{tag[0].lower()}{tag[1 : -len(TAG_END)]}"})
    api.spec.tag(STATUS_TAG)
    if profile is not ErrorProfile.OFFICIAL:
        components.schema(StatusInfoSet.__name__, schema=StatusInfoSet)
    for resource, record in version.records.items():
        _add_resource(api, resource, record, profile)
        view = make_resource_view(record, EVERY_RIGHT)
        for parameter in (FILTER, SORT, FIELDS):
            component = _describe_parameter(parameter, limits)
            component["description"] += "\n\n" + NAME_TABLES[parameter.name](view)
            components.parameter(_name_parameter(parameter, resource), "query", component)
    for parameter in list_parameters(ENDPOINTS[0]):
        if parameter.name not in NAME_TABLES:
            components.parameter(parameter.name, "query", _describe_parameter(parameter, limits))
    for status, (name, reason) in FAILURES.items():
        components.response(name, _describe_failure(status, reason, examples["refusals"].get(str(status), {}), profile))
    components.response(
        NOT_MODIFIED,
        {
            "description": "Not changed since the answer with the entity tag of `If-None-Match`",
            "headers": _refer_headers((*RECORD_HEADERS, "Link")),
        },
    )
    add_token_operations(api, version.prefix)
    return api


def _add_security_schemes(api: DocumentApi, version: Version, *, signed: bool) -> None:
    token = {
        "type": "oauth2",
        "description": f"A token for client credentials. `{version.prefix}/NAME` is the short spelling of a scope.",
        "flows": {
            "clientCredentials": {
                "tokenUrl": openapi.EXAMPLE_ROOT + TOKEN_PATH,
                "scopes": {str(Scope(version.prefix, name)): text for name, text in EXPLANATIONS.items()},
            }
        },
    }
    signature = {
        "type": "http",
        "scheme": "OAuth",
        "description": f"A request signed with OAuth 1.0a (RFC 5849), two-legged, by {' or '.join(METHODS)}",
    }
    api.spec.components.security_scheme(SECURITY_SCHEME, token)
    if signed:
        api.spec.components.security_scheme(SIGNATURE_SCHEME, signature)


def _add_resource(api: DocumentApi, resource: Resource, record: type[Schema], profile: ErrorProfile) -> None:
    """Adds the schemas of a resource: the record, a selection of its fields, a page and a single record."""
    # Without explicit names, apispec would invent a name for the second model of one schema.
    name = record.__name__
    api.spec.components.schema(name, schema=record)
    api.spec.components.schema(f"{name}Selection", schema=record(partial=True))
    # With `fields`, a record has only the requested fields, so even required ones may be missing.
    shown = {"anyOf": [openapi.refer("schemas", name), openapi.refer("schemas", f"{name}Selection")]}
    forms = {
        f"{name}Set": (resource.plural, {"type": "array", "items": shown, "description": "A page of records"}),
        f"Single{name}": (resource.singular, {"description": "The record", **shown}),
    }
    for form, (key, value) in forms.items():
        properties = {key: value}
        if profile is not ErrorProfile.OFFICIAL:
            properties["statusInfoSet"] = {
                "allOf": [openapi.refer("schemas", StatusInfoSet.__name__)],
                "description": "A warning, if there is one",
            }
        api.spec.components.schema(
            form, {"type": "object", "required": [key], "properties": properties, "additionalProperties": False}
        )


def _describe_failure(
    status: int, reason: str, refusals: Mapping[str, Mapping[str, str]], profile: ErrorProfile
) -> dict[str, Any]:
    examples = {name: {"value": shape_failure(info, profile)} for name, info in refusals.items()}
    more = openapi.AGREEMENT_HEADERS if status == 403 else (RETRY_AFTER,) if status in RETRIED else ()
    return {
        "description": reason,
        "headers": _refer_headers((*RATE_HEADERS, *more)),
        "content": openapi.make_body(ERROR_SCHEMAS[profile], examples=examples),
    }


def describe_endpoint(endpoint: Endpoint, version: Version, profile: ErrorProfile, *, signed: bool) -> dict[str, Any]:
    """Returns the OpenAPI operation object of an endpoint. `profile`: the form of errors and warnings; `signed`:
    whether the service takes signed requests of the version."""
    collection = endpoint.cardinality is Cardinality.COLLECTION
    headers = (*RECORD_HEADERS, "Link") if collection else RECORD_HEADERS
    if profile is not ErrorProfile.SPECIFICATION:
        headers = (*headers, WARNING_HEADER)
    examples = openapi.load_examples()
    record = examples[version.prefix]["records"][endpoint.resource.plural][0]
    model = version.records[endpoint.resource].__name__
    schema, example = (
        (f"{model}Set", {endpoint.resource.plural: [record]})
        if collection
        else (f"Single{model}", {endpoint.resource.singular: record})
    )
    responses: dict[str, Any] = {
        "200": {
            "description": endpoint.summary,
            "headers": _refer_headers(headers),
            "content": openapi.make_body(openapi.refer("schemas", schema), example=example),
        },
        "304": NOT_MODIFIED,
    }
    for status, (name, _) in FAILURES.items():
        if ONLY.get(status, endpoint.cardinality) is endpoint.cardinality:
            responses[str(status)] = name
    # apispec makes references of the names of components.
    parameters: list[Any] = [_describe_path_id(name, endpoint, examples["ids"]) for name in endpoint.ids]
    parameters += [_name_parameter(item, endpoint.resource) for item in list_parameters(endpoint)]
    security: list[dict[str, list[str]]] = [
        {SECURITY_SCHEME: [str(Scope(version.prefix, name))]} for name in endpoint.access.value
    ]
    return {
        "summary": endpoint.summary,
        "operationId": endpoint.name,
        "tags": [make_tag(endpoint)],
        "security": [*security, {SIGNATURE_SCHEME: []}] if signed else security,
        "parameters": parameters,
        "responses": responses,
    }


def describe_status(version: Version, *, signed: bool) -> dict[str, Any]:
    """Returns the OpenAPI operation object of the states of the feeds. `signed`: as for `describe_endpoint`."""
    every_scope: list[dict[str, list[str]]] = [
        {SECURITY_SCHEME: [str(Scope(version.prefix, scope))]} for scope in ScopeName
    ]
    return {
        "summary": "the last run of each feed of which the caller sees records",
        "operationId": "getStatus",
        "tags": [STATUS_TAG["name"]],
        "security": [*every_scope, {SIGNATURE_SCHEME: []}] if signed else every_scope,
        "responses": {
            "200": {
                "description": "The states of the feeds",
                "headers": _refer_headers((*RATE_HEADERS, *STATE_HEADERS)),
                "content": openapi.make_body(RosterStatus),
            },
            **{str(status): name for status, (name, _) in FAILURES.items() if status not in ONLY},
        },
    }


def make_tag(endpoint: Endpoint) -> str:
    """Returns the tag of an endpoint: `UsersManagement` for the paths that begin with /users."""
    first = endpoint.path.split("/")[1]
    return f"{first[0].upper()}{first[1:]}{TAG_END}"


def _describe_path_id(name: str, endpoint: Endpoint, ids: Mapping[str, str]) -> dict[str, Any]:
    parent = endpoint.path.partition(f"/{{{name}}}")[0].rpartition("/")[2]
    return {
        "name": PATH_NAMES.get(name, name),
        "in": "path",
        "required": True,
        "schema": {"type": "string"},
        "description": f"The `sourcedId` of one of the {parent}; a slash in it is written %2F",
        "example": ids[parent],
    }


def _refer_headers(names: Iterable[str]) -> dict[str, Any]:
    return {name: openapi.refer("headers", name) for name in names}


# --- parameters --------------------------------------------------------------------------------------------------


def _name_parameter(parameter: Parameter, resource: Resource) -> str:
    """Returns the name of the component: its names of fields depend on the resource."""
    return f"{parameter.name}-{resource.plural}" if parameter.name in NAME_TABLES else parameter.name


def _describe_parameter(parameter: Parameter, limits: Limits) -> dict[str, Any]:
    schema = dict(parameter.schema)
    if parameter is LIMIT:
        schema |= {"default": limits.default_limit, "maximum": limits.max_limit}
    if parameter is FILTER:
        schema |= {"maxLength": limits.filter_length}
    style = {"style": "form", "explode": False} if parameter.repeatable else {}
    examples = {"examples": {name: {"value": text} for name, text in parameter.examples.items()}}
    return {
        "name": parameter.name,
        "in": "query",
        "required": False,
        "schema": schema,
        "description": parameter.explanation,
        **style,
        **(examples if parameter.examples else {}),
    }


def _list_filter_names(view: ResourceView) -> str:
    rows = [
        (_quote_name(name), _describe_kind(kind), " ".join(f"`{operator.value}`" for operator in OPERATORS[kind.kind]))
        for name, kind in view.filter_types.items()
    ]
    head = ("name", "type", "operators")
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows))


def _describe_kind(kind: FieldType) -> str:
    return f"{kind.kind.value}, any of several" if kind.many else kind.kind.value


def _list_sort_names(view: ResourceView) -> str:
    return _list_names(name for name in view.filter_types if is_sortable(name, view.filter_types))


def _list_fields(view: ResourceView) -> str:
    return _list_names(view.fields)


def _list_names(names: Iterable[str]) -> str:
    return "Names: " + ", ".join(map(_quote_name, names))


def _quote_name(name: str) -> str:
    return f"`{name.replace('*', 'KEY')}`"


# The parameters that take names of fields, and the list of these names.
NAME_TABLES = {FILTER.name: _list_filter_names, SORT.name: _list_sort_names, FIELDS.name: _list_fields}
