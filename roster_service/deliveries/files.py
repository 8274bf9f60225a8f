"""The files of OneRoster CSV 1.1 and 1.2 as the service writes them: their columns, in the order of the standard.

A column has the value of the field with its name in the records of the interface; where the names differ, the tables
here say so. A test compares the columns with those that the loader of OneRoster reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from roster_service.schemas import versions
from roster_service.schemas.versions import Resource, Version

# Every file begins with these. In bulk, the last two are empty.
FIRST = ("sourcedId", "status", "dateLastModified")


@dataclass(frozen=True)
class Column:
    """A column after the first three. `field`: the path of the field in a record of the interface; `refers`: the file
    of the records that it names by their ids; `many`: whether it names several."""

    header: str
    field: str
    required: bool
    refers: str | None
    many: bool


@dataclass(frozen=True)
class File:
    """A file. `resource`: whose records its rows are; `part`: the field of these records whose items are the rows, None
    if a record is a row; `distinct_by`: the fields that tell such an item from the others of its record; `owner`: the
    file that has the record of each row under the same id, None for none; `school`: the header of the schools by which
    its rows are counted."""

    name: str
    resource: Resource
    columns: tuple[Column, ...]
    part: str | None = None
    distinct_by: tuple[str, ...] = ()
    owner: str | None = None
    school: str | None = None

    @property
    def headers(self) -> tuple[str, ...]:
        """The headers of the standard."""
        return (*FIRST, *(column.header for column in self.columns))


# The file that a column of ids names, and the field, by header. `parentSourcedId` names rows of its own file.
_REFERENCES: Mapping[str, tuple[str, str | None]] = {
    "parentSourcedId": ("parent", None),
    "schoolYearSourcedId": ("schoolYear", "academicSessions"),
    "orgSourcedId": ("org", "orgs"),
    "orgSourcedIds": ("orgs", "orgs"),
    "primaryOrgSourcedId": ("primaryOrg", "orgs"),
    "schoolSourcedId": ("school", "orgs"),
    "courseSourcedId": ("course", "courses"),
    "termSourcedIds": ("terms", "academicSessions"),
    "classSourcedId": ("class", "classes"),
    "userSourcedId": ("user", "users"),
    "agentSourcedIds": ("agents", "users"),
    "userProfileSourcedId": ("userProfile", "userProfiles"),
}


def _make(name: str, resource: Resource, headers: str, **more: Any) -> File:
    """Returns a file. `headers`: separated by blanks, a required one with `*` behind it, one with another name than its
    field with `=` and the field."""
    columns = []
    for text in headers.split():
        header, _, own_field = text.removesuffix("*").partition("=")
        field, refers = _REFERENCES.get(header, (own_field or header, None))
        refers = name if header == "parentSourcedId" else refers
        columns.append(Column(header, field, text.endswith("*"), refers, header.endswith("SourcedIds")))
    return File(name, resource, tuple(columns), **more)


_USER_NAMES = (
    "username* userIds givenName* familyName* middleName identifier email sms phone agentSourcedIds grades password"
)
# A file comes after those that its rows need.
_BEFORE_USERS = (
    _make("orgs", versions.ORGS, "name* type* identifier parentSourcedId"),
    _make(
        "academicSessions", versions.ACADEMIC_SESSIONS, "title* type* startDate* endDate* parentSourcedId schoolYear*"
    ),
    _make(
        "courses", versions.COURSES, "schoolYearSourcedId title* courseCode grades orgSourcedId* subjects subjectCodes"
    ),
    _make(
        "classes",
        versions.CLASSES,
        "title* grades courseSourcedId* classCode classType* location schoolSourcedId* termSourcedIds* subjects "
        "subjectCodes periods",
        school="schoolSourcedId",
    ),
)
_AFTER_USERS = (
    _make(
        "enrollments",
        versions.ENROLLMENTS,
        "classSourcedId* schoolSourcedId* userSourcedId* role* primary beginDate endDate",
        school="schoolSourcedId",
    ),
    _make(
        "demographics",
        versions.DEMOGRAPHICS,
        "birthDate sex americanIndianOrAlaskaNative asian blackOrAfricanAmerican nativeHawaiianOrOtherPacificIslander "
        "white demographicRaceTwoOrMoreRaces hispanicOrLatinoEthnicity countryOfBirthCode stateOfBirthAbbreviation "
        "cityOfBirth publicSchoolResidenceStatus",
        owner="users",
    ),
)
_USERS_1_1 = _make("users", versions.USERS, f"enabledUser* orgSourcedIds* role* {_USER_NAMES}", school="orgSourcedIds")
_USERS_1_2 = _make(
    "users",
    versions.USERS,
    f"enabledUser* {_USER_NAMES} userMasterIdentifier preferredGivenName=preferredFirstName preferredMiddleName "
    "preferredFamilyName=preferredLastName primaryOrgSourcedId pronouns",
)
# The parts of users. Profiles come before the roles that name them.
_PROFILES = _make(
    "userProfiles",
    versions.USERS,
    "userSourcedId* profileType* vendorId* applicationId description credentialType=credentials.type* "
    "username=credentials.username* password",
    part="userProfiles",
    distinct_by=("profileId",),
)
_ROLES = _make(
    "roles",
    versions.USERS,
    "userSourcedId* roleType* role* beginDate endDate orgSourcedId* userProfileSourcedId",
    part="roles",
    distinct_by=("role", "org"),
    school="orgSourcedId",
)
FILES: Mapping[Version, tuple[File, ...]] = {
    versions.V1P1: (*_BEFORE_USERS, _USERS_1_1, *_AFTER_USERS),
    versions.V1P2: (*_BEFORE_USERS, _USERS_1_2, _PROFILES, _ROLES, *_AFTER_USERS),
}

# The other files of the standard, which a manifest must call absent: those of grades and resources.
_OTHERS_1_1 = ("categories", "classResources", "courseResources", "lineItems", "resources", "results")
OTHERS: Mapping[Version, tuple[str, ...]] = {
    versions.V1P1: _OTHERS_1_1,
    versions.V1P2: (
        *_OTHERS_1_1,
        *("lineItemLearningObjectiveIds", "lineItemScoreScales", "resultLearningObjectiveIds", "resultScoreScales"),
        *("scoreScales", "userResources"),
    ),
}
