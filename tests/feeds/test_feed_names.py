"""The names that a feed may have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from roster_service.errors import CommandError
from roster_service.feeds.feeds import add_feed, rename_feed
from sync_scripts.engine.load import load
from tests.actors import TESTER

NOTHING: Any = None


@pytest.mark.parametrize(
    "name", ["a/b", "/exports", "..", "north..south", "../north", "-north", "--now", ".", ".north"]
)
def test_a_name_that_is_a_path_or_an_option_is_refused_where_a_feed_is_made(name: str) -> None:
    """By the command and the console, which add by one function, a new name and a loader, before they do anything."""
    for make in (
        lambda: add_feed(NOTHING, TESTER, name, "oneroster", None),
        lambda: rename_feed(NOTHING, TESTER, "north", name),
        lambda: load(NOTHING, name, Path("export")),
    ):
        with pytest.raises(CommandError, match="name has no / and no"):
            make()
