"""Every file, module and command that the documentation names is there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import click
import pytest

from roster_service.cli import main
from tests.docs.pages import ROOT, TODAY, list_code_lines, list_spans, name_page

PACKAGES = ("roster_service", "sync_scripts", "grammar/oneroster_filter")
# A path without its top folder is below one of these.
BASES = (ROOT, *(ROOT / name for name in PACKAGES))
FILE = re.compile(r"[\w./-]+\.(?:py|sql|md|lark|cfg|toml|sh|yml|svg)")
TEST = re.compile(r"(tests/[\w/]+\.py)::(\w+)")
MODULE = re.compile(r"(?<![\w-])((?:roster_service|sync_scripts|tools|tests|oneroster_filter)(?:\.\w+)+)")
# Folders that tools make.
MADE = {".git", ".venv", "var", "build", "dist"}
# Folders that a path may begin with, so that `serving/plans.py` and `roster/labels` are paths, and `v1p1/NAME` is none.
FOLDERS = {path.name for base in BASES for path in base.iterdir() if path.is_dir()} - MADE


@cache
def list_files() -> frozenset[str]:
    """The paths of all files of the project, from its root, but for those that tools make."""
    tops = (path for path in ROOT.iterdir() if path.name not in MADE)
    files = (file for top in tops for file in (top.rglob("*") if top.is_dir() else [top]) if file.is_file())
    return frozenset(file.relative_to(ROOT).as_posix() for file in files)


def is_path(span: str) -> bool:
    """Whether a text in backticks names a file or a folder of the project."""
    if FILE.fullmatch(span):
        return True
    return bool(re.fullmatch(r"[\w.-]+(?:/[\w.-]+)*/?", span)) and "/" in span and span.partition("/")[0] in FOLDERS


def exists(path: str) -> bool:
    """Whether a path is one of the project: from its root, from a package, or the end of a path of a file."""
    known = any((base / path).exists() for base in BASES)
    return known or any(file.endswith(f"/{path}") for file in list_files())


def has_test(name: str) -> bool:
    """Whether a file of tests, named with its test as pytest names it, has that test."""
    file, _, test = name.partition("::")
    return (ROOT / file).is_file() and re.search(rf"^def {test}\(", (ROOT / file).read_text(), re.MULTILINE) is not None


def has_module(name: str) -> bool:
    """Whether a dotted name is a module, a package, or a name in one."""
    parts = name.split(".")
    for base in (ROOT, ROOT / "grammar"):
        for end in (len(parts), len(parts) - 1):
            path = base.joinpath(*parts[:end])
            found = path.with_suffix(".py") if path.with_suffix(".py").is_file() else path / "__init__.py"
            if found.is_file() or (end == len(parts) and path.is_dir()):
                return end == len(parts) or parts[-1] in found.read_text()
    return False


def has_target(name: str) -> bool:
    """Whether the Makefile has a target of this name."""
    return re.search(rf"^{re.escape(name)}:", (ROOT / "Makefile").read_text(), re.MULTILINE) is not None


def has_command(words: list[str]) -> bool:
    """Whether words behind `roster` begin with a command, or are none: a `roster` that stands for something else."""
    group: click.Command = main
    for word in words:
        if not isinstance(group, click.Group):
            return True
        if not re.fullmatch(r"[a-z][a-z-]*", word):
            return group is main
        if word not in group.commands:
            return False
        group = group.commands[word]
    return not isinstance(group, click.Group) or len(words) < 2


def list_names(pattern: str, path: Path) -> list[str]:
    return [found for line in list_code_lines(path) for found in re.findall(pattern, line)]


PATHS = sorted({(name_page(page), span) for page in TODAY for span in list_spans(page) if is_path(span)})
TESTS = sorted({(name_page(page), span) for page in TODAY for span in list_spans(page) if TEST.fullmatch(span)})
MODULES = sorted({(name_page(page), name) for page in TODAY for name in list_names(MODULE.pattern, page)})
TARGETS = sorted({(name_page(page), name) for page in TODAY for name in list_names(r"\bmake ([a-z][a-z-]*)", page)})
COMMANDS = sorted(
    {(name_page(page), words) for page in TODAY for words in list_names(r"(?:^|/|\s)roster ((?:\S+ ?)+)", page)}
)


def test_every_path_is_there() -> None:
    missing = [(page, path) for page, path in PATHS if not exists(path)]
    assert not missing, missing


def test_every_test_is_there() -> None:
    missing = [(page, name) for page, name in TESTS if not has_test(name)]
    assert not missing, missing


def test_every_module_is_there() -> None:
    missing = [(page, name) for page, name in MODULES if not has_module(name)]
    assert not missing, missing


def test_every_make_target_is_there() -> None:
    missing = [(page, name) for page, name in TARGETS if not has_target(name)]
    assert not missing, missing


def test_every_roster_command_is_there() -> None:
    missing = [(page, words) for page, words in COMMANDS if not has_command(words.split())]
    assert not missing, missing


def test_enough_is_found() -> None:
    assert len(PATHS) > 100
    assert len(TESTS) > 20
    assert len(MODULES) > 5
    assert len(TARGETS) > 5
    assert len(COMMANDS) > 30


@pytest.mark.parametrize(
    ("span", "is_there"),
    [
        ("serving/plan.py", True),
        ("sync_scripts/engine/load.py", True),
        ("schema.sql", True),
        ("db/sql/policies", True),
        ("serving/wish.py", False),
        ("tests/contract/test_nothing.py", False),
        ("roster/shelf", False),
        ("tests/nothing/", False),
    ],
)
def test_a_path_that_is_gone_is_found(span: str, is_there: bool) -> None:
    assert is_path(span)
    assert exists(span) is is_there


@pytest.mark.parametrize("span", ["v1p1/NAME", "/users/{id}", "asc", "manifest.csv"])
def test_other_texts_are_no_paths(span: str) -> None:
    assert not is_path(span)


@pytest.mark.parametrize(
    ("words", "is_there"),
    [
        ("db upgrade", True),
        ("vendor limits EMAIL", True),
        ("run", True),
        ("&& cd roster", True),
        ("vendor forget EMAIL", False),
        ("serve", False),
    ],
)
def test_a_command_that_is_gone_is_found(words: str, is_there: bool) -> None:
    assert has_command(words.split()) is is_there


def test_a_test_a_module_and_a_target_that_are_gone_are_found() -> None:
    assert has_test("tests/docs/test_names.py::test_every_path_is_there")
    assert not has_test("tests/docs/test_names.py::test_nothing")
    assert not has_test("tests/docs/test_nothing.py::test_every_path_is_there")
    assert has_module("sync_scripts.load_oneroster")
    assert not has_module("sync_scripts.load_nothing")
    assert has_target("bench-sync")
    assert not has_target("bench-nothing")
