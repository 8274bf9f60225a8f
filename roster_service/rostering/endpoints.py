"""The 41 endpoints of the rostering interface, one row each; both versions serve the same rows.

`access` and `cardinality` have no default, so every row has to state them. The names of the operations are those of the
standard, which a generated client has as its methods.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from roster_service.auth.scopes import ScopeName
from roster_service.schemas.versions import (
    ACADEMIC_SESSIONS,
    CLASSES,
    COURSES,
    DEMOGRAPHICS,
    ENROLLMENTS,
    ORGS,
    USERS,
    VERSIONS,
    Resource,
)
from roster_service.serving import path_filters
from roster_service.serving.path_filters import PathFilter
from roster_service.serving.warm_up import Listing


class Scopes(Enum):
    """The scopes that allow an endpoint; a token needs any one of them."""

    CORE = (ScopeName.CORE, ScopeName.FULL)
    FULL = (ScopeName.FULL,)
    DEMOGRAPHICS = (ScopeName.DEMOGRAPHICS,)


class Cardinality(Enum):
    """Whether an endpoint returns a page of a collection or a single record."""

    COLLECTION = "collection"
    SINGLE = "single"


@dataclass(frozen=True)
class Endpoint:
    """A path below the root of a version, with its resource, scopes, cardinality and path filter.

    `name`: the name of the operation, such as `getStudentsForClass`; `summary`: the text for the OpenAPI document.
    """

    path: str
    name: str
    resource: Resource
    access: Scopes
    cardinality: Cardinality
    path_filter: PathFilter
    summary: str

    @property
    def ids(self) -> tuple[str, ...]:
        """Returns the names of the ids in the path, in order."""
        return tuple(re.findall(r"\{(\w+)\}", self.path))

    @property
    def kind(self) -> str:
        """Returns the kind of record that the path of a single record names, such as `teacher`."""
        return self.name[3].lower() + self.name[4:]


def _make_listed(
    path: str, kind: str, one: str, resource: Resource, path_filter: PathFilter, summary: str, access: Scopes
) -> tuple[Endpoint, Endpoint]:
    """Returns the endpoints of a collection and of a single record of it. `kind`: of record, in the name of the latter;
    `one`: its summary."""
    name = f"getAll{path[1].upper()}{path[2:]}"
    return (
        Endpoint(path, name, resource, access, Cardinality.COLLECTION, path_filter, summary),
        Endpoint(f"{path}/{{sourcedId}}", f"get{kind}", resource, access, Cardinality.SINGLE, path_filter, one),
    )


def _make_nested(path: str, name: str, resource: Resource, path_filter: PathFilter, summary: str) -> Endpoint:
    return Endpoint(path, name, resource, Scopes.FULL, Cardinality.COLLECTION, path_filter, summary)


def list_listings() -> Iterator[Listing]:
    """Yields the collections without a parent in each version, which the warm-up prepares."""
    for version in VERSIONS:
        for row in ENDPOINTS:
            if row.cardinality is Cardinality.COLLECTION and not row.ids:
                scopes = frozenset(row.access.value)
                yield Listing(version.prefix, scopes, version.records[row.resource], row.path_filter)


_STUDENTS = path_filters.users_with_role("student")
_TEACHERS = path_filters.users_with_role("teacher")

ENDPOINTS: tuple[Endpoint, ...] = (
    *_make_listed("/orgs", "Org", "one organization", ORGS, path_filters.everything, "all organizations", Scopes.CORE),
    *_make_listed("/schools", "School", "one school", ORGS, path_filters.schools, "orgs of type school", Scopes.CORE),
    *_make_listed(
        "/academicSessions",
        "AcademicSession",
        "one academic session",
        ACADEMIC_SESSIONS,
        path_filters.everything,
        "all academic sessions",
        Scopes.CORE,
    ),
    *_make_listed(
        "/terms",
        "Term",
        "one term",
        ACADEMIC_SESSIONS,
        path_filters.terms,
        "sessions of type term or semester",
        Scopes.CORE,
    ),
    *_make_listed(
        "/gradingPeriods",
        "GradingPeriod",
        "one grading period",
        ACADEMIC_SESSIONS,
        path_filters.grading_periods,
        "sessions of type gradingPeriod",
        Scopes.CORE,
    ),
    _make_nested(
        "/schools/{schoolId}/terms",
        "getTermsForSchool",
        ACADEMIC_SESSIONS,
        path_filters.terms_of_school,
        "terms of a school",
    ),
    _make_nested(
        "/terms/{termId}/gradingPeriods",
        "getGradingPeriodsForTerm",
        ACADEMIC_SESSIONS,
        path_filters.grading_periods_of_term,
        "grading periods in a term",
    ),
    *_make_listed("/courses", "Course", "one course", COURSES, path_filters.everything, "all courses", Scopes.CORE),
    _make_nested(
        "/schools/{schoolId}/courses",
        "getCoursesForSchool",
        COURSES,
        path_filters.courses_of_school,
        "courses of a school",
    ),
    *_make_listed("/classes", "Class", "one class", CLASSES, path_filters.everything, "all classes", Scopes.CORE),
    _make_nested(
        "/courses/{courseId}/classes",
        "getClassesForCourse",
        CLASSES,
        path_filters.classes_of_course,
        "classes of a course",
    ),
    _make_nested(
        "/schools/{schoolId}/classes",
        "getClassesForSchool",
        CLASSES,
        path_filters.classes_of_school,
        "classes of a school",
    ),
    _make_nested(
        "/terms/{termId}/classes", "getClassesForTerm", CLASSES, path_filters.classes_of_term, "classes of a term"
    ),
    _make_nested(
        "/students/{studentId}/classes",
        "getClassesForStudent",
        CLASSES,
        path_filters.classes_of_user("studentId", "student"),
        "classes a student is enrolled in",
    ),
    _make_nested(
        "/teachers/{teacherId}/classes",
        "getClassesForTeacher",
        CLASSES,
        path_filters.classes_of_user("teacherId", "teacher"),
        "classes a teacher teaches",
    ),
    _make_nested(
        "/users/{userId}/classes",
        "getClassesForUser",
        CLASSES,
        path_filters.classes_of_user("userId", None),
        "classes a user is associated with",
    ),
    *_make_listed(
        "/users",
        "User",
        "one user",
        USERS,
        path_filters.everything,
        "all users (guardians need the guardians scope)",
        Scopes.CORE,
    ),
    *_make_listed("/students", "Student", "one student", USERS, _STUDENTS, "users with role student", Scopes.CORE),
    *_make_listed("/teachers", "Teacher", "one teacher", USERS, _TEACHERS, "users with role teacher", Scopes.CORE),
    _make_nested(
        "/schools/{schoolId}/students",
        "getStudentsForSchool",
        USERS,
        path_filters.users_of_school("student"),
        "students at a school",
    ),
    _make_nested(
        "/schools/{schoolId}/teachers",
        "getTeachersForSchool",
        USERS,
        path_filters.users_of_school("teacher"),
        "teachers at a school",
    ),
    _make_nested(
        "/classes/{classId}/students",
        "getStudentsForClass",
        USERS,
        path_filters.users_of_class("student"),
        "students in a class",
    ),
    _make_nested(
        "/classes/{classId}/teachers",
        "getTeachersForClass",
        USERS,
        path_filters.users_of_class("teacher"),
        "teachers of a class",
    ),
    _make_nested(
        "/schools/{schoolId}/classes/{classId}/students",
        "getStudentsForClassInSchool",
        USERS,
        path_filters.users_of_class_of_school("student"),
        "students in a class within a school",
    ),
    _make_nested(
        "/schools/{schoolId}/classes/{classId}/teachers",
        "getTeachersForClassInSchool",
        USERS,
        path_filters.users_of_class_of_school("teacher"),
        "teachers of a class within a school",
    ),
    *_make_listed(
        "/enrollments",
        "Enrollment",
        "one enrollment",
        ENROLLMENTS,
        path_filters.everything,
        "all enrollments",
        Scopes.CORE,
    ),
    _make_nested(
        "/schools/{schoolId}/enrollments",
        "getEnrollmentsForSchool",
        ENROLLMENTS,
        path_filters.enrollments_of_school,
        "enrollments at a school",
    ),
    _make_nested(
        "/schools/{schoolId}/classes/{classId}/enrollments",
        "getEnrollmentsForClassInSchool",
        ENROLLMENTS,
        path_filters.enrollments_of_class_of_school,
        "enrollments of a class within a school",
    ),
    *_make_listed(
        "/demographics",
        "Demographics",
        "one demographic record",
        DEMOGRAPHICS,
        path_filters.everything,
        "all demographic records",
        Scopes.DEMOGRAPHICS,
    ),
)
