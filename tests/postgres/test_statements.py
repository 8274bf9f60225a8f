"""The engines of a test process share their compiled statements, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from roster_service.db.engine import make_engine


def test_a_statement_is_compiled_once_for_all_engines(make_database: Callable[[], str]) -> None:
    found, sizes = [], []
    for number, url in enumerate((make_database(), make_database())):
        engine = make_engine(url)
        with engine.connect() as connection:
            found.append(connection.scalar(sa.select(sa.literal(number).label("of_this_test_alone"))))
        sizes.append(len(engine.get_execution_options()["compiled_cache"]))
        engine.dispose()
    assert found == [0, 1]
    assert sizes[0] == sizes[1]
