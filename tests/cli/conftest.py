"""Running the `roster` command with an environment of its own."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from roster_service.cli import main
from roster_service.settings import PREFIX

Roster = Callable[..., Result]


def make_environment(**settings: str) -> dict[str, str | None]:
    """What to change of this process's environment to have these `ROSTER_` settings and no others."""
    others: dict[str, str | None] = {name: None for name in os.environ if name.startswith(PREFIX)}
    return others | {PREFIX + name.upper(): value for name, value in settings.items()}


def run_roster(url: str, home: Path, *arguments: str, typed: str = "") -> Result:
    """Runs `roster ARGUMENTS` on a database. `typed`: into its questions."""
    return CliRunner().invoke(main, arguments, env=make_environment(database_url=url, home=str(home)), input=typed)


@pytest.fixture
def roster(database_url: str, tmp_path: Path) -> Roster:
    """Runs `roster ARGUMENTS` on this test's own database."""
    return functools.partial(run_roster, database_url, tmp_path)


@pytest.fixture
def answer(roster: Roster) -> Callable[..., Any]:
    """Runs `roster ARGUMENTS --json`, holds it to success, and returns the value that it printed."""

    def run(*arguments: str) -> Any:
        done = roster(*arguments, "--json")
        assert (done.exit_code, done.stderr) == (0, "")
        return json.loads(done.stdout)

    return run
