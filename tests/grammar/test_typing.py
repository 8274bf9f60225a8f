"""The examples of the documentation have correct types: mypy in its strict mode and pyright accept them."""

import doctest
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.extent import long

from .test_readme import LIBRARY, PAGES, blocks

TYPE_CHECKERS = {
    "mypy": ("mypy", "--strict", "--ignore-missing-imports", "--no-incremental"),
    "pyright": ("basedpyright", "--level", "error"),
}
PYRIGHT = {
    "typeCheckingMode": "standard",
    "extraPaths": [str(LIBRARY)],
    "pythonVersion": "3.11",
    "reportMissingImports": False,
    # pandas has types in its source, but is no typed package.
    "reportMissingTypeStubs": False,
}


def write_program(page: str) -> str:
    """The examples of a page as one program."""
    examples = doctest.DocTestParser().get_examples("\n".join(blocks("pycon", page)))
    return "".join([example.source for example in examples] + blocks("python", page))


PROGRAMS = {name.removesuffix(".md"): write_program(page) for name, page in PAGES.items()}


def run_type_checker(name: str, folder: Path, programs: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Check programs, all in one process; skips the test where the type checker is not installed."""
    command, *options = TYPE_CHECKERS[name]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    found = shutil.which(command, path=path)
    if found is None:
        pytest.skip(f"{command} is not installed")
    for page, program in programs.items():
        (folder / f"{page}.py").write_text(program)
    (folder / "pyrightconfig.json").write_text(json.dumps(PYRIGHT))
    environment = {**os.environ, "PATH": path, "MYPYPATH": str(LIBRARY)}
    files = [f"{page}.py" for page in programs]
    return subprocess.run(
        [found, *options, *files], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_every_page_has_a_program() -> None:
    assert all(len(program.splitlines()) > 20 for program in PROGRAMS.values())


WRONG = {
    "a text that is no text": "from oneroster_filter import parse\nparse(1)\n",
    "an unchecked expression": "from oneroster_filter import parse, predicate\npredicate(parse('a'))\n",
    "a value without a text": "from oneroster_filter import F\nF('a').contains(1.5)\n",
}


@long
@pytest.mark.parametrize("checker", TYPE_CHECKERS)
def test_a_type_checker_accepts_the_examples_and_refuses_wrong_arguments(checker: str, tmp_path: Path) -> None:
    done = run_type_checker(checker, tmp_path, {**PROGRAMS, "wrong": "".join(WRONG.values())})

    assert done.returncode == 1, done.stdout + done.stderr
    assert re.findall(r"(\w+)\.py:(\d+):.*?error", done.stdout) == [("wrong", line) for line in "246"], done.stdout
