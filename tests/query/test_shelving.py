"""What is walked is kept, by a thread beside the requests."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import pytest
from sqlalchemy import Engine, func, select, update

from roster_service.db import tables
from roster_service.db.document_tables import shelves
from roster_service.db.engine import make_reading_engine
from roster_service.query.plan import Outline, make_view
from roster_service.query.selections import everything
from roster_service.query.shelving import Shelving
from roster_service.query.walks import Walks
from roster_service.schemas.versions import ORGS, USERS, V1P2, Resource

from .conftest import SIGHT, Asker
from .plain_pages import Question, plain_page

PATIENCE_SECONDS = 60


def make_outline(resource: Resource, fields: tuple[str, ...] | None = None) -> Outline:
    """Of whole records, or of some fields."""
    view = make_view(V1P2.records[resource], SIGHT)
    return Outline(view, everything, None, False, fields or tuple(view.fields))


def count_shelves(engine: Engine) -> int:
    """How many shelves are whole."""
    with engine.connect() as connection:
        whole = select(func.count()).select_from(shelves).where(shelves.c.reached.is_(None))
        return connection.execute(whole).scalar_one()


def wait_for(condition: Callable[[], bool]) -> None:
    """Until it holds."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


def test_what_is_walked_is_kept(asker: Asker, writing: Engine) -> None:
    shelving = Shelving(writing, 1000)
    shelving.note(make_outline(USERS))
    wait_for(lambda: count_shelves(writing) == 1)


def test_a_first_page_is_no_walk(asker: Asker, writing: Engine) -> None:
    """Nobody pays for documents before somebody goes on."""
    noted: list[Outline] = []
    shelving = Shelving(writing, 1000)
    shelving.note = noted.append  # type: ignore[method-assign]
    asker.workers = [Walks(asker.walking, 1000, shelving)]
    with writing.connect() as connection:
        orgs = tables.orgs.c
        district = connection.execute(select(func.min(orgs.sourced_id)).where(orgs.type == "district")).scalar_one()
    question = Question(path="/users", districts=(district,), schools=(), school="")
    with asker.reading.connect() as connection:
        for offset, notes in ((0, 0), (10, 0), (20, 1), (30, 2)):
            ids, _ = asker.ask(connection, question, 10, offset)
            assert ids == plain_page(connection, question, 10, offset)
            assert len(noted) == notes


@pytest.mark.parametrize(
    ("megabytes", "outline"),
    [
        pytest.param(0, make_outline(USERS), id="none-are-wanted"),
        pytest.param(1000, make_outline(ORGS), id="a-small-collection"),
        pytest.param(1000, make_outline(USERS, ("sourcedId",)), id="some-fields"),
    ],
)
def test_what_has_no_documents_is_not_asked_for(writing: Engine, megabytes: int, outline: Outline) -> None:
    shelving = Shelving(writing, megabytes)
    shelving.note(outline)
    assert shelving._thread is None


def test_a_shelf_in_use_is_looked_at_once_in_a_while(writing: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roster_service.query.shelving.TOUCH_SECONDS", 0.0)
    shelving = Shelving(writing, 1000)
    shelving.note(make_outline(USERS))
    wait_for(lambda: count_shelves(writing) == 1)
    with writing.begin() as connection:
        connection.execute(update(tables.roster_state).values(revision=tables.roster_state.c.revision + 1))
    shelving.note(make_outline(USERS))
    current = select(func.count()).select_from(
        shelves.join(tables.roster_state, tables.roster_state.c.revision == shelves.c.revision)
    )

    def is_current() -> bool:
        with writing.connect() as connection:
            return connection.execute(current).scalar_one() == 1

    wait_for(is_current)


def test_who_may_not_write_leaves_it_to_the_night(asker: Asker, caplog: pytest.LogCaptureFixture) -> None:
    """And says so."""
    reading = make_reading_engine(asker.url, role=None, statement_seconds=60, pool_size=1, own_sessions=False)
    shelving = Shelving(reading, 1000)
    with caplog.at_level(logging.WARNING):
        shelving.note(make_outline(USERS))
        wait_for(lambda: bool(caplog.records))
    assert "documents" in caplog.text
    reading.dispose()
