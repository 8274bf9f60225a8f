"""The page at `/`, and the page for an address that does not exist: HTML for browsers, JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping

from flask import Flask, Response, request

from roster_service.auth.scopes import TOKEN_PATH
from roster_service.http.json_responses import make_json
from roster_service.schemas.versions import VERSIONS
from roster_service.web.pages import make_page

BODY = """<h1>{title}</h1>
<p>{text}</p>
<p><a href="/docs">Documentation of the interfaces</a></p>"""
OPERATORS = """
<p><a href="{}">The console, for the operators of this service</a></p>"""
START = (
    "Roster Service",
    "This service gives roster data to programs, by OneRoster 1.1 and 1.2, and by a vendor interface.",
)
NOT_FOUND = ("Not found", "There is no such page.")
ADDRESSES: Mapping[str, str] = {
    "documentation": "/docs",
    "token_endpoint": TOKEN_PATH,
    **{f"openapi_{version.prefix}": f"{version.root}/openapi.json" for version in VERSIONS},
    "openapi_vendor": "/v1/openapi.json",
}


def prefers_html() -> bool:
    """Whether the client of the request prefers HTML to JSON, as browsers do. A program that accepts anything does
    not."""
    accepted = request.accept_mimetypes
    return bool(accepted["text/html"] > accepted["application/json"])


def show_text(title: str, text: str, status: int) -> Response:
    """Returns a page with one paragraph. `title` and `text`: without user values."""
    return make_page(title, BODY.format(title=title, text=text), status)


def register_start_page(app: Flask, console: str | None) -> None:
    """Registers the page at `/`. `console`: the path of the console, to which the page leads; None if there is none."""

    def show_start() -> Response:
        if not prefers_html():
            return make_json(ADDRESSES, 200)
        title, text = START
        link = "" if console is None else OPERATORS.format(console)
        return make_page(title, BODY.format(title=title, text=text) + link, 200)

    app.add_url_rule("/", endpoint="root", view_func=show_start, methods=["GET"])
