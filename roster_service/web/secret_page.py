"""The page with which a vendor makes the secret of its client: `/client-secrets/TOKEN`.

GET changes nothing, because scanners of mail open links; the button sends POST. The service serves it to vendors; the
console, which may be a process of its own on an address of the district, has no part in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from html import escape

import sqlalchemy as sa
from flask import Flask, Response, request
from werkzeug.exceptions import NotFound

from roster_service.accounts.secret_links import LINK_PATH, SecretLink, find_link, use_link
from roster_service.auth.agreed_rights import note_ended
from roster_service.auth.scopes import TOKEN_PATH
from roster_service.db.instants import describe_instant
from roster_service.http.request_facts import get_request_facts
from roster_service.schemas.versions import list_roots
from roster_service.web.page_assets import make_page

ENDED = 410
_ASK = "Ask the district for a new link."


def register_secret_page(app: Flask, accounts: sa.Engine, counting: sa.Engine, public_url: str | None) -> None:
    """Registers the page. `accounts`: reads the link; `counting`: uses it; `public_url`: as that of the settings.
    Without one, the page names no address: whoever sends a request chooses its `Host`."""

    def answer(token: str) -> Response:
        return make(token) if request.method == "POST" else show(token)

    def show(token: str) -> Response:
        with accounts.connect() as connection:
            link = find_link(connection, token)
        if link is None:
            raise NotFound("There is no such link.")
        if link.used_at is not None or link.has_ended:
            return refuse(link)
        return make_page(f"The secret of {link.client}", _ask(link))

    def make(token: str) -> Response:
        with counting.begin() as connection:
            secret = use_link(connection, token, get_request_facts().address)
        with accounts.connect() as connection:
            link = find_link(connection, token)
        if link is None:
            raise NotFound("There is no such link.")
        if secret is None:
            return refuse(link)
        return make_page(f"The secret of {link.client}", _show_secret(link, secret, public_url), scripts=["copy.js"])

    def refuse(link: SecretLink) -> Response:
        # An agreement may be why, and the clock may go back.
        note_ended(counting)
        return make_page("This link has ended", _explain_end(link), ENDED)

    app.add_url_rule(f"{LINK_PATH}/<token>", endpoint="secret_page", view_func=answer, methods=["GET", "POST"])


def _ask(link: SecretLink) -> str:
    return (
        f"<h1>The secret of {escape(link.client)}</h1>"
        f"<p>For {escape(link.vendor)}, to read the roster as <code>{link.client_id}</code>. The "
        "button makes a new secret and shows it once; any secret from before ends. The link works once, "
        f"until {describe_instant(link.ends_at, UTC)} UTC.</p>"
        f'<form method="post" action="{escape(request.path)}"><button>Make the secret and show it</button></form>'
    )


def _explain_end(link: SecretLink) -> str:
    if link.used_at is None:
        return f"<h1>This link has ended</h1><p>Nobody has used it. {_ASK}</p>"
    used = f"{describe_instant(link.used_at, UTC)} UTC from {escape(link.used_from or 'an unknown address')}"
    return (
        f"<h1>This link was used</h1><p>The secret of <code>{link.client_id}</code> was made {used}. If it was not "
        f"you, tell the district at once: it can end the secret. {_ASK}</p>"
    )


def _show_secret(link: SecretLink, secret: str, public_url: str | None) -> str:
    paths = {"Token endpoint": TOKEN_PATH, **list_roots(link.scopes), "Documentation": "/docs"}
    facts: Sequence[tuple[str, str]] = (
        ("Client id", link.client_id),
        ("Client secret", secret),
        ("Scopes", " ".join(link.scopes)),
        *((title, public_url + path) for title, path in paths.items() if public_url),
    )
    where = "" if public_url else "<p>The letter of the district has the addresses of the service.</p>"
    rows = "".join(f'<dt>{name}</dt><dd><code class="secret">{escape(value)}</code></dd>' for name, value in facts)
    return (
        "<h1>Keep the secret now</h1><p>Nobody can show it again: the service stores a hash of it alone.</p>"
        f"<dl>{rows}</dl>{where}"
    )
