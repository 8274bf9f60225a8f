"""Pages out of walks: the same as by plain SQL, made once, shared, bounded."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, delete, event, func, select, text, update

from roster_service.db import tables
from roster_service.db.engine import make_reading_engine
from roster_service.db.walk_tables import walk_chunks, walks
from roster_service.query.walk_eviction import Bounds, evict
from roster_service.query.walks import Walks

from .conftest import Asker, make_page_walk
from .plain_pages import SHAPES, Question, plain_count, plain_page

ORGS = tables.orgs.c


@pytest.fixture(scope="module")
def orgs(shared_asker: Asker) -> tuple[list[str], list[str]]:
    """(the districts, some of the schools)."""
    with shared_asker.reading.connect() as connection:
        found = connection.execute(select(ORGS.sourced_id, ORGS.type).order_by(ORGS.sourced_id)).all()
    return [row[0] for row in found if row.type == "district"], [row[0] for row in found if row.type == "school"][:3]


@pytest.fixture(scope="module")
def everyone(orgs: tuple[list[str], list[str]]) -> Callable[..., Question]:
    """Makes questions of a caller who may see both districts."""
    districts, schools = orgs
    return lambda path, **more: Question(
        path=path, districts=tuple(districts), schools=(), school=more.pop("school", schools[0]), **more
    )


@st.composite
def questions(draw: st.DrawFn, districts: list[str], schools: list[str]) -> Question:
    """Anything that can be asked, by anyone."""
    path = draw(st.sampled_from(sorted(SHAPES)))
    return Question(
        path=path,
        districts=tuple(draw(st.lists(st.sampled_from(districts), unique=True))),
        schools=tuple(draw(st.lists(st.sampled_from(schools), unique=True))),
        school=draw(st.sampled_from(schools)),
        filter=draw(st.none() | st.sampled_from(sorted(SHAPES[path].filters))),
        sort=draw(st.none() | st.sampled_from(sorted(SHAPES[path].sorts))),
        descending=draw(st.booleans()),
    )


def test_every_page_of_any_walk_is_that_of_plain_sql(shared_asker: Asker, orgs: tuple[list[str], list[str]]) -> None:
    """Whoever answers: the pages of a walk go to the workers in turn."""

    @settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
    @given(
        question=questions(*orgs),
        limit=st.sampled_from([0, 1, 7, 100, 999, 1000, 1001, 5000]),
        start=st.sampled_from([0, 0, 1, 500, 1999, 10**6]),
        stride=st.integers(1, 3),
    )
    def check(question: Question, limit: int, start: int, stride: int) -> None:
        with shared_asker.reading.connect() as connection:
            total = plain_count(connection, question)
            offsets = [start + limit * stride * number for number in range(8)]
            for number, offset in enumerate([*offsets, max(0, total - limit), max(0, total - 1)]):
                found = shared_asker.ask(connection, question, limit, offset, worker=number % 3)
                assert found == (plain_page(connection, question, limit, offset), total)

    check()


@contextmanager
def statements(engine: Engine) -> Iterator[list[str]]:
    """What an engine is told meanwhile."""
    told: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        told.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield told
    finally:
        event.remove(engine, "before_cursor_execute", note)


def is_own_look(statement: str) -> bool:
    """Whether it is the test's own look at what a request has from its caller."""
    return "SELECT roster_state.revision" in statement or "set_sight(" in statement


def test_a_page_of_a_known_walk_is_one_statement(asker: Asker, everyone: Callable[..., Question]) -> None:
    question = everyone("/users", filter="familyName~'a'", sort="familyName")
    with asker.reading.connect() as connection:
        for offset in (0, 20):
            asker.ask(connection, question, 20, offset)
    with asker.reading.connect() as connection, statements(asker.reading) as read, statements(asker.walking) as written:
        for offset in (0, 20, 40):
            ids, _ = asker.ask(connection, question, 20, offset)
            assert len(ids) == 20
        asker.ask(connection, question, 20, 10**6)
    assert ["walk_chunks" in statement for statement in read if not is_own_look(statement)] == [True] * 3
    assert written == []


