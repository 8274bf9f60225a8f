"""A client of the vendor interface that holds every answer against the served document, so no test can forget it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from flask import Flask
from jsonschema import Draft202012Validator

from roster_service.accounts import vendor_rights, vendors
from roster_service.auth.credentials.api_keys import Allowance
from roster_service.schemas.flags import PermissionFlag
from tests.actors import TESTER
from tests.contract.document import FORMATS, read_json

RATE_HEADERS = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
# Refused before it is known whose key it is, or by the address alone.
KEYLESS = {"Forbidden", "not-found", "method-not-allowed"}
JSON = "application/json"
# Tests ask faster than a vendor may.
PLENTY = Allowance(10_000, 20_000, 1_000_000)


@dataclass(frozen=True)
class Account:
    """A vendor with its key and password."""

    id: int
    email: str
    api_key: str
    password: str


def add_account(
    engine: sa.Engine,
    name: str,
    grants: Mapping[str, tuple[str, ...]] | None = None,
    flags: tuple[PermissionFlag, ...] = (),
) -> Account:
    """A vendor with these grants and flags."""
    email = f"{name}@vendors.example"
    with engine.begin() as connection:
        login = vendors.add_vendor(connection, TESTER, email, name)
        for district, schools in (grants or {}).items():
            vendor_rights.grant(connection, TESTER, email, district, schools)
        if flags:
            vendor_rights.grant(connection, TESTER, email, None, (), flags)
        vendor_id = vendors.find_vendor(connection, email).id
    assert login.password is not None
    return Account(vendor_id, email, login.api_key, login.password)


@dataclass(frozen=True)
class Answer:
    """What came back, already checked."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, parsed."""
        return read_json(self.body)

    @property
    def code(self) -> str | None:
        """The code of a refusal."""
        found: str | None = self.json.get("code")
        return found

    @property
    def outcome(self) -> tuple[int, str | None]:
        """The status, and the code of a refusal."""
        return self.status, self.code

    @property
    def message(self) -> str:
        """The words of a refusal."""
        return str(self.json["message"])

    @property
    def ids(self) -> list[str]:
        """The students' sourcedIds, in order."""
        assert self.status == 200, self.body
        return [student["sourcedId"] for student in self.json["students"]]


class VendorClient:
    """Calls the application as a vendor."""

    def __init__(self, app: Flask) -> None:
        self._http = app.test_client()
        self.document = json.loads(self._http.get("/v1/openapi.json").data)

    def send(self, path: str, body: Any = None, *, method: str = "POST", **options: Any) -> Answer:
        """A request with whatever headers and body it has; `raw`: bytes in place of the JSON of `body`."""
        headers = dict(options.get("headers", {}))
        headers.setdefault("Content-Type", JSON)
        data = options.get("raw", json.dumps(body).encode())
        with self._http.open(path, method=method, data=data, headers=headers) as response:
            answer = Answer(response.status_code, response.headers, response.data)
        self._hold(path, method, answer)
        return answer

    def login(self, account: Account, **more: Any) -> Answer:
        """A login with the vendor's own key, e-mail and password, or what `more` says instead."""
        headers = {"x-api-key": more.pop("api_key", account.api_key)}
        return self.send("/v1/login", {"email": account.email, "password": account.password, **more}, headers=headers)

    def token(self, account: Account) -> str:
        """A permission token."""
        answer = self.login(account)
        assert answer.status == 200, answer.body
        return str(answer.json["token"])

    def students(self, account: Account, token: str | None, body: Any = None, **options: Any) -> Answer:
        """A students query; `token`: None sends no `Authorization`."""
        headers = {"x-api-key": account.api_key} | ({} if token is None else {"Authorization": f"Bearer {token}"})
        return self.send("/v1/students", body, headers=headers | options.pop("headers", {}), **options)

    def _hold(self, path: str, method: str, answer: Answer) -> None:
        """Status, content type, headers and body are what the document says."""
        assert answer.headers["Content-Type"] == JSON
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"
        documented = self.document["paths"].get(path, {}).get(method.lower())
        if documented is not None:
            described = documented["responses"][str(answer.status)]
            schema = described["content"][JSON]["schema"]
        else:
            schema = {"$ref": "#/components/schemas/Failure"}
        validator = Draft202012Validator({**self.document, **schema}, format_checker=FORMATS)
        validator.validate(answer.json)
        if answer.status != 200:
            assert set(answer.json) == {"code", "message", "requestId"}
        assert all(name in answer.headers for name in RATE_HEADERS) is (answer.code not in KEYLESS)
        assert ("Retry-After" in answer.headers) is (answer.status in (429, 503))
        assert ("WWW-Authenticate" in answer.headers) is (answer.status == 401)
