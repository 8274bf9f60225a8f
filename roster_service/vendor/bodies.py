"""Reads the JSON body of a request and checks it against a schema. Refusals name the key, and never quote a value."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any, NoReturn

from flask import request
from marshmallow import Schema, ValidationError

from roster_service.errors import Problem, RefusedRequestError


def read_body(schema: Schema) -> dict[str, Any]:
    """Returns the body of the current request, as the schema loads it.

    Raises RefusedRequestError (PARAMETER) if the body is not a JSON object of this schema, and for query parameters.
    """
    if request.mimetype != "application/json":
        raise make_refusal("the `Content-Type` must be application/json")
    require_no_parameter("; put them into the body")
    try:
        body = json.loads(request.get_data().decode(), object_pairs_hook=_read_members, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise make_refusal("the body is no JSON") from None
    if not isinstance(body, dict):
        raise make_refusal("the body must be a JSON object")
    try:
        loaded: dict[str, Any] = schema.load(body)
    except ValidationError as error:
        raise make_refusal(_describe(error.messages, schema)) from None
    return loaded


def require_no_parameter(hint: str = "") -> None:
    """Raises RefusedRequestError (PARAMETER) if the current request has query parameters. `hint`: what to do."""
    if request.query_string:
        raise make_refusal(f"this path takes no query parameters{hint}")


def make_refusal(description: str) -> RefusedRequestError:
    """Returns the error that refuses a body or a parameter."""
    return RefusedRequestError(Problem.PARAMETER, description)


def _read_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise make_refusal(f"the key `{_clean(repeated)}` is given more than once")
    return members


def _refuse_constant(_word: str) -> NoReturn:
    raise ValueError("no JSON")


def _clean(name: str) -> str:
    """Returns a key of the caller's body, cut, and without lone surrogates, which UTF-8 cannot encode."""
    return name[:80].encode(errors="replace").decode()


def _describe(messages: Any, schema: Schema) -> str:
    return "; ".join(_describe_key(name, reasons, schema) for name, reasons in list(messages.items())[:5])


def _describe_key(name: str, reasons: Any, schema: Schema) -> str:
    if name not in schema.fields:
        near = difflib.get_close_matches(name, schema.fields, 1)
        known = ", ".join(f"`{key}`" for key in schema.fields)
        return f"there is no key `{_clean(name)}`; " + (f"did you mean `{near[0]}`?" if near else f"known: {known}")
    if isinstance(reasons, Mapping):
        index, [first, *_] = next(iter(reasons.items()))
        return f"the key `{name}`, item {index}: {first}"
    return f"the key `{name}`: {reasons[0]}"