def test_a_first_page_is_one_pass(asker: Asker, everyone: Callable[..., Question]) -> None:
    """What is wanted is looked for once, and nobody pays for a walk before somebody walks."""
    with asker.reading.connect() as connection, statements(asker.reading) as read:
        _, total = asker.ask(connection, everyone("/users", filter="familyName~'a'"), 20, 0)
        assert total > 20
    assert sum("contains_folded" in statement for statement in read) == 1
    assert len([statement for statement in read if not is_own_look(statement)]) == 3
    assert count_rows(asker, walk_chunks) == 0


def test_what_fits_on_one_page_is_not_kept(asker: Asker, everyone: Callable[..., Question]) -> None:
    with asker.reading.connect() as connection:
        ids, total = asker.ask(connection, everyone("/orgs"), 100, 0)
    assert 0 < len(ids) == total < 100
    assert count_rows(asker, walks) == 0


def count_rows(asker: Asker, table: Any) -> int:
    """How many rows a table has now."""
    with asker.walking.begin() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()


def test_descending_is_the_same_walk_backwards(asker: Asker, everyone: Callable[..., Question]) -> None:
    """With its ties and its absent values."""
    forward, backward = (everyone("/users", sort="middleName", descending=way) for way in (False, True))
    with asker.reading.connect() as connection:
        for offset in (0, 100):
            assert asker.ask(connection, forward, 100, offset)[0] == plain_page(connection, forward, 100, offset)
            assert asker.ask(connection, backward, 100, offset)[0] == plain_page(connection, backward, 100, offset)
    assert count_rows(asker, walks) == 1


def test_another_worker_reads_what_one_has_kept(asker: Asker, everyone: Callable[..., Question]) -> None:
    question = everyone("/enrollments", sort="role")
    with asker.reading.connect() as connection:
        first = asker.ask(connection, question, 10, 1500, worker=0)
    with asker.reading.connect() as connection, statements(asker.walking) as written:
        assert asker.ask(connection, question, 10, 1500, worker=1) == first
    assert written == []


def test_a_count_is_shared(asker: Asker, everyone: Callable[..., Question]) -> None:
    """Whatever it was sorted by: who asks for no records asks for no order."""
    with asker.reading.connect() as connection:
        _, total = asker.ask(connection, everyone("/enrollments", sort="role"), 0, 0, worker=0)
    with asker.reading.connect() as connection, statements(asker.reading) as read:
        assert asker.ask(connection, everyone("/enrollments", sort="primary"), 0, 0, worker=1) == ([], total)
    assert not any("count(" in statement for statement in read)


