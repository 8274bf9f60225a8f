"""Walks while syncs commit: each page belongs to one roster, whose pages have neither overlap nor gap."""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from roster_service.access.roster_state import read_state
from roster_service.db.engine import make_engine
from sync_scripts.loading import Options, load
from tests.sync.bending import both, column, with_row, without_rows
from tests.sync.conftest import EXPORTS, SPRINGFIELD

from .conftest import Asker
from .plain_pages import Question, plain_count, plain_page

WALKERS, SYNCS = 3, 8
SCHOOL = "spr-elementary"
QUESTIONS = [
    {"path": "/users"},
    {"path": "/users", "filter": "familyName~'a'", "sort": "familyName"},
    {"path": "/users", "sort": "phone", "descending": True},
    {"path": "/enrollments", "filter": "status='active'"},
    {"path": "/schools/{schoolId}/enrollments", "sort": "role", "descending": True},
]


@pytest.fixture
def exports(tmp_path: Path) -> tuple[Path, Path]:
    """What alternates: two rosters that differ in who is there and in how they are sorted."""
    first, second = (Path(shutil.copytree(EXPORTS / SPRINGFIELD, tmp_path / name)) for name in ("first", "second"))
    both(
        column("users", "phone", "1"),
        without_rows("demographics", "spr-student-4"),
        with_row("orgs", sourcedId="new", name="New", type="school"),
    )(second)
    return first, second


@pytest.fixture
def small_url(make_database: Callable[[], str], exports: tuple[Path, Path]) -> str:
    """A roster of the first export."""
    url = make_database()
    engine = make_engine(url)
    load(engine, "feed", exports[0])
    engine.dispose()
    return url


@pytest.fixture
def syncing(small_url: str) -> Iterator[Engine]:
    """A writing engine on that roster."""
    engine = make_engine(small_url)
    yield engine
    engine.dispose()


def walk_on(asker: Asker, seed: int, ended: threading.Event, whole: list[int]) -> None:
    """Walks one collection after the other. The pages of each roster are held against plain SQL in the same snapshot;
    where the revision changes on the way, the walk begins again, as a client does."""
    dice = random.Random(seed)
    last = False
    while not last:
        last = ended.is_set()
        question = Question(
            **{"districts": ("spr-district",), "schools": (), "school": SCHOOL, **dice.choice(QUESTIONS)}
        )
        limit = dice.randint(1, 6)
        found: list[str] = []
        begun: int | None = None
        while True:
            with asker.reading.connect() as connection:
                revision = read_state(connection).revision
                if begun not in (None, revision):
                    break
                begun = revision
                page, total = asker.ask(connection, question, limit, len(found), worker=dice.randrange(2))
                assert page == plain_page(connection, question, limit, len(found))
                assert total == plain_count(connection, question)
                found += page
                if len(found) >= total:
                    assert found == plain_page(connection, question, 10_000, 0)
                    whole.append(revision)
                    break


def test_walks_while_syncs_commit(small_url: str, syncing: Engine, exports: tuple[Path, Path]) -> None:
    askers = [Asker(small_url, workers=2) for _ in range(WALKERS)]
    ended = threading.Event()
    whole: list[int] = []
    failures: list[BaseException] = []

    def guarded(asker: Asker, seed: int) -> None:
        try:
            walk_on(asker, seed, ended, whole)
        except BaseException as error:  # noqa: BLE001  (raised again where the test stands)
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(asker, seed)) for seed, asker in enumerate(askers)]
    for thread in threads:
        thread.start()
    for number in range(SYNCS):
        load(syncing, "feed", exports[(number + 1) % 2], options=Options(allow_mass_delete=True))
    ended.set()
    for thread in threads:
        thread.join()
    for asker in askers:
        asker.close()
    assert failures == []
    # The last roster was walked to its end by everyone, and some of the others were met on the way.
    assert len(set(whole)) > 1
    assert whole.count(max(whole)) >= WALKERS
