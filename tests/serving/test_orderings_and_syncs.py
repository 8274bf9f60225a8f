"""Pulls by several consumers while syncs commit: the pages of each have neither overlap nor gap."""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.auth.credentials.signing_keys import ensure_signing_key
from roster_service.db.engine import make_engine
from roster_service.errors import Problem, RefusedRequestError
from roster_service.feeds.roster_state import read_roster_state
from roster_service.serving.reader import ReadPage
from sync_scripts.engine.load import Options, load
from tests.extent import examples
from tests.sync.conftest import EXPORTS, SPRINGFIELD
from tests.sync.export_changes import both, column, without_rows

from .conftest import ONLY_IDS, SECRET_KEY, Questioner, ids_of
from .plain_pages import Question, plain_page

CLIENTS, SYNCS = 3, examples(3, 3, 8)
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
    )(second)
    return first, second


@pytest.fixture
def small_url(make_database: Callable[[], str], exports: tuple[Path, Path]) -> str:
    """A roster of the first export."""
    url = make_database()
    engine = make_engine(url)
    load(engine, "feed", exports[0])
    with engine.begin() as connection:
        ensure_signing_key(connection, SECRET_KEY)
    engine.dispose()
    return url


@pytest.fixture
def syncing(small_url: str) -> Iterator[sa.Engine]:
    """A writing engine on that roster."""
    engine = make_engine(small_url)
    yield engine
    engine.dispose()


def list_questions(seed: int) -> list[Question]:
    """What one client asks for: one sees the district, another one of its schools."""
    grants = ({"districts": ("spr-district",), "schools": ()}, {"districts": (), "schools": (SCHOOL,)})[seed % 2]
    return [Question(**{**grants, "school": SCHOOL, **question}) for question in QUESTIONS]


def read_on(questioner: Questioner, seed: int, ended: threading.Event, whole: list[bool]) -> None:
    """Reads one collection after the other. Every page is held against plain SQL on the roster of the first page;
    where a pull is refused, the client begins again. `whole`: for each whole pull, whether a sync committed on the
    way."""
    dice = random.Random(seed)
    questions = list_questions(seed)
    last = False
    while not last:
        last = ended.is_set()
        question = dice.choice(questions)
        limit = dice.randint(1, 6)
        fields = dice.choice([None, ONLY_IDS])
        with questioner.owner.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
            revision = read_roster_state(connection).revision
            expected = plain_page(connection, question, 10_000, 0)
            read = questioner.workers[0].read_page(questioner.request(question, limit, 0, fields))
        # Else a sync has committed between the two: there is nothing to hold it against.
        if read.state.revision == revision and read_rest(questioner, question, limit, expected, read, dice):
            whole.append(questioner.read_revision() != revision)
    questioner.round_trips.close()


def read_rest(
    questioner: Questioner, question: Question, limit: int, expected: list[str], read: ReadPage, dice: random.Random
) -> bool:
    """Reads the pages after the first one; False where the pull is refused."""
    found: list[str] = []
    while True:
        page = ids_of(read.page)
        assert page == expected[len(found) : len(found) + limit]
        assert read.page.total == len(expected)
        found += page
        if len(found) >= len(expected):
            return True
        try:
            read = questioner.workers[dice.randrange(2)].read_page(questioner.request(question, limit, len(found)))
        except RefusedRequestError as error:
            if error.problem is not Problem.PULL_ENDED:
                raise
            return False


def test_pages_while_syncs_commit(small_url: str, syncing: sa.Engine, exports: tuple[Path, Path]) -> None:
    questioners = [Questioner(small_url, workers=2) for _ in range(CLIENTS)]
    for seed, questioner in enumerate(questioners):
        questioner.find_token(list_questions(seed)[0])
    ended = threading.Event()
    whole: list[bool] = []
    failures: list[BaseException] = []

    def guarded(questioner: Questioner, seed: int) -> None:
        try:
            read_on(questioner, seed, ended, whole)
        except BaseException as error:  # noqa: BLE001  (raised again where the test stands)
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(questioner, seed)) for seed, questioner in enumerate(questioners)]
    for thread in threads:
        thread.start()
    for number in range(SYNCS):
        load(syncing, "feed", exports[(number + 1) % 2], options=Options(allow_mass_delete=True))
    ended.set()
    for thread in threads:
        thread.join()
    for questioner in questioners:
        questioner.close()
    assert failures == []
    assert {True, False} <= set(whole), "some pulls went on across a sync, and some met none"
