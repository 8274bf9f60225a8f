"""The OpenAPI documents describe every field, and give examples that the service really answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from flask import Flask
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from roster_service.app import create_app
from roster_service.errors import ErrorProfile
from roster_service.settings import Settings
from tests.conftest import close_app
from tests.contract.client import ROOTS
from tests.contract.conftest import SECRET_KEY
from tests.contract.document import FORMATS, inline, walk

from .examples_snapshot import SNAPSHOT, ask_examples

DOCUMENTS = {**ROOTS, "v1": "/v1"}
each_document = pytest.mark.parametrize("name", DOCUMENTS)
# Of the standard, without data in the service; and free-form objects.
WITHOUT_EXAMPLE = {"resources", "schools", "keys"}


@pytest.fixture(scope="module", params=list(ErrorProfile))
def app(request: pytest.FixtureRequest, make_database: Callable[[], str]) -> Iterator[Flask]:
    """An application with each error profile."""
    made = create_app(Settings(secret_key=SECRET_KEY, v1p2_errors=request.param), make_database())
    yield made
    close_app(made)


def read_document(app: Flask, name: str) -> dict[str, Any]:
    """A served document."""
    found: dict[str, Any] = json.loads(app.test_client().get(f"{DOCUMENTS[name]}/openapi.json").data)
    return found


@each_document
def test_the_document_is_openapi(app: Flask, name: str) -> None:
    validate(read_document(app, name))


@each_document
def test_every_field_has_a_description_and_an_example(app: Flask, name: str) -> None:
    for schema, model in read_document(app, name)["components"]["schemas"].items():
        for field, described in model["properties"].items():
            assert described.get("description"), (schema, field)
            nested = {"allOf", "anyOf"} & set(described) or "$ref" in json.dumps(described.get("items"))
            unknown = field in WITHOUT_EXAMPLE or schema == "ResourceRef"
            assert nested or unknown or "example" in described, (schema, field)


# What a consumer does with a header, in the words of both interfaces.
DEEDS = {
    "X-Roster-As-Of": "of several answers, keep the earliest",
    "X-Roster-Deletions-Since": "delete those that are not among them",
    "RateLimit-Reset": "until the oldest of them leaves the window",
    "Retry-After": "to wait",
}


@each_document
def test_a_header_says_what_to_do_with_it(app: Flask, name: str) -> None:
    paths = inline(read_document(app, name))["paths"].values()
    answers = [answer for path in paths for operation in path.values() for answer in operation["responses"].values()]
    found = {
        (header, answer["headers"][header]["description"]) for answer in answers for header in answer.get("headers", {})
    }
    for header, deed in DEEDS.items():
        texts = [text for name, text in found if name == header]
        assert texts, header
        assert all(deed in text for text in texts), texts


@each_document
def test_every_example_is_valid(app: Flask, name: str) -> None:
    document = read_document(app, name)
    for schema, model in document["components"]["schemas"].items():
        for field, described in model["properties"].items():
            if "example" in described:
                assert_valid(document, described, described["example"]), (schema, field)
    for _, content in walk(inline(document)["paths"], "paths"):
        if isinstance(content, dict) and "schema" in content:
            for example in list_examples(content):
                assert_valid(document, content["schema"], example)


def list_examples(content: Mapping[str, Any]) -> list[Any]:
    """The examples of a body or a parameter."""
    alone = [content["example"]] if "example" in content else []
    return alone + [example["value"] for example in content.get("examples", {}).values()]


def assert_valid(document: Mapping[str, Any], schema: Mapping[str, Any], value: Any) -> None:
    """Raises AssertionError for a value that is not of the schema."""
    for error in Draft202012Validator({**document, **schema}, format_checker=FORMATS).iter_errors(value):
        raise AssertionError(f"{error.message} at {error.json_path}")


def list_sent_texts(document: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(name, schema) of each free text that a request of the rosters may have in its query or body."""
    for path, item in inline(document)["paths"].items():
        for operation in item.values() if path.startswith(tuple(DOCUMENTS.values())) else ():
            query = {it["name"]: it["schema"] for it in operation.get("parameters", ()) if it["in"] == "query"}
            content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            body = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
            model = document["components"]["schemas"][body]["properties"] if body else {}
            for name, schema in (query | model).items():
                if schema["type"] == "string" or schema.get("items", {}).get("type") == "string":
                    yield name, schema


@each_document
def test_no_text_that_is_sent_may_hold_a_nul(app: Flask, name: str) -> None:
    """The service refuses it, so a request that the document makes has none."""
    document, found = read_document(app, name), set()
    for text, schema in list_sent_texts(document):
        found.add(text)
        validator = Draft202012Validator(schema, format_checker=FORMATS)
        for value in ("a\0b", "\0"):
            assert not validator.is_valid([value] if schema["type"] == "array" else value), text
    expected = {"districtlea", "schools", "include", "email", "password", "modifiedSince"}
    assert found == (expected if name == "v1" else {"filter", "sort", "orderBy", "fields"})


@each_document
def test_every_refusal_has_an_example(app: Flask, name: str) -> None:
    for path, item in inline(read_document(app, name))["paths"].items():
        for operation in item.values():
            for status, response in operation["responses"].items():
                if int(status) >= 400:
                    assert list_examples(response["content"]["application/json"]), (path, status)


def test_the_names_for_filter_sort_and_fields_are_listed(app: Flask) -> None:
    parameters = inline(read_document(app, "v1p2"))["paths"][f"{ROOTS['v1p2']}/users"]["get"]["parameters"]
    described = {parameter["name"]: parameter["description"] for parameter in parameters}
    assert "| `roles.role` | text, any of several | `=` `!=` `>` `>=` `<` `<=` `~` |" in described["filter"]
    assert "| `enabledUser` | flag | `=` `!=` |" in described["filter"]
    assert "| `metadata.KEY` | text |" in described["filter"]
    assert "`familyName`" in described["sort"]
    assert "`grades`" not in described["sort"]
    assert "`userProfiles`" in described["fields"]


def test_the_examples_are_what_the_service_answers(make_database: Callable[[], str]) -> None:
    assert json.loads(SNAPSHOT.read_text()) == ask_examples(make_database())
