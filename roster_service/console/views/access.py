"""Who sees what: the schools by vendor, and the vendors of a school or a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from roster_service.access.access_list import list_access
from roster_service.access.vendors import list_vendors
from roster_service.console.list_pages import Paged, cut_page
from roster_service.console.screen import Form, Screen
from roster_service.console.visit import Visit
from roster_service.db.actors import OperatorRole
from roster_service.errors import CommandError


@dataclass(frozen=True)
class AccessPage:
    """The schools that vendors see, or the roles by which they see a person. `vendors`: to choose from; `problem`: why
    the search found nothing, None if it was one."""

    vendors: Sequence[str]
    rows: Paged
    problem: str | None


def read_access(visit: Visit) -> AccessPage:
    """Reads what the search of the query string wants: a vendor, a school, a person, or all."""
    connection = visit.connection
    names = [it.email for it in list_vendors(connection)]
    try:
        found = list_access(
            connection, vendor=visit.get("vendor"), school=visit.get("school"), person=visit.get("person")
        )
    except CommandError as error:
        return AccessPage(names, cut_page(visit, []), str(error).partition(";")[0])
    return AccessPage(names, cut_page(visit, found), None)


SCREENS = (
    Screen("access", "/access", "Who sees what", OperatorRole.VIEWER, read_access, lambda it: it.rows.rows, "Access"),
)
FORMS: Sequence[Form] = ()
