"""The frame of every page for people: head, navigation, and the headers that let it load nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from flask import Response, request

from roster_service.web.page_assets import find_address

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