def test_all_workers_at_once_make_one_walk(asker: Asker, everyone: Callable[..., Question]) -> None:
    question = everyone("/enrollments", filter="status='active'", sort="user.sourcedId")
    gate = threading.Barrier(4)
    found: list[tuple[list[str], int]] = []
    own = [Asker(asker.url) for _ in range(4)]

    def ask(worker: Asker) -> None:
        with worker.reading.connect() as connection:
            gate.wait()
            found.append(worker.ask(connection, question, 50, 1100))

    threads = [threading.Thread(target=ask, args=(worker,)) for worker in own]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for worker in own:
        worker.close()
    with asker.reading.connect() as connection:
        page, total = plain_page(connection, question, 50, 1100), plain_count(connection, question)
    assert found == [(page, total)] * 4
    assert (count_rows(asker, walks), count_rows(asker, walk_chunks)) == (1, -(-total // 1000))


def test_another_grant_is_another_walk(asker: Asker, everyone: Callable[..., Question]) -> None:
    both = everyone("/users")
    one = Question(path="/users", districts=both.districts[:1], schools=(), school=both.school)
    with asker.reading.connect() as connection:
        for question in (both, one, both, one):
            page = plain_page(connection, question, 30, 30)
            assert asker.ask(connection, question, 30, 30) == (page, plain_count(connection, question))


@pytest.mark.parametrize("lost", [pytest.param(walks, id="all-of-it"), pytest.param(walk_chunks, id="its-ids-alone")])
def test_what_was_evicted_is_made_again(asker: Asker, everyone: Callable[..., Question], lost: Any) -> None:
    question = everyone("/users")
    with asker.reading.connect() as connection:
        asker.ask(connection, question, 30, 30)
        page = plain_page(connection, question, 30, 60)
    with asker.walking.begin() as connection:
        connection.execute(delete(walk_chunks))
        connection.execute(delete(lost))
    for _ in range(2):
        with asker.reading.connect() as connection:
            assert asker.ask(connection, question, 30, 60)[0] == page


def change_roster(connection: Connection) -> None:
    """As a sync does: a user goes, and the revision advances."""
    first = select(func.min(tables.users.c.sourced_id)).scalar_subquery()
    connection.execute(delete(tables.users).where(tables.users.c.sourced_id == first))
    connection.execute(update(tables.roster_state).values(revision=tables.roster_state.c.revision + 1))


def test_a_request_stays_in_its_roster(asker: Asker, writing: Engine, everyone: Callable[..., Question]) -> None:
    """A sync commits in the middle of a request, before its walk is kept: it is answered without one."""
    question = everyone("/users")
    with asker.reading.connect() as connection:
        total = plain_count(connection, question)
        with writing.begin() as other:
            change_roster(other)
        assert asker.ask(connection, question, 30, 30) == (plain_page(connection, question, 30, 30), total)
    assert count_rows(asker, walks) == 0
    with asker.reading.connect() as connection:
        assert asker.ask(connection, question, 30, 30) == (plain_page(connection, question, 30, 30), total - 1)


def test_walks_of_older_rosters_go(asker: Asker, writing: Engine, everyone: Callable[..., Question]) -> None:
    question = everyone("/users")
    for _ in range(2):
        with asker.reading.connect() as connection:
            asker.ask(connection, question, 30, 30)
            revision = connection.scalar(select(tables.roster_state.c.revision))
        with writing.begin() as other:
            change_roster(other)
    with asker.walking.begin() as connection:
        assert list(connection.scalars(select(walks.c.revision).distinct())) == [revision]
        kept = select(walk_chunks.c.walk).distinct()
        assert list(connection.scalars(kept)) == list(connection.scalars(select(walks.c.key)))


def test_what_was_not_used_for_longest_goes_first(asker: Asker, everyone: Callable[..., Question]) -> None:
    sorts = ["familyName", "middleName", "phone", "status"]
    keys = {}
    with asker.reading.connect() as connection:
        for sort in sorts:
            asker.ask(connection, everyone("/users", sort=sort), 30, 30)
            keys[sort] = make_page_walk(connection, everyone("/users", sort=sort), 30, 30).key
        revision = connection.scalar(select(tables.roster_state.c.revision))
    with asker.walking.begin() as connection:
        connection.execute(update(walks).where(walks.c.key == keys["familyName"]).values(used_at=func.now()))
        size = connection.execute(select(func.max(walks.c.bytes))).scalar_one()

    def left(bounds: Bounds) -> set[str]:
        with asker.walking.begin() as connection:
            evict(connection, revision, bounds)
            kept = set(connection.scalars(select(walks.c.key)))
            assert set(connection.scalars(select(walk_chunks.c.walk))) == kept
        return {sort for sort, key in keys.items() if key in kept}

    assert left(Bounds(10 * size)) == set(sorts)
    assert left(Bounds(10 * size, most_walks=3)) == {"familyName", "phone", "status"}
    assert left(Bounds(size + 1)) == {"familyName", "status"}
    assert left(Bounds(1)) == {"familyName"}


def test_a_database_that_takes_nothing_still_gives_pages(
    asker: Asker, everyone: Callable[..., Question], caplog: pytest.LogCaptureFixture
) -> None:
    """And it is said aloud."""
    asker.workers = [
        Walks(make_reading_engine(asker.url, role=None, statement_seconds=60, pool_size=1, own_sessions=False), 1000)
    ]
    question = everyone("/users", filter="familyName~'a'", sort="phone")
    with asker.reading.connect() as connection:
        for offset in (0, 30, 60):
            page = plain_page(connection, question, 30, offset)
            assert asker.ask(connection, question, 30, offset) == (page, plain_count(connection, question))
    warned = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert warned
    assert all(record.getMessage().startswith("the walks are away") for record in warned)


def test_a_row_that_was_changed_by_hand_is_not_missed(
    asker: Asker, writing: Engine, everyone: Callable[..., Question]
) -> None:
    """No sync did it, so the walk still has the record; what the caller may not see is not shown all the same."""
    question = everyone("/enrollments")
    with asker.reading.connect() as connection:
        asker.ask(connection, question, 30, 30)
    with writing.begin() as other:
        other.execute(text("UPDATE enrollments SET school_id = 'nowhere' WHERE sourced_id < '2'"))
    with asker.reading.connect() as connection:
        assert asker.ask(connection, question, 30, 30)[0] == plain_page(connection, question, 30, 30)
