"""SECURITY.md stays true to the tree: each claim in a table names a test, and each named file and test exists."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "SECURITY.md").read_text()
PATHS = sorted(set(re.findall(r"`((?:tests|roster_service|sync_scripts|docs)/[\w./]+)(?:::\w+)?`", PAGE)))
TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))
NAMES_A_TEST = re.compile(r"`tests/[\w/]+\.py(?:::\w+)?`")


def list_rows() -> list[list[str]]:
    """The cells of each row of each table, without its head."""
    tables = re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE)
    return [[cell.strip() for cell in line.split("|")[1:-1]] for table in tables for line in table.splitlines()[2:]]


ROWS = list_rows()


@cache
def list_tests(path: str) -> frozenset[str]:
    """The test functions of a file."""
    tree = ast.parse((ROOT / path).read_text())
    return frozenset(one.name for one in tree.body if isinstance(one, ast.FunctionDef) and one.name.startswith("test_"))


def names_tests_alone(row: list[str]) -> bool:
    """Whether no cell of a row is empty, and the last one names tests and nothing else."""
    *claim, tests = row
    return all(claim) and bool(NAMES_A_TEST.search(tests)) and not re.sub(NAMES_A_TEST, "", tests).strip(" ,")


def test_every_named_file_exists() -> None:
    missing = [path for path in PATHS if not (ROOT / path).exists()]
    assert not missing, missing


def test_every_named_test_exists() -> None:
    missing = [(path, name) for path, name in TESTS if name not in list_tests(path)]
    assert not missing, missing


def test_every_named_test_file_has_tests() -> None:
    files = [path for path in PATHS if path.startswith("tests/") and path.endswith(".py")]
    empty = [path for path in files if not list_tests(path)]
    assert not empty, empty


def test_every_claim_in_a_table_names_a_test() -> None:
    unproven = [row for row in ROWS if not names_tests_alone(row)]
    assert not unproven, unproven


def test_the_page_has_the_tables_that_these_tests_check() -> None:
    assert {len(row) for row in ROWS} == {2, 4}
    assert len(ROWS) > 50
    assert len(TESTS) > 80


def test_every_file_of_hostile_input_is_named() -> None:
    """A test of hostile input is a measure against somebody, whom the threat model names."""
    files = {f"tests/hostile/{path.name}" for path in (ROOT / "tests" / "hostile").glob("test_*.py")}
    assert files <= set(PATHS)


def test_make_check_asks_for_vulnerabilities_and_ruff_for_insecure_code() -> None:
    steps = dict(re.findall(r"^(check|lint): (.*?) ##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"audit", "lint"} <= set(steps["check"].split())
    assert "style" in steps["lint"].split()
    linted = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    assert "S" in linted["select"]
    assert [path for path, ignored in linted["per-file-ignores"].items() if "S" in ignored] == ["tests/**"]
