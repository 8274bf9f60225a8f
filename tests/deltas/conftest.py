"""A world with the fixed district."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from roster_service.db.engine import make_engine

from .fixed_district import reset
from .world import World


@pytest.fixture(scope="module")
def shared_world(make_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One world for the tests of a module."""
    engine = make_engine(make_database())
    world = World(engine, tmp_path_factory.mktemp("exports"))
    yield world
    world.close()
    engine.dispose()


@pytest.fixture
def world(shared_world: World) -> World:
    """The same with the fixed district, without tombstones and departures of former tests."""
    reset(shared_world)
    return shared_world
