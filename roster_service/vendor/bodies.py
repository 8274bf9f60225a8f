"""The JSON body of a request, read and held against its schema; every refusal names the key, none repeats a value."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any, NoReturn

from flask import request
from marshmallow import Schema, ValidationError

from roster_service.errors import Problem, RefusedRequestError


def read_body(schema: Schema) -> dict[str, Any]:
    """The loaded body. RefusedRequestError (PARAMETER) where it is no JSON object of this schema."""
    if request.mimetype != "application/json":
        raise refuse("the `Content-Type` must be application/json")
    if request.query_string:
        raise refuse("this path takes no query parameters; they belong into the body")
    try:
        body = json.loads(request.get_data().decode(), object_pairs_hook=_read_members, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise refuse("the body is no JSON") from None
    if not isinstance(body, dict):
        raise refuse("the body must be a JSON object")
    try:
        loaded: dict[str, Any] = schema.load(body)
    except ValidationError as error:
        raise refuse(_describe(error.messages, schema)) from None
    return loaded


def refuse(description: str) -> RefusedRequestError:
    """The refusal of a body."""
    return RefusedRequestError(Problem.PARAMETER, description)


def _read_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twin = next(name for name in names if names.count(name) > 1)
        raise refuse(f"the key `{_show(twin)}` is given more than once")
    return members


def _refuse_constant(_word: str) -> NoReturn:
    raise ValueError("no JSON")


def _show(name: str) -> str:
    """A key that the caller wrote: short, and of characters that can be sent back."""
    return name[:80].encode(errors="replace").decode()


def _describe(messages: Any, schema: Schema) -> str:
    return "; ".join(_describe_key(name, trouble, schema) for name, trouble in list(messages.items())[:5])


def _describe_key(name: str, trouble: Any, schema: Schema) -> str:
    if name not in schema.fields:
        near = difflib.get_close_matches(name, schema.fields, 1)
        known = ", ".join(f"`{key}`" for key in schema.fields)
        return f"there is no key `{_show(name)}`; " + (f"did you mean `{near[0]}`?" if near else f"known: {known}")
    if isinstance(trouble, Mapping):
        index, [first, *_] = next(iter(trouble.items()))
        return f"the key `{name}`, item {index}: {first}"
    return f"the key `{name}`: {trouble[0]}"
