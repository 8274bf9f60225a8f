"""What a load costs grows with the export, in every format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from roster_service.db.engine import make_engine
from sync_scripts.engine.load import load
from sync_scripts.reading.registry import FAMILIES
from tests.bench.formats import OTHER_FORMATS, read_tables
from tests.postgres.work import watch_work
from tools.generate_district import main as generate

PUPILS = 300
MOST = 2.3


def make_export(folder: Path, name: str, pupils: int) -> Path:
    """An export of a district in which most families have contacts."""
    district, export = folder / f"district-{pupils}", folder / f"{name}-{pupils}"
    contacts = ("--guardians-percent", "60")
    generate(["--out", str(district), "--students", str(pupils), *contacts], standalone_mode=False)
    if name not in OTHER_FORMATS:
        return district
    export.mkdir()
    OTHER_FORMATS[name].write(read_tables(district), export)
    return export


@pytest.mark.parametrize("name", ["oneroster", *OTHER_FORMATS])
def test_twice_the_pupils_are_at_most_a_little_more_than_twice_the_work(
    make_database: Callable[[], str], tmp_path: Path, name: str
) -> None:
    family = FAMILIES[OTHER_FORMATS[name].family if name in OTHER_FORMATS else name]
    totals = []
    for pupils in (PUPILS, 2 * PUPILS):
        engine = make_engine(make_database())
        export = make_export(tmp_path, name, pupils)
        with watch_work(engine) as work:
            assert load(engine, "district", export, family=family).outcome == "done"
        totals.append(work)
        engine.dispose()
    small, large = totals
    grown = {it: f"{small.rows.get(it, 0):.0f} to {rows:.0f}" for it, rows in large.rows.items() if rows > 10_000}
    assert large.total <= MOST * small.total, grown
