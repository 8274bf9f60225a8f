"""Who sees what: the schools by vendor, and the vendors of a school or a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from roster_service.accounts.districts import SCHOOL
from roster_service.accounts.parts import PARTS, Received, explain_nothing, list_received
from roster_service.accounts.vendors import list_vendors
from roster_service.change_log.actors import OperatorRole
from roster_service.console.list_pages import Paged, cut_page
from roster_service.console.record_cells import RecordRow
from roster_service.console.screen import Form, Screen
from roster_service.console.views.roster import search_roster
from roster_service.console.visit import Visit
from roster_service.errors import CommandError
from roster_service.explore.who_sees import Access, explain_unseen, list_access
from roster_service.schemas.versions import ORGS, USERS, Resource

# What may be looked for: its collection, and the facets of the search.
_SOUGHT: Mapping[str, tuple[Resource, Mapping[str, str]]] = {
    "school": (ORGS, {"type": SCHOOL}),
    "person": (USERS, {}),
}
# The people or schools of a name to choose from.
MOST_CHOICES = 25


@dataclass(frozen=True)
class AccessPage:
    """The schools that vendors see, or the roles by which they see a person. `vendors`: to choose from; `found`: by
    `person` and `school`, the records that the typed text names, if one must be chosen; `named`: likewise, the label of
    the record that was found; `problem`: why the search found nothing, None if it was one; `unseen`: why the chosen
    vendor does not see what was found, and then `rows` are those of the other vendors; `parts`: the words for each part
    of people; `received`: what each vendor gets of them, and `nothing`: why a vendor gets none."""

    vendors: Sequence[str]
    parts: Mapping[str, str]
    received: Mapping[str, Received]
    nothing: Mapping[str, str]
    rows: Paged
    found: Mapping[str, Sequence[RecordRow]]
    named: Mapping[str, str]
    problem: str | None = None
    unseen: str | None = None


def read_access(visit: Visit) -> AccessPage:
    """Reads what the search of the query string wants: a vendor, a school, a person, or all. A school and a person are
    named by their sourcedId, or by what the search of the roster takes."""
    connection = visit.connection
    listed_vendors = list_vendors(connection)
    received = list_received(connection)
    about = (
        [vendor.email for vendor in listed_vendors],
        {part.name: part.words for part in PARTS.values()},
        received,
        {vendor.email: explain_nothing(vendor) for vendor in listed_vendors if not received[vendor.email]},
    )
    found: dict[str, Sequence[RecordRow]] = {}
    ids: dict[str, str] = {}
    named: dict[str, str] = {}
    try:
        for name in _SOUGHT:
            typed = visit.get(name)
            if typed is None:
                continue
            rows = _find(visit, name, typed)
            if len(rows) > 1:
                found[name] = rows
            else:
                ids[name], named[name] = rows[0].sourcedId, rows[0].name
        vendor = visit.get("vendor")
        listed = [] if found else _list(visit, ids, vendor)
        unseen = None
        if vendor is not None and ids and not listed:
            unseen = explain_unseen(connection, vendor, ids.get("person") or ids["school"], visit.get("part"))
            listed = _list(visit, ids, None)
    except CommandError as error:
        return AccessPage(*about, cut_page(visit, []), {}, {}, str(error).partition(";")[0])
    return AccessPage(*about, cut_page(visit, listed), found, named, unseen=unseen)


def _list(visit: Visit, ids: Mapping[str, str], vendor: str | None) -> Sequence[Access]:
    return list_access(
        visit.connection, vendor=vendor, school=ids.get("school"), person=ids.get("person"), part=visit.get("part")
    )


def _find(visit: Visit, name: str, typed: str) -> Sequence[RecordRow]:
    """The one with this id, or at most `MOST_CHOICES` that the text names. `name`: of `_SOUGHT`. Raises CommandError if
    there is none."""
    resource, facets = _SOUGHT[name]
    rows, problem = search_roster(visit, resource, typed, {"status": "active", **facets}, MOST_CHOICES)
    if not rows:
        raise CommandError(problem or f"there is no {name} {typed}")
    return [row for row in rows if row.sourcedId == typed] or rows


SCREENS = (
    Screen("access", "/access", "Who sees what", OperatorRole.VIEWER, read_access, lambda it: it.rows.rows, "Access"),
)
FORMS: Sequence[Form] = ()
