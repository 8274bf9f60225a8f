"""The change log: who changed what, when and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from roster_service.change_log.actors import OperatorRole
from roster_service.change_log.changes import list_changes
from roster_service.console.list_pages import Paged, find_window, make_paged
from roster_service.console.screen import Form, Screen
from roster_service.console.visit import Visit


@dataclass(frozen=True)
class ChangeLog:
    """The change log, newest row first."""

    rows: Paged


def read_changes(visit: Visit) -> ChangeLog:
    """Reads the page of the change log that the query string wants."""
    found = list_changes(
        visit.connection,
        vendor=visit.get("vendor"),
        feed=visit.get("feed"),
        operator=visit.get("operator"),
        since=visit.get_day("since"),
        latest=find_window(visit),
    )
    return ChangeLog(make_paged(visit, found))


SCREENS = (
    Screen("changes", "/changes", "Change log", OperatorRole.VIEWER, read_changes, lambda it: it.rows.rows, "Changes"),
)
FORMS: Sequence[Form] = ()
