"""The files that pages load: stylesheets and scripts, by an address with their hash, so that browsers keep them."""

from __future__ import annotations

import functools
import hashlib
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
