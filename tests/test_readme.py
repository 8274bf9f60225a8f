"""The README cannot rot: what the code declares as rows must stand in it, and its own examples must be right."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click
import pytest

from roster_service.access.scopes import EXPLANATIONS
from roster_service.cli import main
from roster_service.query.params import COLLECTION_PARAMETERS
from roster_service.rostering.endpoints import ENDPOINTS, Cardinality
from roster_service.rostering.status_info import STATUS_INFO
from roster_service.schemas.vendor_bodies import StudentsRequest
from roster_service.schemas.versions import VERSIONS
from roster_service.settings import PREFIX, Settings
from roster_service.vendor.responses import FAILURES
from sync_scripts.engine.exit_codes import MEANINGS, ExitCode
from sync_scripts.formats.tolerated import DEVIATIONS, Deviation
from sync_scripts.reading.registry import FAMILIES

README = (Path(__file__).parents[1] / "README.md").read_text()


def list_commands(group: click.Group, name: str) -> list[str]:
    """Every command below a group, as it is typed."""
    found = []
    for key, command in group.commands.items():
        found += list_commands(command, f"{name} {key}") if isinstance(command, click.Group) else [f"{name} {key}"]
    return found


def show_default(row: dataclasses.Field[object]) -> str:
    """How the settings table shows a default."""
    if row.name == "workers":
        return "one per core"
    return "" if row.default is None else f"`{row.default}`"


@pytest.mark.parametrize("row", dataclasses.fields(Settings), ids=lambda row: row.name)
def test_every_setting_stands_in_the_table(row: dataclasses.Field[object]) -> None:
    assert f"| `{PREFIX}{row.name.upper()}` | {show_default(row)} | {row.metadata['help']} |" in README


@pytest.mark.parametrize("command", list_commands(main, "roster"))
def test_every_command_stands_in_the_table(command: str) -> None:
    assert f"| `{command}" in README


@pytest.mark.parametrize("name", EXPLANATIONS)
def test_every_scope_is_explained(name: str) -> None:
    assert f"| `{name}` | {EXPLANATIONS[name]} |" in README


@pytest.mark.parametrize("status_and_code", sorted(set(STATUS_INFO.values()) - {(500, "internal_server_error")}))
def test_every_error_code_stands_beside_its_status(status_and_code: tuple[int, str]) -> None:
    status, code = status_and_code
    assert any(line.startswith(f"| {status} |") and f"`{code}`" in line for line in README.splitlines())


@pytest.mark.parametrize(("status", "code"), sorted(set(FAILURES.values()) - {(500, "internal")}))
def test_every_error_code_of_vendors_is_explained(status: int, code: str) -> None:
    assert f"| {status} | `{code}` |" in README


@pytest.mark.parametrize("key", StudentsRequest().fields)
def test_every_key_of_a_students_query_is_explained(key: str) -> None:
    _, _, table = README.partition("| key of the body |")
    assert f"`{key}`" in table.partition("\n\n")[0]


@pytest.mark.parametrize("parameter", COLLECTION_PARAMETERS, ids=lambda parameter: parameter.name)
def test_every_parameter_is_explained(parameter: object) -> None:
    assert f"`{parameter.name}`" in README


@pytest.mark.parametrize("code", ExitCode)
def test_every_exit_code_is_explained(code: ExitCode) -> None:
    name, meaning = MEANINGS[code]
    assert f"| {code:d} | `{name}` | {meaning} |" in README


def test_the_roots_and_the_number_of_nested_lists_are_right() -> None:
    assert all(f"`{version.root}`" in README for version in VERSIONS)
    nested = [endpoint for endpoint in ENDPOINTS if endpoint.cardinality is Cardinality.COLLECTION and endpoint.ids]
    assert f"{len(nested)} nested lists" in README
    assert f"{len(ENDPOINTS)} paths" in README


@pytest.mark.parametrize("deviation", DEVIATIONS, ids=lambda deviation: deviation.taken)
def test_every_quirk_that_is_put_up_with_stands_in_its_table(deviation: Deviation) -> None:
    assert any(line.startswith(f"| {deviation.taken} |") for line in README.splitlines())


@pytest.mark.parametrize("family", FAMILIES)
def test_every_format_and_its_script_are_named(family: str) -> None:
    assert f"`{family}`" in README
    assert f"sync_scripts.load_{family}" in README
