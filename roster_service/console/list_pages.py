"""Long lists on screens, a page at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from roster_service.console.screen import MOST_ROWS
from roster_service.console.visit import Visit

SIZE = 50
# Beyond it a person should filter; the pages before are cheap to skip.
MOST_PAGES = 10_000


@dataclass(frozen=True)
class Paged:
    """A page of a list. `number`: from 1; `more`: whether a page follows; `here`: the query string without the page."""

    rows: Sequence[Any]
    number: int
    more: bool
    here: str


def find_window(visit: Visit) -> tuple[int, int]:
    """Returns (rows to skip, rows to read) for the page that a request wants: one row more than the page shows; or all
    rows, for CSV."""
    if visit.whole:
        return 0, MOST_ROWS
    return (_read_number(visit) - 1) * SIZE, SIZE + 1


def make_paged(visit: Visit, rows: Sequence[Any]) -> Paged:
    """Returns the page. `rows`: of the window of `find_window`."""
    query = urlencode([(name, value) for name in visit.query if name != "page" for value in visit.lists(name)])
    shown = rows if visit.whole else rows[:SIZE]
    return Paged(shown, _read_number(visit), len(rows) > len(shown), query)


def cut_page(visit: Visit, rows: Sequence[Any]) -> Paged:
    """Returns the page of a list that is read as a whole."""
    skipped, count = find_window(visit)
    return make_paged(visit, rows[skipped : skipped + count])


def _read_number(visit: Visit) -> int:
    return visit.get_number("page", 1, MOST_PAGES)
