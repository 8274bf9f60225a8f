"""`python -m tests.console.screenshots FOLDER [NAME ...]`: pictures of the console's screens, as Chromium shows them.

It serves a made-up district with a vendor, logs in, and takes each screen (or those named) at two widths in light and
dark colours, with the rules of axe that a screen breaks. OPENAPI_TOOLS is the virtual environment with the driver of
the browser, which `make check-long` makes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from roster_service.console.login import ROOT
from roster_service.console.screens import SCREENS
from tests.cli.alone_check import find_free_port
from tests.cli.test_serve import environment_of, serving

TOOLS = Path(os.environ.get("OPENAPI_TOOLS", ".venv/openapi"))
SCRIPT = Path(__file__).with_name("visit_screens.py")
PASSWORD = "a long sentence to log in with"


def take(folder: Path, names: Sequence[str]) -> int:
    """Takes the pictures; 1 if a screen breaks a rule of accessibility."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="roster-screens-") as home:
        environment = environment_of(home=home, port=str(find_free_port()), workers="1")
        with serving(environment, "--json") as (_, printed):
            known = json.loads(printed.splitlines()[-1])
            # Screens of one subject are reached by the links of others: the script takes the first of each.
            wanted = {screen.name: screen.path for screen in SCREENS if not names or screen.name in names}
            order = {
                "root": known["url"] + ROOT,
                "invitation": known["invitation"],
                "password": PASSWORD,
                "screens": wanted,
                "folder": str(folder.resolve()),
            }
            python = TOOLS.resolve() / "bin" / "python"
            done = subprocess.run((python, SCRIPT), input=json.dumps(order), text=True, check=False)
    return done.returncode


if __name__ == "__main__":
    sys.exit(take(Path(sys.argv[1]), sys.argv[2:]))
