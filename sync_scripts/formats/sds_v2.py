"""School Data Sync (SDS) v2 CSV: the files of an export, and their conversion to OneRoster.

Version 2 is version 2.1 without `roles.csv`: each row of `users.csv` has the orgs, the role and the grade of its user.
Files and headers are those of the samples that Microsoft publishes for version 2; the optional files of version 2.1
are accepted too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from sync_scripts.formats import sds_retained as retained
from sync_scripts.formats import sds_rows as rows
from sync_scripts.formats.cells import GRADES, IDS, TEXT, to_list
from sync_scripts.formats.model import Cell, Format, Staged, StagedFile
from sync_scripts.formats.sds import SDS, TO_ORG, convert_to

ROLES = SDS.find_file("sds_roles")
_USERS = SDS.find_file("sds_users")
USERS = replace(
    _USERS,
    cells=(
        *_USERS.cells,
        Cell("orgSourcedIds", IDS, required=True, refers=TO_ORG, many=True),
        Cell("role", TEXT, required=True),
        Cell("grade", GRADES),
    ),
)


def _add_roles(staged: Staged) -> Staged:
    """The staged files, with the rows of users.csv as those of roles.csv of version 2.1: one for each org."""
    users = staged["sds_users"].alias()
    orgs = sa.func.unnest(to_list(users["orgSourcedIds"])).table_valued("id").render_derived()
    cells: dict[str, Any] = {header: sa.null() for header in ROLES.headers}
    cells |= {
        "userSourcedId": users["sourcedId"],
        "orgSourcedId": orgs.c.id,
        "role": users["role"],
        "grade": users["grade"],
    }
    columns = (cell.label(header) for header, cell in cells.items())
    made = sa.select(*columns).select_from(users.table.join(orgs, sa.true())).subquery()
    return {**staged, ROLES.name: StagedFile(ROLES, made, ())}


def _retain_roles(rejected: Staged, feed: str) -> Iterator[sa.Select[Any]]:
    """All roles of the users in rejected users rows and rejected relationships rows."""
    users = rejected.get("sds_users")
    if users is not None:
        named = sa.select(users["sourcedId"].label(ROLES.key)).subquery()
        rejected = {**rejected, ROLES.name: StagedFile(ROLES, named, ())}
    yield from retained.retain_roles(rejected, feed)


SDS_V2 = Format(
    "sds v2",
    tuple(USERS if file is _USERS else file for file in SDS.files if file is not ROLES),
    SDS.parts,
    converted=(
        *(converted for converted in SDS.converted if ROLES.name not in converted.files),
        convert_to(
            "users", lambda staged, feed: rows.select_users(_add_roles(staged), feed), retained.retain_users, "users"
        ),
        convert_to(
            "roles", lambda staged, feed: rows.select_roles(_add_roles(staged), feed), _retain_roles, "users", "orgs"
        ),
    ),
    skipped=SDS.skipped,
    remarks=SDS.remarks,
)
