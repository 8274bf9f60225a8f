"""The house's ways with dataclasses: a docstring says what the fields are, and many values are given by name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.style.words import FOLDERS, ROOT

# A call with as many values by position cannot be read without the class beside it.
MOST_BY_POSITION = 7


def list_sources() -> Iterator[tuple[str, list[str], ast.Module]]:
    """(path, lines, tree) of each module that ships."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "tests" not in path.parts:
                source = path.read_text()
                yield str(path.relative_to(ROOT)), source.splitlines(), ast.parse(source)


def list_comments(lines: list[str], node: ast.AST) -> Iterator[int]:
    """The line numbers of comments between the fields of a dataclass."""
    if not isinstance(node, ast.ClassDef) or not any("dataclass" in ast.unparse(it) for it in node.decorator_list):
        return
    fields = [field for field in node.body if isinstance(field, ast.AnnAssign)]
    first, last = node.lineno, fields[-1].end_lineno or 0 if fields else 0
    yield from (number for number in range(first, last) if lines[number - 1].strip().startswith("#"))


def test_the_docstring_of_a_dataclass_says_what_its_fields_are() -> None:
    found = [
        f"{path}:{number}: {lines[number - 1].strip()}"
        for path, lines, tree in list_sources()
        for node in ast.walk(tree)
        for number in list_comments(lines, node)
    ]
    assert found == []


def count_by_position(node: ast.AST) -> int:
    """How many values a class is given by position; 0 for anything else."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or not node.func.id[:1].isupper():
        return 0
    return len([value for value in node.args if not isinstance(value, ast.Starred)])


def test_many_values_are_given_by_name() -> None:
    calls = ((path, node, count_by_position(node)) for path, _, tree in list_sources() for node in ast.walk(tree))
    assert [f"{path}: {ast.unparse(node)[:60]}" for path, node, count in calls if count > MOST_BY_POSITION] == []
