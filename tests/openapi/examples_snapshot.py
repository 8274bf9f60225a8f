"""The examples of the OpenAPI documents, as the service gives them for a made-up district.

`python -m tests.openapi.examples_snapshot` writes the file that the documents read. Its ids are those of the demo.
"""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import sqlalchemy as sa
from flask import Flask
from sqlalchemy.exc import OperationalError

import roster_service.http
from roster_service.accounts import clients, vendors
from roster_service.app import create_app
from roster_service.auth.credentials.api_keys import Allowance
from roster_service.auth.scopes import JWKS_PATH, METADATA_PATH, TOKEN_PATH, Scope, ScopeName
from roster_service.auth.throttling.limits import RosteringAllowance
from roster_service.cli import demo
from roster_service.db.embedded_server import open_embedded
from roster_service.db.engine import make_engine
from roster_service.http.openapi import EXAMPLE_ROOT, FILE
from roster_service.roster.upgrades import upgrade
from roster_service.schemas.students import INCLUDES
from roster_service.schemas.versions import VERSIONS, Version
from roster_service.settings import Settings
from sync_scripts.engine.load import load
from tests.actors import TESTER
from tests.conftest import close_app
from tools.generate_district import generate

SNAPSHOT = Path(roster_service.http.__file__).with_name(FILE)
STUDENTS = 60
STAMP = "2026-11-21T02:00:00.000Z"
STAMPED = ("orgs", "academic_sessions", "courses", "classes", "users", "enrollments", "demographics")
LIMITED = "limited@example.org"
BURST = 60
REQUEST_ID = "0123456789abcdef"
# In place of the parts of the service that fail.
FAULT, OUTAGE = RuntimeError(), OperationalError("", {}, Exception())
PAGE_OF_RECORDS = "roster_service.serving.reader.Reader.read_page"
FORM = {"grant_type": "client_credentials"}

Body = Mapping[str, Any]
Refusals = dict[str, dict[str, Body]]


