"""What a screen and a form are. `screens.py` lists all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from roster_service.change_log.actors import OperatorRole
from roster_service.change_log.changes import Verb
from roster_service.console.visit import Outcome, Submission, Visit

# Of a file of CSV, which is made in memory.
MOST_ROWS = 200_000


@dataclass(frozen=True)
class Screen:
    """A page. `name`: of its template; `path`: below `/console`, as Flask writes paths; `read`: reads the content, a
    dataclass, which the template shows and `.json` has; `rows`: the rows of its `.csv`, as `make_csv` takes them, None
    if it has no list; `menu`: its place in the menu, None for a page that others lead to; `most_rows`: of the `.csv`,
    of a longer list the first ones."""

    name: str
    path: str
    title: str
    least: OperatorRole
    read: Callable[[Visit], Any]
    rows: Callable[[Any], Sequence[Any]] | None
    menu: str | None
    most_rows: int = MOST_ROWS


@dataclass(frozen=True)
class Form:
    """A form. It is sent to the path of its screen and its own name. `verb`: decides which role may send it; `run`:
    makes the change, or raises CommandError, which the screen shows beside the form; `typed`: the text that the
    operator must type to go on, None if nothing needs to be typed for any, or for this one; `takes_export`: whether its
    files may be large."""

    screen: str
    name: str
    verb: Verb
    run: Callable[[Submission], Outcome]
    typed: Callable[[Submission], str | None] | None
    takes_export: bool = False
