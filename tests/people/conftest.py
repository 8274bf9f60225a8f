"""The exports of the sync's tests."""

from tests.sync.conftest import copy_export, springfield  # noqa: F401  (fixtures)
