"""One application with its three OpenAPI documents, and what it takes to be let in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import schemathesis
from flask import Flask
from schemathesis.config import SchemathesisConfig
from schemathesis.schemas import BaseSchema

from roster_service.app import create_app
from roster_service.db.engine import make_engine
from roster_service.schemas.flags import PermissionFlag
from roster_service.settings import Settings
from tests.conftest import Tally, close_app
from tests.contract.client import ROOTS, VERSIONS, RosterClient
from tests.contract.conftest import GRANTS, SECRET_KEY, add_vendor
from tests.postgres.loaded import load_districts
from tests.rates import UNBOUNDED
from tests.vendor.client import Account, VendorClient
from tests.vendor.conftest import Served as VendorDoor

from .runs import THIS_RUN

SEED = 20_261_121


@dataclass(frozen=True)
class Interfaces:
    """The application, and the headers that open each document's paths."""

    app: Flask
    account: Account
    headers: dict[str, dict[str, str]]
    counted: dict[str, Counter[int]] = field(default_factory=dict)

    def note(self, document: str, status: int) -> None:
        """Counts an answer."""
        self.counted.setdefault(document, Counter())[status] += 1


@pytest.fixture(scope="session")
def interfaces(make_database: Callable[[], str], tally: Tally) -> Iterator[Interfaces]:
    """The application on a database with both small exports."""
    url = make_database()
    engine = make_engine(url)
    load_districts(engine)
    with engine.begin() as connection:
        credentials = add_vendor(connection, "both", GRANTS["both"])
    app = create_app(Settings(secret_key=SECRET_KEY), url, UNBOUNDED)
    client, vendor = RosterClient(app, {"both": credentials}), VendorClient(app)
    account = VendorDoor(app, vendor, engine, url).add(grants=dict(GRANTS["both"]), flags=tuple(PermissionFlag))
    headers = {version: {"Authorization": f"Bearer {client.token(version)}"} for version in VERSIONS}
    headers["v1"] = {"x-api-key": account.api_key, "Authorization": f"Bearer {vendor.token(account)}"}
    # The library reads a body as it is sent.
    plain = {"Accept-Encoding": "identity"}
    made = Interfaces(app, account, {document: plain | opened for document, opened in headers.items()})
    yield made
    for document, counted in made.counted.items():
        statuses = ", ".join(f"{count:,} x {status}" for status, count in sorted(counted.items()))
        tally(f"OpenAPI document {document}: {counted.total():,} requests ({statuses})")
    engine.dispose()
    close_app(app)


@pytest.fixture(scope="session")
def documents(interfaces: Interfaces) -> dict[str, BaseSchema]:
    """The documents, by the names of their roots."""
    addresses = {**ROOTS, "v1": "/v1"}
    return {name: load_document(interfaces.app, f"{root}/openapi.json") for name, root in addresses.items()}


def load_document(app: Flask, address: str) -> BaseSchema:
    """A document as schemathesis reads it; the same requests in every run."""
    is_vendor = address.startswith("/v1/")
    # The specification answers other methods than GET with 400; where 405 is right, tests/vendor asks for it.
    settings: dict[str, Any] = {
        "seed": SEED,
        "generation": {
            # Its two paths take more than the many of the others.
            "max-examples": THIS_RUN.examples * (10 if is_vendor else 1),
            "deterministic": True,
            "database": "none",
            # No text of a database has a NUL; JSON Schema has no plain way to say so.
            "allow-x00": False,
            # The headers that open the doors are sent with every request.
            "with-security-parameters": False,
        },
        "phases": {"coverage": {"enabled": THIS_RUN.coverage}, "stateful": {"enabled": False}},
        "checks": {"unsupported_method": {"enabled": is_vendor}},
    }

    def call_from_here(environ: dict[str, Any], start_response: Any) -> Any:
        """Over plain http, the service takes keys and passwords from this machine alone."""
        return app(environ | {"REMOTE_ADDR": "127.0.0.1"}, start_response)

    return schemathesis.openapi.from_wsgi(address, call_from_here, config=SchemathesisConfig.from_dict(settings))
