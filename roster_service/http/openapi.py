"""What the OpenAPI documents of all interfaces share: how flask-smorest makes and serves them, and their examples.

The examples are records of a made-up district and refusals, as the service gave them. `python -m
tests.openapi.examples_snapshot` asks the service for them and writes `examples.json`; a test compares the file with the
service.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from flask import Flask, Response
from flask_smorest import Api, Blueprint
from flask_smorest.spec.plugins import FlaskPlugin
from marshmallow import Schema, fields

from roster_service.errors import AGREEMENT_HEADER
from roster_service.http.request_facts import find_root_url

FILE = "examples.json"
# The root of every address in the examples. A served document has the address of its installation instead.
EXAMPLE_ROOT = "https://roster.example.org"

# Schema -> field -> value.
FieldExamples = Mapping[str, Mapping[str, Any]]
OPENAPI_VERSION = "3.0.3"
LICENSE = {"name": "MIT", "url": "https://opensource.org/license/mit"}


@functools.cache
def load_examples() -> Mapping[str, Any]:
    """Returns the examples: `ids` by the name of their collection; for each document, its `records` and `refusals`."""
    found: Mapping[str, Any] = json.loads(resources.files(__package__).joinpath(FILE).read_text())
    return found


def collect_field_examples(pairs: Sequence[tuple[Schema, Sequence[Mapping[str, Any]]]]) -> FieldExamples:
    """Returns an example of each field that has a value in one of the records of its schema, and of nested schemas."""
    found: dict[str, dict[str, Any]] = {}
    for schema, records in pairs:
        _collect(schema, records, found)
    return found


def _collect(schema: Schema, records: Sequence[Mapping[str, Any]], found: dict[str, dict[str, Any]]) -> None:
    own = found.setdefault(type(schema).__name__, {})
    for name, field in schema.fields.items():
        key = field.data_key or name
        values = [record[key] for record in records if key in record]
        inner = field.inner if isinstance(field, fields.List) else field
        if isinstance(inner, fields.Nested):
            _collect(inner.schema, [item for value in values for item in _list(value)], found)
        elif values:
            own.setdefault(key, values[0])


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


class NamedPaths(FlaskPlugin):  # type: ignore[misc]  # flask-smorest has no types
    """Writes the paths of a document. They are whole, below one server, because generators of clients follow no server
    of a single operation, and the token endpoint is not below the root of an interface."""

    def __init__(self, path_names: Mapping[str, str]) -> None:
        """`path_names`: the names of path parameters that the document calls otherwise than the rules of Flask."""
        super().__init__()
        self._path_names = path_names

    def path_helper(self, rule: Any = None, **_more: Any) -> str | None:
        """Returns the path of a rule of Flask; None for a path that is given as it is."""
        if rule is None:
            return None
        path: str = self.flaskpath2openapi(rule.rule)
        for name, documented in self._path_names.items():
            path = path.replace(f"{{{name}}}", f"{{{documented}}}")
        return path


class DocumentApi(Api):  # type: ignore[misc]
    """The OpenAPI document of an interface, without the error handlers, default responses, headers and tags that
    flask-smorest adds to every document."""

    DEFAULT_ERROR_RESPONSE_NAME = None

    def __init__(
        self,
        app: Flask,
        *,
        name: str,
        root: str,
        public_url: str | None,
        info: Mapping[str, Any],
        examples: FieldExamples,
        path_names: Mapping[str, str],
        contact: str | None,
    ) -> None:
        """`name`: a prefix for the settings of flask-smorest; `root`: the path of the interface; `public_url`: the
        address that clients use, None for the address of each request; `examples`: of the fields of its schemas;
        `path_names`: see `NamedPaths`; `contact`: whom clients may ask, None for nobody."""
        self._public_url = public_url
        prefix = f"{name.upper()}_"
        app.config |= {
            f"{prefix}API_TITLE": info["title"],
            f"{prefix}API_VERSION": info["version"],
            f"{prefix}OPENAPI_VERSION": OPENAPI_VERSION,
            f"{prefix}OPENAPI_URL_PREFIX": root,
            f"{prefix}OPENAPI_JSON_PATH": "openapi.json",
            f"{prefix}API_SPEC_OPTIONS": {
                "info": {**info, **describe_contact(contact), "license": LICENSE},
                "servers": [{"url": EXAMPLE_ROOT}],
            },
        }
        super().__init__(app, config_prefix=prefix, spec_kwargs={"flask_plugin": NamedPaths(path_names)})
        self.ma_plugin.converter.add_attribute_function(_make_example_function(examples))

    def register_blueprint(self, blueprint: Blueprint) -> None:
        """Registers a blueprint in the application, and its paths in the document."""
        self._app.register_blueprint(blueprint)
        blueprint.register_views_in_doc(self, self._app, self.spec, name=blueprint.name, parameters=None)

    def _register_error_handlers(self) -> None:
        """Registers none: flask-smorest's handlers would change the error bodies of the whole application."""

    def _register_responses(self) -> None:
        """Registers none: each interface describes its responses."""

    def _register_etag_headers(self) -> None:
        """Registers none."""

    def _register_pagination_header(self) -> None:
        """Registers none: it would add a schema that no response has."""

    def show_document(self) -> Response:
        """Returns the document, with the address that the client uses."""
        root = find_root_url(self._public_url)
        text = json.dumps(self.spec.to_dict(), ensure_ascii=False, indent=1)
        return Response(text.replace(EXAMPLE_ROOT, json.dumps(root)[1:-1]), mimetype="application/json")

    _openapi_json = show_document


def describe_contact(contact: str | None) -> dict[str, Any]:
    """Returns the `contact` of `info`. `contact`: an e-mail address or a URL."""
    if contact is None:
        return {}
    return {"contact": {"email" if "@" in contact and "://" not in contact else "url": contact}}


AGREEMENT_HEADERS = {
    AGREEMENT_HEADER: {
        "description": "Why the agreement does not hold, in words: `ended on` or `begins on` and a day, or another "
        "reason",
        "schema": {"type": "string"},
    }
}


def refer(kind: str, name: str) -> dict[str, str]:
    """Returns a reference to a component of a document."""
    return {"$ref": f"#/components/{kind}/{name}"}


def make_body(schema: Any, **more: Any) -> dict[str, Any]:
    """Returns the OpenAPI `content` of a JSON body. `more`: its examples."""
    return {"application/json": {"schema": schema, **more}}


def _make_example_function(examples: FieldExamples) -> Any:
    def give_example(_converter: Any, field: fields.Field[Any], ret: Any) -> dict[str, Any]:
        """Returns the example of a field, as apispec merges it into the description of the field."""
        own = examples.get(type(field.parent).__name__, {})
        name = field.data_key or str(field.name)
        return {"example": own[name]} if name in own else {}

    return give_example
