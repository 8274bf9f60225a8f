"""The calls of the documentation work as they are printed: in a shell, on the demo that `make run` serves."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from roster_service.cli.demo import STUDENTS
from tests.cli.alone_check import find_free_port
from tests.cli.test_serve import environment_of, serving
from tests.docs.pages import read_section
from tests.extent import long


@dataclass(frozen=True)
class Calls:
    """The sections (page, title) with the lines for a shell and with the Python program; the key of the records in
    the answer to the last line for a shell, and how many these are."""

    shell: tuple[str, str]
    python: tuple[str, str]
    key: str
    count: int


VENDORS = "docs/vendors.md"
CALLS = (
    Calls(("README.md", "The first call"), (VENDORS, "Read all students"), "users", 10),
    Calls((VENDORS, "Vendor interface"), (VENDORS, "Vendor interface"), "students", STUDENTS),
)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a shell beside the running service."""
    made = environment_of(home=str(tmp_path_factory.mktemp("home")), port=str(find_free_port()), workers="1")
    # The shell is in another folder than the tests.
    relative = filter(None, made.get("PYTHONPATH", "").split(os.pathsep))
    made["PYTHONPATH"] = os.pathsep.join(str(Path(entry).resolve()) for entry in relative)
    with serving(made):
        yield made


def read_shell_lines(page: str, title: str) -> str:
    """The lines of a section that are for a shell."""
    text = re.sub(r"```.*?```", "", read_section(page, title), flags=re.DOTALL)
    return "".join(re.findall(r"(?:^    .*\n)+", text, flags=re.MULTILINE))


def read_program(page: str, title: str) -> str:
    """The one Python program of a section."""
    [program] = re.findall(r"```python\n(.*?)```", read_section(page, title), flags=re.DOTALL)
    return str(program)


@long
@pytest.mark.parametrize("calls", CALLS, ids=lambda calls: calls.shell[1])
def test_the_calls_work_as_printed(environment: dict[str, str], calls: Calls, tmp_path: Path) -> None:
    # Only where things are differs from a clone that `make run` serves.
    places = {"http://127.0.0.1:8000": f"http://127.0.0.1:{environment['ROSTER_PORT']}"}
    places[".venv/bin/"] = f"{Path(sys.executable).parent}/"
    program = read_program(*calls.python)
    script = f"{read_shell_lines(*calls.shell)}\necho; echo CALLED; .venv/bin/python - <<'END'\n{program}END\n"
    for printed, here in places.items():
        script = script.replace(printed, here)
    done = subprocess.run(
        ["sh", "-e"], input=script, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    called, _, listed = done.stdout.partition("\nCALLED\n")
    assert len(json.loads(called.splitlines()[-1])[calls.key]) == calls.count
    assert len(listed.splitlines()) == STUDENTS
