"""The pages stay short enough to be read."""

from __future__ import annotations

from collections.abc import Mapping

from tests.docs import reference_snapshot, security_snapshot
from tests.docs.pages import ALL, name_page

# In which people look up a line.
GENERATED = (reference_snapshot.PAGE, security_snapshot.PAGE)
# Of those who change the service.
OF_DEVELOPERS = (
    *("docs/architecture.md", "docs/develop.md", "docs/performance.md", "docs/glossary.md"),
    *("SECURITY.md", "CONTRIBUTING.md"),
)
# Of the pages for users, without the generated ones, and of all.
MOST_OF_USERS, MOST_OF_ALL = 22_000, 38_000


def count_words() -> Mapping[str, int]:
    """The words of each page of the service; those of the library, which is a distribution of its own, are not here."""
    counted = {name_page(page): len(page.read_text().split()) for page in ALL}
    return {name: words for name, words in counted.items() if not name.startswith("grammar/")}


def test_all_pages_have_a_number_of_words() -> None:
    words = count_words()
    assert sum(words.values()) <= MOST_OF_ALL, words


def test_the_pages_for_users_have_a_number_of_words() -> None:
    others = {*map(name_page, GENERATED), *OF_DEVELOPERS}
    words = {name: number for name, number in count_words().items() if name not in others}
    assert sum(words.values()) <= MOST_OF_USERS, words
