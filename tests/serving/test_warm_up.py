"""What is ready before anybody asks."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import sqlalchemy as sa

from roster_service.auth.credentials.tokens import AccessToken
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.db import tables
from roster_service.db.tables import ordering_chunks, orderings
from roster_service.rostering.endpoints import list_listings
from roster_service.serving import warm_up as warming
from roster_service.serving.warm_up import WarmUp, make_orderings

from .conftest import Questioner, add_vendor, find_orgs, ids_of, make_request
from .plain_pages import Question, plain_page

LISTINGS = list(list_listings())
CORE = Scope("v1p2", ScopeName.CORE)
GUARDIANS = Scope("v1p2", ScopeName.GUARDIANS)
DEMOGRAPHICS = Scope("v1p2", ScopeName.DEMOGRAPHICS)


def add_client(writing: sa.Engine, orgs: Sequence[str], name: str, *scopes: Scope) -> AccessToken:
    """A vendor who was granted these orgs, with one client."""
    with writing.begin() as connection:
        return add_vendor(connection, name, orgs, scopes)


def warm_up(questioner: Questioner, *, megabytes: int = 100, seconds: float = 60) -> WarmUp:
    return make_orderings(questioner.owner, questioner.ordering, LISTINGS, megabytes=megabytes, seconds=seconds)


def test_the_pages_of_a_listing_are_ready(questioner: Questioner, writing: sa.Engine, district: str) -> None:
    """Nothing is made any more by who asks, but pages are those of plain SQL."""
    token = add_client(writing, [district], "a", CORE, GUARDIANS)
    assert warm_up(questioner) == WarmUp(kept=11, left=0)
    question = Question(path="/users", districts=(district,), schools=(), school="")
    with writing.connect() as connection:
        for offset in (0, 10):
            page = questioner.workers[0].read_page(make_request(token, question, 10, offset)).page
            assert ids_of(page) == plain_page(connection, question, 10, offset)
    assert len(questioner.round_trips.sent) == 2
    assert questioner.count_rows(orderings) == 11


@pytest.mark.parametrize(
    ("scopes", "made"),
    [
        pytest.param([CORE], 11, id="core"),
        pytest.param([CORE, DEMOGRAPHICS], 12, id="demographics"),
        pytest.param([GUARDIANS], 0, id="nothing-to-ask-for"),
        pytest.param([CORE, Scope("v1p1", ScopeName.FULL)], 14, id="two-versions-share-orderings"),
    ],
)
def test_what_a_client_may_ask_for_is_made_once_for_who_sees_the_same(
    questioner: Questioner, writing: sa.Engine, district: str, scopes: list[Scope], made: int
) -> None:
    for name in ("a", "b"):
        add_client(writing, [district], name, *scopes)
    assert warm_up(questioner) == WarmUp(kept=made, left=0)
    assert questioner.count_rows(orderings) == made


def test_many_clients_with_the_same_grants_and_scopes_are_planned_once(
    questioner: Questioner, writing: sa.Engine, district: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[object] = []
    make_plan = warming.make_plan
    monkeypatch.setattr(warming, "make_plan", lambda *given: planned.append(given) or make_plan(*given))
    for number in range(12):
        add_client(writing, [district], f"client-{number}", CORE)
    assert warm_up(questioner) == WarmUp(kept=11, left=0)
    assert len(planned) == 11


def test_who_sees_other_orgs_gets_orderings_of_its_own(questioner: Questioner, writing: sa.Engine) -> None:
    districts, schools = find_orgs(writing)
    for name, orgs in (("a", districts[:1]), ("b", districts), ("c", schools[:1]), ("d", [])):
        add_client(writing, orgs, name, CORE)
    assert warm_up(questioner) == WarmUp(kept=33, left=0)


@pytest.mark.parametrize("table", [tables.oauth_clients, tables.vendors], ids=lambda table: table.name)
def test_nothing_is_made_for_who_is_disabled(
    questioner: Questioner, writing: sa.Engine, district: str, table: sa.Table
) -> None:
    add_client(writing, [district], "a", CORE)
    with writing.begin() as connection:
        connection.execute(sa.update(table).values(enabled=False))
    assert warm_up(questioner) == WarmUp(kept=0, left=0)


def test_the_time_is_bounded(questioner: Questioner, writing: sa.Engine, district: str) -> None:
    add_client(writing, [district], "a", CORE)
    assert warm_up(questioner, seconds=0) == WarmUp(kept=0, left=11)


def test_orderings_of_older_rosters_go_first(questioner: Questioner, writing: sa.Engine) -> None:
    """Also where there is nobody to make new ones for."""
    with writing.begin() as connection:
        old = {"query": b"old", "feed_id": 0, "visible_set": "x", "revision": 0, "vendor_id": 1, "total": 1, "bytes": 1}
        ordering_id = connection.execute(sa.insert(orderings).values(old).returning(orderings.c.id)).scalar_one()
        connection.execute(sa.insert(ordering_chunks).values(ordering_id=ordering_id, number=0, ids=["x"]))
    warm_up(questioner)
    assert [questioner.count_rows(table) for table in (orderings, ordering_chunks)] == [0, 0]
