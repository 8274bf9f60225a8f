"""Hooks of mkdocs: the pages of the top level join the site, and links between pages fit both places.

In the repository, a page is linked by its path; on the site, all pages lie in one folder.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
# The pages outside of `docs`, by their path in the repository, and their names on the site.
OUTER = {
    "README.md": "index.md",
    "grammar/README.md": "library.md",
    "grammar/docs/adaptors.md": "library-adaptors.md",
    "grammar/docs/examples.md": "library-examples.md",
    "grammar/docs/grammar.md": "library-grammar.md",
    "grammar/CHANGELOG.md": "library-changelog.md",
    "grammar/SECURITY.md": "library-security.md",
    "grammar/docs/grammar.svg": "grammar.svg",
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|mailto:|#)([^)\s#]+)(#[^)\s]*)?\)")
# A name in running text, not in a block of code, which ends with a line's end.
NAME = re.compile(r"<code>([^<\n]{16,})</code>")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages of the top level."""
    for path, name in OUTER.items():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrites the links of a page from paths of the repository to names on the site."""
    own = next((path for path, name in OUTER.items() if name == page.file.src_uri), f"docs/{page.file.src_uri}")
    folder = posixpath.dirname(own)

    def rewrite(found: re.Match[str]) -> str:
        mark, text, target, anchor = found.groups()
        path = posixpath.normpath(posixpath.join(folder, target))
        name = OUTER.get(path) or path.removeprefix("docs/")
        if path not in OUTER and not path.startswith("docs/"):
            # A file of the repository that is no page.
            return text
        return f"{mark}[{text}]({name}{anchor or ''})"

    return LINK.sub(rewrite, markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lets long names break after a slash, and the name of a test or a setting after an underscore."""

    def part(found: re.Match[str]) -> str:
        path, mark, test = found[1].partition("::")
        path = path.replace("_", "_<wbr>") if path.isupper() else path.replace("/", "/<wbr>")
        return f"<code>{path}{mark}<wbr>{test.replace('_', '_<wbr>')}</code>"

    return NAME.sub(part, html)
