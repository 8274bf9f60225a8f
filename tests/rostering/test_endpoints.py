"""The rows of the interface, against the specification's table; and the envelope's table of codes."""

from __future__ import annotations

import json

import pytest

from roster_service.auth.scopes import ScopeName
from roster_service.errors import ErrorProfile, Problem
from roster_service.rostering.endpoints import ENDPOINTS, Cardinality, Endpoint, Scopes
from roster_service.rostering.status_info import STATUS_INFO, make_failure, make_warning
from roster_service.serving.plan import Notice
from roster_service.vendor.bodies import FAILURES

# The paths of the specification, in its own order.
from tests.offenders import in_one_test

SPECIFICATION = """
/orgs /orgs/{sourcedId} /schools /schools/{sourcedId} /academicSessions /academicSessions/{sourcedId}
/terms /terms/{sourcedId} /gradingPeriods /gradingPeriods/{sourcedId}
/schools/{schoolId}/terms /terms/{termId}/gradingPeriods
/courses /courses/{sourcedId} /schools/{schoolId}/courses
/classes /classes/{sourcedId} /courses/{courseId}/classes /schools/{schoolId}/classes /terms/{termId}/classes
/students/{studentId}/classes /teachers/{teacherId}/classes /users/{userId}/classes
/users /users/{sourcedId} /students /students/{sourcedId} /teachers /teachers/{sourcedId}
/schools/{schoolId}/students /schools/{schoolId}/teachers /classes/{classId}/students /classes/{classId}/teachers
/schools/{schoolId}/classes/{classId}/students /schools/{schoolId}/classes/{classId}/teachers
/enrollments /enrollments/{sourcedId}
/schools/{schoolId}/enrollments /schools/{schoolId}/classes/{classId}/enrollments
/demographics /demographics/{sourcedId}
"""
SPECIFIED = SPECIFICATION.split()
# The names of the operations in the OpenAPI document of the standard.
OPERATIONS = """
getAllAcademicSessions getAcademicSession getAllTerms getTerm getAllGradingPeriods getGradingPeriod
getAllOrgs getOrg getAllSchools getSchool getAllCourses getCourse getAllClasses getClass getAllUsers getUser
getAllStudents getStudent getAllTeachers getTeacher getAllEnrollments getEnrollment getAllDemographics getDemographics
getTermsForSchool getGradingPeriodsForTerm getCoursesForSchool getClassesForCourse getClassesForSchool getClassesForTerm
getClassesForStudent getClassesForTeacher getClassesForUser getStudentsForSchool getTeachersForSchool
getStudentsForClass getTeachersForClass getStudentsForClassInSchool getTeachersForClassInSchool
getEnrollmentsForSchool getEnrollmentsForClassInSchool
"""


def test_the_rows_are_the_paths_of_the_specification() -> None:
    assert len(SPECIFIED) == 41
    assert sorted(endpoint.path for endpoint in ENDPOINTS) == sorted(SPECIFIED)


def test_the_names_of_operations_are_those_of_the_standard() -> None:
    assert sorted(endpoint.name for endpoint in ENDPOINTS) == sorted(OPERATIONS.split())


@in_one_test
@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.path)
def test_shape_and_access_follow_from_the_path(endpoint: Endpoint) -> None:
    """One record where the path ends in `{sourcedId}`; the full scope for everything below a parent."""
    assert (endpoint.cardinality is Cardinality.SINGLE) is endpoint.path.endswith("/{sourcedId}")
    nested = endpoint.path.count("/") > 1 and endpoint.cardinality is Cardinality.COLLECTION
    if endpoint.path.startswith("/demographics"):
        assert endpoint.access is Scopes.DEMOGRAPHICS
    else:
        assert endpoint.access is (Scopes.FULL if nested else Scopes.CORE)


def test_the_scopes_of_each_access() -> None:
    assert Scopes.CORE.value == (ScopeName.CORE, ScopeName.FULL)
    assert Scopes.FULL.value == (ScopeName.FULL,)
    assert Scopes.DEMOGRAPHICS.value == (ScopeName.DEMOGRAPHICS,)


def test_a_row_without_access_does_not_construct() -> None:
    row = ENDPOINTS[0]
    with pytest.raises(TypeError, match="access"):
        Endpoint(  # type: ignore[call-arg]
            path=row.path,
            resource=row.resource,
            cardinality=row.cardinality,
            path_filter=row.path_filter,
            summary=row.summary,
        )


# What only the vendor interface refuses for.
VENDOR_PROBLEMS = {Problem.API_KEY, Problem.CREDENTIALS, Problem.PRIVILEGE}
# What only the token endpoint refuses for.
TOKEN_PROBLEMS = {Problem.DISABLED}


def test_every_problem_has_a_status_and_a_code() -> None:
    assert set(STATUS_INFO) == set(Problem) - VENDOR_PROBLEMS - TOKEN_PROBLEMS
    assert set(FAILURES) >= VENDOR_PROBLEMS


# What the standard's codes are used for; `invalid_sort_field` and the blank selection are those of 1.1.
CODES = {
    200: {"invalid_filter_field", "invalid_sort_field", "invalid_selection_field"},
    400: {"invaliddata", "invalid_filter_field", "invalid_blank_selection_field"},
    401: {"unauthorisedrequest"},
    403: {"forbidden"},
    404: {"unknownobject"},
    410: {"unknownobject"},
    429: {"server_busy"},
    500: {"internal_server_error"},
    503: {"server_busy"},
}


def test_codes_belong_to_their_statuses() -> None:
    found: dict[int, set[str]] = {}
    for status, minor in STATUS_INFO.values():
        found.setdefault(status, set()).add(minor)
    assert found == CODES


def test_a_failure_names_what_and_where() -> None:
    body = json.loads(
        make_failure(Problem.FILTER, 'there is no field "x"\n', "GET /users?filter=x", ErrorProfile.SPECIFICATION)
    )
    assert body == {
        "statusInfoSet": {
            "imsx_codeMajor": "failure",
            "imsx_severity": "error",
            "imsx_codeMinor": "invalid_filter_field",
            "imsx_description": 'there is no field "x"\n (in GET /users?filter=x)',
        }
    }


def test_of_several_notices_the_first_gives_the_code_and_all_are_reported() -> None:
    notices = [Notice(Problem.SELECTION_FIELD, "one"), Notice(Problem.SORT_FIELD, "two")]
    body = json.loads(make_warning(notices, "GET /users"))["statusInfoSet"]
    assert body["imsx_codeMinor"] == "invalid_selection_field"
    assert body["imsx_description"] == "one; two (in GET /users)"
    assert (body["imsx_codeMajor"], body["imsx_severity"]) == ("success", "warning")
