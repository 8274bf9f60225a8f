"""The pages of the documentation, and what the tests of them have in common."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
# What stands in them is true of today's tree; the change log also names what is gone.
TODAY = sorted(
    path
    for path in (
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "grammar" / "docs").glob("*.md"),
        *(ROOT / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md", "grammar/README.md")),
    )
    if path.exists()
)
ALL = [*TODAY, ROOT / "CHANGELOG.md"]

_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:^    .*\n)+", re.MULTILINE)


def name_page(path: Path) -> str:
    """The path of a page from the root of the project."""
    return path.relative_to(ROOT).as_posix()


def read_page(name: str) -> str:
    """The text of a page, by its path from the root of the project."""
    return (ROOT / name).read_text()


def read_prose(path: Path) -> str:
    """The text of a page without its blocks of code."""
    return _INDENTED.sub("", _FENCED.sub("", path.read_text()))


def list_spans(path: Path) -> list[str]:
    """The texts in backticks, outside of blocks of code."""
    return re.findall(r"`([^`\n]+)`", read_prose(path))


def list_code_lines(path: Path) -> list[str]:
    """The lines of the blocks of code, and the texts in backticks."""
    text = path.read_text()
    blocks = [*_FENCED.findall(text), *_INDENTED.findall(_FENCED.sub("", text))]
    return [line for block in blocks for line in block.splitlines()] + list_spans(path)


def read_section(name: str, title: str) -> str:
    """The text below a heading of the second or third level, down to the next heading that is as high."""
    found = re.search(rf"^(##|###) {re.escape(title)}\n", read_page(name), re.MULTILINE)
    if found is None:
        raise KeyError(title)
    section = read_page(name)[found.end() :]
    levels = "##" if found[1] == "##" else "###?"
    return re.split(rf"^{levels} ", section, maxsplit=1, flags=re.MULTILINE)[0]


def list_rows(text: str, header: str) -> list[list[str]]:
    """The cells of the rows of a table, by the text of its first column's header."""
    _, found, table = text.partition(f"\n| {header} |")
    if not found:
        raise KeyError(header)
    lines = table.partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
