"""Readers on a roster of two districts, and vendors for whom they ask for pages as the interface does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from roster_service.accounts import clients, vendor_rights, vendors
from roster_service.auth import registered_client
from roster_service.auth.credentials.signing_keys import ensure_signing_key
from roster_service.auth.credentials.tokens import AccessToken
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.db import tables
from roster_service.db.engine import make_engine, make_ordering_engine, make_reading_engine
from roster_service.db.prepared_statements import DIALECT, PreparedStatement, Statement
from roster_service.db.roles import DatabaseRole, find_role, make_role_url
from roster_service.db.round_trip import Call, RoundTrips
from roster_service.feeds.roster_state import read_roster_state
from roster_service.rostering.endpoints import ENDPOINTS
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.versions import V1P2
from roster_service.serving.orderings import Orderings
from roster_service.serving.page import Page
from roster_service.serving.params import Params
from roster_service.serving.plan import make_plan
from roster_service.serving.reader import Reader
from roster_service.serving.request import AuthorizedRequest
from sync_scripts.engine.load import load
from tests.actors import TESTER
from tests.postgres.databases import copy_database, drop_databases
from tools.generate_district import generate

from .plain_pages import Question

PATHS = {endpoint.path: endpoint for endpoint in ENDPOINTS}
FIRST_OF_NOVEMBER = 1793491200
SECRET_KEY = "a secret key of the tests, long enough to be one"
ONLY_IDS = ("sourcedId",)
SCOPES = tuple(Scope("v1p2", name) for name in (ScopeName.FULL, ScopeName.GUARDIANS, ScopeName.ORGS_METADATA))


def list_scopes(version: str) -> tuple[Scope, ...]:
    """All scopes of a version."""
    return tuple(Scope(version, name) for name in ScopeName)


def add_vendor(
    connection: sa.Connection, name: str, orgs: Iterable[str], scopes: Sequence[Scope] = SCOPES
) -> AccessToken:
    """A vendor who was granted these districts and schools, with the flag for phones, and with a client that has these
    scopes; a token for it."""
    email = f"{name}@vendors.example"
    vendors.add_vendor(connection, TESTER, email, name)
    vendor_rights.grant(connection, TESTER, email, None, (), [PermissionFlag.CONTACTS])
    grant(connection, name, orgs)
    return make_token(connection, clients.add_client(connection, TESTER, email, "tests", scopes).client_id)


def grant(connection: sa.Connection, name: str, orgs: Iterable[str]) -> None:
    """Grants a vendor districts and schools."""
    known = tables.orgs.c
    for org_id in orgs:
        kind, district = connection.execute(
            sa.select(known.type, known.district_id).where(known.sourced_id == org_id)
        ).one()
        schools = [] if kind == "district" else [org_id]
        vendor_rights.grant(connection, TESTER, f"{name}@vendors.example", district, schools)


def make_token(connection: sa.Connection, client_id: str) -> AccessToken:
    """A token with all scopes of a client."""
    client = registered_client.find_client(connection, client_id)
    assert client is not None
    key_id = connection.execute(sa.select(tables.signing_keys.c.key_id)).scalar_one()
    return replace(client.make_token(client.scopes, 0), key_id=key_id)


class CountingRoundTrips(RoundTrips):
    """Notes what it is asked to read: the text of the last statement of each message."""

    def __init__(self, engine: sa.Engine) -> None:
        super().__init__(engine)
        self.sent: list[str] = []

    def _note(self, statement: Statement | PreparedStatement) -> None:
        is_prepared = isinstance(statement, PreparedStatement)
        self.sent.append(statement.plain if is_prepared else str(statement.compile(dialect=DIALECT)))

    def fetch_last(self, *calls: Call) -> Sequence[tuple[Any, ...]]:
        """As it is."""
        self._note(calls[-1].statement)
        return super().fetch_last(*calls)

    def fetch_once(self, first: Call, statement: Statement, values: Any) -> Sequence[Any]:
        """As it is."""
        self._note(statement)
        return super().fetch_once(first, statement, values)


class Questioner:
    """Asks for pages on one database, as requests to several workers do."""

    def __init__(self, url: str, workers: int = 1, *, keeps_orderings: bool = True) -> None:
        """`keeps_orderings`: False as where the database takes no writes."""
        self.url = url
        self.owner = make_engine(url)
        with self.owner.connect() as connection:
            name = find_role(connection, DatabaseRole.SERVING)
        assert name is not None
        serving = make_role_url(url, name, None)
        self.reading = make_reading_engine(serving, statement_seconds=60, pool_size=2, own_sessions=True)
        self.ordering = make_ordering_engine(serving, statement_seconds=60)
        self.round_trips = CountingRoundTrips(self.reading)
        kept = self.ordering if keeps_orderings else self.reading
        self.workers = [Reader(self.round_trips, Orderings(kept, 1000)) for _ in range(workers)]
        self.tokens: dict[frozenset[str], AccessToken] = {}

    def close(self) -> None:
        """Closes every connection."""
        self.round_trips.close()
        for engine in (self.owner, self.reading, self.ordering):
            engine.dispose()

    def find_token(self, question: Question) -> AccessToken:
        """A token of the vendor who asks the question."""
        orgs = frozenset((*question.districts, *question.schools))
        if orgs not in self.tokens:
            with self.owner.begin() as connection:
                number = connection.execute(sa.select(sa.func.count()).select_from(tables.vendors)).scalar_one()
                self.tokens[orgs] = add_vendor(connection, f"asks-{number}", sorted(orgs))
        return self.tokens[orgs]

    def request(
        self,
        question: Question,
        limit: int,
        offset: int,
        fields: tuple[str, ...] | None = ONLY_IDS,
        revision: int | None = None,
    ) -> AuthorizedRequest:
        """A question, with a page of it to read."""
        return make_request(self.find_token(question), question, limit, offset, fields, revision)

    def ask(self, question: Question, limit: int, offset: int, worker: int = 0) -> tuple[list[str], int]:
        """(ids of the page, count of all pages), as one worker answers."""
        page = self.workers[worker].read_page(self.request(question, limit, offset)).page
        return ids_of(page), page.total

    def read_revision(self) -> int:
        """The revision of the roster."""
        with self.owner.connect() as connection:
            return read_roster_state(connection).revision

    def count_rows(self, table: sa.Table, *conditions: Any) -> int:
        """How many rows a table has now."""
        with self.owner.connect() as connection:
            return connection.execute(sa.select(sa.func.count()).select_from(table).where(*conditions)).scalar_one()


def ids_of(page: Page) -> list[str]:
    """The ids of a page's records."""
    return [record["sourcedId"] for record in json.loads(page.encode("[", "]", "http://localhost"))]


