"""Microsoft School Data Sync (SDS) v2.1 and v2 CSV: the files of an export, and their conversion to OneRoster.

The format is OneRoster with other and fewer headers. Files and headers are those of "SDS V2.1 CSV file format" on
Microsoft Learn, which requires classes and enrollments only where classes are managed. Columns may have any order.
Sessions, courses and names are optional there; the conversion adds courses and names where OneRoster requires them.

Version 2 is version 2.1 without `roles.csv`: each row of `users.csv` has the orgs, the role and the grade of its user.
Files and headers are those of the samples that Microsoft publishes for version 2; the optional files of version 2.1
are accepted too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from roster_service.db import tables
from roster_service.roster import vocabulary
from sync_scripts.formats import sds_rows as rows
from sync_scripts.formats.cells import (
    DAY,
    FLAG,
    GRADES,
    ID,
    IDS,
    NAME,
    SECRET,
    TEXT,
    TEXTS,
    UNREAD,
    YEAR,
    make_word_kind,
    to_list,
)
from sync_scripts.formats.conversion import convert_to, has_comma, label_cells, lacks
from sync_scripts.formats.model import (
    Cell,
    CellReference,
    Format,
    Staged,
    StagedFile,
    declare_source,
    list_cells,
    remark_rows,
)
from sync_scripts.formats.oneroster_parts import PARTS_WITHOUT_PROFILES
from sync_scripts.formats.tolerated import COMMA_ID, MADE_NAME, NO_CLASS_TERM, OWN_COURSE

# A word outside the vocabulary becomes an extension.
ORG_TYPE = replace(TEXT, tolerates=make_word_kind(vocabulary.ORG_TYPES).tolerates)


TO_ORG = CellReference("orgs")
TO_SCHOOL = CellReference("orgs", ("school",))
TO_USER = CellReference("users")
TO_CLASS = CellReference("classes")
TO_SESSION = CellReference("academicSessions")
SOURCED_ID = Cell("sourcedId", ID, required=True)

FILES = (
    declare_source(
        "orgs",
        tables.orgs,
        SOURCED_ID,
        Cell("name", TEXT, required=True),
        Cell("type", ORG_TYPE, required=True),
        # As in OneRoster.
        Cell("parentSourcedId", ID, refers=CellReference("orgs", tree=True), stands=True),
    ),
    declare_source(
        "users",
        tables.users,
        SOURCED_ID,
        Cell("username", NAME, required=True),
        Cell("givenName", TEXT),
        Cell("familyName", NAME),
        Cell("password", SECRET),
        Cell("activeDirectoryMatchId", UNREAD),
        Cell("email", NAME),
        *list_cells(TEXT, "phone", "sms"),
    ),
    declare_source(
        "roles",
        tables.users,
        Cell("userSourcedId", ID, required=True, refers=TO_USER),
        Cell("orgSourcedId", ID, required=True, refers=TO_ORG),
        Cell("role", TEXT, required=True),
        Cell("sessionSourcedId", ID, refers=TO_SESSION),
        Cell("grade", GRADES),
        Cell("isPrimary", FLAG),
        *list_cells(DAY, "roleStartDate", "roleEndDate"),
        key="userSourcedId",
        unique=False,
        identify=None,
    ),
    declare_source(
        "classes",
        tables.classes,
        SOURCED_ID,
        Cell("orgSourcedId", ID, required=True, refers=TO_SCHOOL),
        Cell("title", TEXT, required=True),
        Cell("code", TEXT),
        Cell("sessionSourcedIds", IDS, refers=TO_SESSION, many=True),
        Cell("courseSourcedId", replace(ID, check=None), refers=CellReference("courses"), stands=True),
        required=False,
    ),
    declare_source(
        "enrollments",
        tables.enrollments,
        Cell("classSourcedId", ID, required=True, refers=TO_CLASS),
        Cell("userSourcedId", ID, required=True, refers=TO_USER),
        Cell("role", TEXT, required=True),
        key="classSourcedId",
        unique=False,
        required=False,
        identify=None,
        makes_ids=True,
    ),
    declare_source(
        "academicSessions",
        tables.academic_sessions,
        SOURCED_ID,
        Cell("title", TEXT, required=True),
        Cell("type", TEXT, required=True),
        Cell("schoolYear", YEAR, required=True),
        Cell("startDate", DAY, required=True),
        Cell("endDate", DAY, required=True),
        required=False,
    ),
    declare_source(
        "courses",
        tables.courses,
        SOURCED_ID,
        Cell("orgSourcedId", ID, required=True, refers=TO_ORG),
        Cell("title", TEXT, required=True),
        Cell("code", TEXT),
        Cell("schoolYearSourcedId", ID, refers=TO_SESSION),
        Cell("subject", TEXTS),
        Cell("grade", GRADES),
        required=False,
    ),
    declare_source(
        "demographics",
        tables.demographics,
        Cell("userSourcedId", ID, required=True, refers=TO_USER),
        Cell("sex", make_word_kind(rows.SEXES)),
        Cell("birthDate", DAY),
        *list_cells(TEXT, "birthCity", "birthState", "birthCountry"),
        *list_cells(TEXTS, "ethnicityCodes", "raceCodes"),
        key="userSourcedId",
        required=False,
    ),
    declare_source(
        "relationships",
        tables.users,
        Cell("userSourcedId", ID, required=True, refers=TO_USER),
        Cell("relationshipUserSourcedId", ID, required=True, refers=TO_USER),
        Cell("relationshipRole", TEXT, required=True),
        key="userSourcedId",
        unique=False,
        required=False,
        identify=None,
    ),
)


SDS = Format(
    "sds v2.1",
    FILES,
    PARTS_WITHOUT_PROFILES,
    converted=(
        convert_to("orgs", rows.select_orgs, rows.retain_ids("orgs"), "orgs"),
        convert_to("academicSessions", rows.select_sessions, rows.retain_ids("academicSessions"), "academicSessions"),
        replace(convert_to("courses", rows.select_courses, rows.retain_courses, "classes"), left=rows.leave_courses),
        convert_to("classes", rows.select_classes, rows.retain_ids("classes"), "classes"),
        convert_to("users", rows.select_users, rows.retain_users, "users", "roles"),
        convert_to("roles", rows.select_roles, rows.retain_roles, "users", "roles", "orgs"),
        convert_to("enrollments", rows.select_enrollments, rows.retain_enrollments, "enrollments", "classes"),
        convert_to("demographics", rows.select_demographics, rows.retain_ids("demographics"), "demographics"),
    ),
    skipped=frozenset({"userFlags"}),
    remarks=(
        *(remark_rows("users", header, MADE_NAME, lacks(header)) for header in ("givenName", "familyName")),
        remark_rows("classes", "sessionSourcedIds", NO_CLASS_TERM, lacks("sessionSourcedIds")),
        remark_rows("classes", "courseSourcedId", OWN_COURSE, lacks("courseSourcedId")),
        *(
            remark_rows("relationships", header, COMMA_ID, has_comma(header))
            for header in ("userSourcedId", "relationshipUserSourcedId")
        ),
    ),
)


ROLES = SDS.find_file("roles")
_USERS = SDS.find_file("users")
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
    users = staged["users"].alias()
    orgs = sa.func.unnest(to_list(users["orgSourcedIds"])).table_valued("id").render_derived()
    cells: dict[str, Any] = {header: sa.null() for header in ROLES.headers}
    cells |= {
        "userSourcedId": users["sourcedId"],
        "orgSourcedId": orgs.c.id,
        "role": users["role"],
        "grade": users["grade"],
    }
    made = sa.select(*label_cells(cells)).select_from(users.table.join(orgs, sa.true())).subquery()
    return {**staged, ROLES.name: StagedFile(ROLES, made, ())}


def _retain_roles(rejected: Staged, feed: str) -> Iterator[sa.Select[Any]]:
    """All roles of the users in rejected users rows and rejected relationships rows."""
    users = rejected.get("users")
    if users is not None:
        named = sa.select(users["sourcedId"].label(ROLES.key)).subquery()
        rejected = {**rejected, ROLES.name: StagedFile(ROLES, named, ())}
    yield from rows.retain_roles(rejected, feed)


SDS_V2 = Format(
    "sds v2",
    tuple(USERS if file is _USERS else file for file in SDS.files if file is not ROLES),
    SDS.parts,
    converted=(
        *(converted for converted in SDS.converted if ROLES.name not in converted.files),
        convert_to(
            "users", lambda staged, feed: rows.select_users(_add_roles(staged), feed), rows.retain_users, "users"
        ),
        convert_to(
            "roles", lambda staged, feed: rows.select_roles(_add_roles(staged), feed), _retain_roles, "users", "orgs"
        ),
    ),
    skipped=SDS.skipped,
    remarks=SDS.remarks,
)
