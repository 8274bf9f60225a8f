"""The two versions of the rostering interface, and the resources of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from roster_service.schemas import v1p1, v1p2
from roster_service.schemas.records import Record


@dataclass(frozen=True)
class Resource:
    """A resource: the JSON key of a collection of its records, and that of a single record."""

    plural: str
    singular: str


ORGS = Resource("orgs", "org")
ACADEMIC_SESSIONS = Resource("academicSessions", "academicSession")
COURSES = Resource("courses", "course")
CLASSES = Resource("classes", "class")
USERS = Resource("users", "user")
ENROLLMENTS = Resource("enrollments", "enrollment")
DEMOGRAPHICS = Resource("demographics", "demographics")


@dataclass(frozen=True, eq=False)
class Version:
    """A version: the prefix of its scopes, its display name, the root of its paths, whether the standard allows signed
    requests (OAuth 1.0a) beside access tokens, and its record types."""

    prefix: str
    title: str
    root: str
    allows_signatures: bool
    records: Mapping[Resource, type[Record]]


V1P1 = Version(
    "v1p1",
    "OneRoster 1.1",
    "/ims/oneroster/v1p1",
    True,
    {
        ORGS: v1p1.Org,
        ACADEMIC_SESSIONS: v1p1.AcademicSession,
        COURSES: v1p1.Course,
        CLASSES: v1p1.Class,
        USERS: v1p1.User,
        ENROLLMENTS: v1p1.Enrollment,
        DEMOGRAPHICS: v1p1.Demographics,
    },
)
V1P2 = Version(
    "v1p2",
    "OneRoster 1.2",
    "/ims/oneroster/rostering/v1p2",
    False,
    {
        ORGS: v1p2.Org,
        ACADEMIC_SESSIONS: v1p2.AcademicSession,
        COURSES: v1p2.Course,
        CLASSES: v1p2.Class,
        USERS: v1p2.User,
        ENROLLMENTS: v1p2.Enrollment,
        DEMOGRAPHICS: v1p2.Demographics,
    },
)
VERSIONS = (V1P1, V1P2)


def list_roots(scopes: Iterable[str]) -> dict[str, str]:
    """Returns the roots of the paths that scopes open, by the title of their version."""
    prefixes = {scope.partition("/")[0] for scope in scopes}
    return {version.title: version.root for version in VERSIONS if version.prefix in prefixes}
