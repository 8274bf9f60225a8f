"""Running the scripts of the sync, which this package does not import, on the database of a connection."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from sqlalchemy import Connection


def run_script(connection: Connection, name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs `python -m sync_scripts.NAME ARGUMENTS` and returns its exit code and output."""
    url = connection.engine.url.render_as_string(hide_password=False)
    return subprocess.run(  # noqa: S603  (our own script)
        [sys.executable, "-m", f"sync_scripts.{name}", *arguments],
        env=os.environ | {"ROSTER_DATABASE_URL": url},
        capture_output=True,
        text=True,
        check=False,
    )
