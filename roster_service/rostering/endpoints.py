"""The 41 paths of the rostering interface, one row each; both versions serve the same rows.

A row without an access class does not construct, and each row says whether it is one record or a collection.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from roster_service.access.scopes import ScopeName
from roster_service.cache.warm_up import Listing
from roster_service.query import path_filters as pick
from roster_service.query.path_filters import Selection
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


class Access(Enum):
    """Which scopes open a path: any one of them will do."""

    CORE = (ScopeName.CORE, ScopeName.FULL)
    FULL = (ScopeName.FULL,)
    DEMOGRAPHICS = (ScopeName.DEMOGRAPHICS,)


class Shape(Enum):
    """What a path answers with."""

    COLLECTION = "collection"
    SINGLE = "single"


@dataclass(frozen=True)
class Endpoint:
    """A path below the root of a version, the resource that it returns, and who may ask for which of its records."""

    path: str
    resource: Resource
    access: Access
    shape: Shape
    selection: Selection
    summary: str

    @property
    def ids(self) -> tuple[str, ...]:
        """The names of the ids in the path."""
        return tuple(re.findall(r"\{(\w+)\}", self.path))

    @property
    def name(self) -> str:
        """A name for the operation: `schools_classes_students`, `users_one`."""
        words = [word for word in self.path.split("/") if word and not word.startswith("{")]
        return "_".join(words + (["one"] if self.shape is Shape.SINGLE else []))


def _listed(
    path: str, one: str, resource: Resource, selection: Selection, summary: str, access: Access
) -> tuple[Endpoint, Endpoint]:
    """A collection and the single record below it."""
    return (
        Endpoint(path, resource, access, Shape.COLLECTION, selection, summary),
        Endpoint(f"{path}/{{sourcedId}}", resource, access, Shape.SINGLE, selection, one),
    )


def _nested(path: str, resource: Resource, selection: Selection, summary: str) -> Endpoint:
    return Endpoint(path, resource, Access.FULL, Shape.COLLECTION, selection, summary)


def list_listings() -> Iterator[Listing]:
    """The collections without a parent, in each version: what is worth making ready for callers."""
    for version in VERSIONS:
        for row in ENDPOINTS:
            if row.shape is Shape.COLLECTION and not row.ids:
                scopes = frozenset(row.access.value)
                yield Listing(version.prefix, scopes, version.records[row.resource], row.selection)


_STUDENTS = pick.users_with_role("student")
_TEACHERS = pick.users_with_role("teacher")

ENDPOINTS: tuple[Endpoint, ...] = (
    *_listed("/orgs", "one organization", ORGS, pick.everything, "all organizations", Access.CORE),
    *_listed("/schools", "one school", ORGS, pick.schools, "orgs of type school", Access.CORE),
    *_listed(
        "/academicSessions",
        "one academic session",
        ACADEMIC_SESSIONS,
        pick.everything,
        "all academic sessions",
        Access.CORE,
    ),
    *_listed("/terms", "one term", ACADEMIC_SESSIONS, pick.terms, "sessions of type term or semester", Access.CORE),
    *_listed(
        "/gradingPeriods",
        "one grading period",
        ACADEMIC_SESSIONS,
        pick.grading_periods,
        "sessions of type gradingPeriod",
        Access.CORE,
    ),
    _nested("/schools/{schoolId}/terms", ACADEMIC_SESSIONS, pick.terms_of_school, "terms of a school"),
    _nested(
        "/terms/{termId}/gradingPeriods",
        ACADEMIC_SESSIONS,
        pick.grading_periods_of_term,
        "grading periods in a term",
    ),
    *_listed("/courses", "one course", COURSES, pick.everything, "all courses", Access.CORE),
    _nested("/schools/{schoolId}/courses", COURSES, pick.courses_of_school, "courses of a school"),
    *_listed("/classes", "one class", CLASSES, pick.everything, "all classes", Access.CORE),
    _nested("/courses/{courseId}/classes", CLASSES, pick.classes_of_course, "classes of a course"),
    _nested("/schools/{schoolId}/classes", CLASSES, pick.classes_of_school, "classes of a school"),
    _nested("/terms/{termId}/classes", CLASSES, pick.classes_of_term, "classes of a term"),
    _nested(
        "/students/{studentId}/classes",
        CLASSES,
        pick.classes_of_user("studentId", "student"),
        "classes a student is enrolled in",
    ),
    _nested(
        "/teachers/{teacherId}/classes",
        CLASSES,
        pick.classes_of_user("teacherId", "teacher"),
        "classes a teacher teaches",
    ),
    _nested(
        "/users/{userId}/classes",
        CLASSES,
        pick.classes_of_user("userId", None),
        "classes a user is associated with",
    ),
    *_listed(
        "/users", "one user", USERS, pick.everything, "all users (guardians need the guardians scope)", Access.CORE
    ),
    *_listed("/students", "one student", USERS, _STUDENTS, "users with role student", Access.CORE),
    *_listed("/teachers", "one teacher", USERS, _TEACHERS, "users with role teacher", Access.CORE),
    _nested("/schools/{schoolId}/students", USERS, pick.users_of_school("student"), "students at a school"),
    _nested("/schools/{schoolId}/teachers", USERS, pick.users_of_school("teacher"), "teachers at a school"),
    _nested("/classes/{classId}/students", USERS, pick.users_of_class("student"), "students in a class"),
    _nested("/classes/{classId}/teachers", USERS, pick.users_of_class("teacher"), "teachers of a class"),
    _nested(
        "/schools/{schoolId}/classes/{classId}/students",
        USERS,
        pick.users_of_class_of_school("student"),
        "students in a class within a school",
    ),
    _nested(
        "/schools/{schoolId}/classes/{classId}/teachers",
        USERS,
        pick.users_of_class_of_school("teacher"),
        "teachers of a class within a school",
    ),
    *_listed("/enrollments", "one enrollment", ENROLLMENTS, pick.everything, "all enrollments", Access.CORE),
    _nested("/schools/{schoolId}/enrollments", ENROLLMENTS, pick.enrollments_of_school, "enrollments at a school"),
    _nested(
        "/schools/{schoolId}/classes/{classId}/enrollments",
        ENROLLMENTS,
        pick.enrollments_of_class_of_school,
        "enrollments of a class within a school",
    ),
    *_listed(
        "/demographics",
        "one demographic record",
        DEMOGRAPHICS,
        pick.everything,
        "all demographic records",
        Access.DEMOGRAPHICS,
    ),
)
