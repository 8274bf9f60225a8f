"""A feed whose first load was held: nothing of it is in the roster, and a person must decide."""

from __future__ import annotations

import shutil
from pathlib import Path

import sqlalchemy as sa

from roster_service.feeds.figures import read_figures
from roster_service.settings import Settings
from sync_scripts.engine.load import Options, load
from tests.postgres.loaded import EXPORTS
from tests.sync.export_changes import cell_of


def test_the_figures_know_that_it_is_held(engine: sa.Engine, tmp_path: Path) -> None:
    export = Path(shutil.copytree(EXPORTS / "springfield-1.1", tmp_path / "export"))
    cell_of("users", "spr-student-1", "enabledUser", "maybe")(export)
    options = Options(Settings(home=tmp_path / "home", hold_least_records=1))
    assert load(engine, "springfield", export, options=options).outcome == "held"
    with engine.connect() as connection:
        (health,) = read_figures(connection).feeds
    assert (health.name, health.is_held) == ("springfield", True)
