"""The part of the OpenAPI documents that describes the token endpoint, its public keys and its metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roster_service.auth.scopes import JWKS_PATH, METADATA_PATH, TOKEN_PATH, Scope, ScopeName
from roster_service.http.openapi import AGREEMENT_HEADERS, EXAMPLE_ROOT, DocumentApi, load_examples, make_body, refer
from roster_service.schemas.versions import VERSIONS

TAG = {"name": "Authorization", "description": "Access tokens (RFC 6749), their public keys, and metadata (RFC 8414)"}
CLIENT_LOGIN = "ClientLogin"
RETRY_AFTER = "Retry-After"
NEVER_THROTTLED = "This path is never throttled: it has no 429."
# The statuses of refusals that a client may send again as they are.
RETRIED = (429, 503)


def _describe_text(description: str, example: Any, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, "example": example, **more}


def _describe_object(members: Mapping[str, dict[str, Any]], *required: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": dict(members), "required": list(required), **more}


SCHEMAS: Mapping[str, dict[str, Any]] = {
    "AccessToken": _describe_object(
        {
            "access_token": _describe_text("The token for `Authorization: Bearer`", "eyJhbGciOiJFUzI1NiJ9.e30.sig"),
            "token_type": _describe_text("The kind of token", "Bearer", enum=["Bearer"]),
            "expires_in": {"type": "integer", "description": "Its validity in seconds", "example": 3600},
            "scope": _describe_text("The granted scopes, separated by spaces", "v1p2/roster.readonly"),
        },
        "access_token", "token_type", "expires_in", "scope",
    ),
    "OAuthError": _describe_object(
        {
            "error": _describe_text("The code for programs (RFC 6749)", "invalid_scope"),
            "error_description": _describe_text("The reason for people", "the client id or the secret is wrong"),
        },
        "error",
    ),
    "PublicKeys": _describe_object(
        {
            "keys": {
                "type": "array",
                "description": "The keys that verify tokens, as JWKs (RFC 7517)",
                "items": {"type": "object", "additionalProperties": True},
            }
        },
        "keys",
    ),
    "AuthorizationServer": _describe_object(
        {
            "issuer": _describe_text("The `iss` claim of tokens", EXAMPLE_ROOT),
            "token_endpoint": _describe_text("The token endpoint", EXAMPLE_ROOT + TOKEN_PATH),
            "jwks_uri": _describe_text("The public keys", EXAMPLE_ROOT + JWKS_PATH),
            "scopes_supported": {
                "type": "array",
                "description": "Every scope of both versions, in the long spelling",
                "example": [str(Scope(version.prefix, ScopeName.FULL)) for version in VERSIONS],
                "items": {"type": "string"},
            },
        },
        "issuer", "token_endpoint",
        additionalProperties=True,
    ),
}  # fmt: skip
# Path -> status -> the reason.
REASONS = {
    TOKEN_PATH: {
        400: "The request is not a token request, comes over http, or no requested scope can be granted, or the "
        "agreement of the vendor does not hold",
        401: "The client id or the secret is wrong or has ended, or the client is disabled",
        429: "Too many token requests of the client or from the address",
        503: "The database is busy or unavailable; try again",
    },
    JWKS_PATH: {
        400: "The `Host` header is no host name",
        503: "The database is busy or unavailable; try again",
    },
    METADATA_PATH: {400: "The `Host` header is no host name"},
}


def add_token_operations(api: DocumentApi, version: str) -> None:
    """Adds the operations to the document of a version."""
    for name, schema in SCHEMAS.items():
        api.spec.components.schema(name, schema)
    api.spec.components.security_scheme(
        CLIENT_LOGIN, {"type": "http", "scheme": "basic", "description": "The client id and its secret"}
    )
    api.spec.tag(TAG)
    _add(
        api,
        TOKEN_PATH,
        "post",
        operationId="getAccessToken",
        summary="an access token for client credentials",
        # The second choice: id and secret in the form.
        security=[{CLIENT_LOGIN: []}, {}],
        requestBody={
            "required": True,
            "content": {"application/x-www-form-urlencoded": {"schema": _describe_form(version)}},
        },
        responses=_describe_responses(TOKEN_PATH, "AccessToken"),
    )
    _add(
        api,
        JWKS_PATH,
        "get",
        operationId="getPublicKeys",
        summary="the public keys of access tokens",
        description=NEVER_THROTTLED,
        security=[],
        responses=_describe_responses(JWKS_PATH, "PublicKeys"),
    )
    _add(
        api,
        METADATA_PATH,
        "get",
        operationId="getMetadata",
        summary="the token endpoint and its scopes",
        description=NEVER_THROTTLED,
        security=[],
        responses=_describe_responses(METADATA_PATH, "AuthorizationServer"),
    )


def _add(api: DocumentApi, path: str, method: str, **operation: Any) -> None:
    """Adds an operation that is not below the root of the version."""
    operation |= {"tags": [TAG["name"]]}
    api.spec.path(path=path, operations={method: operation})


def _describe_form(version: str) -> dict[str, Any]:
    return _describe_object(
        {
            "grant_type": _describe_text("The grant", "client_credentials", enum=["client_credentials"]),
            "scope": _describe_text(
                "The wanted scopes, separated by spaces, in the long or the short spelling; without it, every scope of "
                "the version that the client was registered with first",
                f"{version}/{ScopeName.FULL}",
            ),
            "client_id": _describe_text("The client id, of a client that sends no `Authorization: Basic`", "d0a2f1"),
            "client_secret": _describe_text("Its secret", "the secret of the client"),
        },
        "grant_type",
    )


def _describe_responses(path: str, schema: str) -> dict[str, Any]:
    refusals = load_examples()["oauth"]["refusals"][path]
    described: dict[str, Any] = {
        "200": {"description": schema, "content": make_body(refer("schemas", schema))},
    }
    more = {400: AGREEMENT_HEADERS} if path == TOKEN_PATH else {}
    for status, reason in REASONS[path].items():
        names = (RETRY_AFTER,) if status in RETRIED else more.get(status, ())
        examples = {name: {"value": body} for name, body in refusals[str(status)].items()}
        described[str(status)] = {
            "description": reason,
            "headers": {name: refer("headers", name) for name in names},
            "content": make_body(refer("schemas", "OAuthError"), examples=examples),
        }
    return described