class ExampleReader:
    """Asks an application, with the credentials of the demo vendor and of a vendor that may ask once a second."""

    def __init__(self, app: Flask, account: demo.DemoAccount, limited: Mapping[str, Any]) -> None:
        self._http = app.test_client()
        self._account = account
        self._limited = limited

    def ask(self, method: str, path: str, status: int, **options: Any) -> Any:
        """The body of the response, which must have the status."""
        response = self._http.open(path, method=method, base_url=EXAMPLE_ROOT, **options)
        assert response.status_code == status, (path, response.status_code, response.text)
        return response.json

    def use_up(self, method: str, path: str, headers: Mapping[str, str]) -> None:
        """Asks until the rate of the limited vendor is used up, for most of a minute."""
        for _ in range(BURST):
            if self._http.open(path, method=method, base_url=EXAMPLE_ROOT, headers=headers).status_code == 429:
                return

    # --- the rostering interface ---

    def get_token(
        self, version: Version, scopes: Iterable[str], client: tuple[str, str] | None = None
    ) -> dict[str, str]:
        """The header with a token for the scopes."""
        form = {**FORM, "scope": " ".join(f"{version.prefix}/{name}" for name in scopes)}
        answer = self.ask("POST", "/oauth/token", 200, data=form, auth=client or self._client)
        return {"Authorization": f"Bearer {answer['access_token']}"}

    @property
    def _client(self) -> tuple[str, str]:
        return self._account.client_id, self._account.client_secret

    def list_records(self, version: Version, headers: Mapping[str, str]) -> dict[str, list[Body]]:
        """For each resource, records that together have a value for every field that any of its records has."""
        found = {}
        for resource in version.records:
            path = f"{version.root}/{resource.plural}?limit=10000"
            found[resource.plural] = choose(self.ask("GET", path, 200, headers=headers)[resource.plural])
        return found

    def list_ids(self, version: Version, headers: Mapping[str, str]) -> dict[str, str]:
        """An id for each collection, so that the paths below have records: of a class and all that belongs to it."""

        def read(path: str) -> Any:
            (records,) = self.ask("GET", version.root + path, 200, headers=headers).values()
            return records

        enrollment = next(one for one in read("/enrollments?limit=1000") if one["role"] == "student")
        user, school, taught = (enrollment[name]["sourcedId"] for name in ("user", "school", "class"))
        record = read(f"/classes/{taught}")
        term = record["terms"][0]["sourcedId"]
        return {
            "orgs": school,
            "schools": school,
            "academicSessions": term,
            "terms": term,
            "gradingPeriods": read(f"/terms/{term}/gradingPeriods")[0]["sourcedId"],
            "courses": record["course"]["sourcedId"],
            "classes": taught,
            "users": user,
            "students": user,
            "teachers": read(f"/classes/{taught}/teachers")[0]["sourcedId"],
            "enrollments": enrollment["sourcedId"],
            "demographics": user,
        }

    def list_refusals(self, version: Version, other: Version) -> Refusals:
        """The refusals of a version: by status and name, the members of `statusInfoSet`."""
        full, core = self.get_token(version, ["roster.readonly"]), self.get_token(version, ["roster-core.readonly"])
        foreign = self.get_token(other, ["roster.readonly"])
        limited = self.get_token(version, ["roster.readonly"], self._limited["client"])
        users = f"{version.root}/users"

        def refuse(status: int, path: str, headers: Mapping[str, str], method: str = "GET") -> Body:
            info: Body = self.ask(method, version.root + path, status, headers=headers)["statusInfoSet"]
            return info

        found: Refusals = {
            "400": {
                "filter": refuse(400, "/users?filter=givenNam='Ada'", full),
                "parameter": refuse(400, "/users?page=2", full),
                "limit": refuse(400, "/users?limit=many", full),
                "blank-fields": refuse(400, "/users?fields=", full),
                "version": refuse(400, "/users", foreign),
                "method": refuse(400, "/users", full, "POST"),
            },
            "401": {
                "no-token": refuse(401, "/users", {}),
                "token": refuse(401, "/users", {"Authorization": "Bearer expired"}),
            },
            "403": {"scope": refuse(403, "/demographics", core)},
            "404": {"record": refuse(404, "/users/unknown", full)},
            "410": {"pull": refuse(410, "/users?limit=100&offset=100&revision=0", full)},
        }
        self.use_up("GET", users, limited)
        found["429"] = {"rate": refuse(429, "/users", limited)}
        with patch(PAGE_OF_RECORDS, side_effect=FAULT):
            found["500"] = {"fault": refuse(500, "/users", full)}
        with patch(PAGE_OF_RECORDS, side_effect=OUTAGE):
            found["503"] = {"database": refuse(503, "/users", full)}
        return found

    # --- the token endpoint ---

    def list_token_refusals(self) -> dict[str, Refusals]:
        """The refusals of the token endpoint, of the keys and of the metadata, by path, status and name."""

        def refuse(status: int, form: Mapping[str, str], secret: str = self._client[1]) -> Body:
            body: Body = self.ask("POST", "/oauth/token", status, data=form, auth=(self._client[0], secret))
            return body

        found: Refusals = {
            "400": {
                "grant-type": refuse(400, {}),
                "scope": refuse(400, {**FORM, "scope": "v1p2/gradebook.readonly"}),
            },
            "401": {"secret": refuse(401, FORM, "wrong")},
        }
        with patch("roster_service.auth.throttling.throttles.TokenThrottle.count_client", return_value=30):
            found["429"] = {"rate": refuse(429, FORM)}
        with patch("roster_service.rostering.token_endpoint.find_client", side_effect=OUTAGE):
            found["503"] = {"database": refuse(503, FORM)}
        host = {"400": {"host": self.ask("GET", JWKS_PATH, 400, environ_overrides={"HTTP_HOST": "a b"})}}
        with patch("roster_service.auth.credentials.signing_keys.KeyRing.read_public", side_effect=OUTAGE):
            keys: Refusals = {**host, "503": {"database": self.ask("GET", JWKS_PATH, 503)}}
        return {TOKEN_PATH: found, JWKS_PATH: keys, METADATA_PATH: host}

    # --- the vendor interface ---

    def log_in(self) -> dict[str, str]:
        """The headers with the API key and a permission token."""
        key = {"x-api-key": str(self._account.api_key)}
        login = {"email": self._account.email, "password": self._account.password}
        token = self.ask("POST", "/v1/login", 200, json=login, headers=key)["token"]
        return key | {"Authorization": f"Bearer {token}"}

    def list_students(self, headers: Mapping[str, str]) -> list[Body]:
        """Students with every part."""
        body = {"districtlea": self._account.districtlea, "include": INCLUDES, "limit": 5000}
        return choose(self.ask("POST", "/v1/students", 200, json=body, headers=headers)["students"])

    def list_vendor_refusals(self, headers: Mapping[str, str]) -> Refusals:
        """The refusals of the vendor interface, by status and name."""
        body = {"districtlea": self._account.districtlea}
        keyed = {"x-api-key": headers["x-api-key"]}
        limited = {"x-api-key": self._limited["api_key"]}

        def refuse(status: int, body: Any, headers: Mapping[str, str], path: str = "/v1/students") -> Body:
            refused = self.ask("GET" if status == 405 else "POST", path, status, json=body, headers=headers)
            return {**refused, "requestId": REQUEST_ID}

        wrong = {"email": self._account.email, "password": "wrong"}
        found: Refusals = {
            "400": {"key": refuse(400, {**body, "district": "01-0001"}, headers)},
            "401": {
                "no-token": refuse(401, body, keyed),
                "token": refuse(401, body, keyed | {"Authorization": "Bearer expired"}),
                "login": refuse(401, wrong, keyed, "/v1/login"),
            },
            "403": {
                "key": refuse(403, body, {"x-api-key": "unknown"}),
                "privilege": refuse(403, {"districtlea": "99-0001"}, headers),
            },
            "405": {"method": refuse(405, None, headers)},
        }
        found["410"] = {"pull": refuse(410, {**body, "offset": 100, "revision": 0}, headers)}
        self.use_up("POST", "/v1/students", limited)
        found["429"] = {"rate": refuse(429, body, limited)}
        with patch(PAGE_OF_RECORDS, side_effect=FAULT):
            found["500"] = {"fault": refuse(500, body, headers)}
        with patch(PAGE_OF_RECORDS, side_effect=OUTAGE):
            found["503"] = {"database": refuse(503, body, headers)}
        return found


