"""The calls of the README work as they are printed: in a shell, on the demo that `make run` serves."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from roster_service.cli.demo import STUDENTS
from tests.cli.alone_check import find_free_port
from tests.cli.test_serve import PROJECT, environment_of, serving

README = (PROJECT / "README.md").read_text()
# By section: what the answer to curl holds, and how many records of it.
CALLS = {"The first call": ("users", 10), "The vendor interface": ("students", STUDENTS)}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a shell beside the running service."""
    made = environment_of(home=str(tmp_path_factory.mktemp("home")), port=str(find_free_port()), workers="1")
    with serving(made):
        yield made


def read_section(title: str) -> tuple[list[str], str]:
    """(blocks of lines for a shell, the Python program) of a section."""
    _, _, section = README.partition(f"\n## {title}\n")
    section, _, _ = section.partition("\n## ")
    [program] = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    text = re.sub(r"```.*?```", "", section, flags=re.DOTALL)
    return re.findall(r"(?:^    .*\n)+", text, flags=re.MULTILINE), program


@pytest.mark.parametrize("title", CALLS)
def test_the_calls_of_the_readme_work_as_printed(environment: dict[str, str], title: str, tmp_path: Path) -> None:
    blocks, program = read_section(title)
    # Only where things are differs from a clone that `make run` serves.
    places = {"http://127.0.0.1:8000": f"http://127.0.0.1:{environment['ROSTER_PORT']}"}
    places[".venv/bin/"] = f"{Path(sys.executable).parent}/"
    script = "".join([*blocks, f"\necho; echo CALLED; .venv/bin/python - <<'END'\n{program}END\n"])
    for printed, here in places.items():
        script = script.replace(printed, here)
    done = subprocess.run(
        ["sh", "-e"], input=script, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    called, _, listed = done.stdout.partition("\nCALLED\n")
    key, count = CALLS[title]
    assert len(json.loads(called.splitlines()[-1])[key]) == count
    assert len(listed.splitlines()) == STUDENTS
