"""No picture or archive lies where nobody looks for it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.style.words import ROOT

# Files that are no text, and folders of such files.
PLACES = ("docs/pictures/", "tests/exports/", "roster_service/cli/roster-demo.zip")


def list_binaries(root: Path) -> list[str]:
    """The files of the last commit and of the work tree that are no text, but for those in `PLACES`."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.split("\0")
    found = [name for name in names if name and (root / name).is_file() and not name.startswith(PLACES)]
    return [name for name in found if b"\0" in (root / name).read_bytes()]


def test_no_binary_lies_among_the_sources() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout of git")
    assert list_binaries(ROOT) == []


def test_a_binary_is_found(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "docs" / "pictures").mkdir(parents=True)
    for name in ("p3.png", "docs/pictures/right.png"):
        (tmp_path / name).write_bytes(b"\x89PNG\0")
    (tmp_path / "page.md").write_text("words")
    assert list_binaries(tmp_path) == ["p3.png"]
