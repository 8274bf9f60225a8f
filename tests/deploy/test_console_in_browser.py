"""The console in Chromium: tasks of an operator, and every screen in both colours and at two widths.

The variable OPENAPI_TOOLS is the virtual environment that `make check-long` makes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.alone_check import find_free_port
from tests.cli.test_serve import FIRST, environment_of, serving
from tests.console.screenshots import PASSWORD, STATES, take
from tests.console.states import make_sample, make_shrunk

TOOLS = os.environ.get("OPENAPI_TOOLS")
pytestmark = [
    pytest.mark.long_with("chromium"),
    pytest.mark.skipif(TOOLS is None, reason="OPENAPI_TOOLS names no virtual environment"),
]
SCRIPT = Path(__file__).parents[1] / "console" / "browse_tasks.py"


def test_an_operator_does_each_task(tmp_path: Path) -> None:
    pictures = Path(os.environ.get("PICTURES", tmp_path / "pictures"))
    pictures.mkdir(exist_ok=True)
    exports = [
        shutil.make_archive(str(tmp_path / f"zip-{name}"), "zip", make(tmp_path / name))
        for name, make in {"whole": make_sample, "shrunk": make_shrunk}.items()
    ]
    # The sample is small, and its loads are held all the same.
    settings = {"home": str(tmp_path / "home"), "port": str(find_free_port()), "workers": "1"}
    environment = environment_of(**settings, hold_least_records="1", export_age_minutes="0")
    with serving(environment, "--json", *FIRST) as (_, printed):
        known = json.loads(printed.splitlines()[-1])
        order = {
            "root": known["console"],
            "invitation": known["invitation"],
            "password": PASSWORD,
            "folder": str(pictures.resolve()),
            "exports": exports,
        }
        python = Path(str(TOOLS)).resolve() / "bin" / "python"
        command = (python, SCRIPT)
        done = subprocess.run(command, input=json.dumps(order), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {name: problem for name, problem in found.items() if problem} == {}
    assert len(found) >= 5


@pytest.mark.parametrize("state", STATES)
def test_every_screen_is_accessible_and_fits_its_window(tmp_path: Path, state: str) -> None:
    pictures = Path(os.environ.get("PICTURES", tmp_path / "pictures"))
    assert take(pictures / state, [], state) == 0
