"""`python -m tests.console.screenshots FOLDER [NAME ...]`: pictures of the console's screens, as Chromium shows them.

It serves a roster, logs in, and takes each screen (or those named) at two widths in light and dark colours, with the
rules of axe that a screen breaks. STATE is one of `STATES`: by default a made-up district with a vendor. OPENAPI_TOOLS
is the virtual environment with the driver of the browser, which `make check-long` makes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from roster_service.console.login import ROOT
from roster_service.console.screens import SCREENS
from tests.cli.alone_check import find_free_port
from tests.cli.test_serve import environment_of, serving
from tests.console.states import make_broken, make_hostile, make_rejected, make_sample, make_shrunk

TOOLS = Path(os.environ.get("OPENAPI_TOOLS", ".venv/openapi"))
SCRIPT = Path(__file__).with_name("visit_screens.py")
# By name: options of `roster run`, and the exports that are loaded, one after the other, into the feed `springfield`.
STATES: Mapping[str, tuple[Sequence[str], Sequence[Callable[[Path], Path]]]] = {
    "demo": ((), ()),
    "empty": (("--no-demo",), ()),
    "sample": ((), (make_sample, make_rejected)),
    "hostile": ((), (make_hostile,)),
    "failing": ((), (make_sample, make_shrunk, make_broken)),
}
PASSWORD = "a long sentence to log in with"


def take(folder: Path, names: Sequence[str], state: str) -> int:
    """Takes the pictures of a state; 1 if a screen breaks a rule of accessibility."""
    folder.mkdir(parents=True, exist_ok=True)
    options, exports = STATES[state]
    with tempfile.TemporaryDirectory(prefix="roster-screens-") as home:
        # The sample is small, and its loads are held all the same.
        environment = environment_of(home=home, port=str(find_free_port()), workers="1", hold_least_records="1")
        with serving(environment, "--json", *options) as (_, printed):
            known = json.loads(printed.splitlines()[-1])
            for number, make in enumerate(exports):
                export = make(Path(home) / f"export-{number}")
                command = (sys.executable, "-m", "sync_scripts.load_oneroster", "--feed", "springfield", export)
                subprocess.run(command, env=environment, capture_output=True, check=False)
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
    sys.exit(take(Path(sys.argv[1]), sys.argv[2:], os.environ.get("STATE", "demo")))
