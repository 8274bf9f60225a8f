"""The files of OneRoster CSV 1.1 and 1.2 as the service writes them: their columns, in the order of the standard.

A column has the value of the field with its name in the JSON of the interface; where the names differ, the tables here
say so. A test compares the columns with those that the loader of OneRoster reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from roster_service.schemas.versions import (
    ACADEMIC_SESSIONS,
    CLASSES,
    COURSES,
    DEMOGRAPHICS,
    ENROLLMENTS,
    ORGS,
    USERS,
    V1P1,
    V1P2,
    Resource,
    Version,
)

# Every file begins with these. In bulk, the last two are empty.
FIRST = ("sourcedId", "status", "dateLastModified")
MANIFEST, SUFFIX = "manifest.csv", ".csv"
METADATA, METADATA_PREFIX = "metadata", "metadata."


@dataclass(frozen=True)
class Column:
    """A column after the first three. `field`: of the JSON record; `refers`: the file of the records that it names by
    their ids; `many`: whether it is a list."""

    header: str
    field: str
    required: bool
    refers: str | None
    many: bool


@dataclass(frozen=True)
class File:
    """A file. `resource`: whose records its rows are; `part`: the field of these records whose items are the rows, None
    if a record is a row; `owner`: the file that has the record of each row under the same id, None for none."""

    name: str
    resource: Resource
    columns: tuple[Column, ...]
    part: str | None = None
    owner: str | None = None

    @property
    def headers(self) -> tuple[str, ...]:
        """The headers of the standard."""
        return (*FIRST, *(column.header for column in self.columns))

    @property
    def refers_to_itself(self) -> bool:
        """Whether a row names other rows of the file."""
        return any(column.refers == self.name for column in self.columns)


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
_RENAMED = {"preferredGivenName": "preferredFirstName", "preferredFamilyName": "preferredLastName"}
_LISTS = frozenset({"grades", "subjects", "subjectCodes", "periods"})


def _list_columns(name: str, headers: str) -> tuple[Column, ...]:
    """Returns the columns of the file `name`. `headers`: separated by blanks, a required one with `*` behind it."""
    columns = []
    for text in headers.split():
        header = text.removesuffix("*")
        field, refers = _REFERENCES.get(header, (_RENAMED.get(header, header), None))
        refers = name if header == "parentSourcedId" else refers
        many = header in _LISTS or header.endswith("Ids")
        columns.append(Column(header, field, text != header, refers, many))
    return tuple(columns)


def _make(name: str, resource: Resource, headers: str, part: str | None = None, owner: str | None = None) -> File:
    return File(name, resource, _list_columns(name, headers), part, owner)


_USER_NAMES = (
    "username* userIds givenName* familyName* middleName identifier email sms phone agentSourcedIds grades password"
)
# A file comes after those that its rows need.
_BEFORE_USERS = (
    _make("orgs", ORGS, "name* type* identifier parentSourcedId"),
    _make("academicSessions", ACADEMIC_SESSIONS, "title* type* startDate* endDate* parentSourcedId schoolYear*"),
    _make("courses", COURSES, "schoolYearSourcedId title* courseCode grades orgSourcedId* subjects subjectCodes"),
    _make(
        "classes",
        CLASSES,
        "title* grades courseSourcedId* classCode classType* location schoolSourcedId* termSourcedIds* subjects "
        "subjectCodes periods",
    ),
)
_AFTER_USERS = (
    _make(
        "enrollments", ENROLLMENTS, "classSourcedId* schoolSourcedId* userSourcedId* role* primary beginDate endDate"
    ),
    _make(
        "demographics",
        DEMOGRAPHICS,
        "birthDate sex americanIndianOrAlaskaNative asian blackOrAfricanAmerican nativeHawaiianOrOtherPacificIslander "
        "white demographicRaceTwoOrMoreRaces hispanicOrLatinoEthnicity countryOfBirthCode stateOfBirthAbbreviation "
        "cityOfBirth publicSchoolResidenceStatus",
        owner="users",
    ),
)
_USERS_1_1 = _make("users", USERS, f"enabledUser* orgSourcedIds* role* {_USER_NAMES}")
_USERS_1_2 = _make(
    "users",
    USERS,
    f"enabledUser* {_USER_NAMES} userMasterIdentifier preferredGivenName preferredMiddleName preferredFamilyName "
    "primaryOrgSourcedId pronouns",
)
# The parts of users. Profiles come before the roles that name them.
_PROFILES = _make(
    "userProfiles",
    USERS,
    "userSourcedId* profileType* vendorId* applicationId description credentialType* username* password",
    part="userProfiles",
)
_ROLES = _make(
    "roles",
    USERS,
    "userSourcedId* roleType* role* beginDate endDate orgSourcedId* userProfileSourcedId",
    part="roles",
)
FILES: Mapping[Version, tuple[File, ...]] = {
    V1P1: (*_BEFORE_USERS, _USERS_1_1, *_AFTER_USERS),
    V1P2: (*_BEFORE_USERS, _USERS_1_2, _PROFILES, _ROLES, *_AFTER_USERS),
}

# The other files of the standard, which a manifest must call absent: those of grades and resources.
_OTHERS_1_1 = ("categories", "classResources", "courseResources", "lineItems", "resources", "results")
OTHERS: Mapping[Version, tuple[str, ...]] = {
    V1P1: _OTHERS_1_1,
    V1P2: (
        *_OTHERS_1_1,
        *("lineItemLearningObjectiveIds", "lineItemScoreScales", "resultLearningObjectiveIds", "resultScoreScales"),
        *("scoreScales", "userResources"),
    ),
}
