"""A primary, its standby, and an application that reads from both; beside it, one that reads from the primary alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import sqlalchemy as sa
from flask import Flask

from roster_service.app import create_app
from roster_service.auth.credentials.signing_keys import ensure_signing_key
from roster_service.db.engine import make_engine
from roster_service.feeds.feed_states import list_feed_ids
from roster_service.feeds.roster_state import publish
from roster_service.metrics import READS
from roster_service.settings import Settings
from sync_scripts.engine.load import load
from tests.conftest import close_app
from tests.contract.client import RosterClient
from tests.contract.conftest import GRANTS, SECRET_KEY, SETTINGS, add_vendor
from tests.postgres.databases import administer, copy_database
from tests.postgres.loaded import EXPORTS, FEEDS
from tests.postgres.pair import Pair, open_pair
from tests.postgres.server import TEMPLATE
from tests.vendor.client import Account, VendorClient, add_account

NUMBERS = itertools.count()


@dataclass(frozen=True)
class Served:
    """A roster on both servers. `app`, `client`: read from the standby, too; `alone`: reads from the primary."""

    pair: Pair
    engine: sa.Engine
    app: Flask
    client: RosterClient
    alone: RosterClient
    account: Account

    @property
    def vendor_client(self) -> VendorClient:
        """A client of the vendor interface of the same application."""
        return VendorClient(self.app)

    @property
    def standby_url(self) -> str:
        """The database on the standby."""
        return self.pair.standby.make_url(str(self.engine.url.database))


def count_reads(read: Callable[[], Any]) -> dict[str, float]:
    """How many pages and records `read` has read from each server."""
    counters = {name: READS.labels(name)._value for name in ("standby", "primary")}
    before = {name: counter.get() for name, counter in counters.items()}
    read()
    return {name: counter.get() - before[name] for name, counter in counters.items()}


@pytest.fixture(scope="session")
def pair(server_url: str, request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Both servers."""
    del server_url  # its folder, where there is one, ends with this process
    cache: pytest.Cache = request.config.cache  # type: ignore[assignment]
    with open_pair(cache.mkdir("roster-clusters")) as opened:
        yield opened


@pytest.fixture(scope="session")
def roster(pair: Pair) -> tuple[str, dict[str, tuple[str, str]], Account]:
    """The name of a database that others are copied from, the credentials of its clients, and a vendor with a login."""
    url = copy_database(pair.primary.make_url(), TEMPLATE, "standby_roster")
    engine = make_engine(url)
    for feed, folder in FEEDS.items():
        load(engine, feed, EXPORTS / folder)
    with engine.begin() as connection:
        credentials = {name: add_vendor(connection, name, grants) for name, grants in GRANTS.items()}
        ensure_signing_key(connection, SECRET_KEY)
        publish(connection, list_feed_ids(connection))
    account = add_account(engine, "students", {"spr-district": ()})
    engine.dispose()
    return "standby_roster", credentials, account


@contextmanager
def serve_copy(pair: Pair, roster: tuple[str, dict[str, tuple[str, str]], Account]) -> Iterator[Served]:
    """Serves a copy of the roster."""
    template, credentials, account = roster
    name = f"{template}_{next(NUMBERS)}"
    url = copy_database(pair.primary.make_url(), template, name)
    pair.wait()
    app = create_app(Settings(**SETTINGS, read_database_url=pair.standby.make_url(name)), url)
    plain = create_app(Settings(**SETTINGS), url)
    engine = make_engine(url)
    client = RosterClient(app, credentials)
    try:
        yield Served(pair, engine, app, client, RosterClient(plain, credentials, client.documents), account)
    finally:
        engine.dispose()
        for made in (app, plain):
            close_app(made)
        administer(pair.primary.make_url(), f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="module")
def shared(pair: Pair, roster: tuple[str, dict[str, tuple[str, str]], Account]) -> Iterator[Served]:
    """A roster that no test changes."""
    with serve_copy(pair, roster) as served:
        yield served


@pytest.fixture
def resting(shared: Served) -> Iterator[Served]:
    """The same, and a standby that replays at the end."""
    yield shared
    shared.pair.resume()


@pytest.fixture
def served(pair: Pair, roster: tuple[str, dict[str, tuple[str, str]], Account]) -> Iterator[Served]:
    """A roster of a test's own, and a standby that replays."""
    with serve_copy(pair, roster) as own:
        yield own
        pair.resume()
