"""One served application on one database with both small exports, and vendors who may see different parts."""

from __future__ import annotations

import functools
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import sqlalchemy as sa
from flask import Flask

from roster_service.accounts import clients, vendor_rights, vendors
from roster_service.app import create_app
from roster_service.auth.credentials.signing_keys import ensure_signing_key
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.auth.throttling.limits import Rates
from roster_service.db.engine import make_engine
from roster_service.schemas.flags import PermissionFlag
from roster_service.settings import Settings
from tests.actors import TESTER
from tests.conftest import close_app
from tests.postgres.databases import copy_database, drop_databases
from tests.postgres.loaded import load_districts
from tests.rates import UNBOUNDED

from .client import VERSIONS, RosterClient
from .document import Document

SECRET_KEY = "a secret key of the tests, long enough to be one"

SETTINGS = {"secret_key": SECRET_KEY}

# Who may see what: whole districts (no schools named), or single schools of one.
GRANTS: Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "both": (("spr-district", ()), ("shv-district", ())),
    "springfield": (("spr-district", ()),),
    "elementary": (("spr-district", ("spr-elementary",)),),
    "north": (("shv-district", ("shv-north",)),),
    "south": (("shv-district", ("shv-south",)),),
    "nobody": (),
}

# A load gives all its records one stamp; these give filters and sorts something to tell apart.
STAMPS = {
    "spr-student-1": "2026-11-01T00:00:00.000Z",
    "spr-student-2": "2026-11-01T00:00:00.001Z",
    "spr-student-3": "2026-11-01T23:59:59.999Z",
    "spr-student-4": "2026-11-02T00:00:00.000Z",
    "spr-student-5": "2026-10-31T23:59:59.999Z",
    "shv-student-1": "2026-11-01T12:30:00.500Z",
    "shv-student-2": "2026-11-01T12:30:00.501Z",
    "spr-enr-01": "2026-11-01T12:30:00.500Z",
    "spr-class-math3-a": "2026-10-31T23:59:59.999Z",
}


@dataclass(frozen=True)
class Served:
    """An application that serves, the client that calls it, and an engine for what administrators do."""

    app: Flask
    client: RosterClient
    engine: sa.Engine
    url: str


@dataclass(frozen=True)
class Roster:
    """A database with both exports and every vendor, and the credentials of each vendor's client."""

    url: str
    credentials: Mapping[str, tuple[str, str]]


@pytest.fixture(scope="session")
def roster(make_database: Callable[[], str]) -> Roster:
    """The database that others are copied from; nothing stays connected to it."""
    url = make_database()
    engine = make_engine(url)
    load_districts(engine)
    with engine.begin() as connection:
        for table in ("users", "enrollments", "classes"):
            for sourced_id, stamp in STAMPS.items():
                change = f"UPDATE {table} SET date_last_modified = :stamp WHERE sourced_id = :id"
                connection.execute(sa.text(change), {"stamp": stamp, "id": sourced_id})
        credentials = {name: add_vendor(connection, name, grants) for name, grants in GRANTS.items()}
        ensure_signing_key(connection, SECRET_KEY)
    engine.dispose()
    return Roster(url, credentials)


def add_vendor(connection: sa.Connection, name: str, grants: Iterable[tuple[str, tuple[str, ...]]]) -> tuple[str, str]:
    """A vendor with these grants, from which no field is withheld; the id and the secret of its client, which has every
    scope."""
    email = f"{name}@vendors.example"
    vendors.add_vendor(connection, TESTER, email, name)
    vendor_rights.grant(connection, TESTER, email, None, (), [PermissionFlag.CONTACTS])
    for district, schools in grants:
        vendor_rights.grant(connection, TESTER, email, district, schools)
    scopes = [Scope(version, scope) for version in VERSIONS for scope in ScopeName]
    added = clients.add_client(connection, TESTER, email, "tests", scopes)
    return added.client_id, added.client_secret


NUMBERS = itertools.count()


@contextmanager
def open_interfaces(server_url: str, roster: Roster) -> Iterator[Callable[..., Served]]:
    """What serves a copy of the roster, or with a `url` that database itself, until the block ends."""
    made: list[Served] = []
    copied: list[str] = []

    def make(
        url: str | None = None,
        documents: Mapping[str, Document] | None = None,
        rates: Rates = UNBOUNDED,
        **settings: Any,
    ) -> Served:
        if url is None:
            template = sa.make_url(roster.url).database
            copied.append(f"{template}_copy_{next(NUMBERS)}")
            url = copy_database(server_url, str(template), copied[-1])
        app = create_app(Settings(**{**SETTINGS, **settings}), url, rates)
        made.append(Served(app, RosterClient(app, roster.credentials, documents), make_engine(url), url))
        return made[-1]

    try:
        yield make
    finally:
        for served in made:
            served.engine.dispose()
            close_app(served.app)
        drop_databases(server_url, *copied)


@pytest.fixture(scope="session")
def served(server_url: str, roster: Roster) -> Iterator[Served]:
    """The application that no test changes."""
    with open_interfaces(server_url, roster) as make:
        yield make()


@pytest.fixture(scope="module")
def make_served(server_url: str, roster: Roster, served: Served) -> Iterator[Callable[..., Served]]:
    """Serves a copy of the roster, for tests that change accounts or records; with a `url`, that database itself. Each
    has connections of its own, so none outlives its module."""
    with open_interfaces(server_url, roster) as make:
        yield functools.partial(make, documents=served.client.documents)


@pytest.fixture(scope="session")
def client(served: Served) -> RosterClient:
    """The client of that application."""
    return served.client


@pytest.fixture
def expected_faults(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """The log, for a test that makes the service fail."""
    return caplog


@pytest.fixture(autouse=True)
def no_faults(caplog: pytest.LogCaptureFixture, request: pytest.FixtureRequest) -> Iterator[None]:
    """No request of any other test may end in a fault of the service."""
    yield
    faults = [record.getMessage() for record in caplog.get_records("call") if record.levelno >= logging.ERROR]
    assert not faults or "expected_faults" in request.fixturenames
