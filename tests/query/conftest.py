"""Walks on a roster of two districts, and what asks for their pages as the interface does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, func, make_url, update

from roster_service.access.roster_state import read_state
from roster_service.db import tables
from roster_service.db.engine import make_engine, make_reading_engine, make_walking_engine
from roster_service.db.visibility import Sight, open_roster
from roster_service.query.params import Wish
from roster_service.query.plan import make_plan
from roster_service.query.run import Page, fetch_page
from roster_service.query.walks import Walk, Walks, make_walk
from roster_service.rostering.endpoints import ENDPOINTS
from roster_service.schemas.versions import V1P2
from sync_scripts.generate_district import generate
from sync_scripts.loading import load
from tests.conftest import administer, url_of

from .plain_pages import Question

PATHS = {endpoint.path: endpoint for endpoint in ENDPOINTS}
FIRST_OF_NOVEMBER = 1793491200
SIGHT = Sight(guardians=True, metadata=frozenset())


class Asker:
    """Asks for pages on one database, as requests to several workers do."""

    def __init__(self, url: str, workers: int = 1) -> None:
        self.url = url
        self.reading = make_reading_engine(url, role=None, statement_seconds=60, pool_size=2, own_sessions=False)
        self.walking = make_walking_engine(url, role=None, statement_seconds=60)
        self.workers = [Walks(self.walking, 1000) for _ in range(workers)]

    def close(self) -> None:
        """Closes every connection."""
        self.reading.dispose()
        self.walking.dispose()

    def ask(
        self, connection: Connection, question: Question, limit: int, offset: int, worker: int = 0
    ) -> tuple[list[str], int]:
        """(ids of the page, count of all pages), as one worker answers."""
        page = fetch_page(connection, make_page_walk(connection, question, limit, offset), self.workers[worker])
        return ids_of(page), page.total


def ids_of(page: Page) -> list[str]:
    """The ids of a page's records."""
    return [record["sourcedId"] for record in json.loads(page.encode("[", "]", "http://localhost"))]


def make_page_walk(connection: Connection, question: Question, limit: int, offset: int) -> Walk:
    """The walk of a question, with a page of it to fetch."""
    endpoint = PATHS[question.path]
    wish = Wish(limit, offset, question.filter, question.sort, question.descending, ("sourcedId",))
    path_ids = dict.fromkeys(endpoint.ids, question.school)
    plan = make_plan(wish, V1P2.records[endpoint.resource], SIGHT, endpoint.selection, path_ids)
    values = {
        "caller_districts": list(question.districts),
        "caller_schools": list(question.schools),
        "base_url": "http://localhost",
        **{f"path_{name}": value for name, value in plan.path_ids},
    }
    # So it is with both districts, for every user here has a role; with one of them, the statement must find out.
    everyone = bool(question.districts)
    opening = make_opening(connection, values)
    return make_walk(plan, values, read_state(connection), opening, everyone=everyone)


def make_opening(connection: Connection, values: dict[str, Any]) -> str:
    """What row-level security is told of a question's districts and schools."""
    return open_roster(connection, values["caller_districts"], values["caller_schools"], SIGHT)


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
                stamp = func.to_timestamp(FIRST_OF_NOVEMBER + number * 86400)
                some = table.c.sourced_id.startswith(digit)
                connection.execute(update(table).where(some).values(status=status, date_last_modified=stamp))
        users = tables.users.c
        for value, first in (("a", "3"), ("B", "4"), ("é", "5")):
            some = users.sourced_id.startswith(first)
            connection.execute(update(tables.users).where(some).values(middle_name=value, phone=value))
        enrollments = tables.enrollments.c
        some = enrollments.sourced_id < "4"
        connection.execute(update(tables.enrollments).where(some).values(primary=enrollments.sourced_id < "2"))
    engine.dispose()
    return url


@pytest.fixture(scope="session")
def copy_districts(server_url: str, districts: str) -> Iterator[Callable[[], str]]:
    """Makes a copy of that roster and returns its URL; all are dropped at the end."""
    template = make_url(districts).database
    copies: list[str] = []

    def copy() -> str:
        copies.append(f"{template}_copy_{len(copies)}")
        administer(server_url, f"CREATE DATABASE {copies[-1]} TEMPLATE {template}")
        return url_of(server_url, copies[-1])

    yield copy
    administer(server_url, *(f"DROP DATABASE {name} WITH (FORCE)" for name in copies))


@pytest.fixture(scope="session")
def shared_asker(copy_districts: Callable[[], str]) -> Iterator[Asker]:
    """Three workers on the two districts, which stay as they are."""
    made = Asker(copy_districts(), workers=3)
    yield made
    made.close()


@pytest.fixture
def asker(copy_districts: Callable[[], str]) -> Iterator[Asker]:
    """Two workers on a copy of the two districts, where nobody has asked for anything."""
    made = Asker(copy_districts(), workers=2)
    yield made
    made.close()


@pytest.fixture
def writing(asker: Asker) -> Iterator[Engine]:
    """A writing engine on the database of `asker`."""
    engine = make_engine(asker.url)
    yield engine
    engine.dispose()
