"""Schools by vendors: who sees which school, as a table, and as CSV for the annual notice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from roster_service.accounts.districts import DistrictName, list_named_districts
from roster_service.accounts.parts import PARTS
from roster_service.change_log.actors import OperatorRole
from roster_service.console.list_pages import Paged, cut_page
from roster_service.console.screen import Form, Screen
from roster_service.console.visit import Visit
from roster_service.errors import CommandError
from roster_service.explore.school_access import LEVELS, SchoolRow, SeenBy, SharedSchool, read_school_access


@dataclass(frozen=True)
class SchoolAccess:
    """The table. `rows`: schools, a page of them; `count`, `shared`: of all found schools, and of those that a vendor
    sees; `sensitive`: of those at which one gets sensitive parts; `parts`: the words of the parts to choose from;
    `problem`: why nothing was looked for, else None."""

    vendors: Sequence[SeenBy]
    rows: Paged
    count: int
    shared: int
    sensitive: int
    districts: Sequence[DistrictName]
    levels: Sequence[str]
    parts: Mapping[str, str]
    problem: str | None


def read_access(visit: Visit) -> SchoolAccess:
    """Reads the table that the query string wants."""
    vendors: list[SeenBy] = []
    rows: list[SchoolRow] = []
    problem = None
    try:
        vendors, rows = read_school_access(
            visit.connection,
            level=visit.get("level"),
            part=visit.get("part"),
            district=visit.get("district"),
            search=visit.get("search") or "",
        )
    except CommandError as error:
        problem = str(error)
    return SchoolAccess(
        vendors=vendors,
        rows=cut_page(visit, rows),
        count=len(rows),
        shared=sum(bool(row.seen) for row in rows),
        sensitive=sum(bool(row.sensitive) for row in rows),
        districts=list_named_districts(visit.connection),
        levels=list(LEVELS),
        parts={part.name: part.choice for part in PARTS.values()},
        problem=problem,
    )


def list_notice(content: SchoolAccess) -> list[SharedSchool]:
    """Returns the rows of the annual notice: each school that a vendor sees."""
    return [
        SharedSchool(
            row.district,
            row.name,
            row.sourcedId,
            vendor.name,
            vendor.email,
            "; ".join(row.parts[vendor.id]),
            row.only.get(vendor.id, ""),
        )
        for row in content.rows.rows
        for vendor in content.vendors
        if vendor.id in row.seen
    ]


SCREENS = (Screen("access", "/access", "Schools and vendors", OperatorRole.VIEWER, read_access, list_notice, "Access"),)
FORMS: Sequence[Form] = ()
