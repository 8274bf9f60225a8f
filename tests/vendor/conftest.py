"""One served application on one database with both small exports; vendors are added by the tests that need them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import sqlalchemy as sa
from flask import Flask

from roster_service.accounts import vendors
from roster_service.app import create_app
from roster_service.auth.credentials.api_keys import Allowance
from roster_service.auth.throttling.limits import ROSTERING_DEFAULTS
from roster_service.db.engine import make_engine
from roster_service.settings import Settings
from tests.actors import TESTER
from tests.conftest import close_app
from tests.contract.conftest import SECRET_KEY, expected_faults, no_faults  # noqa: F401  (fixtures)
from tests.postgres.loaded import load_districts
from tests.vendor.client import PLENTY, Account, VendorClient, add_account

NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Served:
    """An application that serves, the client that calls it, and an engine for what administrators do."""

    app: Flask
    client: VendorClient
    engine: sa.Engine
    url: str

    def add(self, name: str = "vendor", allowance: Allowance = PLENTY, **options: Any) -> Account:
        """A vendor of a test's own."""
        account = add_account(self.engine, f"{name}-{next(NUMBERS)}", **options)
        with self.engine.begin() as connection:
            vendors.change_allowance(connection, TESTER, account.email, allowance, ROSTERING_DEFAULTS)
        return account


@contextmanager
def open_served(url: str) -> Iterator[Served]:
    """An application on an empty database, with both small exports loaded."""
    engine = make_engine(url)
    load_districts(engine)
    app = create_app(Settings(secret_key=SECRET_KEY), url)
    yield Served(app, VendorClient(app), engine, url)
    engine.dispose()
    close_app(app)


@pytest.fixture(scope="session")
def served(make_database: Callable[[], str]) -> Iterator[Served]:
    """The application. No test changes its roster."""
    with open_served(make_database()) as made:
        yield made


@pytest.fixture(scope="session")
def client(served: Served) -> VendorClient:
    """Its client."""
    return served.client
