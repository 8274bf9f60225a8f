"""What is ready before anybody asks."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, func, insert, select, update

from roster_service.access import vendors
from roster_service.access.scopes import Scope, ScopeName
from roster_service.db import tables
from roster_service.db.document_tables import shelves
from roster_service.db.walk_tables import walk_chunks, walks
from roster_service.query.shelves import Means
from roster_service.query.warming import Warmth, warm, warm_documents
from roster_service.rostering.endpoints import list_listings

from .conftest import Asker
from .plain_pages import Question, plain_page

LISTINGS = list(list_listings())
CORE = Scope("v1p2", ScopeName.CORE)
GUARDIANS = Scope("v1p2", ScopeName.GUARDIANS)


@pytest.fixture
def district(writing: Engine) -> str:
    """A district of the roster."""
    orgs = tables.orgs.c
    with writing.connect() as connection:
        return connection.execute(select(func.min(orgs.sourced_id)).where(orgs.type == "district")).scalar_one()


def add_client(writing: Engine, district: str, name: str, *scopes: Scope) -> str:
    """A vendor who may see the district, with one client; the client's id."""
    email = f"{name}@example.org"
    with writing.begin() as connection:
        vendors.add_vendor(connection, email, name)
        vendors.grant(connection, email, district, ())
        return vendors.add_client(connection, email, name, scopes).client_id


def warm_all(asker: Asker, *, megabytes: int = 100, seconds: float = 60) -> Warmth:
    return warm(asker.walking, asker.walking, LISTINGS, megabytes=megabytes, seconds=seconds)


def test_the_first_page_of_a_listing_is_ready(asker: Asker, writing: Engine, district: str) -> None:
    add_client(writing, district, "a", CORE, GUARDIANS)
    assert warm_all(asker).left == 0
    question = Question(path="/users", districts=(district,), schools=(), school="")
    with asker.reading.connect() as connection:
        made = connection.execute(select(func.count()).select_from(walks)).scalar_one()
        assert asker.ask(connection, question, 10, 0)[0] == plain_page(connection, question, 10, 0)
        assert asker.ask(connection, question, 10, 10)[0] == plain_page(connection, question, 10, 10)
    with writing.connect() as connection:
        assert connection.execute(select(func.count()).select_from(walks)).scalar_one() == made


@pytest.mark.parametrize(
    ("scopes", "walks_each"),
    [
        pytest.param([CORE], 11, id="core"),
        pytest.param([CORE, Scope("v1p2", ScopeName.DEMOGRAPHICS)], 12, id="demographics"),
        pytest.param([Scope("v1p2", ScopeName.GUARDIANS)], 0, id="nothing-to-ask-for"),
        pytest.param([CORE, Scope("v1p1", ScopeName.FULL)], 11, id="two-versions-are-one-walk"),
    ],
)
def test_what_a_client_may_ask_for_is_made(
    asker: Asker, writing: Engine, district: str, scopes: list[Scope], walks_each: int
) -> None:
    add_client(writing, district, "a", *scopes)
    add_client(writing, district, "b", *scopes)
    assert warm_all(asker) == Warmth(kept=walks_each, left=0)


@pytest.mark.parametrize("table", [tables.oauth_clients, tables.vendors], ids=lambda table: table.name)
def test_nothing_is_made_for_who_is_disabled(asker: Asker, writing: Engine, district: str, table: object) -> None:
    add_client(writing, district, "a", CORE)
    with writing.begin() as connection:
        connection.execute(update(table).values(enabled=False))  # type: ignore[arg-type]
    assert warm_all(asker) == Warmth(kept=0, left=0)


def test_the_time_is_bounded(asker: Asker, writing: Engine, district: str) -> None:
    add_client(writing, district, "a", CORE)
    assert warm_all(asker, seconds=0) == Warmth(kept=0, left=11)


def test_walks_of_older_rosters_go_first(asker: Asker, writing: Engine) -> None:
    """Also where there is nobody to make new ones for."""
    with writing.begin() as connection:
        old = {"key": b"old", "revision": 0, "total": 1, "bytes": 1, "used_at": func.now()}
        connection.execute(insert(walks).values(old))
        connection.execute(insert(walk_chunks).values(walk=b"old", number=0, ids=["x"]))
    warm_all(asker)
    with writing.connect() as connection:
        for table in (walks, walk_chunks):
            assert connection.execute(select(func.count()).select_from(table)).scalar_one() == 0


@pytest.mark.parametrize(
    ("scopes", "shelves_each"),
    [
        pytest.param([CORE], 3, id="core"),
        pytest.param([CORE, Scope("v1p2", ScopeName.DEMOGRAPHICS)], 4, id="demographics"),
        pytest.param([Scope("v1p2", ScopeName.GUARDIANS)], 0, id="nothing-to-ask-for"),
        pytest.param([CORE, Scope("v1p1", ScopeName.FULL)], 6, id="each-version-has-its-own"),
    ],
)
def test_the_documents_that_a_client_may_ask_for_are_kept(
    asker: Asker, writing: Engine, district: str, scopes: list[Scope], shelves_each: int
) -> None:
    for name in ("a", "b"):
        add_client(writing, district, name, *scopes)
    assert warm_documents(writing, LISTINGS, Means.of(100, 60)) == Warmth(kept=shelves_each, left=0)
    # Another client, with rights of its own.
    add_client(writing, district, "c", CORE, GUARDIANS)
    own = 3 if not shelves_each else 1
    assert warm_documents(writing, LISTINGS, Means.of(100, 60)) == Warmth(kept=shelves_each + own, left=0)


def test_documents_of_older_rosters_go(asker: Asker, writing: Engine, district: str) -> None:
    """Unless the time was up before somebody could look what has changed."""
    add_client(writing, district, "a", CORE)
    warm_documents(writing, LISTINGS, Means.of(100, 60))
    with writing.begin() as connection:
        connection.execute(update(tables.roster_state).values(revision=tables.roster_state.c.revision + 1))

    def count_shelves() -> int:
        with writing.connect() as connection:
            return connection.execute(select(func.count()).select_from(shelves)).scalar_one()

    assert warm_documents(writing, LISTINGS, Means.of(100, 0)) == Warmth(kept=0, left=3)
    assert count_shelves() == 3
    with writing.begin() as connection:
        connection.execute(update(tables.oauth_clients).values(enabled=False))
    assert warm_documents(writing, LISTINGS, Means.of(100, 60)) == Warmth(kept=0, left=0)
    assert count_shelves() == 0


def test_no_documents_are_kept_where_none_are_wanted(asker: Asker, writing: Engine, district: str) -> None:
    add_client(writing, district, "a", CORE)
    assert warm_documents(writing, LISTINGS, Means.of(0, 60)) == Warmth(kept=0, left=0)
