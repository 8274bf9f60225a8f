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

from roster_service.cli.demo import FEED, STUDENTS
from tests.cli.alone_check import find_free_port
from tests.cli.test_serve import environment_of, serving
from tests.docs.pages import read_section
from tests.extent import long
from tests.sync.conftest import EXPORTS, SPRINGFIELD
from tests.sync.export_changes import zipped


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
    Calls((VENDORS, "The first call"), (VENDORS, "Read all students"), "users", 10),
    Calls((VENDORS, "Vendor interface"), (VENDORS, "Vendor interface"), "students", STUDENTS),
)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a shell beside the running service."""
    made = environment_of(home=str(tmp_path_factory.mktemp("home")), port=str(find_free_port()), workers="1")
    # The shell is in another folder than the tests.
    relative = filter(None, made.get("PYTHONPATH", "").split(os.pathsep))
    made["PYTHONPATH"] = os.pathsep.join(str(Path(entry).resolve()) for entry in relative)
    with serving(made, "--json") as (_, printed):
        account = json.loads(printed.splitlines()[-1])["demo"]
        named = ("client_id", "client_secret", "api_key", "email", "password")
        yield (
            made
            | {name.upper(): account[name] for name in named}
            | {"SERVICE_URL": f"http://127.0.0.1:{made['ROSTER_PORT']}"}
        )


def read_shell_lines(page: str, title: str) -> str:
    """The lines of a section that are for a shell."""
    text = re.sub(r"```.*?```", "", read_section(page, title), flags=re.DOTALL)
    return "".join(re.findall(r"(?:^    .*\n)+", text, flags=re.MULTILINE))


def read_program(page: str, title: str) -> str:
    """The one Python program of a section."""
    [program] = re.findall(r"```python\n(.*?)```", read_section(page, title), flags=re.DOTALL)
    return str(program)


def run_shell(script: str, environment: dict[str, str], folder: Path) -> str:
    """What printed lines print. Only where things are differs from a clone that `make run` serves."""
    places = {
        "http://127.0.0.1:8000": f"http://127.0.0.1:{environment['ROSTER_PORT']}",
        ".venv/bin/": f"{Path(sys.executable).parent}/",
        "/exports/": f"{folder}/",
    }
    for printed, here in places.items():
        script = script.replace(printed, here)
    done = subprocess.run(
        ["sh", "-e"], input=script, env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@long
@pytest.mark.parametrize("calls", CALLS, ids=lambda calls: calls.shell[1])
def test_the_calls_work_as_printed(environment: dict[str, str], calls: Calls, tmp_path: Path) -> None:
    program = read_program(*calls.python)
    script = f"{read_shell_lines(*calls.shell)}\necho; echo CALLED; .venv/bin/python - <<'END'\n{program}END\n"
    called, _, listed = run_shell(script, environment, tmp_path).partition("\nCALLED\n")
    assert len(json.loads(called.splitlines()[-1])[calls.key]) == calls.count
    assert len(listed.splitlines()) == STUDENTS


@long
def test_an_own_export_is_loaded_as_printed(environment: dict[str, str], tmp_path: Path) -> None:
    zipped(EXPORTS / SPRINGFIELD, tmp_path / "springfield.zip")
    run_shell(read_shell_lines("README.md", "Your own export"), environment, tmp_path)
    listed = run_shell(".venv/bin/roster district list --json", environment, tmp_path)
    assert [it["feed"] for it in json.loads(listed) if it["feed"] != FEED] == ["springfield"]
