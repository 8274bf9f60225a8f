"""The service is the library's first customer: it takes nothing but the public names."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

PROJECT = Path(__file__).parents[1]
FILES = sorted(path for folder in ("roster_service", "sync_scripts") for path in (PROJECT / folder).rglob("*.py"))
PUBLIC = {
    module: set(importlib.import_module(module).__all__)
    for module in ("oneroster_filter", "oneroster_filter.sqlalchemy", "oneroster_filter.typing")
}


def list_imports(path: Path) -> list[tuple[str, str]]:
    """(module, name) of everything that a file imports; the name is empty where the module itself is."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            found += [(node.module or "", alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
    return [(module, name) for module, name in found if module.partition(".")[0] == "oneroster_filter"]


def test_the_service_uses_the_library() -> None:
    assert any(list_imports(path) for path in FILES)


def test_only_public_names_are_imported() -> None:
    private = [
        (str(path.relative_to(PROJECT)), module, name)
        for path in FILES
        for module, name in list_imports(path)
        if name not in PUBLIC.get(module, ())
    ]
    assert not private, private
