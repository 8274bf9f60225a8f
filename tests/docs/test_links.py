"""Every link of the documentation leads somewhere, here and on the site that is built of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import ALL, ROOT, name_page, read_prose

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
LINKS = [(name_page(page), target) for page in ALL for target in LINK.findall(read_prose(page))]
INNER = [(page, target) for page, target in LINKS if not re.match(r"https?://|mailto:", target)]


def slug_of_repository(heading: str) -> str:
    """The anchor of a heading where the repository is shown."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def slug_of_site(heading: str) -> str:
    """The anchor of a heading on the site (Python-Markdown)."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())


def list_anchors(page: Path) -> set[str]:
    """The anchors that a page has in both places."""
    headings = [re.sub(r"[`*]", "", line) for line in re.findall(r"^#+ (.*)$", read_prose(page), re.MULTILINE)]
    return {slug_of_repository(it) for it in headings} & {slug_of_site(it) for it in headings}


def find_trouble(page: str, target: str) -> str | None:
    """What is wrong with a link of a page, given by its path; None: nothing."""
    path, _, anchor = target.partition("#")
    found = ((ROOT / page).parent / path).resolve() if path else ROOT / page
    if not found.is_relative_to(ROOT):
        return "leads out of the project"
    if not found.exists():
        return "there is no such file"
    if anchor and anchor not in list_anchors(found):
        return "there is no such heading"
    return None


def test_every_link_leads_somewhere() -> None:
    broken = [(page, target, trouble) for page, target in INNER if (trouble := find_trouble(page, target))]
    assert not broken, broken


def test_there_are_links() -> None:
    assert len(INNER) > 40
    assert {page for page, _ in INNER} >= {"README.md", "docs/architecture.md", "docs/vendors.md", "docs/sync.md"}


@pytest.mark.parametrize(
    ("target", "trouble"),
    [
        ("nowhere.md", "there is no such file"),
        ("glossary.md#nothing", "there is no such heading"),
        ("#nothing", "there is no such heading"),
        ("../../elsewhere.md", "leads out of the project"),
        ("glossary.md#serving", None),
        ("../README.md#install-and-run", None),
    ],
)
def test_a_broken_link_is_found(target: str, trouble: str | None) -> None:
    assert find_trouble("docs/architecture.md", target) == trouble


def test_every_page_is_linked_from_the_readme() -> None:
    linked = {target.partition("#")[0] for page, target in INNER if page == "README.md"}
    assert {name_page(path) for path in (ROOT / "docs").glob("*.md")} <= linked
