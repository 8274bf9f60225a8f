"""The messages of commits, as CONTRIBUTING.md says how they are.

With a file, the hook `commit-msg` asks of the message in it. Without one, `make style` asks of each commit since this
check is there.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.style.words import ROOT

LONGEST_SUBJECT = 72
HERE = "tests/style/commits.py"


def read_kinds() -> frozenset[str]:
    """Returns the kinds of commits, which CONTRIBUTING.md lists."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    rule = page[page.index("- **Commits**") : page.index("- **Changelog**")]
    return frozenset(re.findall(r"`(\w+):`", rule))


def find_faults(message: str, kinds: frozenset[str]) -> Iterator[str]:
    """Yields what is wrong with a message."""
    lines = [line for line in message.splitlines() if not line.startswith("#")]
    subject, rest = (lines or [""])[0], lines[1:]
    kind, _, what = subject.partition(": ")
    if kind not in kinds:
        yield f"the subject begins with none of {', '.join(f'{it}:' for it in sorted(kinds))}"
    if len(subject) > LONGEST_SUBJECT:
        yield f"the subject has {len(subject)} characters, and at most {LONGEST_SUBJECT} are shown whole"
    if what.endswith("."):
        yield "the subject ends with a full stop"
    if not any(line.strip() for line in rest):
        yield "no body says why"
    elif rest[0].strip():
        yield "no empty line follows the subject"


def list_commits(root: Path) -> Iterator[tuple[str, str]]:
    """Yields the id and the message of each commit since this file was added, merges apart; none outside of git."""
    if not (root / ".git").exists():
        return
    added = _ask(root, "log", "--diff-filter=A", "--format=%h", "--", HERE).split()
    asked = f"{added[-1]}~..HEAD" if added and _ask(root, "rev-list", "--parents", "-1", added[-1]).split()[1:] else ""
    if asked:
        for commit in _ask(root, "log", "--no-merges", "--format=%h%n%B%x00", asked).split("\0"):
            name, _, message = commit.strip().partition("\n")
            if name:
                yield name, message


def _ask(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout


def main() -> None:
    """Ends with 1 and says what is wrong, if something is."""
    asked = [("", Path(sys.argv[1]).read_text())] if sys.argv[1:] else list(list_commits(ROOT))
    kinds = read_kinds()
    found = [f"{name} {fault}".strip() for name, message in asked for fault in find_faults(message, kinds)]
    if found:
        sys.exit("\n".join(["CONTRIBUTING.md says how a commit is described:", *found]))


if __name__ == "__main__":
    main()
