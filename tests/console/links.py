"""The pages of the console that its links lead to."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from roster_service.console.login import ROOT
from roster_service.console.screen import Screen

_LINK = re.compile(r'href="([^"]+)"')


def find_addresses(
    get: Callable[[str], str], screens: Sequence[Screen], most: int, of_each: int = 1
) -> Mapping[str, Sequence[str]]:
    """The addresses of each screen, by its name: its path, or up to `of_each` links to such a path that other screens
    have. `get`: the text of the page at an address; `most`: how many pages are looked at."""
    patterns = {screen.name: make_pattern(screen) for screen in screens}
    found = {it.name: [ROOT + it.path] if "<" not in it.path else [] for it in screens}
    queue, seen = [address for known in found.values() for address in known], set[str]()
    while queue and len(seen) < most:
        address = queue.pop(0)
        if address in seen:
            continue
        seen.add(address)
        for link in list_links(get(address)):
            for name, pattern in patterns.items():
                if pattern.match(link.partition("?")[0]) and link not in found[name] and len(found[name]) < of_each:
                    found[name].append(link)
                    queue.append(link)
    return found


def make_pattern(screen: Screen) -> re.Pattern[str]:
    """What the addresses of a screen match, without their query string."""
    path = re.sub(r"<int:[^>]+>", "[0-9]+", screen.path)
    return re.compile(re.escape(ROOT) + re.sub(r"<[^>]+>", "[^/?#]+", re.sub(r"<int:[^>]+>", "[0-9]+", path)) + "$")


def list_links(page: str) -> Iterator[str]:
    """The addresses of the links of a page to other pages."""
    yield from (link for link in map(html.unescape, _LINK.findall(page)) if ".csv" not in link)
