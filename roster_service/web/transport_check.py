"""The refusal of requests over plain http, before any secret is read or shown."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from flask import Flask, abort, request

from roster_service.auth.credentials.transport import Guarded
from roster_service.http.request_facts import find_root_url

# A route, by its blueprint or, if it has none, by its endpoint -> what it shows or takes, and the status of a refusal:
# RFC 6749 defines that of the token endpoint. A signed request is one by its header: `SignedRequests` asks for it.
GUARDED: Mapping[str, tuple[Guarded, HTTPStatus]] = {
    "issue_token": (Guarded.TOKEN, HTTPStatus.BAD_REQUEST),
    "secret_page": (Guarded.SECRET_LINK, HTTPStatus.FORBIDDEN),
    "vendor": (Guarded.API_KEY, HTTPStatus.BAD_REQUEST),
    "console": (Guarded.CONSOLE, HTTPStatus.FORBIDDEN),
}


def register_transport_check(app: Flask, public_url: str | None) -> None:
    """Registers the check, which must come before the functions that read a secret. `public_url`: the address that
    clients use; None: that of each request."""

    def refuse_insecure() -> None:
        found = GUARDED.get(request.blueprint or request.endpoint or "")
        if found is None:
            return
        guarded, status = found
        address = find_root_url(public_url if guarded.has_public_url else None)
        refusal = guarded.explain_insecure(address, request.remote_addr)
        if refusal is not None:
            abort(status, refusal)

    app.before_request(refuse_insecure)
