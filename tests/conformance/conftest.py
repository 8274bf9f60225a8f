"""The application on three exports, in both forms of errors, and the table that a run prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from roster_service.app import create_app
from roster_service.db.engine import make_engine
from roster_service.errors import ErrorProfile
from roster_service.settings import Settings
from sync_scripts.engine.load import load
from tests.conftest import Tally, close_app
from tests.contract.client import ROOTS, RosterClient
from tests.contract.conftest import GRANTS, SETTINGS, add_vendor
from tests.contract.paths import ENDPOINTS
from tests.postgres.loaded import EXPORTS, FEEDS
from tools.generate_district import generate

from .official import VARIABLE, Official, find_document

VERSION = "v1p2"
STUDENTS = 60
PAGE = 500
MADE_UP = "made-up"
DISTRICT = "98-0001"


@dataclass(frozen=True)
class Provider:
    """An application with a form of errors; the numbers of checked records, and of checked errors by path."""

    client: RosterClient
    profile: ErrorProfile
    records: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)

    def read(self, path: str, query: str = "") -> Any:
        """The body of an answer with records."""
        answer = self.client.fetch(f"{ROOTS[VERSION]}{path}{query}", headers=self.authorize())
        assert answer.status == 200, (path, answer.body)
        return answer.json

    def authorize(self, *scopes: str) -> dict[str, str]:
        """The header with a token for the scopes, or for every scope."""
        token = self.client.token(VERSION, scopes) if scopes else self.client.token(VERSION)
        return {"Authorization": f"Bearer {token}"}

    def read_pages(self, path: str) -> Iterator[Any]:
        """The bodies of all pages of a collection."""
        offset, seen = 0, PAGE
        while seen == PAGE:
            body = self.read(path, f"?limit={PAGE}&offset={offset}")
            yield body
            seen = sum(map(len, body.values()))
            offset += PAGE

    @cached_property
    def ids(self) -> dict[str, list[str]]:
        """The ids of each collection that has no parent."""
        listed = [row.template for row in ENDPOINTS if "{" not in row.template]
        return {
            path: [
                one["sourcedId"] for body in self.read_pages(path) for (records,) in [body.values()] for one in records
            ]
            for path in listed
        }

    @cached_property
    def schools_of_classes(self) -> dict[str, str]:
        """The school of each class."""
        pages = self.read_pages("/classes")
        return {one["sourcedId"]: one["school"]["sourcedId"] for body in pages for one in body["classes"]}


@pytest.fixture(scope="session")
def official() -> Official:
    """The official document."""
    path = find_document()
    if path is None:
        pytest.skip(f"{VARIABLE} names no file; it takes the official OpenAPI document of OneRoster 1.2")
    return Official(path)


@pytest.fixture(scope="session")
def exports(official: Official, make_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A database with two exports of the tests and one of a made-up district, and the credentials of a client."""
    url = make_database()
    engine = make_engine(url)
    made_up = tmp_path_factory.mktemp("district") / "export.zip"
    generate(made_up, students=STUDENTS, seed=98, version="1.2", school_year=2027, guardians_percent=100)
    folders: dict[str, Path] = {name: EXPORTS / folder for name, folder in FEEDS.items()} | {MADE_UP: made_up}
    for feed, path in folders.items():
        load(engine, feed, path)
    with engine.begin() as connection:
        credentials = add_vendor(connection, "both", (*GRANTS["both"], (DISTRICT, ())))
    engine.dispose()
    return url, {"both": credentials}


@pytest.fixture(scope="session", params=[ErrorProfile.SPECIFICATION, ErrorProfile.OFFICIAL])
def provider(request: pytest.FixtureRequest, exports: Any, tally: Tally) -> Iterator[Provider]:
    """The application with each form of errors."""
    url, credentials = exports
    app = create_app(Settings(**{**SETTINGS, "v1p2_errors": request.param}), url)
    made = Provider(RosterClient(app, credentials), request.param)
    yield made
    close_app(app)
    tally(f"\nOneRoster 1.2, errors in the form `{made.profile}`\n")
    tally(f"{'path':<52} {'records':>8} {'errors':>8}")
    for row in ENDPOINTS:
        tally(f"{row.template:<52} {made.records[row.template]:>8,} {made.errors[row.template]:>8}")
    tally(f"{'together':<52} {made.records.total():>8,} {made.errors.total():>8}")
