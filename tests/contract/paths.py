"""The 41 paths of the specification, what each answers with, and which scopes open it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from tests.extent import pair

from .client import CORE, DEMOGRAPHICS, FULL, VERSIONS

# Collection -> its key and the key of a single record. Below each stands `/{sourcedId}`.
LISTED_KEYS = {
    "/orgs": ("orgs", "org"),
    "/schools": ("orgs", "org"),
    "/academicSessions": ("academicSessions", "academicSession"),
    "/terms": ("academicSessions", "academicSession"),
    "/gradingPeriods": ("academicSessions", "academicSession"),
    "/courses": ("courses", "course"),
    "/classes": ("classes", "class"),
    "/users": ("users", "user"),
    "/students": ("users", "user"),
    "/teachers": ("users", "user"),
    "/enrollments": ("enrollments", "enrollment"),
    "/demographics": ("demographics", "demographics"),
}
NESTED_KEYS = {
    "/schools/{schoolId}/terms": "academicSessions",
    "/terms/{termId}/gradingPeriods": "academicSessions",
    "/schools/{schoolId}/courses": "courses",
    "/courses/{courseId}/classes": "classes",
    "/schools/{schoolId}/classes": "classes",
    "/terms/{termId}/classes": "classes",
    "/students/{studentId}/classes": "classes",
    "/teachers/{teacherId}/classes": "classes",
    "/users/{userId}/classes": "classes",
    "/schools/{schoolId}/students": "users",
    "/schools/{schoolId}/teachers": "users",
    "/classes/{classId}/students": "users",
    "/classes/{classId}/teachers": "users",
    "/schools/{schoolId}/classes/{classId}/students": "users",
    "/schools/{schoolId}/classes/{classId}/teachers": "users",
    "/schools/{schoolId}/enrollments": "enrollments",
    "/schools/{schoolId}/classes/{classId}/enrollments": "enrollments",
}
# An id of each parent that has something below it, and of each single record.
PARENTS = {
    "schoolId": "spr-elementary",
    "termId": "spr-2027-fall",
    "courseId": "spr-course-math3",
    "classId": "spr-class-math3-a",
    "studentId": "spr-student-1",
    "teacherId": "spr-teacher-1",
    "userId": "spr-aide-1",
}
RECORDS = {
    "/orgs": "spr-district",
    "/schools": "spr-high",
    "/academicSessions": "spr-2027",
    "/terms": "spr-2027-summer",
    "/gradingPeriods": "spr-2027-q3",
    "/courses": "spr-course-chem",
    "/classes": "spr-class-chem-1",
    "/users": "spr-admin-school",
    "/students": "spr-student-4",
    "/teachers": "spr-teacher-2",
    "/enrollments": "spr-enr-14",
    "/demographics": "spr-student-6",
}
UNKNOWN = "no-such-record"


@dataclass(frozen=True)
class Endpoint:
    """A path of the table: the key around its answer, an address that has something, one that has nothing."""

    template: str
    key: str
    address: str
    unknown: str
    single: bool
    scopes: tuple[str, ...]


def _fill(template: str, ids: dict[str, str] | None) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: ids[found[1]] if ids else UNKNOWN, template)


def _endpoints() -> list[Endpoint]:
    made = []
    for path, (plural, singular) in LISTED_KEYS.items():
        opens = (DEMOGRAPHICS,) if path == "/demographics" else (CORE, FULL)
        made.append(Endpoint(path, plural, path, path, False, opens))
        address, unknown = f"{path}/{RECORDS[path]}", f"{path}/{UNKNOWN}"
        made.append(Endpoint(path + "/{sourcedId}", singular, address, unknown, True, opens))
    for path, key in NESTED_KEYS.items():
        made.append(Endpoint(path, key, _fill(path, PARENTS), _fill(path, None), False, (FULL,)))
    return made


ENDPOINTS = _endpoints()
COLLECTIONS = [endpoint for endpoint in ENDPOINTS if not endpoint.single]
SINGLES = [endpoint for endpoint in ENDPOINTS if endpoint.single]
NESTED = [endpoint for endpoint in ENDPOINTS if endpoint.template in NESTED_KEYS]

# One path of each kind, for properties that all paths share.
OF_EACH_KIND = {
    "/users",
    "/users/{sourcedId}",
    "/demographics",
    "/schools/{schoolId}/classes",
    "/schools/{schoolId}/classes/{classId}/students",
}


def each_path(endpoints: Sequence[Endpoint]) -> pytest.MarkDecorator:
    """One test per (version, path), named by both: each path in one version, and one path of each kind in both, unless
    the run tries all."""
    always = [endpoint for endpoint in endpoints if endpoint.template in OF_EACH_KIND]
    pairs = pair(endpoints, VERSIONS, always)
    cases = [pytest.param(version, endpoint, id=f"{endpoint.template}-{version}") for version, endpoint in pairs]
    return pytest.mark.parametrize(("version", "endpoint"), cases)
