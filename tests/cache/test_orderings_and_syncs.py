"""Pages while syncs commit: each belongs to one roster, whose pages have neither overlap nor gap."""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from roster_service.access.credentials.signing_keys import ensure_signing_key
from roster_service.access.roster_state import read_state
from roster_service.db.engine import make_engine
from sync_scripts.engine.load import Options, load
from tests.extent import examples
from tests.sync.conftest import EXPORTS, SPRINGFIELD
from tests.sync.export_changes import both, column, with_row, without_rows

from .conftest import ONLY_IDS, SECRET_KEY, Questioner, ids_of
from .plain_pages import Question, plain_count, plain_page

CLIENTS, SYNCS = 3, examples(3, 8, 8)
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
    with engine.begin() as connection:
        ensure_signing_key(connection, SECRET_KEY)
    engine.dispose()
    return url


@pytest.fixture
def syncing(small_url: str) -> Iterator[Engine]:
    """A writing engine on that roster."""
    engine = make_engine(small_url)
    yield engine
    engine.dispose()


def list_questions(seed: int) -> list[Question]:
    """What one client asks for: one sees the district, another one of its schools."""
    grants = ({"districts": ("spr-district",), "schools": ()}, {"districts": (), "schools": (SCHOOL,)})[seed % 2]
    return [Question(**{**grants, "school": SCHOOL, **question}) for question in QUESTIONS]


def read_on(questioner: Questioner, seed: int, ended: threading.Event, whole: list[int]) -> None:
    """Reads one collection after the other. The pages of each roster are held against plain SQL of the same roster;
    where the revision changes on the way, the client begins again."""
    dice = random.Random(seed)
    questions = list_questions(seed)
    last = False
    while not last:
        last = ended.is_set()
        question = dice.choice(questions)
        limit = dice.randint(1, 6)
        # Some fields are made live; whole records are read rendered.
        fields = dice.choice([None, ONLY_IDS])
        found: list[str] = []
        begun: int | None = None
        while True:
            with questioner.owner.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
                revision = read_state(connection).revision
                read = questioner.workers[dice.randrange(2)].read_page(
                    questioner.request(question, limit, len(found), fields)
                )
                if read.state.revision != revision:
                    # A sync has committed between the two: there is nothing to hold it against.
                    continue
                if begun not in (None, revision):
                    break
                begun = revision
                page = ids_of(read.page)
                assert page == plain_page(connection, question, limit, len(found))
                assert read.page.total == plain_count(connection, question)
                found += page
                if len(found) >= read.page.total:
                    assert found == plain_page(connection, question, 10_000, 0)
                    whole.append(revision)
                    break
    questioner.round_trips.close()


def test_pages_while_syncs_commit(small_url: str, syncing: Engine, exports: tuple[Path, Path]) -> None:
    questioners = [Questioner(small_url, workers=2) for _ in range(CLIENTS)]
    for seed, questioner in enumerate(questioners):
        questioner.find_token(list_questions(seed)[0])
    ended = threading.Event()
    whole: list[int] = []
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
    # The last roster was read to its end by everyone, and some of the others were met on the way.
    assert len(set(whole)) > 1
    assert whole.count(max(whole)) >= CLIENTS
