"""The files of OneRoster CSV 1.1 and 1.2, each with its columns in the order of the standard.

Version 1.2 differs in its vocabularies (more words, and `ext:` names), in `users.csv`, and in the files `roles.csv`
and `userProfiles.csv`. `many` marks lists of references.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import sqlalchemy as sa

from roster_service.db import tables
from roster_service.feeds.run_history import TYPES
from roster_service.roster import vocabulary
from roster_service.roster.references import find_target, is_list
from roster_service.roster.vocabulary import Vocabulary
from sync_scripts.formats.cells import (
    DAY,
    FIRST_OF_IDS,
    FLAG,
    GRADES,
    ID,
    IDS,
    NAME,
    PAIRS,
    SECRET,
    TEXT,
    TEXTS,
    UNREAD,
    YEAR,
    CellKind,
    make_word_kind,
)
from sync_scripts.formats.model import Cell, CellReference, CsvFile, Format
from sync_scripts.formats.oneroster_parts import PARTS_1_1, PARTS_1_2, RULES_1_2

# OneRoster 1.0 had `inactive` for `tobedeleted`, and exporters still write it.
STATUS = make_word_kind(Vocabulary((*vocabulary.STATUS.words, "inactive")))

SEX_SPELLINGS: Mapping[str, str] = MappingProxyType({"m": "male", "f": "female"})


def _find_reference(column: sa.Column[Any], *types: str) -> CellReference | None:
    """The reference of a cell that fills a column; None for a column that names no record."""
    target = find_target(column)
    return None if target is None else CellReference(TYPES[target.name], types, tree=target is column.table)


def _refer(header: str, column: sa.Column[Any], *types: str) -> Cell:
    """A cell with the id of the record that a column names, which may be empty if the column may. `types`: the allowed
    types of that record (none: any)."""
    return Cell(header, ID, column, required=not column.nullable, refers=_find_reference(column, *types))


def _refer_many(header: str, column: sa.Column[Any], *, required: bool) -> Cell:
    """A cell with a list of ids, which a column stores, or a column of parts."""
    own = column if is_list(column) else None
    return Cell(header, IDS, own, required=required, refers=_find_reference(column), many=True, items=column)


def _list_first_cells(identifier: sa.Column[Any]) -> tuple[Cell, ...]:
    """The three columns that every file begins with."""
    return (
        Cell("sourcedId", ID, identifier, required=True, refers=_find_reference(identifier)),
        Cell("status", STATUS),
        # The served dateLastModified says when the roster changed, which only the sync knows.
        Cell("dateLastModified", UNREAD),
    )


def _make_file(name: str, table: sa.Table, *cells: Cell, required: bool = True) -> CsvFile:
    """A file whose rows are records of `table`."""
    return CsvFile(name, (*_list_first_cells(table.c.sourced_id), *cells), table, required)


def _make_part_file(name: str, key: sa.Column[Any], *cells: Cell, required: bool = True) -> CsvFile:
    """A file whose rows are parts of records. `key`: the column that stores their ids."""
    return CsvFile(name, (*_list_first_cells(key), *cells), required=required, kept_in=key.table)


def _list_shared_files(
    org_type: CellKind, session_type: CellKind, class_type: CellKind, enrollment_role: CellKind, sex: CellKind
) -> tuple[CsvFile, ...]:
    """The files that both versions have, with the vocabularies of one version."""
    return (
        _make_file(
            "orgs",
            tables.orgs,
            Cell("name", TEXT, tables.orgs.c.name, required=True),
            Cell("type", org_type, tables.orgs.c.type, required=True),
            Cell("identifier", NAME, tables.orgs.c.identifier),
            # A school whose parent is nowhere is not one without a parent.
            replace(_refer("parentSourcedId", tables.orgs.c.parent_id), stands=True),
        ),
        _make_file(
            "academicSessions",
            tables.academic_sessions,
            Cell("title", TEXT, tables.academic_sessions.c.title, required=True),
            Cell("type", session_type, tables.academic_sessions.c.type, required=True),
            Cell("startDate", DAY, tables.academic_sessions.c.start_date, required=True),
            Cell("endDate", DAY, tables.academic_sessions.c.end_date, required=True),
            _refer("parentSourcedId", tables.academic_sessions.c.parent_id),
            Cell("schoolYear", YEAR, tables.academic_sessions.c.school_year, required=True),
        ),
        _make_file(
            "courses",
            tables.courses,
            _refer("schoolYearSourcedId", tables.courses.c.school_year_id, "schoolYear"),
            Cell("title", TEXT, tables.courses.c.title, required=True),
            Cell("courseCode", TEXT, tables.courses.c.course_code),
            Cell("grades", GRADES, tables.courses.c.grades),
            _refer("orgSourcedId", tables.courses.c.org_id),
            Cell("subjects", TEXTS, tables.courses.c.subjects),
            Cell("subjectCodes", TEXTS, tables.courses.c.subject_codes),
        ),
        _make_file(
            "classes",
            tables.classes,
            Cell("title", TEXT, tables.classes.c.title, required=True),
            Cell("grades", GRADES, tables.classes.c.grades),
            _refer("courseSourcedId", tables.classes.c.course_id),
            Cell("classCode", TEXT, tables.classes.c.class_code),
            Cell("classType", class_type, tables.classes.c.class_type, required=True),
            Cell("location", TEXT, tables.classes.c.location),
            _refer("schoolSourcedId", tables.classes.c.school_id, "school"),
            _refer_many("termSourcedIds", tables.classes.c.term_ids, required=True),
            Cell("subjects", TEXTS, tables.classes.c.subjects),
            Cell("subjectCodes", TEXTS, tables.classes.c.subject_codes),
            Cell("periods", TEXTS, tables.classes.c.periods),
        ),
        _make_file(
            "enrollments",
            tables.enrollments,
            _refer("classSourcedId", tables.enrollments.c.class_id),
            # The school of its class counts.
            replace(_refer("schoolSourcedId", tables.enrollments.c.school_id, "school"), stands=True),
            _refer("userSourcedId", tables.enrollments.c.user_id),
            Cell("role", enrollment_role, tables.enrollments.c.role, required=True),
            Cell("primary", FLAG, tables.enrollments.c.primary),
            Cell("beginDate", DAY, tables.enrollments.c.begin_date),
            Cell("endDate", DAY, tables.enrollments.c.end_date),
        ),
        _make_file(
            "demographics",
            tables.demographics,
            Cell("birthDate", DAY, tables.demographics.c.birth_date),
            Cell("sex", sex, tables.demographics.c.sex),
            Cell("americanIndianOrAlaskaNative", FLAG, tables.demographics.c.american_indian_or_alaska_native),
            Cell("asian", FLAG, tables.demographics.c.asian),
            Cell("blackOrAfricanAmerican", FLAG, tables.demographics.c.black_or_african_american),
            Cell(
                "nativeHawaiianOrOtherPacificIslander",
                FLAG,
                tables.demographics.c.native_hawaiian_or_other_pacific_islander,
            ),
            Cell("white", FLAG, tables.demographics.c.white),
            Cell("demographicRaceTwoOrMoreRaces", FLAG, tables.demographics.c.demographic_race_two_or_more_races),
            Cell("hispanicOrLatinoEthnicity", FLAG, tables.demographics.c.hispanic_or_latino_ethnicity),
            Cell("countryOfBirthCode", TEXT, tables.demographics.c.country_of_birth_code),
            Cell("stateOfBirthAbbreviation", TEXT, tables.demographics.c.state_of_birth_abbreviation),
            Cell("cityOfBirth", TEXT, tables.demographics.c.city_of_birth),
            Cell("publicSchoolResidenceStatus", TEXT, tables.demographics.c.public_school_residence_status),
            required=False,
        ),
    )


# The cells of users.csv that have this order in both versions.
_USER_NAMES = (
    Cell("username", NAME, tables.users.c.username, required=True),
    Cell("userIds", PAIRS, tables.users.c.user_ids),
    Cell("givenName", TEXT, tables.users.c.given_name, required=True),
    Cell("familyName", NAME, tables.users.c.family_name, required=True),
    Cell("middleName", TEXT, tables.users.c.middle_name),
    Cell("identifier", NAME, tables.users.c.identifier),
    Cell("email", NAME, tables.users.c.email),
    Cell("sms", TEXT, tables.users.c.sms),
    Cell("phone", TEXT, tables.users.c.phone),
    _refer_many("agentSourcedIds", tables.user_agents.c.agent_id, required=False),
    Cell("grades", GRADES, tables.users.c.grades),
    Cell("password", SECRET),
)

_USERS_1_1 = _make_file(
    "users",
    tables.users,
    Cell("enabledUser", FLAG, tables.users.c.enabled_user, required=True),
    replace(
        _refer_many("orgSourcedIds", tables.user_roles.c.org_id, required=True),
        kind=FIRST_OF_IDS,
        column=tables.users.c.primary_org_id,
    ),
    Cell("role", make_word_kind(vocabulary.USER_ROLES_1_1), required=True),
    *_USER_NAMES,
)

_USERS_1_2 = _make_file(
    "users",
    tables.users,
    Cell("enabledUser", FLAG, tables.users.c.enabled_user, required=True),
    *_USER_NAMES,
    Cell("userMasterIdentifier", TEXT, tables.users.c.user_master_identifier),
    Cell("preferredGivenName", TEXT, tables.users.c.preferred_first_name),
    Cell("preferredMiddleName", TEXT, tables.users.c.preferred_middle_name),
    Cell("preferredFamilyName", TEXT, tables.users.c.preferred_last_name),
    _refer("primaryOrgSourcedId", tables.users.c.primary_org_id),
    Cell("pronouns", TEXT, tables.users.c.pronouns),
)

_ROLES = _make_part_file(
    "roles",
    tables.user_roles.c.row_id,
    _refer("userSourcedId", tables.user_roles.c.user_id),
    Cell("roleType", make_word_kind(vocabulary.ROLE_TYPES), tables.user_roles.c.role_type, required=True),
    Cell("role", make_word_kind(vocabulary.USER_ROLES), tables.user_roles.c.role, required=True),
    Cell("beginDate", DAY, tables.user_roles.c.begin_date),
    Cell("endDate", DAY, tables.user_roles.c.end_date),
    _refer("orgSourcedId", tables.user_roles.c.org_id),
    Cell(
        "userProfileSourcedId",
        ID,
        tables.user_roles.c.profile_id,
        refers=CellReference("userProfiles", same="userSourcedId"),
    ),
)

_USER_PROFILES = _make_part_file(
    "userProfiles",
    tables.user_profiles.c.profile_id,
    _refer("userSourcedId", tables.user_profiles.c.user_id),
    Cell("profileType", TEXT, tables.user_profiles.c.profile_type, required=True),
    Cell("vendorId", TEXT, tables.user_profiles.c.vendor_id, required=True),
    Cell("applicationId", TEXT, tables.user_profiles.c.application_id),
    Cell("description", TEXT, tables.user_profiles.c.description),
    Cell("credentialType", TEXT, required=True),
    Cell("username", TEXT, required=True),
    Cell("password", SECRET),
    required=False,
)

# The files of the gradebook and resources services of the standard.
_SKIPPED_1_1 = frozenset({"categories", "classResources", "courseResources", "lineItems", "resources", "results"})
_SKIPPED_1_2 = _SKIPPED_1_1 | {
    "lineItemLearningObjectiveIds",
    "lineItemScoreScales",
    "resultLearningObjectiveIds",
    "resultScoreScales",
    "scoreScales",
    "userResources",
}

# The files that `staging/made_courses.py` makes.
_MADE = frozenset({"courses"})

# 1.1 once used the user roles for enrollments too. An aide in a class is real and has no enrollment role: 1.2 shows
# `ext:aide`, and 1.1 shows the role that replaces any extension. A guardian in a class is a mistake; its row is
# rejected.
_ENROLLMENT_ROLE_1_1 = make_word_kind(vocabulary.ENROLLMENT_ROLES_1_1, {"aide": "ext:aide"})

ONEROSTER_1_1 = Format(
    "oneroster 1.1",
    (
        *_list_shared_files(
            make_word_kind(vocabulary.ORG_TYPES_1_1),
            make_word_kind(vocabulary.SESSION_TYPES_1_1),
            make_word_kind(vocabulary.CLASS_TYPES_1_1),
            _ENROLLMENT_ROLE_1_1,
            make_word_kind(vocabulary.SEXES_1_1, spellings=SEX_SPELLINGS),
        ),
        _USERS_1_1,
    ),
    PARTS_1_1,
    skipped=_SKIPPED_1_1,
    made=_MADE,
)

ONEROSTER_1_2 = Format(
    "oneroster 1.2",
    (
        *_list_shared_files(
            make_word_kind(vocabulary.ORG_TYPES),
            make_word_kind(vocabulary.SESSION_TYPES),
            make_word_kind(vocabulary.CLASS_TYPES),
            make_word_kind(vocabulary.ENROLLMENT_ROLES),
            make_word_kind(vocabulary.SEXES, spellings=SEX_SPELLINGS),
        ),
        _USERS_1_2,
        _ROLES,
        _USER_PROFILES,
    ),
    PARTS_1_2,
    RULES_1_2,
    skipped=_SKIPPED_1_2,
    made=_MADE,
)

# The format for each value of `oneroster.version` in the manifest. 1.0 has other columns, and lacks required ones.
VERSIONS: Mapping[str, Format] = MappingProxyType({"1.1": ONEROSTER_1_1, "1.2": ONEROSTER_1_2})
