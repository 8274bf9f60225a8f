"""What is said of the message of a commit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.style.commits import HERE, find_faults, list_commits, read_kinds

KINDS = frozenset({"fix", "sync"})
WHY = "\n\nIt was wrong.\n"


@pytest.mark.parametrize(
    ("message", "faults"),
    [
        ("fix: say no" + WHY, []),
        ("fix: say no" + WHY + "# a comment of git\n", []),
        ("say no" + WHY, ["the subject begins with none of fix:, sync:"]),
        ("feat: say no" + WHY, ["the subject begins with none of fix:, sync:"]),
        ("fix: " + "a" * 67 + WHY, []),
        ("fix: " + "a" * 68 + WHY, ["the subject has 73 characters, and at most 72 are shown whole"]),
        ("fix: say no." + WHY, ["the subject ends with a full stop"]),
        ("fix: say no\n", ["no body says why"]),
        ("fix: say no\n\n# a comment of git\n", ["no body says why"]),
        ("fix: say no\nand why\n", ["no empty line follows the subject"]),
        ("", ["the subject begins with none of fix:, sync:", "no body says why"]),
    ],
)
def test_a_message_has_a_kind_a_short_subject_and_a_body(message: str, faults: list[str]) -> None:
    assert list(find_faults(message, KINDS)) == faults


def test_the_kinds_are_those_of_the_page() -> None:
    assert {"fix", "perf", "sync", "web"} <= read_kinds()
    assert "feat" not in read_kinds()


def test_commits_are_asked_since_the_check_is_there(tmp_path: Path) -> None:
    assert not list(list_commits(tmp_path))
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for name, message in (("old", "long ago"), (HERE, "test: check"), ("new", "fix: it\n\nWhy.")):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", message]):
            subprocess.run([*git, *words], cwd=tmp_path, check=True)
    assert [message for _, message in list_commits(tmp_path)] == ["fix: it\n\nWhy.", "test: check"]
