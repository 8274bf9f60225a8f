"""The roster of the matrix in a database of its own, and its vendors' tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pytest
import sqlalchemy as sa
from flask import Flask
from joserfc import jwt
from joserfc.jwk import RSAKey

from roster_service.accounts import vendor_rights
from roster_service.app import create_app
from roster_service.auth.credentials.signing_keys import KeyRing
from roster_service.db import tables
from roster_service.db.engine import make_engine
from roster_service.people import keep_person
from roster_service.settings import Settings
from tests.actors import TESTER
from tests.conftest import close_app
from tests.contract.client import FULL, RosterClient
from tests.contract.conftest import SECRET_KEY, add_vendor
from tests.contract.test_tokens import read_part
from tests.postgres.labels import label_unlabelled
from tests.rates import UNBOUNDED

from .cells import SCOPE_SETS, WITHHELD_SETS, Caller
from .departed import list_label_rows, list_rows
from .layers import Layers, forget_statements, take_away
from .roster import FEEDS, ROSTER
from .visible_records import GRANTS, KEPT_AT, by_id


@dataclass(frozen=True)
class World:
    """The database, and the credentials of a client for each shape of grants."""

    url: str
    engine: sa.Engine
    credentials: Mapping[str, tuple[str, str]]


@pytest.fixture(scope="session")
def world(make_database: Callable[[], str]) -> Iterator[World]:
    """The roster and its vendors."""
    url = make_database()
    engine = make_engine(url)
    with engine.begin() as connection:
        for feed, name in FEEDS.items():
            connection.execute(sa.insert(tables.feeds).values(id=feed, name=name, format="oneroster"))
        for name, rows in ROSTER.items():
            table = tables.metadata.tables[name]
            for row in rows:
                # The roster keeps the metadata only of what a scope shows it of.
                present = {column: row[column] for column in row if column in table.c and row[column] is not None}
                connection.execute(sa.insert(table).values(present))
        label_unlabelled(connection)
        connection.execute(sa.insert(tables.visibility_labels), list_label_rows())
        connection.execute(sa.insert(tables.departures), list_rows())
        credentials = {}
        for name, grants in GRANTS.items():
            given = [(district, ()) for district in grants.districts]
            given += [(by_id("orgs")[school]["district_id"], (school,)) for school in grants.schools]
            credentials[name] = add_vendor(connection, name, given)
            for rule in grants.rules:
                email, schools = f"{name}@vendors.example", [rule.school] if rule.school else []
                vendor_rights.grant(
                    connection, TESTER, email, rule.district, schools, rules=rule.make_rules(), even_nothing=True
                )
            for person in grants.kept:
                keep_person(connection, TESTER, f"{name}@vendors.example", person, Settings(secret_key=SECRET_KEY))
        connection.execute(sa.update(tables.kept_people).values(since=KEPT_AT))
        own = tables.departures.c.vendor_id != 0
        connection.execute(sa.update(tables.departures).where(own).values(departed_at=KEPT_AT))
        # Copies of what was not told yet; here it is later.
        former = tables.departures.c.label_id.in_([row["id"] for row in list_label_rows()])
        connection.execute(sa.delete(tables.departures).where(own, former))
        # A vendor without any grant is refused. This one has a grant of a district that the roster does not have.
        vendors = tables.vendors.c
        vendor = sa.select(vendors.id).where(vendors.email == "nothing@vendors.example").scalar_subquery()
        connection.execute(sa.insert(tables.vendor_grants).values(vendor_id=vendor, district_id="gone"))
    yield World(url, engine, credentials)
    engine.dispose()


class Questioner:
    """An application with some layers on, and tokens for every caller, signed with its own key."""

    def __init__(self, app: Flask, world: World) -> None:
        self.http = app.test_client()
        self._client = RosterClient(app, world.credentials)
        (self._key,) = KeyRing(world.engine, SECRET_KEY).read_private().keys
        self._good: dict[str, str] = {}
        self._tokens: dict[Caller, str] = {}

    def token(self, caller: Caller) -> str:
        """The token of a caller: one that the service gave to the vendor, with other scopes and withheld fields in
        it."""
        if caller not in self._tokens:
            if caller.grants not in self._good:
                self._good[caller.grants] = self._client.token("v1p1", (FULL,), caller.grants)
            good = self._good[caller.grants]
            scope = " ".join(f"{caller.version}/{name}" for name in SCOPE_SETS[caller.scopes])
            claims = {"scope": scope, "withheld": WITHHELD_SETS[caller.withheld]}
            key: RSAKey = self._key
            self._tokens[caller] = jwt.encode(read_part(good, 0), read_part(good, 1) | claims, key)
        return self._tokens[caller]


@pytest.fixture(scope="module")
def make_questioner(world: World) -> Iterator[Callable[[Layers], Questioner]]:
    """Makes an application with some layers on; the layers are back when the module's tests are done."""
    made: list[Flask] = []
    patch = pytest.MonkeyPatch()

    def make(layers: Layers) -> Questioner:
        patch.undo()
        forget_statements()
        take_away(patch, layers)
        made.append(create_app(Settings(secret_key=SECRET_KEY), world.url, UNBOUNDED))
        return Questioner(made[-1], world)

    yield make
    patch.undo()
    forget_statements()
    for app in made:
        close_app(app)
