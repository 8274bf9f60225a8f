"""`/transparency`: which vendors get what of each district, for everybody, as a page and as JSON.

The process that serves vendors shows it, with the role that reads accounts; it reads one table (accounts/transparency).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from html import escape
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from flask import Flask, Response, request
from werkzeug.exceptions import NotFound

from roster_service.accounts.transparency import PublishedDistrict, list_published
from roster_service.db.instants import describe_day
from roster_service.web.page_assets import make_page

PATH = "/transparency"
_JSON = ".json"
# It may be as old as that.
_KEPT = "public, max-age=300"
_NOBODY = "<p>No vendor gets anything.</p>"
# The member of the JSON -> its words; what is blank is left out.
_WORDS = {
    "purpose": "Purpose",
    "elements": "What it gets of people",
    "metadata": "Of further columns of the school’s records, only",
    "schools": "Schools",
    "since": "Since",
    "until": "Until",
    "contact": "Contact",
    "address": "Address",
    "subcontractors": "Subcontractors",
    "deletion": "Deletion",
    "link": "Agreement",
}


def register_transparency(app: Flask, accounts: sa.Engine) -> None:
    """Registers the pages. `accounts`: of the role that reads accounts."""

    def answer(district: str | None = None) -> Response:
        with accounts.connect() as connection:
            found = list_published(connection)
        if found is None:
            raise NotFound("There is no such page.")
        wanted = (district or PATH).removesuffix(_JSON)
        if district is not None:
            found = [one for one in found if one.id == wanted]
            if not found:
                raise NotFound("There is no such page.")
        if request.path.endswith(_JSON):
            body = json.dumps([asdict(one) for one in found], ensure_ascii=False)
            response = Response(body, mimetype="application/json")
        else:
            response = make_page("Vendors", _show(found, is_one=district is not None))
        response.headers["Cache-Control"] = _KEPT
        response.add_etag()
        response.make_conditional(request)
        return response

    # The id may have a slash, as those of the rostering interface.
    for path in (PATH, PATH + _JSON, f"{PATH}/<id:district>"):
        app.add_url_rule(path, endpoint=path, view_func=answer, methods=["GET"])


def _show(found: Sequence[PublishedDistrict], *, is_one: bool) -> str:
    if not is_one and len(found) > 1:
        links = "".join(f'<li><a href="{PATH}/{quote(one.id, safe="")}">{escape(one.name)}</a></li>' for one in found)
        return f"<h1>Vendors by district</h1><ul>{links}</ul>"
    if not found:
        return f"<h1>Vendors</h1>{_NOBODY}"
    [district] = found
    listed = "".join(f"<h2>{escape(body['name'])}</h2><dl>{_list_facts(body)}</dl>" for body in district.vendors)
    lead = "Companies that may get records of people from this service, and what they may get."
    return f"<h1>Vendors of {escape(district.name)}</h1><p>{lead}</p>{listed or _NOBODY}"


def _list_facts(body: Mapping[str, Any]) -> str:
    shown = {name: words for name, words in _WORDS.items() if body[name] or name == "schools"}
    return "".join(f"<dt>{words}</dt><dd>{_show_fact(name, body[name])}</dd>" for name, words in shown.items())


def _show_fact(name: str, value: Any) -> str:
    if name == "schools" and not value:
        return "all of the district"
    if isinstance(value, list):
        return escape(", ".join(value))
    if name in ("since", "until"):
        return describe_day(date.fromisoformat(value))
    shown = escape(value)
    return f'<a href="{shown}" rel="noreferrer">{shown}</a>' if name == "link" else shown
