"""What the tests of this folder share: which of them run in `make check-long` alone."""

from __future__ import annotations

import os
import shutil

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips what is marked `long_with(PROGRAM ...)`, unless DEPLOYMENT=all and each of the programs is installed."""
    for item in items:
        for mark in item.iter_markers("long_with"):
            missing = [program for program in mark.args if shutil.which(program) is None]
            if os.environ.get("DEPLOYMENT") != "all":
                item.add_marker(pytest.mark.skip(reason="takes long; `make check-long` runs it"))
            elif missing:
                item.add_marker(pytest.mark.skip(reason=f"{' and '.join(missing)} is not installed"))
