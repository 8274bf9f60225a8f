"""A revision after the newest one, for tests of upgrades."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from alembic.config import Config

from roster_service.db import migrations
from roster_service.roster import upgrades

REVISION = '''"""A revision of the tests."""

from alembic import op

revision = "of_the_tests"
down_revision = "{before}"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Takes the lock that nobody may read beside."""
    op.execute("ALTER TABLE orgs ADD COLUMN of_the_tests text")
'''


def add_revision(folder: Path, before: str) -> Callable[[], Config]:
    """Writes the revision to `folder`; what is to take the place of `upgrades.make_config`."""
    (folder / "of_the_tests.py").write_text(REVISION.format(before=before))
    make_config = upgrades.make_config

    def make_both() -> Config:
        config = make_config()
        config.set_main_option("version_locations", f"{Path(migrations.__file__).parent}/versions:{folder}")
        return config

    return make_both
