"""Which of the records that a caller sees each path means, with the ids in it: one row per collection path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .record_json import SESSION_TYPES, find_single_role, say, say_role
from .roster import CLASS_TERMS, ROSTER, Row
from .visible_records import Eyes, by_id

TERM_TYPES = ("term", "semester")
Ids = Mapping[str, str]
# (a caller, a record, the ids in the path, the version) -> whether the path holds the record
Holds = Callable[[Eyes, Row, Ids, str], bool]


@dataclass(frozen=True)
class Collection:
    """A collection: the table of its records, the keys around them, and whether it holds a seen record."""

    table: str
    plural: str
    singular: str
    holds: Holds


def _everything(_eyes: Eyes, _row: Row, _ids: Ids, version: str) -> bool:
    return True


def _of_type(*types: str) -> Holds:
    return lambda _eyes, row, _ids, _version: row["type"] in types


def _is_term(row: Row, version: str) -> bool:
    """Whether a session shows one of the types of terms."""
    return say(SESSION_TYPES, row["type"], version) in TERM_TYPES


def _shows_role(eyes: Eyes, row: Row, role: str, version: str) -> bool:
    """1.2 shows all roles; 1.1 shows one."""
    return version == "v1p2" or say_role(find_single_role(eyes, row)["role"]) == role


def _with_role(role: str) -> Holds:
    return lambda eyes, row, _ids, version: (
        any(held["role"] == role for held in eyes.roles(row["sourced_id"])) and _shows_role(eyes, row, role, version)
    )


def _sees_school(eyes: Eyes, ids: Ids) -> bool:
    """The school of the path is one, and the caller sees it: else it has no members."""
    school = by_id("orgs").get(ids["schoolId"])
    return school is not None and school["type"] == "school" and school["sourced_id"] in eyes.orgs


def _sees_term(eyes: Eyes, ids: Ids, version: str) -> bool:
    term = by_id("academic_sessions").get(ids["termId"])
    return term is not None and _is_term(term, version) and term["sourced_id"] in eyes.academic_sessions


def _active_classes(eyes: Eyes, school: str) -> list[Row]:
    return [
        row
        for row in ROSTER["classes"]
        if row["school_id"] == school and row["status"] == "active" and row["sourced_id"] in eyes.classes
    ]


def _term_of_school(eyes: Eyes, row: Row, ids: Ids, version: str) -> bool:
    if not _sees_school(eyes, ids) or not _is_term(row, version):
        return False
    used = {term for taught in _active_classes(eyes, ids["schoolId"]) for term in CLASS_TERMS[taught["sourced_id"]]}
    above = {by_id("academic_sessions")[term]["parent_id"] for term in used}
    return row["sourced_id"] in used | above or row["parent_id"] in used


def _period_of_term(eyes: Eyes, row: Row, ids: Ids, version: str) -> bool:
    return _sees_term(eyes, ids, version) and row["type"] == "gradingPeriod" and row["parent_id"] == ids["termId"]


def _course_of_school(eyes: Eyes, row: Row, ids: Ids, version: str) -> bool:
    taught = {item["course_id"] for item in _active_classes(eyes, ids["schoolId"])}
    return _sees_school(eyes, ids) and (row["org_id"] == ids["schoolId"] or row["sourced_id"] in taught)


def _class_of_course(eyes: Eyes, row: Row, ids: Ids, version: str) -> bool:
    return ids["courseId"] in eyes.courses and row["course_id"] == ids["courseId"]


def _class_of_school(eyes: Eyes, row: Row, ids: Ids, version: str) -> bool:
    return _sees_school(eyes, ids) and row["school_id"] == ids["schoolId"]


def _class_of_term(eyes: Eyes, row: Row, ids: Ids, version: str) -> bool:
    return _sees_term(eyes, ids, version) and ids["termId"] in CLASS_TERMS[row["sourced_id"]]


def _seen_enrollments(eyes: Eyes) -> list[Row]:
    """The enrollments that still last."""
    return [row for row in ROSTER["enrollments"] if row["sourced_id"] in eyes.enrollments and row["status"] == "active"]


def _class_of_user(name: str, role: str | None) -> Holds:
    return lambda eyes, row, ids, version: any(
        it["user_id"] == ids[name] and it["class_id"] == row["sourced_id"] and role in (None, it["role"])
        for it in _seen_enrollments(eyes)
    )


def _user_of_school(role: str) -> Holds:
    return lambda eyes, row, ids, version: (
        _sees_school(eyes, ids)
        and any(it["role"] == role and it["org_id"] == ids["schoolId"] for it in eyes.roles(row["sourced_id"]))
        and _shows_role(eyes, row, role, version)
    )


def _user_of_class(role: str) -> Holds:
    return lambda eyes, row, ids, version: any(
        it["user_id"] == row["sourced_id"] and it["class_id"] == ids["classId"] and it["role"] == role
        for it in _seen_enrollments(eyes)
    )


def _class_lies_there(eyes: Eyes, ids: Ids) -> bool:
    taught = by_id("classes").get(ids["classId"])
    return _sees_school(eyes, ids) and taught is not None and taught["school_id"] == ids["schoolId"]


def _user_of_class_of_school(role: str) -> Holds:
    return lambda eyes, row, ids, version: (
        _class_lies_there(eyes, ids) and _user_of_class(role)(eyes, row, ids, version)
    )


def _enrollment_of_school(eyes: Eyes, row: Row, ids: Ids, version: str) -> bool:
    return _sees_school(eyes, ids) and row["school_id"] == ids["schoolId"]


def _enrollment_of_class(eyes: Eyes, row: Row, ids: Ids, version: str) -> bool:
    return _class_lies_there(eyes, ids) and row["class_id"] == ids["classId"]


_ORGS = ("orgs", "orgs", "org")
_SESSIONS = ("academic_sessions", "academicSessions", "academicSession")
_COURSES = ("courses", "courses", "course")
_CLASSES = ("classes", "classes", "class")
_USERS = ("users", "users", "user")
_ENROLLMENTS = ("enrollments", "enrollments", "enrollment")
_DEMOGRAPHICS = ("demographics", "demographics", "demographics")

COLLECTIONS = {
    "/orgs": Collection(*_ORGS, _everything),
    "/schools": Collection(*_ORGS, _of_type("school")),
    "/academicSessions": Collection(*_SESSIONS, _everything),
    "/terms": Collection(*_SESSIONS, lambda _eyes, row, _ids, version: _is_term(row, version)),
    "/gradingPeriods": Collection(*_SESSIONS, _of_type("gradingPeriod")),
    "/courses": Collection(*_COURSES, _everything),
    "/classes": Collection(*_CLASSES, _everything),
    "/users": Collection(*_USERS, _everything),
    "/students": Collection(*_USERS, _with_role("student")),
    "/teachers": Collection(*_USERS, _with_role("teacher")),
    "/enrollments": Collection(*_ENROLLMENTS, _everything),
    "/demographics": Collection(*_DEMOGRAPHICS, _everything),
    "/schools/{schoolId}/terms": Collection(*_SESSIONS, _term_of_school),
    "/terms/{termId}/gradingPeriods": Collection(*_SESSIONS, _period_of_term),
    "/schools/{schoolId}/courses": Collection(*_COURSES, _course_of_school),
    "/courses/{courseId}/classes": Collection(*_CLASSES, _class_of_course),
    "/schools/{schoolId}/classes": Collection(*_CLASSES, _class_of_school),
    "/terms/{termId}/classes": Collection(*_CLASSES, _class_of_term),
    "/students/{studentId}/classes": Collection(*_CLASSES, _class_of_user("studentId", "student")),
    "/teachers/{teacherId}/classes": Collection(*_CLASSES, _class_of_user("teacherId", "teacher")),
    "/users/{userId}/classes": Collection(*_CLASSES, _class_of_user("userId", None)),
    "/schools/{schoolId}/students": Collection(*_USERS, _user_of_school("student")),
    "/schools/{schoolId}/teachers": Collection(*_USERS, _user_of_school("teacher")),
    "/classes/{classId}/students": Collection(*_USERS, _user_of_class("student")),
    "/classes/{classId}/teachers": Collection(*_USERS, _user_of_class("teacher")),
    "/schools/{schoolId}/classes/{classId}/students": Collection(*_USERS, _user_of_class_of_school("student")),
    "/schools/{schoolId}/classes/{classId}/teachers": Collection(*_USERS, _user_of_class_of_school("teacher")),
    "/schools/{schoolId}/enrollments": Collection(*_ENROLLMENTS, _enrollment_of_school),
    "/schools/{schoolId}/classes/{classId}/enrollments": Collection(*_ENROLLMENTS, _enrollment_of_class),
}
