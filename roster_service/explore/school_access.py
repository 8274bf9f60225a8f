"""Schools by vendors: who sees which school, for the table of the console and the annual notice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from roster_service.accounts.districts import ACTIVE, SCHOOL, list_named_districts
from roster_service.accounts.parts import OF_DEMOGRAPHICS, PARTS, list_received, require_part
from roster_service.accounts.vendors import list_vendors
from roster_service.db.tables import classes, orgs
from roster_service.explore.access import Access, list_access
from roster_service.roster.person_parts import OF_GUARDIANS

# The levels of schools, by the codes of their grades (CEDS).
LEVELS: Mapping[str, frozenset[str]] = {
    "elementary": frozenset({"IT", "PR", "PK", "TK", "KG", "01", "02", "03", "04", "05"}),
    "middle": frozenset({"06", "07", "08"}),
    "high": frozenset({"09", "10", "11", "12", "13", "PS"}),
}
# With one of these, a vendor gets more of a child than names and classes.
SENSITIVE = OF_GUARDIANS | OF_DEMOGRAPHICS


@dataclass(frozen=True)
class SeenBy:
    """A vendor, the column of the table. `parts`: the words for what it gets of people at the schools that it sees,
    none if it gets nothing; `is_sensitive`: whether it gets guardians or demographics."""

    id: int
    name: str
    email: str
    parts: Sequence[str]
    is_sensitive: bool


@dataclass(frozen=True)
class SchoolRow:
    """A school, the row of the table. `levels`: of its classes' grades, none if no class has a grade; `seen`: the ids
    of the vendors that see it, each with `district` or `school`, whichever is granted; `only`: of those whose rules
    narrow that, in words; `parts`: the words for what each gets of people there; `sensitive`: the ids of those that
    get guardians or demographics there."""

    sourcedId: str  # noqa: N815  (the name in OneRoster)
    name: str
    district: str
    levels: Sequence[str]
    seen: Mapping[int, str]
    only: Mapping[int, str]
    parts: Mapping[int, Sequence[str]]
    sensitive: Sequence[int]


@dataclass(frozen=True)
class SharedSchool:
    """A row of the annual notice: a school that a vendor sees, and what it gets of the people there. `only`: of whom,
    in words; blank for all."""

    district: str
    school: str
    sourcedId: str  # noqa: N815
    vendor: str
    email: str
    gets: str
    only: str


def read_school_access(
    connection: sa.Connection, *, level: str | None, part: str | None, district: str | None, search: str
) -> tuple[list[SeenBy], list[SchoolRow]]:
    """Returns the vendors and the active schools, by district and name. `level`: only schools of this one; `part`: only
    what the vendors see that get this part of people; `district`: only its schools; `search`: in their names. Raises
    CommandError for an unknown part."""
    if part is not None:
        require_part(part)
    received = list_received(connection)
    vendors = [
        SeenBy(
            vendor.id,
            vendor.name,
            vendor.email,
            [PARTS[name].words for name in received[vendor.email]],
            not SENSITIVE.isdisjoint(received[vendor.email]),
        )
        for vendor in list_vendors(connection)
        if part is None or part in received[vendor.email]
    ]
    ids = {vendor.email: vendor.id for vendor in vendors if vendor.parts}
    seen: dict[str, dict[int, Access]] = {}
    for access in list_access(connection, vendor=None, school=None, person=None, part=part):
        if access.vendor in ids:
            seen.setdefault(access.sourcedId, {})[ids[access.vendor]] = access
    named = {item.sourcedId: item.words for item in list_named_districts(connection)}
    graded = sa.select(classes.c.school_id, sa.func.unnest(classes.c.grades, type_=sa.Text)).distinct()
    grades: dict[str, set[str]] = {}
    for school, grade in connection.execute(graded.where(classes.c.status == ACTIVE)):
        grades.setdefault(school, set()).add(grade)
    schools = sa.select(orgs.c.sourced_id, orgs.c.name, orgs.c.district_id)
    schools = schools.where(orgs.c.type == SCHOOL, orgs.c.status == ACTIVE)
    if district is not None:
        schools = schools.where(orgs.c.district_id == district)
    rows = []
    for row in connection.execute(schools):
        if search.casefold() in row.name.casefold():
            own = seen.get(row.sourced_id, {})
            rows.append(
                SchoolRow(
                    sourcedId=row.sourced_id,
                    name=row.name,
                    district=named.get(row.district_id, row.district_id or ""),
                    levels=[name for name, codes in LEVELS.items() if codes & grades.get(row.sourced_id, set())],
                    seen={vendor: access.grant for vendor, access in own.items()},
                    only={vendor: access.only for vendor, access in own.items() if access.only is not None},
                    parts={vendor: [PARTS[name].words for name in access.parts] for vendor, access in own.items()},
                    sensitive=[vendor for vendor, access in own.items() if not SENSITIVE.isdisjoint(access.parts)],
                )
            )
    kept = [row for row in rows if level is None or level in row.levels]
    return vendors, sorted(kept, key=lambda row: (row.district, row.name, row.sourcedId))
