"""`roster db check`: which records it finds to have a wrong visibility label."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.db import tables
from tests.cli.conftest import Roster
from tests.postgres.loaded import load_first

EXPORT = Path(__file__).parent.parent / "exports" / "springfield-1.1"


@pytest.mark.parametrize("table", tables.LABELLED, ids=lambda table: table.name)
def test_a_record_with_the_label_of_another_is_found(roster: Roster, engine: sa.Engine, table: sa.Table) -> None:
    load_first(engine, "springfield", EXPORT)
    assert roster("db", "check").exit_code == 0
    with engine.begin() as connection:
        chosen = connection.scalar(sa.select(sa.func.min(table.c.sourced_id)))
        own = sa.select(table.c.label_id).where(table.c.sourced_id == chosen).scalar_subquery()
        other = sa.select(sa.func.min(tables.visibility_labels.c.id)).where(tables.visibility_labels.c.id != own)
        connection.execute(
            sa.update(table).where(table.c.sourced_id == chosen).values(label_id=other.scalar_subquery())
        )
    done = roster("db", "check")
    assert done.exit_code == 1
    assert f"of {table.name}, such as {chosen}" in done.stderr


@pytest.mark.shows(
    "Visibility",
    "A wrong label of a record fails its run; an enrollment that its school opens by mistake is found each night.",
)
@pytest.mark.parametrize("wrong", ["NOT school_opens", "NULL"])
def test_an_enrollment_that_its_school_opens_by_mistake_is_found(roster: Roster, engine: sa.Engine, wrong: str) -> None:
    load_first(engine, "springfield", EXPORT)
    with engine.begin() as connection:
        statement = f"UPDATE enrollments SET school_opens = {wrong} WHERE sourced_id = 'spr-enr-01'"
        connection.execute(sa.text(statement))
    done = roster("db", "check")
    assert done.exit_code == 1
    assert "of enrollments, such as spr-enr-01" in done.stderr
