"""The keys and indexes of the roster come with its first rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from roster_service.db import tables
from roster_service.db.engine import make_engine
from roster_service.db.tables import PART_TABLES, ROSTER_TABLES
from sync_scripts.engine.load import Options, load
from tests.postgres.loaded import load_first
from tests.postgres.server import drop_indexes
from tests.sync.export_changes import Bend, both, cell, repeat_row

EVERY_TABLE = (*ROSTER_TABLES, *PART_TABLES)


def find_key(engine: sa.Engine, table: sa.Table) -> list[str | None] | None:
    """The columns of the unique index that stands for a primary key."""
    found = [it for it in sa.inspect(engine).get_indexes(table.name) if it["name"] == table.primary_key.name]
    return found[0]["column_names"] if found and found[0]["unique"] else None


def declared_key(table: sa.Table) -> list[str]:
    return [column.name for column in table.primary_key]


@pytest.mark.parametrize("table", EVERY_TABLE, ids=lambda table: table.name)
def test_the_ids_of_a_table_may_not_be_empty(shared_engine: sa.Engine, table: sa.Table) -> None:
    nullable = {column["name"]: column["nullable"] for column in sa.inspect(shared_engine).get_columns(table.name)}
    assert not any(nullable[name] for name in declared_key(table))


def test_the_first_load_brings_the_keys_of_all_tables(engine: sa.Engine, springfield: Path) -> None:
    """Also of a table that has no rows yet: later loads, several at the same time, need not make it."""
    drop_indexes(engine)
    assert [find_key(engine, table) for table in EVERY_TABLE] == [None] * len(EVERY_TABLE)
    demographics = springfield / "demographics.csv"
    rows = demographics.read_bytes()
    manifest = springfield / "manifest.csv"
    listed = manifest.read_text()
    demographics.unlink()
    manifest.write_text(listed.replace("file.demographics,bulk", "file.demographics,absent"))
    load(engine, "feed", springfield)
    assert {table.name: find_key(engine, table) for table in EVERY_TABLE} == {
        table.name: declared_key(table) for table in EVERY_TABLE
    }
    demographics.write_bytes(rows)
    manifest.write_text(listed)
    assert load(engine, "feed", springfield).counts["demographics"].added > 0


def test_no_id_comes_twice(engine: sa.Engine, springfield: Path) -> None:
    load_first(engine, "feed", springfield)
    again = sa.select(tables.orgs).limit(1)
    with engine.connect() as connection, pytest.raises(IntegrityError):
        connection.execute(sa.insert(tables.orgs).from_select([column.name for column in tables.orgs.c], again))


TWICE: dict[str, Bend] = {
    "the same row but for a day": repeat_row("enrollments", "spr-enr-01", endDate="2027-01-01"),
    "the same id": repeat_row("demographics", "spr-student-1", sex="male"),
    "once gone": repeat_row("enrollments", "spr-enr-01", status="tobedeleted"),
    "once refused": repeat_row("enrollments", "spr-enr-01", role="nobody"),
    "beside a rejected row": both(
        repeat_row("enrollments", "spr-enr-01", endDate="2027-01-01"), cell("users", 3, "enabledUser", "x")
    ),
    "in files of which others speak": repeat_row("classes", "spr-class-math3-a", title="Another"),
}


@pytest.mark.parametrize("options", [Options(), Options(dry_run=True)], ids=["loaded", "dry run"])
@pytest.mark.parametrize("bend", TWICE.values(), ids=TWICE)
def test_a_first_load_rejects_what_any_other_rejects(
    make_database: Callable[[], str], engine: sa.Engine, springfield: Path, bend: Bend, options: Options
) -> None:
    load_first(engine, "feed", springfield)
    bend(springfield)
    reported = []
    for each in (engine, make_engine(make_database())):
        report = load(each, "feed", springfield, options=options)
        reported.append([str(it) for it in report.findings.first if "stands in more than one row" in it.reason])
    assert reported[0] == reported[1] != []


def test_the_planner_knows_of_enrollments_of_a_user_and_takes_no_sample(engine: sa.Engine, springfield: Path) -> None:
    load_first(engine, "feed", springfield)
    guess = "SELECT n_distinct FROM pg_stats WHERE tablename = 'enrollments' AND attname = 'user_id'"
    with engine.connect() as connection:
        # Below zero: a share of the rows, so that it grows with them.
        assert connection.scalar(sa.text(guess)) == pytest.approx(-0.1)
