"""The pages stay short enough to be read."""

from __future__ import annotations

from tests.docs import reference_snapshot, security_snapshot
from tests.docs.pages import ALL, name_page

# In which people look up a line.
GENERATED = (reference_snapshot.PAGE, security_snapshot.PAGE)
# Of those who change the service, and of the library, which is a distribution of its own.
OF_DEVELOPERS = (
    *("docs/architecture.md", "docs/develop.md", "docs/performance.md", "docs/glossary.md"),
    *("SECURITY.md", "CONTRIBUTING.md"),
)
MOST_WORDS = 24_000


def test_the_pages_for_users_have_a_number_of_words() -> None:
    """Without the generated ones."""
    pages = [it for it in ALL if it not in GENERATED and not name_page(it).startswith(("grammar/", *OF_DEVELOPERS))]
    words = {name_page(page): len(page.read_text().split()) for page in pages}
    assert sum(words.values()) <= MOST_WORDS, words
