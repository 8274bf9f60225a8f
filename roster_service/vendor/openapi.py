"""The OpenAPI document of the vendor interface."""

from __future__ import annotations

from typing import Any

from flask import Flask
from marshmallow import Schema

from roster_service import __version__
from roster_service.auth.throttling import limits
from roster_service.feeds import roster_state
from roster_service.http.openapi import AGREEMENT_HEADERS, DocumentApi, collect_field_examples, load_examples, make_body
from roster_service.schemas.students import Student
from roster_service.schemas.vendor_bodies import Failure
from roster_service.vendor.bodies import ROOT

TAG = {"name": "Vendor", "description": "Log in, then ask for students"}
RATE_HEADERS = limits.describe_headers()
STATE_HEADERS = roster_state.describe_headers("modifiedSince")
RETRY_AFTER = {"Retry-After": {"description": "Seconds to wait", "schema": {"type": "integer"}}}
REFUSALS = {
    400: "`bad-request`: the request is refused; the message says why",
    401: "`unauthorized`, `invalid-token`: no permission token, a wrong login, or a token that is not valid any more",
    403: "`Forbidden`: the API key is missing or not valid; `no-privilege`: what is asked for is not granted, or "
    "nothing is; `no-agreement`: the agreement does not hold now, as `X-Roster-Agreement` says",
    405: "`method-not-allowed`: the path takes another method, as `Allow` says",
    410: "`pull-ended`: the page belongs to a pull that cannot go on; begin again with `offset` 0",
    429: "`rate-limited`: too many requests, or too many failed logins",
    500: "`internal`: a fault of the service",
    503: "`unavailable`: the database is busy or away; try again",
}
# The headers of refusals: no `RateLimit` where none knows the vendor.
REFUSAL_HEADERS = {
    **dict.fromkeys(REFUSALS, RATE_HEADERS),
    403: RATE_HEADERS | AGREEMENT_HEADERS,
    405: {},
    **dict.fromkeys((429, 503), RATE_HEADERS | RETRY_AFTER),
}


def make_api(app: Flask, public_url: str | None, contact: str | None) -> DocumentApi:
    """Makes the document, which the application serves at `/v1/openapi.json`. `public_url`: the address that clients
    use, None for the address of each request; `contact`: whom they may ask."""
    api = DocumentApi(
        app,
        name="vendor",
        root=ROOT,
        public_url=public_url,
        info={
            "title": "Roster Service: Vendor interface",
            "version": "1",
            "description": "The students of a district, for a vendor with an API key, an e-mail and a password. "
            "For changes, ask with `modifiedSince` and the `X-Roster-As-Of` of your last pull, as long as that is not "
            "older than `X-Roster-Deletions-Since`. "
            f"Roster Service {__version__} serves it.",
        },
        examples=collect_field_examples([(Student(), load_examples()["vendor"]["records"]["students"])]),
        path_names={},
        contact=contact,
    )
    api.spec.tag(TAG)
    schemes = {
        "apiKey": {"type": "apiKey", "in": "header", "name": "x-api-key", "description": "The API key of the vendor"},
        "permissionToken": {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "JWT",
            "description": "The `token` that the login gives",
        },
    }
    for name, scheme in schemes.items():
        api.spec.components.security_scheme(name, scheme)
    return api


def document(
    name: str,
    summary: str,
    request: type[Schema] | None,
    response: type[Schema] | dict[str, Any],
    *,
    permission_token: bool,
) -> dict[str, Any]:
    """Returns the OpenAPI operation of a path. `permission_token`: whether the path requires a permission token beside
    the API key."""
    responses: dict[str, Any] = {
        "200": {
            "description": summary,
            "headers": RATE_HEADERS | (STATE_HEADERS if permission_token else {}),
            "content": make_body(response),
        }
    }
    refusals = load_examples()["vendor"]["refusals"]
    for status, reason in REFUSALS.items():
        # Of pages alone.
        if status == 410 and name != "students":
            continue
        examples = {name: {"value": body} for name, body in refusals.get(str(status), {}).items()}
        responses[str(status)] = {
            "description": reason,
            "headers": REFUSAL_HEADERS[status],
            "content": make_body(Failure, examples=examples),
        }
    return {
        "summary": summary,
        "operationId": name,
        "tags": [TAG["name"]],
        "security": [{"apiKey": []} | ({"permissionToken": []} if permission_token else {})],
        **({"requestBody": {"required": True, "content": make_body(request)}} if request is not None else {}),
        "responses": responses,
    }
