"""What a process imports before it does anything: a command is often run for a moment only."""

from __future__ import annotations

import subprocess
import sys

import pytest

from roster_service.cli import main
from roster_service.cli.main import COMMANDS
from tests.offenders import in_one_test

LOADERS = ("load_oneroster", "load_clever", "load_sds", "purge", "remove_feed", "announce")
ROOT = "from roster_service.cli import main"


def list_imported(statement: str) -> set[str]:
    """The modules of a new process after a statement."""
    code = f"{statement}\nimport sys\nprint(*sys.modules, sep='\\n')"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize("script", LOADERS)
def test_a_script_of_the_sync_imports_neither_schemas_nor_flask(script: str) -> None:
    imported = list_imported(f"import sync_scripts.{script}")
    assert f"sync_scripts.{script}" in imported
    assert not imported & {"flask", "marshmallow", "roster_service.serving", "roster_service.schemas"}


@pytest.mark.parametrize(
    ("statement", "needless"),
    [
        pytest.param(ROOT, {"sqlalchemy", "flask", "oneroster_filter", "roster_service.cli.vendors"}, id="root"),
        pytest.param(
            f"{ROOT}; main(['--help'], standalone_mode=False)", {"sqlalchemy", "flask", "oneroster_filter"}, id="help"
        ),
        pytest.param(
            f"{ROOT}; main.commands['vendor']",
            {"flask", "roster_service.cli.server", "roster_service.serving"},
            id="vendor",
        ),
        pytest.param(f"{ROOT}; main.commands['feed']", {"flask", "marshmallow"}, id="feed"),
    ],
)
def test_a_command_imports_what_it_needs(statement: str, needless: set[str]) -> None:
    imported = list_imported(statement)
    assert "roster_service.cli.main" in imported
    assert not imported & needless


@in_one_test
@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_is_found_by_its_own_name(name: str) -> None:
    assert main.commands[name].name == name