def make_request(
    token: AccessToken,
    question: Question,
    limit: int,
    offset: int,
    fields: tuple[str, ...] | None = ONLY_IDS,
    revision: int | None = None,
) -> AuthorizedRequest:
    """A question of the holder of a token, with a page of it to read. `revision`: of the pull, as a link names it."""
    endpoint = PATHS[question.path]
    params = Params(limit, offset, question.filter, question.sort, question.descending, fields, revision)
    path_ids = dict.fromkeys(endpoint.ids, question.school)
    plan = make_plan(params, V1P2.records[endpoint.resource], token.rights, endpoint.path_filter, path_ids)
    return AuthorizedRequest(plan, token.vendor_id, token.client_id, token.admission, {})


@pytest.fixture(scope="session")
def districts(make_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """A roster of two districts, with tombstones, several stamps and absent values; its enrollments fill several
    chunks. It is copied; nothing stays connected to it."""
    url = make_database()
    engine = make_engine(url)
    for seed, students in ((1, 350), (2, 60)):
        folder: Path = tmp_path_factory.mktemp("districts") / str(seed)
        generate(folder, students=students, seed=seed, version="1.2", school_year=2027, name=f"District {seed}")
        load(engine, f"district-{seed}", folder)
    with engine.begin() as connection:
        for table in tables.ROSTER_TABLES:
            for number, (digit, status) in enumerate({"0": "active", "1": "tobedeleted", "2": "active"}.items()):
                stamp = sa.func.to_timestamp(FIRST_OF_NOVEMBER + number * 86400)
                some = table.c.sourced_id.startswith(digit)
                connection.execute(sa.update(table).where(some).values(status=status, date_last_modified=stamp))
        users = tables.users.c
        for value, first in (("a", "3"), ("B", "4"), ("é", "5")):
            some = users.sourced_id.startswith(first)
            connection.execute(sa.update(tables.users).where(some).values(middle_name=value, phone=value))
            named = tables.orgs.c.sourced_id.startswith(first)
            connection.execute(sa.update(tables.orgs).where(named).values(metadata=sa.cast({"city": value}, JSONB)))
        enrollments = tables.enrollments.c
        some = enrollments.sourced_id < "4"
        connection.execute(sa.update(tables.enrollments).where(some).values(primary=enrollments.sourced_id < "2"))
        ensure_signing_key(connection, SECRET_KEY)
    engine.dispose()
    return url


@pytest.fixture(scope="session")
def copy_districts(server_url: str, districts: str) -> Iterator[Callable[[], str]]:
    """Makes a copy of that roster and returns its URL; all are dropped at the end."""
    template = sa.make_url(districts).database
    copies: list[str] = []

    def copy() -> str:
        copies.append(f"{template}_copy_{len(copies)}")
        return copy_database(server_url, str(template), copies[-1])

    yield copy
    drop_databases(server_url, *copies)


@pytest.fixture(scope="session")
def shared_questioner(copy_districts: Callable[[], str]) -> Iterator[Questioner]:
    """Three workers on the two districts, which stay as they are."""
    made = Questioner(copy_districts(), workers=3)
    yield made
    made.close()


@pytest.fixture
def questioner(copy_districts: Callable[[], str]) -> Iterator[Questioner]:
    """Two workers on a copy of the two districts, where nobody has asked for anything."""
    made = Questioner(copy_districts(), workers=2)
    yield made
    made.close()


@pytest.fixture
def writing(questioner: Questioner) -> sa.Engine:
    """A writing engine on the database of `questioner`."""
    return questioner.owner


def find_orgs(engine: sa.Engine) -> tuple[list[str], list[str]]:
    """(the districts, some of the schools)."""
    orgs = tables.orgs.c
    with engine.connect() as connection:
        found = connection.execute(sa.select(orgs.sourced_id, orgs.type).order_by(orgs.sourced_id)).all()
    return [row[0] for row in found if row.type == "district"], [row[0] for row in found if row.type == "school"][:3]


@pytest.fixture
def district(writing: sa.Engine) -> str:
    """A district of the roster."""
    return find_orgs(writing)[0][0]
