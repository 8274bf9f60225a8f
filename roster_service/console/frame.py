"""What leaves the console: a screen as a page, as JSON or as CSV, and the headers of each answer."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from flask import Response, render_template

from roster_service.feeds.private_files import guard_cell
from roster_service.web.page_assets import find_address

# No inline script or style, and no other host. htmx is told to make neither.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def add_headers(response: Response) -> Response:
    """Adds the headers that every answer of the console carries."""
    response.headers.update(HEADERS)
    return response


def render_page(template: str, status: int = 200, **values: Any) -> Response:
    """Returns a page. `template`: its name without the ending; `values`: for the template."""
    text = render_template(f"{template}.html", find_asset=find_address, **values)
    return Response(text, status=status, mimetype="text/html")


def make_json(content: Any) -> Response:
    """Returns the content of a screen as JSON."""
    text = json.dumps(_to_plain(content), ensure_ascii=False, default=str, indent=1)
    return Response(text + "\n", mimetype="application/json")


def make_csv(rows: Sequence[Any], name: str) -> Response:
    """Returns rows, dataclasses or mappings by column, as CSV, and a file called `name` for the browser. No cell is a
    formula in a spreadsheet."""
    out = io.StringIO()
    writer = csv.writer(out)
    for number, row in enumerate(rows):
        values = row if isinstance(row, Mapping) else dataclasses.asdict(row)
        if number == 0:
            writer.writerow(values)
        writer.writerow([_to_cell(value) for value in values.values()])
    response = Response(out.getvalue(), mimetype="text/csv")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


def _to_plain(value: Any) -> Any:
    """Returns `value` with dictionaries in place of dataclasses, at every depth."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(name): _to_plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_to_plain(item) for item in value]
    return value


def _to_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (dict, list, tuple)):
        value = json.dumps(_to_plain(value), ensure_ascii=False, default=str)
    text = str(value)
    return guard_cell(text) if isinstance(value, str) else text
