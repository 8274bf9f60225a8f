"""The frame of a page: its templates, styles, scripts and headers."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from html import escape
from importlib import resources

from flask import Flask, Response, abort, request

from roster_service.web.compression import CODINGS, choose_coding

FOLDER = "assets"
PATH = "/docs/assets"
TYPES = {"css": "text/css", "js": "text/javascript"}
# Swagger UI is of the package swagger-ui-dist 5.35.0 (Apache-2.0), htmx of htmx.org 2.0.11 (0BSD); the licences are
# beside them, and a test has their hashes.
NAMES = frozenset(
    {
        "docs.css",
        "console.css",
        "console.js",
        "copy.js",
        "htmx.min.js",
        "reference.css",
        "reference.js",
        "swagger-ui.css",
        "swagger-ui-bundle.js",
    }
)
KEPT = "public, max-age=31536000, immutable"


@functools.cache
def read_asset(name: str) -> bytes:
    """Returns the bytes of a file of `NAMES`."""
    return (resources.files(__package__) / FOLDER / name).read_bytes()


@functools.cache
def find_address(name: str) -> str:
    """Returns the address of a file of `NAMES`, which changes with its bytes."""
    return f"{PATH}/{hashlib.sha256(read_asset(name)).hexdigest()[:16]}/{name}"


@functools.cache
def _compress(name: str, coding: str) -> bytes:
    return CODINGS[coding](read_asset(name))


def register_assets(app: Flask) -> None:
    """Registers the address of the files. Any other name, and a hash that is not of these bytes, is a 404."""

    def show_asset(digest: str, name: str) -> Response:
        if name not in NAMES or find_address(name) != f"{PATH}/{digest}/{name}":
            abort(404)
        coding = choose_coding(request.accept_encodings)
        body = read_asset(name) if coding is None else _compress(name, coding)
        response = Response(body, content_type=f"{TYPES[name.rpartition('.')[2]]}; charset=utf-8")
        response.headers["Cache-Control"] = KEPT
        if coding is not None:
            response.headers["Content-Encoding"] = coding
        return response

    app.add_url_rule(f"{PATH}/<digest>/<name>", endpoint="docs_asset", view_func=show_asset, methods=["GET"])


# The pages of the navigation: address below the root, and title.
NAVIGATION = {
    "/docs/guide": "Guide",
    "/docs/reference": "Reference",
    "/docs/conformance": "Conformance",
}
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} – Roster Service</title>
<link rel="icon" href="data:,">
{links}
</head>
<body>
<a class="skip" href="#main">Skip to the text</a>
<header>
<a href="/docs">Roster Service</a>
<nav aria-label="Documentation">
{navigation}
</nav>
</header>
<main id="main"{width}>
{body}
</main>
{scripts}
</body>
</html>
"""
# No inline script and no other host. Swagger UI writes the colours of its parts into `style` attributes.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)


def make_page(
    title: str,
    body: str,
    status: int = 200,
    *,
    styles: Iterable[str] = (),
    scripts: Iterable[str] = (),
    wide: bool = False,
) -> Response:
    """Returns a page. `title`: plain text; `body`: HTML; `styles`, `scripts`: names of assets."""
    sheets = (f'<link rel="stylesheet" href="{find_address(name)}">' for name in ("docs.css", *styles))
    text = PAGE.format(
        title=escape(title),
        links="\n".join(sheets),
        navigation="\n".join(_link(path, text) for path, text in NAVIGATION.items()),
        width=' class="wide"' if wide else "",
        body=body,
        scripts="\n".join(f'<script src="{find_address(name)}"></script>' for name in scripts),
    )
    response = Response(text, status=status, mimetype="text/html")
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["Cache-Control"] = "no-store"
    return response


def _link(path: str, text: str) -> str:
    current = ' aria-current="page"' if f"{request.path}/".startswith(f"{path}/") else ""
    return f'<a href="{path}"{current}>{text}</a>'
