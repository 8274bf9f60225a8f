"""Nothing of a hidden record can be inferred: answers with and without it are the same, byte by byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

import pytest
import sqlalchemy as sa

from roster_service.db import tables
from roster_service.roster.references import list_owners, list_references_to
from tests.conftest import Tally
from tests.extent import examples

from .cells import Cell, make_cells
from .conftest import Questioner, World
from .layers import Layers
from .roster import ROSTER
from .visible_records import GRANTS, Eyes

RULED = [name for name, grants in GRANTS.items() if grants.rules or grants.kept]
# The records that are taken away in turn, and the requests of each.
HIDDEN, REQUESTS = examples(1, 1, 60), examples(40, 40, 2000)
# Of the request and of the rate, not of the roster.
VARYING = {"Date", "X-Request-Id", "RateLimit-Remaining", "RateLimit-Reset"}


@contextmanager
def taken_away(engine: sa.Engine, table: sa.Table, sourced_id: str) -> Iterator[None]:
    """The roster is without a record and what refers to it, meanwhile; nothing else changes."""
    references = [reference.column for reference in list_references_to(table)]
    columns = [*list_owners(table), *references, table.c.sourced_id]
    rows = []
    with engine.begin() as connection:
        for column in columns:
            # Parts of a record go before it, and come back after it.
            found = connection.execute(sa.delete(column.table).where(column == sourced_id).returning(column.table))
            rows += [(column.table, dict(row._mapping)) for row in found]
        forget_orderings(connection)
    try:
        yield
    finally:
        with engine.begin() as connection:
            for of_table, row in reversed(rows):
                # SQLAlchemy would write JSON's null for an absent value.
                present = {name: value for name, value in row.items() if value is not None}
                connection.execute(sa.insert(of_table).values(present))
            forget_orderings(connection)


def forget_orderings(connection: sa.Connection) -> None:
    """Each answer is found anew."""
    for table in (tables.pulls, tables.ordering_chunks, tables.orderings):
        connection.execute(sa.delete(table))


def ask(questioner: Questioner, cells: list[Cell]) -> dict[tuple[str, str], tuple[object, ...]]:
    """The answers, whole, by address and scopes."""
    answers = {}
    for cell in cells:
        headers = {"Authorization": f"Bearer {questioner.token(cell.caller)}"}
        with questioner.http.get(cell.address, headers=headers) as answer:
            shown = sorted((name, value) for name, value in answer.headers.items() if name not in VARYING)
            # An error names its request.
            body = answer.text.replace(answer.headers["X-Request-Id"], "")
            answers[cell.address, cell.caller.scopes] = (answer.status_code, shown, body)
    return answers


def list_hidden(grants: str) -> list[tuple[sa.Table, str]]:
    """The people, classes and enrollments that a vendor is not shown, guardians or not."""
    eyes = Eyes(GRANTS[grants], guardians=True)
    return [
        (tables.metadata.tables[name], row["sourced_id"])
        for name in ("users", "classes", "enrollments")
        for row in ROSTER[name]
        if row["sourced_id"] not in getattr(eyes, name)
    ]


@pytest.mark.parametrize("grants", RULED)
def test_answers_are_the_same_without_a_hidden_record(
    world: World, make_questioner: Callable[[Layers], Questioner], tally: Tally, grants: str
) -> None:
    dice, questioner = Random(grants), make_questioner(Layers.BOTH)
    hidden, own = list_hidden(grants), [cell for cell in make_cells() if cell.caller.grants == grants]
    kept = [(tables.users, person) for person in GRANTS[grants].kept]
    compared = 0
    for table, sourced_id in [*dice.sample(kept, min(1, len(kept))), *dice.sample(hidden, HIDDEN)]:
        # Those that name it in their path ask for it.
        naming = [cell for cell in own if sourced_id in dict(cell.ids).values()]
        cells = dice.sample(naming, min(len(naming), 10)) + dice.sample(own, REQUESTS)
        with world.engine.begin() as connection:
            forget_orderings(connection)
        before = ask(questioner, cells)
        with taken_away(world.engine, table, sourced_id):
            after = ask(questioner, cells)
        differing = [asked for asked, answer in before.items() if after[asked] != answer]
        assert not differing, (table.name, sourced_id, differing[:5], [(before[it], after[it]) for it in differing[:1]])
        compared += len(cells)
    tally(f"pairs, {grants}: {compared:,} answers with and without a hidden record, 0 differ")


def test_a_record_that_is_shown_makes_a_difference(
    world: World, make_questioner: Callable[[Layers], Questioner]
) -> None:
    """Else the comparison would prove nothing."""
    questioner = make_questioner(Layers.BOTH)
    own = [cell for cell in make_cells() if cell.caller.grants == "some-classes"]
    cells = Random("shown").sample(own, REQUESTS)
    shown = min(Eyes(GRANTS["some-classes"], guardians=False).users)
    before = ask(questioner, cells)
    with taken_away(world.engine, tables.users, shown):
        assert ask(questioner, cells) != before