def list_paths(value: Any, start: str = "") -> set[str]:
    """The dotted names of all members inside a value."""
    if isinstance(value, list):
        return {path for item in value for path in list_paths(item, start)}
    if isinstance(value, dict) and not start.endswith(".metadata"):
        return {
            path for name, item in value.items() for path in {f"{start}.{name}"} | list_paths(item, f"{start}.{name}")
        }
    return set()


def choose(records: list[Body]) -> list[Body]:
    """The record with the most members, the shortest of several, and those that have a member which it lacks."""
    chosen: list[Body] = []
    covered: set[str] = set()
    for record in sorted(records, key=lambda one: (-len(list_paths(one)), len(json.dumps(one)), one["sourcedId"])):
        if list_paths(record) - covered:
            chosen.append(record)
            covered |= list_paths(record)
    return chosen


def add_limited_vendor(connection: sa.Connection) -> dict[str, Any]:
    """A vendor that may ask `BURST` times in a minute; its client and its API key."""
    login = vendors.add_vendor(connection, TESTER, LIMITED, "Limited vendor")
    scopes = [Scope(version.prefix, ScopeName.FULL) for version in VERSIONS]
    client = clients.add_client(connection, TESTER, LIMITED, "demo", scopes)
    vendors.change_allowance(connection, TESTER, LIMITED, Allowance(1, BURST, None), RosteringAllowance(1, BURST, None))
    return {"client": (client.client_id, client.client_secret), "api_key": login.api_key}


def ask_examples(url: str) -> dict[str, Any]:
    """All examples. `url`: of a migrated, empty database."""
    engine = make_engine(url)
    with tempfile.TemporaryDirectory(prefix="roster-examples-") as folder:
        export = Path(folder) / "demo.zip"
        generate(export, students=STUDENTS, seed=1, version="1.2", school_year=2027, guardians_percent=100)
        load(engine, demo.FEED, export)
    with engine.begin() as connection:
        for table in STAMPED:
            connection.execute(sa.text(f"UPDATE {table} SET date_last_modified = :stamp"), {"stamp": STAMP})
        account = demo.add_demo_account(connection, TESTER)
        limited = add_limited_vendor(connection)
    settings = Settings(secret_key="of a database that is thrown away", public_url=EXAMPLE_ROOT)
    with tempfile.TemporaryDirectory(prefix="roster-examples-") as home:
        app = create_app(dataclasses.replace(settings, home=Path(home)), url)
        try:
            return collect(ExampleReader(app, account, limited))
        finally:
            close_app(app)
            engine.dispose()


def collect(reader: ExampleReader) -> dict[str, Any]:
    """All examples that the service gives."""
    found: dict[str, Any] = {}
    for version, other in zip(VERSIONS, reversed(VERSIONS), strict=True):
        headers = reader.get_token(version, ScopeName)
        found["ids"] = reader.list_ids(version, headers)
        found[version.prefix] = {
            "records": reader.list_records(version, headers),
            "refusals": reader.list_refusals(version, other),
        }
    found["oauth"] = {"refusals": reader.list_token_refusals()}
    headers = reader.log_in()
    found["vendor"] = {
        "records": {"students": reader.list_students(headers)},
        "refusals": reader.list_vendor_refusals(headers),
    }
    return found


def main() -> None:
    """Writes the file, from a database that is made for it and thrown away."""
    os.environ["ROSTER_EXPORT_AGE_MINUTES"] = "0"
    with (
        tempfile.TemporaryDirectory(prefix="roster-examples-", ignore_cleanup_errors=True) as folder,
        open_embedded(Path(folder)) as url,
    ):
        engine = make_engine(url)
        upgrade(engine)
        engine.dispose()
        SNAPSHOT.write_text(json.dumps(ask_examples(url), ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
