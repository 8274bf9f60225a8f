"""`python -m tests.docs.security_snapshot`: writes `docs/security-tests.md` from the marks `shows` of the tests.

A mark stands at a test, or as `pytestmark` at all tests of a file, so no claim names a test that is gone.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "security-tests.md"
# What a claim is about, in the order of the threats in SECURITY.md.
SECTIONS = (
    "Machine and database",
    "Visibility",
    "Credentials",
    "Console",
    "Erased people",
    "Logs and transport",
    "Access log",
    "Operators",
    "Exports",
    "Load",
)
HEAD = """# Claims of security, and their tests

Generated from the tests by `python -m tests.docs.security_snapshot`.

For each threat of [Security](../SECURITY.md#threats), what the tests show against it, and no more. `make test-long`
and `make faults` run all of them, as CI does; `make test` leaves the long ones out, and `make check-long` makes more
repetitions.
"""
MARK = "pytest.mark.shows"


def list_marks(path: Path) -> Iterator[tuple[str, str, str]]:
    """The marks of a file of tests: section, claim, and the tests that show it, as pytest names them.

    Raises ValueError for a mark that is at no test, and for one of other arguments.
    """
    name, text = path.relative_to(ROOT).as_posix(), path.read_text()
    if MARK not in text:
        return
    tree = ast.parse(text)
    found: list[ast.Call] = []
    for node in tree.body:
        test = name
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            marks, test = node.decorator_list, f"{name}::{node.name}"
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            marks = node.value.elts if isinstance(node.value, ast.List) else [node.value]
        else:
            continue
        for mark in filter(is_mark, marks):
            assert isinstance(mark, ast.Call)
            found.append(mark)
            section, claim = (ast.literal_eval(it) for it in mark.args)
            if section not in SECTIONS:
                raise ValueError(f"{test}: there is no section {section!r}")
            yield section, claim, test
    others = [node.lineno for node in ast.walk(tree) if is_mark(node) and node not in found]
    if others:
        raise ValueError(f"{name}: marks at no test, in the lines {others}")


def is_mark(node: ast.AST) -> bool:
    """Whether this is a mark `shows`."""
    return isinstance(node, ast.Call) and ast.unparse(node.func) == MARK


@cache
def collect_claims() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """The claims of each section, with their tests, in the order of the files."""
    claims: dict[str, dict[str, list[str]]] = {section: defaultdict(list) for section in SECTIONS}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for section, claim, test in list_marks(path):
            claims[section][claim].append(test)
    return claims


def make_page() -> str:
    """The text of the page."""
    parts = [HEAD]
    for section, claims in collect_claims().items():
        parts.append(f"\n## {section}\n\n")
        parts += [f"- {claim} {', '.join(f'`{test}`' for test in tests)}\n" for claim, tests in claims.items()]
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(make_page())
