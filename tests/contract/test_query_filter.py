"""The conditions of the query by themselves, without row-level security: what they hide is as if it did not exist."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sqlalchemy as sa

from tests.access_matrix.layers import open_row_level_security
from tests.extent import pair
from tests.offenders import in_one_test

from .client import GUARDIANS, SCOPES, STUDENTS_METADATA, VERSIONS, Query
from .conftest import Served

pytestmark = pytest.mark.shows(
    "Visibility",
    "No filter, sort, field or reference reads a hidden value; hidden metadata and guardians count as absent.",
)

each_version = pytest.mark.parametrize("version", VERSIONS)

# Springfield's sessions and course now point at Shelbyville's, whose feed is another one; the biology course is
# offered by the north school; a teacher has metadata, which the scope for students' does not cover.
BENDING = (
    "UPDATE academic_sessions SET parent_id = 'shv-2027' WHERE sourced_id IN ('spr-2027-fall', 'shv-2027-t1')",
    "UPDATE academic_sessions SET parent_id = 'spr-2027' WHERE sourced_id = 'shv-2027-t2'",
    "UPDATE courses SET school_year_id = 'shv-2027' WHERE sourced_id = 'spr-course-math3'",
    "UPDATE courses SET org_id = 'shv-north' WHERE sourced_id = 'shv-course-bio'",
    """UPDATE users SET metadata = '{"busRoute": "77"}' WHERE sourced_id = 'spr-teacher-1'""",
)


@pytest.fixture(scope="module")
def bent(make_served: Callable[..., Served]) -> Served:
    """Served by the tables' owner."""
    with pytest.MonkeyPatch.context() as patch:
        open_row_level_security(patch)
        served = make_served()
    with served.engine.begin() as connection:
        for statement in BENDING:
            connection.execute(sa.text(statement))
    return served


@each_version
@pytest.mark.parametrize(
    ("path", "field"),
    [
        pytest.param("/academicSessions/spr-2027-fall", "parent", id="parent"),
        pytest.param("/academicSessions/spr-2027", "children", id="children"),
        pytest.param("/courses/spr-course-math3", "schoolYear", id="school year"),
    ],
)
def test_no_reference_leads_to_a_session_of_another_feed(bent: Served, version: str, path: str, field: str) -> None:
    (alone,) = bent.client.call(version, path, vendor="springfield").records
    (together,) = bent.client.call(version, path, vendor="both").records
    assert "shv-" in str(together[field])
    assert "shv-" not in str(alone.get(field, ""))


@each_version
@pytest.mark.parametrize(
    ("path", "query"),
    [
        pytest.param("/academicSessions", "parent.sourcedId='shv-2027'", id="parent"),
        pytest.param("/academicSessions", "children.sourcedId~'shv'", id="children"),
        pytest.param("/courses", "schoolYear.sourcedId='shv-2027'", id="school year"),
        pytest.param("/classes", "terms.sourcedId='shv-2027-t1'", id="terms"),
        pytest.param("/courses", "org.sourcedId~'shv'", id="org"),
    ],
)
def test_a_filter_does_not_find_what_a_reference_hides(bent: Served, version: str, path: str, query: str) -> None:
    found = bent.client.call(version, path, {"filter": query}, vendor="springfield")
    assert (found.ids, found.total) == ([], 0)
    assert bent.client.call(version, path, {"filter": query}, vendor="both").total > 0


@each_version
def test_below_a_school_that_is_not_seen_there_is_nothing(bent: Served, version: str) -> None:
    """Not even a course of it that is taught at one's own school: that would say whose it is."""
    assert "shv-course-bio" in bent.client.call(version, "/courses", vendor="south").ids
    assert "shv-course-bio" in bent.client.call(version, "/schools/shv-north/courses", vendor="north").ids
    below = bent.client.call(version, "/schools/shv-north/courses", vendor="south")
    assert (below.ids, below.total) == ([], 0)


@each_version
@pytest.mark.parametrize(
    "query",
    [
        {"filter": "metadata.busRoute='77'"},
        {"filter": "metadata.busRoute!='77'"},
        {"filter": "metadata.busRoute>'0' OR metadata.busRoute~'7'"},
        {"sort": "metadata.busRoute"},
        {"sort": "metadata.busRoute", "orderBy": "desc"},
    ],
    ids=str,
)
def test_metadata_that_a_scope_does_not_cover_is_as_if_it_were_absent(bent: Served, version: str, query: Query) -> None:
    scopes = ("roster.readonly", STUDENTS_METADATA)

    def ask() -> tuple[list[str], int]:
        answer = bent.client.call(version, "/users", query, scopes=scopes, vendor="springfield")
        return answer.ids, answer.total

    found = ask()
    change = sa.text("UPDATE users SET metadata = :metadata WHERE sourced_id = 'spr-teacher-1'")
    with bent.engine.begin() as connection:
        connection.execute(change, {"metadata": None})
    without = ask()
    with bent.engine.begin() as connection:
        connection.execute(change, {"metadata": '{"busRoute": "77"}'})
    assert found == without


@pytest.fixture(scope="module")
def unlocked(make_served: Callable[..., Served]) -> Served:
    """The roster as it is, served by the tables' owner: of a copy, whose orderings no other application makes."""
    with pytest.MonkeyPatch.context() as patch:
        open_row_level_security(patch)
        return make_served()


# Each way to the rows of a collection: by its labels, by its path, by a filter; and in the order of a sort.
WAYS: dict[str, tuple[tuple[str, ...], Query]] = {
    "whole": (("/orgs", "/academicSessions", "/courses", "/classes", "/users", "/enrollments", "/demographics"), {}),
    "of a role": (("/students", "/teachers"), {}),
    "below a school": (("/schools/spr-elementary/students", "/schools/shv-north/enrollments"), {}),
    "by a filter": (("/users", "/enrollments", "/demographics"), {"filter": "status='active'"}),
    "sorted": (("/users", "/enrollments", "/courses"), {"sort": "dateLastModified"}),
    "counted": (("/users", "/enrollments", "/demographics"), {"limit": "0"}),
}


# Each vendor, with and without guardians. Which rows a way finds does not depend on the version.
EYES = [(vendor, guardians) for vendor in ("springfield", "elementary", "north") for guardians in (True, False)]


@in_one_test
@pytest.mark.parametrize(("paths", "query"), WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(("version", "eyes"), [*pair(EYES, VERSIONS)], ids=str)
def test_without_row_level_security_every_answer_is_the_same(
    served: Served,
    unlocked: Served,
    version: str,
    eyes: tuple[str, bool],
    paths: tuple[str, ...],
    query: Query,
) -> None:
    vendor, guardians = eyes
    scopes = SCOPES if guardians else tuple(scope for scope in SCOPES if scope != GUARDIANS)
    for path in paths:
        expected, found = (
            one.client.call(version, path, query, scopes=scopes, vendor=vendor) for one in (served, unlocked)
        )
        assert (found.status, found.ids, found.total) == (expected.status, expected.ids, expected.total), path
        assert found.json == expected.json
