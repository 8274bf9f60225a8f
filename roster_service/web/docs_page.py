"""`/docs`: the guides of both interfaces, and a reference to read and try the OpenAPI documents."""

from __future__ import annotations

from html import escape

from flask import Flask, Response, abort

from roster_service.http.request_facts import find_root_url
from roster_service.schemas.versions import VERSIONS
from roster_service.settings import Settings
from roster_service.web.guides import GUIDES, WRITTEN_ROOT, put_values, render_guide
from roster_service.web.page_assets import make_page, register_assets

# Name in the address -> (title, path of the document).
DOCUMENTS = {
    **{version.prefix: (version.title, f"{version.root}/openapi.json") for version in reversed(VERSIONS)},
    "vendor": ("Vendor interface", "/v1/openapi.json"),
}
REFERENCE = "/docs/reference"


def register_docs(app: Flask, settings: Settings) -> None:
    """Registers the pages and the files that they load. `settings`: of the installation; guides have its values."""

    def show_index() -> Response:
        return make_page("Documentation", INDEX)

    def show_guide(name: str) -> Response:
        if name not in GUIDES:
            abort(404)
        root = find_root_url(settings.public_url)
        guide = put_values(render_guide(name), settings).replace(WRITTEN_ROOT, escape(root))
        return make_page(GUIDES[name].title, guide)

    def show_reference(name: str) -> Response:
        if name not in DOCUMENTS:
            abort(404)
        title, document = DOCUMENTS[name]
        choices = "".join(_make_choice(each, name) for each in DOCUMENTS)
        body = (
            f"<h1>Reference: {title}</h1>\n"
            f'<nav class="contents" aria-label="Documents"><ul>{choices}</ul></nav>\n'
            f'<div id="reference" data-document="{document}"></div>'
            f'<noscript><p>This page needs JavaScript; <a href="{document}">the document</a> does not.</p></noscript>'
        )
        return make_page(
            f"Reference: {title}",
            body,
            styles=("swagger-ui.css", "reference.css"),
            scripts=("swagger-ui-bundle.js", "reference.js"),
            wide=True,
        )

    register_assets(app)
    for path, name, view in (
        ("/docs", "docs", show_index),
        ("/docs/<name>", "guide", show_guide),
        (REFERENCE, "reference", lambda: show_reference(next(iter(DOCUMENTS)))),
        (f"{REFERENCE}/<name>", "reference_of", show_reference),
    ):
        app.add_url_rule(path, endpoint=name, view_func=view, methods=["GET"])


def _make_choice(name: str, shown: str) -> str:
    title, document = DOCUMENTS[name]
    current = ' aria-current="page"' if name == shown else ""
    as_json = f'<a href="{document}" aria-label="{title} as JSON">JSON</a>'
    return f'<li><a href="{REFERENCE}/{name}"{current}>{title}</a> ({as_json})</li>'


REFERENCES = ", ".join(f'<a href="{REFERENCE}/{name}">{title}</a>' for name, (title, _) in DOCUMENTS.items())
INDEX = f"""<h1>Documentation</h1>
<p>This service gives roster data to programs: by OneRoster 1.1 and 1.2, and by an interface of two paths for vendors
who need the students of a district alone.</p>
<ul>
<li><a href="/docs/guide">Guide</a>: the first calls, tokens, scopes, paging, filters, deltas, limits, errors</li>
<li>Reference, to read and to try: {REFERENCES}</li>
<li><a href="/docs/conformance">Conformance</a>: the requirements of OneRoster, with the test of each</li>
</ul>
"""
