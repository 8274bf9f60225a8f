"""The served OpenAPI document as a judge of answers: status, content type, headers, and the body's schema."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from jsonschema import Draft202012Validator, FormatChecker

RATE_HEADERS = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
FORMATS = FormatChecker(formats=())


@FORMATS.checks("date-time", raises=ValueError)
def is_instant(value: object) -> bool:
    """UTC, milliseconds, and a real moment."""
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", str(value), re.ASCII):
        return False
    return datetime.fromisoformat(str(value)).year > 0


@FORMATS.checks("date", raises=ValueError)
def is_day(value: object) -> bool:
    """A real day."""
    return (
        re.fullmatch(r"\d{4}-\d\d-\d\d", str(value), re.ASCII) is not None and date.fromisoformat(str(value)).year > 0
    )


@FORMATS.checks("url", raises=ValueError)
def is_address(value: object) -> bool:
    """An absolute address, percent-encoded throughout."""
    parts = urlsplit(str(value))
    return parts.scheme in ("http", "https") and bool(parts.netloc) and re.fullmatch(r"[!-~]+", str(value)) is not None


# Every format that the documents may use has a checker above, so none is passed over in silence.
KNOWN_FORMATS = frozenset(FORMATS.checkers)


def read_json(body: bytes) -> Any:
    """The body, parsed; a member that stands in an object twice is an error, because JSON here is made as text."""

    def refuse_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        assert len(set(names)) == len(names), f"members twice in one object: {names}"
        return dict(pairs)

    return json.loads(body.decode("utf-8"), object_pairs_hook=refuse_twins)


def walk(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every (member name, value) inside a JSON value; items of a list go by the list's name."""
    yield name, value
    if isinstance(value, dict):
        for inner, item in value.items():
            yield from walk(item, inner)
    elif isinstance(value, list):
        for item in value:
            yield from walk(item, name)


INLINED = re.compile("#/components/(parameters|responses|headers)/(.*)")


def inline(document: dict[str, Any]) -> dict[str, Any]:
    """The document with its parameters, responses and headers in the places of the references to them."""

    def replace(value: Any) -> Any:
        if isinstance(value, list):
            return [replace(item) for item in value]
        if not isinstance(value, dict):
            return value
        found = INLINED.fullmatch(str(value.get("$ref")))
        if found is not None:
            return replace(document["components"][found[1]][found[2]])
        return {name: replace(item) for name, item in value.items()}

    return {**document, "paths": replace(document["paths"])}


class Document:
    """One version's document."""

    def __init__(self, root: str, document: dict[str, Any]) -> None:
        self.root = root
        self.json = document
        inlined = inline(document)
        # The paths below the root, by the names of the specification: the document has the names of the standard.
        self.documented = {
            re.sub(r"\{(\w+)SourcedId\}", r"{\1Id}", path.removeprefix(root)): path
            for path in inlined["paths"]
            if path.startswith(f"{root}/")
        }
        self.items = {template: inlined["paths"][path] for template, path in self.documented.items()}
        self.paths = {template: item["get"] for template, item in self.items.items()}
        # Whoever asks for no `fields` gets whole records: the first alternative, required members and all.
        self._bases = {False: inlined, True: _whole_records(inlined)}
        self._validators: dict[tuple[str, int, bool], Draft202012Validator] = {}
        self._held: set[tuple[str, int, bool, bytes]] = set()

    def find(self, path: str) -> str | None:
        """The documented path that an address means."""
        segments = path.split("/")
        for template in self.paths:
            wanted = template.split("/")
            if len(wanted) == len(segments) and all(
                piece == given or (piece.startswith("{") and given)
                for piece, given in zip(wanted, segments, strict=True)
            ):
                return template
        return None

    def hold(self, path: str, query: str, method: str, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Raises AssertionError where an answer is not what the document says."""
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store", (status, dict(headers))
        if method == "HEAD" or status == 304:
            assert body == b""
            return
        assert headers["Content-Type"] == "application/json"
        template = self.find(path)
        found = read_json(body)
        # None of them where the token names no vendor, or the counters cannot be reached.
        assert len([name for name in RATE_HEADERS if name in headers]) in (0, len(RATE_HEADERS))
        if status != 200:
            self._hold_failure(template, status, headers, found)
        elif template is None:
            raise AssertionError(f"{path} answers 200 and is not documented")
        else:
            self._hold_records(template, query, headers, found)
        if template is not None:
            is_whole = {"fields", "fields[]"}.isdisjoint(parse_qs(query, keep_blank_values=True))
            self._hold_schema(template, status, is_whole, body, found)

    def _hold_failure(self, template: str | None, status: int, headers: Mapping[str, str], found: Any) -> None:
        assert set(found) == {"statusInfoSet"}
        assert (found["statusInfoSet"]["imsx_codeMajor"], found["statusInfoSet"]["imsx_severity"]) == (
            "failure",
            "error",
        )
        assert template is not None or status in (400, 404)
        if template is not None:
            documented = self.paths[template]["responses"][str(status)].get("headers", {})
            assert ("Retry-After" in headers) is ("Retry-After" in documented) is (status in (429, 503))

    def _hold_records(self, template: str, query: str, headers: Mapping[str, str], found: Any) -> None:
        for name, header in self.paths[template]["responses"]["200"]["headers"].items():
            kind = header["schema"]
            if name in headers and kind["type"] == "integer":
                assert re.fullmatch("[0-9]+", headers[name])
            elif name in headers and kind.get("format"):
                assert FORMATS.conforms(headers[name], kind["format"])
            else:
                assert name in headers or name in ("Link", *RATE_HEADERS), name
        for name, value in walk(found):
            assert value is not None, f"{name} is null"
            assert name != "password"
        if "X-Total-Count" in headers:
            (records,) = (value for key, value in found.items() if key != "statusInfoSet")
            limits = parse_qs(query).get("limit", ["100"])
            number = len(records) if isinstance(records, list) else 1
            assert number <= min(int(limits[0]), int(headers["X-Total-Count"]))
        info = found.get("statusInfoSet")
        if info is not None:
            assert (info["imsx_codeMajor"], info["imsx_severity"]) == ("success", "warning")

    def _hold_schema(self, template: str, status: int, whole: bool, body: bytes, found: Any) -> None:
        key = (template, status, whole)
        if (*key, body) in self._held:
            return
        if key not in self._validators:
            responses = self.paths[template]["responses"]
            assert str(status) in responses, f"{template} is not documented to answer {status}: {body!r}"
            pointer = "/".join(
                part.replace("~", "~0").replace("/", "~1")
                for part in (
                    "paths",
                    self.documented[template],
                    "get",
                    "responses",
                    str(status),
                    "content",
                    "application/json",
                )
            )
            self._validators[key] = Draft202012Validator(
                {**self._bases[whole], "$ref": f"#/{pointer}/schema"}, format_checker=FORMATS
            )
        for error in self._validators[key].iter_errors(found):
            raise AssertionError(f"{template} {status}: {error.message} at {error.json_path}")
        self._held.add((*key, body))


def _whole_records(document: dict[str, Any]) -> dict[str, Any]:
    """The document where `anyOf` (the whole record, or a selection of its fields) means the whole record."""
    narrowed = copy.deepcopy(document)
    for _, value in list(walk(narrowed["components"]["schemas"])):
        if isinstance(value, dict) and "anyOf" in value:
            value.update(value.pop("anyOf")[0])
    return narrowed
