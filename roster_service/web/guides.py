"""The start page, and `/docs`: the guides of both interfaces, and a reference to read and try the OpenAPI documents."""

from __future__ import annotations

import functools
import itertools
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from flask import Flask, Response, abort, request
from markdown_it import MarkdownIt
from markdown_it.token import Token

from roster_service.auth.scopes import TOKEN_PATH
from roster_service.http.request_facts import find_root_url
from roster_service.http.stages import make_json
from roster_service.schemas.versions import VERSIONS
from roster_service.serving.params import Limits
from roster_service.settings import Settings
from roster_service.web.page_assets import make_page, register_assets

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
# The root of the addresses in the Markdown files. A guide has the address of its installation instead.
WRITTEN_ROOT = "http://127.0.0.1:8000"
# What the Markdown files say of settings, with the defaults. A guide has the values of its installation instead.
PHRASES = (
    "{default_limit:,} by default, at most {max_limit:,}",
    "limit={page_size}",
    "&quot;limit&quot;: {page_size}",
    # In a text of the shell.
    "limit\\&quot;: {page_size}",
    "A token lasts {token_seconds:,} seconds",
    "it stays readable for {retention_days:,} days",
    "tombstones are deleted after {retention_days:,} days",
    "the operator of the installation; the contact is {contact}",
)
# The folder of a checkout, and that of an installation.
WRITTEN_CONTACT = "in <code>info</code> of the OpenAPI documents, if the operator has set one"
FOLDERS = (Path(__file__).parents[2] / "docs", Path(sys.prefix) / "share" / "roster-service" / "docs")
# Name in the address -> (title, path of the document).
DOCUMENTS = {
    **{version.prefix: (version.title, f"{version.root}/openapi.json") for version in reversed(VERSIONS)},
    "vendor": ("Vendor interface", "/v1/openapi.json"),
}
REFERENCE = "/docs/reference"
REFERENCES = ", ".join(f'<a href="{REFERENCE}/{name}">{title}</a>' for name, (title, _) in DOCUMENTS.items())
INDEX = f"""<h1>Documentation</h1>
<p>This service gives roster data to programs: by OneRoster 1.1 and 1.2, and by an interface for vendors
who need the students of a district alone.</p>
<ul>
<li><a href="/docs/guide">Guide</a>: the first calls, tokens, scopes, paging, filters, deltas, limits, errors</li>
<li>Reference, to read and to try: {REFERENCES}</li>
<li><a href="/docs/conformance">Conformance</a>: the requirements of OneRoster, with the test of each</li>
</ul>
"""


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


@dataclass(frozen=True)
class Guide:
    """A guide: a Markdown file."""

    title: str
    file: str


GUIDES = {
    "guide": Guide("Guide", "vendors.md"),
    "conformance": Guide("Conformance", "conformance.md"),
}


@functools.cache
def render_guide(name: str) -> str:
    """Returns the HTML of a guide, with `WRITTEN_ROOT` as the root of its addresses. Raises FileNotFoundError if the
    installation has no Markdown files."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(_read(GUIDES[name]))
    headings = list(_number_headings(tokens))
    anchors = {anchor for _, anchor, _ in headings}
    for token in tokens:
        token.children = None if token.children is None else list(_relink(token.children, anchors))
    entries = (f'<li><a href="#{anchor}">{escape(text)}</a></li>' for tag, anchor, text in headings if tag != "h1")
    contents = f'<nav class="contents" aria-label="On this page"><ul>{"".join(entries)}</ul></nav>'
    html = str(parser.renderer.render(tokens, parser.options, {}))
    return _make_scrollable(html).replace("</h1>", f"</h1>{contents}", 1)


def _read(guide: Guide) -> str:
    folder = next((folder for folder in FOLDERS if (folder / guide.file).is_file()), FOLDERS[-1])
    return (folder / guide.file).read_text(encoding="utf-8")


def put_values(html: str, settings: Settings) -> str:
    """Returns a guide with the values of an installation in place of the defaults."""
    defaults, values = (list_values(each) for each in (Settings(), settings))
    for phrase in PHRASES:
        html = html.replace(phrase.format(**defaults), phrase.format(**values))
    return html


def list_values(settings: Settings) -> dict[str, object]:
    """Returns the values of the names in `PHRASES`, for an installation with these settings."""
    contact = WRITTEN_CONTACT if settings.contact is None else escape(settings.contact)
    # The samples ask for pages of this size.
    page_size = min(1000, settings.max_limit)
    default_limit = Limits(settings.max_limit).default_limit
    return {**vars(settings), "contact": contact, "page_size": page_size, "default_limit": default_limit}


def _number_headings(tokens: Sequence[Token]) -> Iterator[tuple[str, str, str]]:
    """Yields (tag, anchor, text) of each heading, to which it gives the anchor as its id."""
    for token, inline in itertools.pairwise(tokens):
        if token.type == "heading_open":
            text = re.sub(r"[`*]", "", inline.content)
            anchor = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
            token.attrSet("id", anchor)
            yield token.tag, anchor, text


def _relink(children: Sequence[Token], anchors: set[str]) -> Iterator[Token]:
    """Yields the parts of a text, without the links to pages that are not served."""
    served = True
    for child in children:
        if child.type == "link_open":
            address = str(child.attrGet("href"))
            page = next((name for name, guide in GUIDES.items() if address.partition("#")[0] == guide.file), None)
            if page is not None:
                child.attrSet("href", f"/docs/{page}")
            served = page is not None or address.startswith("https:") or address.removeprefix("#") in anchors
        if served or child.type not in ("link_open", "link_close"):
            yield child


def _make_scrollable(html: str) -> str:
    """Lets the keyboard scroll wide tables and blocks of code."""
    tables = html.count("<table>")
    for number in range(1, tables + 1):
        opened = f'<div class="scroll" role="region" aria-label="Table {number}" tabindex="0"><table >'
        html = html.replace("<table>", opened, 1)
    return (
        html.replace("</table>", "</table></div>").replace("<table >", "<table>").replace("<pre>", '<pre tabindex="0">')
    )


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
