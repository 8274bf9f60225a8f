"""The Containerfile, without a container: a test runs its build stage in a folder, its command and its health check."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from roster_service.settings import PREFIX, Settings
from tests.cli.alone_check import find_free_port
from tests.contract.conftest import SECRET_KEY

PROJECT = Path(__file__).parents[2]
FILE = PROJECT / "deploy" / "Containerfile"
INSTALLED = "/opt/roster"
START_SECONDS = 60


@dataclass
class Stage:
    """A stage of the build: the image that it begins with, and its steps as (instruction, rest)."""

    base: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def find(self, instruction: str) -> list[str]:
        """What stands behind each step of a kind."""
        return [rest for name, rest in self.steps if name == instruction]


def read_stages() -> list[Stage]:
    """The stages of the file."""
    stages: list[Stage] = []
    text = re.sub(r"\\\n\s*", "", FILE.read_text())
    for line in text.splitlines():
        name, _, rest = line.partition(" ")
        if name == "FROM":
            stages.append(Stage(rest))
        elif line and not line.startswith("#") and stages:
            stages[-1].steps.append((name, rest))
    return stages


BUILD, FINAL = read_stages()


def test_the_image_runs_as_another_user_than_root_and_is_watched() -> None:
    [user] = FINAL.find("USER")
    uid, gid = user.split(":")
    assert min(int(uid), int(gid)) > 0
    assert any(f"--uid {uid}" in command for command in FINAL.find("RUN"))
    # Nothing is done as root afterwards.
    after = [name for name, _ in FINAL.steps[FINAL.steps.index(("USER", user)) + 1 :]]
    assert not {"RUN", "COPY", "USER"} & set(after)
    assert len(FINAL.find("HEALTHCHECK")) == 1


def test_the_image_has_what_was_built_and_nothing_else() -> None:
    assert FINAL.find("COPY") == [f"--from=build {INSTALLED} {INSTALLED}"]
    assert BUILD.base.endswith(" AS build")
    assert BUILD.base.split()[0] == FINAL.base


def test_every_setting_of_the_image_is_one() -> None:
    variables = dict(one.split("=", 1) for one in FINAL.find("ENV"))
    settings = Settings.from_environ({name: value for name, value in variables.items() if name.startswith(PREFIX)})
    assert (settings.host, str(settings.port)) == ("0.0.0.0", *FINAL.find("EXPOSE"))
    assert str(settings.home) == variables["ROSTER_HOME"] == FINAL.find("WORKDIR")[0] == FINAL.find("VOLUME")[0]


def test_what_is_copied_is_there() -> None:
    """And what the distributions need is copied."""
    copied = [name for rest in BUILD.find("COPY") for name in shlex.split(rest)[:-1]]
    assert all((PROJECT / name).exists() for name in copied)
    assert {"setup.cfg", "pyproject.toml", "README.md", "LICENSE", "wsgi.py", "grammar", "roster_service"} < set(copied)


def leave_out_of_environment(*prefixes: str) -> dict[str, str]:
    """The environment of this process without these variables: PYTHONPATH would show pip what a checkout needs."""
    return {name: text for name, text in os.environ.items() if not name.startswith(prefixes)}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the build stage leaves in /opt/roster, built elsewhere."""
    work = tmp_path_factory.mktemp("image")
    source, installed = work / "source", work / "roster"
    source.mkdir()
    for name, rest in BUILD.steps:
        if name == "COPY":
            *parts, target = shlex.split(rest)
            for part in parts:
                to = source / target if target not in (".", "./") else source / part
                to.parent.mkdir(parents=True, exist_ok=True)
                if (PROJECT / part).is_dir():
                    shutil.copytree(PROJECT / part, to, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
                else:
                    shutil.copy(PROJECT / part, to)
        elif name == "RUN":
            script = rest.replace(INSTALLED, str(installed))
            environment = leave_out_of_environment("PYTHON")
            environment["PATH"] = f"{Path(sys.base_prefix) / 'bin'}:{os.environ['PATH']}"
            done = subprocess.run(
                ["sh", "-ec", script], cwd=source, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"{rest}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        else:
            assert name == "WORKDIR", name
    # The final stage has no sources.
    shutil.rmtree(source)
    return installed


@pytest.mark.long_with
def test_the_command_serves_and_the_health_check_says_so(built: Path, database_url: str, tmp_path: Path) -> None:
    variables = dict(one.split("=", 1) for one in FINAL.find("ENV"))
    path = variables["PATH"].replace(INSTALLED, str(built))
    environment = leave_out_of_environment(PREFIX, "PYTHON")
    environment |= variables | {"PATH": path, "ROSTER_HOME": str(tmp_path), "ROSTER_PORT": str(find_free_port())}
    environment |= {"ROSTER_DATABASE_URL": database_url, "ROSTER_SECRET_KEY": SECRET_KEY, "ROSTER_WORKERS": "1"}
    check = json.loads(FINAL.find("HEALTHCHECK")[0].partition("CMD ")[2])
    [command] = FINAL.find("CMD")

    def is_healthy() -> bool:
        program = str(built / "bin" / check[0])
        return subprocess.run([program, *check[1:]], env=environment, capture_output=True, check=False).returncode == 0

    assert not is_healthy()
    arguments = json.loads(command)
    with subprocess.Popen([str(built / "bin" / arguments[0]), *arguments[1:]], env=environment, cwd=tmp_path) as served:
        try:
            deadline = time.monotonic() + START_SECONDS
            while not is_healthy():
                assert served.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.5)
        finally:
            served.terminate()
            served.wait(START_SECONDS)
    assert served.returncode == 0
    assert not is_healthy()
