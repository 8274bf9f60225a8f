"""The pages for people in Chromium: calls of the reference, accessibility, both colours, two widths.

The variable OPENAPI_TOOLS is the virtual environment that `make check-long` makes.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.alone_check import find_free_port
from tests.cli.test_serve import environment_of, serving

TOOLS = os.environ.get("OPENAPI_TOOLS")
pytestmark = [
    pytest.mark.long_with("chromium"),
    pytest.mark.skipif(TOOLS is None, reason="OPENAPI_TOOLS names no virtual environment"),
]
SCRIPT = Path(__file__).with_name("browse.py")


def test_pages_are_accessible_and_the_reference_calls_each_interface(tmp_path: Path) -> None:
    pictures = Path(os.environ.get("PICTURES", tmp_path / "pictures"))
    pictures.mkdir(exist_ok=True)
    environment = environment_of(home=str(tmp_path), port=str(find_free_port()), workers="1")
    with serving(environment, "--json") as (_, printed):
        known = json.loads(printed.splitlines()[-1])
        command = (
            Path(str(TOOLS)).resolve() / "bin" / "python",
            SCRIPT,
            known["url"],
            json.dumps(known["demo"]),
            pictures,
        )
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    calls = {name: status for name, status in found.items() if name.startswith("call ")}
    assert calls == {"call v1p1": "200", "call v1p2": "200", "call vendor": "200"}
    assert {name: problems for name, problems in found.items() if problems and name not in calls} == {}
    assert len(found) > 30
