"""The runs of one process, as those of a night, share their compiled statements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa

from sync_scripts.engine.load import load
from tests.sync.conftest import empty_roster


def test_a_run_compiles_nothing_that_former_runs_have_compiled(engine: sa.Engine, each_export: Path) -> None:
    compiled: dict[Any, Any] = {}
    known: set[Any] = set()
    # The first of the three also finds out which indexes there are.
    for _ in range(3):
        known = set(compiled)
        empty_roster(engine)
        load(engine.execution_options(compiled_cache=compiled), "feed", each_export)
    again = [str(statement) for key, statement in compiled.items() if key not in known]
    assert known
    assert not again, again
