"""The OpenAPI document of the vendor interface."""

from __future__ import annotations

from typing import Any

from flask import Flask
from flask_smorest import Api
from marshmallow import Schema

from roster_service import __version__
from roster_service.access.throttling.rate_state import describe_headers
from roster_service.schemas.vendor_bodies import Failure
from roster_service.vendor.responses import ROOT

TITLE = "Vendor interface"

RATE_HEADERS = describe_headers()
RETRY_AFTER = {"Retry-After": {"description": "Seconds to wait", "schema": {"type": "integer"}}}
REFUSALS = {
    400: "`bad-request`: the body is refused; the message names the key",
    401: "`unauthorized`, `invalid-token`: no permission token, a wrong login, or a token that is not valid any more",
    403: "`Forbidden`: the API key is missing or not valid; `no-privilege`: what is asked for is not granted",
    405: "`method-not-allowed`: this path takes POST",
    429: "`rate-limited`: too many requests, or too many failed logins",
    500: "`internal`: a fault of the service",
    503: "`unavailable`: the database is busy or away; try again",
}
# The statuses of refusals before the vendor is known: their responses have no `RateLimit` headers.
KEYLESS = (403, 405)


class VendorApi(Api):  # type: ignore[misc]  # flask-smorest has no types
    """The OpenAPI document of this interface, without the error handlers of flask-smorest."""

    ERROR_SCHEMA = Failure

    def _register_error_handlers(self) -> None:
        """Registers none: those of flask-smorest would answer for the whole application, in another format."""


def make_api(app: Flask) -> VendorApi:
    """Makes the document, which the application serves at `/v1/openapi.json`."""
    app.config |= {
        "VENDOR_API_TITLE": f"Roster Service: {TITLE}",
        "VENDOR_API_VERSION": __version__,
        "VENDOR_OPENAPI_VERSION": "3.0.3",
        "VENDOR_OPENAPI_URL_PREFIX": ROOT,
        "VENDOR_OPENAPI_JSON_PATH": "openapi.json",
        "VENDOR_API_SPEC_OPTIONS": {
            "info": {"description": "Log in with an API key, an e-mail and a password; then ask for students."}
        },
    }
    api = VendorApi(app, config_prefix="VENDOR_")
    api.spec.components.security_scheme("apiKey", {"type": "apiKey", "in": "header", "name": "x-api-key"})
    api.spec.components.security_scheme("permissionToken", {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"})
    return api


def document(
    name: str, summary: str, request: type[Schema], response: type[Schema] | dict[str, Any], *, permission_token: bool
) -> dict[str, Any]:
    """Returns the OpenAPI operation of a path. `permission_token`: whether the path requires a permission token beside
    the API key."""
    responses: dict[str, Any] = {
        "200": {
            "description": summary,
            "headers": RATE_HEADERS,
            "content": {"application/json": {"schema": response}},
        }
    }
    for status, reason in REFUSALS.items():
        headers = ({} if status in KEYLESS else RATE_HEADERS) | (RETRY_AFTER if status in (429, 503) else {})
        responses[str(status)] = {
            "description": reason,
            "headers": headers,
            "content": {"application/json": {"schema": Failure}},
        }
    return {
        "summary": summary,
        "operationId": name,
        "security": [{"apiKey": [], **({"permissionToken": []} if permission_token else {})}],
        "requestBody": {"required": True, "content": {"application/json": {"schema": request}}},
        "responses": responses,
    }
