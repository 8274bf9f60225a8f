"""A client of the rostering interface that holds every answer against the served document, so no test can forget it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import quote, urlencode

from flask import Flask
from werkzeug.test import TestResponse

from .document import Document, read_json

ROOTS = {"v1p1": "/ims/oneroster/v1p1", "v1p2": "/ims/oneroster/rostering/v1p2"}
VERSIONS = tuple(ROOTS)

CORE = "roster-core.readonly"
FULL = "roster.readonly"
DEMOGRAPHICS = "roster-demographics.readonly"
GUARDIANS = "guardians.readonly"
GUARDIANS_METADATA = "guardians-metadata.readonly"
STUDENTS_METADATA = "students-metadata.readonly"
DEMOGRAPHIC_METADATA = "demographic-metadata.readonly"
ORGS_METADATA = "orgs-metadata.readonly"
SCOPES = (
    CORE,
    FULL,
    DEMOGRAPHICS,
    GUARDIANS,
    GUARDIANS_METADATA,
    STUDENTS_METADATA,
    DEMOGRAPHIC_METADATA,
    ORGS_METADATA,
)

# What a request sends as its query: raw text as it stands, or pairs that are percent-encoded.
Query = str | Mapping[str, str] | Sequence[tuple[str, str]] | None
# The token of the vendor and the scopes that the call names; any other text is sent as it is, None sends no token.
OWN = "the vendor's own"


@dataclass(frozen=True)
class Answer:
    """What came back, already checked."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @cached_property
    def json(self) -> Any:
        """The body, parsed."""
        return read_json(self.body)

    @property
    def info(self) -> dict[str, str] | None:
        """The `statusInfoSet`, where there is one."""
        found: dict[str, str] | None = self.json.get("statusInfoSet")
        return found

    @property
    def minor(self) -> str | None:
        """Its `imsx_codeMinor`."""
        return None if self.info is None else self.info["imsx_codeMinor"]

    @property
    def description(self) -> str:
        """Its `imsx_description`."""
        assert self.info is not None, "the answer says nothing beside its records"
        return self.info["imsx_description"]

    @property
    def key(self) -> str:
        """The wrapper key of the records."""
        (key,) = (name for name in self.json if name != "statusInfoSet")
        return str(key)

    @property
    def records(self) -> list[dict[str, Any]]:
        """The records of a collection, in order; one for a single record."""
        assert self.status == 200, (self.status, self.body)
        found = self.json[self.key]
        return found if isinstance(found, list) else [found]

    @property
    def ids(self) -> list[str]:
        """The sourcedIds of the records, in order."""
        return [record["sourcedId"] for record in self.records]

    @property
    def total(self) -> int:
        """The count of all pages."""
        return int(self.headers["X-Total-Count"])

    @property
    def links(self) -> dict[str, str]:
        """The addresses of the `Link` header by relation, split on commas as plain clients do."""
        header = self.headers.get("Link", "")
        parts = [re.fullmatch(r' ?<([^<>]*)>; rel="([a-z]+)"', part) for part in header.split(",") if header]
        assert all(parts), header
        return {part[2]: part[1] for part in parts if part is not None}


def encode(query: Query) -> str:
    """The query as it is sent."""
    if query is None or isinstance(query, str):
        return query or ""
    pairs: Iterable[tuple[str, str]] = query.items() if isinstance(query, Mapping) else query
    return urlencode(list(pairs), quote_via=quote, safe="")


def _read(response: TestResponse) -> Answer:
    with response:
        return Answer(response.status_code, response.headers, response.data)


class RosterClient:
    """Calls the application as a vendor, with tokens that it gets and keeps."""

    def __init__(
        self,
        app: Flask,
        credentials: Mapping[str, tuple[str, str]],
        documents: Mapping[str, Document] | None = None,
    ) -> None:
        """`documents`: those of another client, where the application differs in its database alone."""
        self._http = app.test_client()
        self._credentials = credentials
        self._tokens: dict[tuple[str, str, tuple[str, ...]], str] = {}
        self.documents = documents or {version: self._read_document(version) for version in VERSIONS}

    def _read_document(self, version: str) -> Document:
        return Document(ROOTS[version], json.loads(self._http.get(f"{ROOTS[version]}/openapi.json").data))

    def token(self, version: str, scopes: Sequence[str] = SCOPES, vendor: str = "both") -> str:
        """An access token of the vendor for exactly these scopes, asked for once."""
        key = (vendor, version, tuple(scopes))
        if key not in self._tokens:
            asked = " ".join(f"{version}/{scope}" for scope in scopes)
            answer = self.ask_token(self.form(vendor, scope=asked))
            assert answer.status == 200, answer.body
            assert answer.json["scope"] == asked
            self._tokens[key] = answer.json["access_token"]
        return self._tokens[key]

    def forget_tokens(self) -> None:
        """Asks for new tokens from now on, as after a change of rights."""
        self._tokens.clear()

    def form(self, vendor: str = "both", **more: str) -> dict[str, str]:
        """The form of a token request with the vendor's credentials in it."""
        client_id, secret = self._credentials[vendor]
        return {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret, **more}

    def ask_token(
        self, form: Mapping[str, str] | str | None, headers: Mapping[str, str] | None = None, path: str = "/oauth/token"
    ) -> Answer:
        """POST to the token endpoint."""
        kind = "application/x-www-form-urlencoded"
        body = encode(form)
        return _read(self._http.post(path, data=body, content_type=kind, headers=dict(headers or {})))

    def fetch(self, path: str, method: str = "GET", headers: Mapping[str, str] | None = None) -> Answer:
        """A request for what is no roster record: documents, pages, keys."""
        return _read(self._http.open(path, method=method, headers=dict(headers or {})))

    def call(
        self,
        version: str,
        path: str,
        query: Query = None,
        *,
        scopes: Sequence[str] = SCOPES,
        vendor: str = "both",
        bearer: str | None = OWN,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        raw_query: bytes | None = None,
    ) -> Answer:
        """A request below the root of a version; the answer is checked against the version's document.

        `path` is percent-encoded by the caller. `raw_query`: bytes for the query string that no client would send.
        """
        sent = dict(headers or {})
        token = self.token(version, scopes, vendor) if bearer == OWN else bearer
        if token is not None:
            sent.setdefault("Authorization", f"Bearer {token}")
        text = encode(query)
        address = f"{ROOTS[version]}{path}" + (f"?{text}" if text else "")
        extra = {} if raw_query is None else {"QUERY_STRING": raw_query.decode("latin-1")}
        answer = _read(self._http.open(address, method=method, headers=sent, environ_overrides=extra))
        self.documents[version].hold(path, text, method, answer.status, answer.headers, answer.body)
        return answer

    def follow(self, version: str, address: str, **options: Any) -> Answer:
        """A request for an absolute address that the service itself gave."""
        start = f"http://localhost{ROOTS[version]}"
        assert address.startswith(start), address
        path, _, query = address.removeprefix(start).partition("?")
        return self.call(version, path, query, **options)
