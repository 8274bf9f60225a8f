"""What keeps a version from being released."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tools.release import Checkout, list_obstacles, name_tag, read_checkout

READY = Checkout(
    versions={"CHANGELOG.md": "0.2.0", "grammar/CHANGELOG.md": "1.1.0"},
    changelogs={
        "CHANGELOG.md": "# Changelog\n\n## 0.2.0 (2027-01-15)\n\n- New.\n\n## 0.1.0 (2026-12-01)\n",
        "grammar/CHANGELOG.md": "## 1.1.0 (2027-01-15)\n",
    },
    changed=(),
    kept=("v0.1.0", "v0.2.0"),
    tags=("v0.1.0",),
    here=(),
)


def with_changelog(text: str) -> dict[str, Any]:
    return {"changelogs": {**READY.changelogs, "CHANGELOG.md": text}}


CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nothing": ({}, []),
    "built again": ({"tags": ("v0.1.0", "v0.2.0"), "here": ("v0.2.0",)}, []),
    "no day": (
        with_changelog("## 0.2.0 (unreleased)\n"),
        ["the section 0.2.0 of CHANGELOG.md has no day in place of (unreleased)"],
    ),
    "an older section": (
        with_changelog("## 0.1.0 (2026-12-01)\n"), ["the newest section of CHANGELOG.md is not of 0.2.0"]
    ),
    "no section": (with_changelog("# Changelog\n"), ["the newest section of CHANGELOG.md is not of 0.2.0"]),
    "files of no commit": (
        {"changed": ("a", "b", "c", "d")}, ["no commit has a, b, c and others"]
    ),
    "no data to upgrade": (
        {"kept": ("v0.1.0",)}, ["tests/db has no rows of v0.2.0: `python -m tests.db.released_data`, then `RELEASES`"]
    ),
    "a version that is released": (
        {"tags": ("v0.2.0",)}, ["v0.2.0 is another commit already: raise the version"]
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changed", "obstacles"), CASES.values(), ids=CASES)
def test_what_keeps_a_version_from_being_released_is_said(changed: dict[str, Any], obstacles: list[str]) -> None:
    assert list(list_obstacles(replace(READY, **changed))) == obstacles


def test_this_checkout_is_read() -> None:
    checkout = read_checkout()
    assert name_tag(checkout).startswith("v")
    assert all(version in checkout.changelogs[path] for path, version in checkout.versions.items())
