"""A service with a vendor of every scope and flag, which the tests of agreements ask on both interfaces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

import sqlalchemy as sa
from flask import Flask
from flask.testing import FlaskClient

from roster_service.accounts import agreements, clients, vendor_rights, vendors
from roster_service.accounts.known_agreements import Agreement
from roster_service.accounts.parts import PARTS
from roster_service.auth.scopes import ScopeName, read_scopes
from roster_service.auth.throttling.limits import ROSTERING_DEFAULTS
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.versions import VERSIONS
from tests.actors import TESTER
from tests.vendor.client import PLENTY, Account, VendorClient

VENDOR, DISTRICT, LEA = "app@vendor.example", "shv-district", "17-0077"
EVERY = tuple(f"{version.prefix}/{name}" for version in VERSIONS for name in ScopeName)
FLAGS = tuple(PermissionFlag)
TODAY = date.today()  # noqa: DTZ011  (the agreement lasts for weeks on both sides of it)
WHOLE = Agreement(
    title="Data agreement of 2026",
    purpose="Lessons in reading",
    elements=tuple(PARTS),
    districts=(DISTRICT,),
    schools=(),
    zone="America/Chicago",
    first_day=TODAY - timedelta(days=100),
    last_day=TODAY + timedelta(days=100),
    contact="privacy@vendor.example",
    deletion="within 60 days",
    metadata_keys=("locker",),
)


@dataclass(frozen=True)
class Asked:
    """The service, and the credentials of the vendor."""

    engine: sa.Engine
    app: Flask
    account: Account
    client: tuple[str, str]

    def save(self, **changed: Any) -> None:
        """Saves the whole agreement with these differences."""
        with self.engine.begin() as connection:
            agreements.set_agreement(connection, TESTER, VENDOR, replace(WHOLE, **changed))

    def remove(self) -> None:
        """Takes the agreement away."""
        with self.engine.begin() as connection:
            agreements.remove_agreement(connection, TESTER, VENDOR)

    def move_end(self, interval: str) -> None:
        """Sets the end to now and an interval, as if the clock had moved."""
        with self.engine.begin() as connection:
            moved = sa.text("UPDATE agreements SET ends_at = now() + CAST(:by AS interval), starts_at = 'epoch'")
            connection.execute(moved, {"by": interval})

    @property
    def http(self) -> FlaskClient:
        """A client of the application."""
        return self.app.test_client()

    def ask_token(self, version: str, scopes: Sequence[str] = EVERY) -> Any:
        """The answer of the token endpoint to all scopes of a version."""
        own = " ".join(scope for scope in scopes if scope.startswith(f"{version}/"))
        form = {"grant_type": "client_credentials", "scope": own}
        return self.http.post("/oauth/token", data=form, auth=self.client)

    def get(self, version: str, path: str, token: str, **headers: str) -> Any:
        """The answer of the rostering interface."""
        root = next(it.root for it in VERSIONS if it.prefix == version)
        return self.http.get(root + path, headers={"Authorization": f"Bearer {token}", **headers})

    def list_records(self, version: str, scopes: Sequence[str] = EVERY) -> Mapping[str, list[dict[str, Any]]]:
        """All records of each collection that the client is answered, with all its scopes."""
        token = self.ask_token(version, scopes)
        if token.status_code != 200:
            return {}
        found = {}
        for path in ("orgs", "classes", "enrollments", "users", "demographics", "courses"):
            answer = self.get(version, f"/{path}?limit=1000", token.json["access_token"])
            found[path] = list(answer.json[path]) if answer.status_code == 200 else []
        return found

    def list_students(self, flags: Sequence[str]) -> list[dict[str, Any]]:
        """The students that the vendor interface answers, with all that the vendor may request."""
        client = VendorClient(self.app)
        login = client.login(self.account)
        if login.status != 200:
            return []
        own = [flag for flag in flags if flag in login.json["flags"]]
        answer = client.students(self.account, login.json["token"], {"districtlea": LEA, "include": own})
        return list(answer.json.get("students", ()))


def add_asked(engine: sa.Engine, app: Flask) -> Asked:
    """Adds the vendor, with metadata in every record of people."""
    with engine.begin() as connection:
        for table in ("users", "demographics"):
            connection.execute(sa.text(f"UPDATE {table} SET metadata = jsonb_build_object('locker', '7')"))
        vendors.add_vendor(connection, TESTER, VENDOR, "App")
        vendor_rights.grant(connection, TESTER, VENDOR, DISTRICT, (), FLAGS)
        vendors.change_allowance(connection, TESTER, VENDOR, PLENTY, ROSTERING_DEFAULTS)
        password = vendors.change_password(connection, TESTER, VENDOR, None)
        key = vendors.replace_key(connection, TESTER, VENDOR, timedelta(0)).api_key
        account = Account(vendors.find_vendor(connection, VENDOR).id, VENDOR, key, str(password))
        made = clients.add_client(connection, TESTER, VENDOR, "reader", read_scopes(EVERY))
    return Asked(engine, app, account, (made.client_id, made.client_secret))


def list_words(value: Any) -> Iterator[str]:
    """Every text in a record, at every depth."""
    if isinstance(value, dict):
        for item in value.values():
            yield from list_words(item)
    elif isinstance(value, list):
        for item in value:
            yield from list_words(item)
    elif isinstance(value, str):
        yield value
