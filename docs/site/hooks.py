"""Hooks of mkdocs for the site of the service and that of the filter library: pages of other folders join a site, and
links between pages fit the repository and both sites.

In the repository, a page is linked by its path; on a site, all pages lie in one folder.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
STYLE = "docs/site/site.css"


@dataclass(frozen=True)
class Site:
    """A site. `folder`: of its pages in the repository; `outer`: the other ones, by their path there, and their names
    on the site; `way`: to it from the folder of the other site."""

    folder: str
    outer: Mapping[str, str]
    way: str

    def find_name(self, path: str) -> str | None:
        """Returns the name of a page on the site; None if it does not have the page."""
        inside = path.startswith(f"{self.folder}/")
        return self.outer.get(path) or (path.removeprefix(f"{self.folder}/") if inside else None)


# By the `site_name` of its configuration.
SITES = {
    "Roster Service": Site(
        "docs",
        {
            "README.md": "index.md",
            "SECURITY.md": "security.md",
            "CONTRIBUTING.md": "contributing.md",
            "CHANGELOG.md": "changelog.md",
        },
        "../",
    ),
    "oneroster_filter": Site(
        "grammar/docs",
        {
            "grammar/README.md": "index.md",
            "grammar/CHANGELOG.md": "changelog.md",
            "grammar/SECURITY.md": "security.md",
            STYLE: "site/site.css",
        },
        "library/",
    ),
}
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|mailto:|#)([^)\s#]+)(#[^)\s]*)?\)")
# A name in running text, not in a block of code, which ends with a line's end.
NAME = re.compile(r"<code>([^<\n]{16,})</code>")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages of other folders."""
    for path, name in SITES[config.site_name].outer.items():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrites the links of a page from paths of the repository to names on the sites."""
    site = SITES[config.site_name]
    [other] = (it for it in SITES.values() if it is not site)
    own = next((path for path, name in site.outer.items() if name == page.file.src_uri), None)
    folder = posixpath.dirname(own or f"{site.folder}/{page.file.src_uri}")

    def rewrite(found: re.Match[str]) -> str:
        mark, text, target, anchor = found.groups()
        path = posixpath.normpath(posixpath.join(folder, target))
        name = site.find_name(path)
        if name is not None:
            return f"{mark}[{text}]({name}{anchor or ''})"
        elsewhere = other.find_name(path)
        if elsewhere is None:
            # A file of the repository that is no page.
            return text
        # As HTML: mkdocs knows the pages of one site.
        address = other.way + re.sub(r"\.md$", ".html", elsewhere) + (anchor or "")
        words = re.sub(r"`([^`]*)`", r"<code>\1</code>", text)
        return f'<a href="{address}">{words}</a>'

    return LINK.sub(rewrite, markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lets long names break after a slash, and the name of a test or a setting after an underscore."""

    def part(found: re.Match[str]) -> str:
        path, mark, test = found[1].partition("::")
        path = path.replace("_", "_<wbr>") if path.isupper() else path.replace("/", "/<wbr>")
        return f"<code>{path}{mark}<wbr>{test.replace('_', '_<wbr>')}</code>"

    return NAME.sub(part, html)
