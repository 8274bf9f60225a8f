"""CONTRIBUTING.md stays true to the tree: each named file, make target and test path exists, and recipes stay short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
CODE = re.findall(r"`([^`\n]+)`", PAGE)
PATHS = sorted({text for text in CODE if re.fullmatch(r"[\w.-]+(/[\w.-]+)+|[\w-]+\.(md|cfg|toml)", text)})
# Of commands: what pytest is to run, and modules that Python is to run.
TESTS = sorted({path for text in [*CODE, *PAGE.splitlines()] for path in re.findall(r"\btests/[\w/]+(?:\.\w+)?", text)})
MODULES = sorted({name for text in CODE for name in re.findall(r"python -m ((?:tests|sync_scripts)\.[\w.]+)", text)})
TARGETS = sorted(set(re.findall(r"\bmake ([a-z-]+)", "\n".join([*CODE, *re.findall(r"(?m)^    .*", PAGE)]))))
# A paragraph may stand before the steps.
RECIPES = re.findall(r"(?m)^### (.+)\n\n(?:[^\d\n].*\n\n)?((?:.+\n)+)", PAGE)


def test_every_named_path_exists() -> None:
    missing = [path for path in (*PATHS, *TESTS) if not (ROOT / path).exists()]
    assert not missing, missing


def test_every_named_module_exists() -> None:
    missing = [name for name in MODULES if not (ROOT / f"{name.replace('.', '/')}.py").exists()]
    assert not missing, missing


def test_every_named_make_target_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    missing = [target for target in TARGETS if not re.search(rf"(?m)^{target}:", makefile)]
    assert not missing, missing


@pytest.mark.parametrize(("title", "steps"), RECIPES, ids=[title for title, _ in RECIPES])
def test_a_recipe_is_short_and_ends_with_its_tests(title: str, steps: str) -> None:
    lines = steps.splitlines()
    assert len(lines) <= 14
    assert any(re.match(r"\d\. `pytest tests/", line) for line in lines[-2:])


def test_the_page_names_what_these_tests_check() -> None:
    assert len(PATHS) > 25
    assert {"test", "check", "check-long", "imports"} <= set(TARGETS)
    snapshots = ("db.schema", "docs.reference", "docs.security", "openapi.examples")
    assert sorted(["tests.grammar.diagram", *(f"tests.{name}_snapshot" for name in snapshots)]) == MODULES
    assert len(RECIPES) == PAGE.count("\n### ") == 10
