"""Two vendors, each of one school of the same district: people and courses of both schools show only their own side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.db.tables import LABELLED, vendors
from roster_service.roster.visible_orgs import refresh_visible_orgs
from tests.offenders import in_one_test
from tests.postgres.labels import label_unlabelled

from .client import FULL, SCOPES, VERSIONS, RosterClient
from .conftest import Served

each_version = pytest.mark.parametrize("version", VERSIONS)

# collection -> the ids that the vendor of shv-north gets, and those that the vendor of shv-south gets.
SEEN = {
    # shv-south stands below a campus, which is no district above it: the vendor of shv-south does not see it.
    "/orgs": ("shv-district shv-north", "shv-district shv-south"),
    "/schools": ("shv-north", "shv-south"),
    "/courses": ("shv-course-art shv-course-bio", "shv-course-bio"),
    "/classes": ("shv-class-art-n shv-class-bio-n", "shv-class-bio-s"),
    "/users": (
        "shv-counselor-1 shv-guardian-1 shv-principal-1 shv-student-1 shv-student-2 shv-student-3 shv-teacher-1",
        "shv-coach-1 shv-student-3 shv-student-4 shv-teacher-1",
    ),
    "/students": ("shv-student-1 shv-student-2 shv-student-3", "shv-student-3 shv-student-4"),
    "/teachers": ("shv-teacher-1", "shv-teacher-1"),
    "/enrollments": ("shv-enr-1 shv-enr-2 shv-enr-3 shv-enr-7 shv-enr-8", "shv-enr-4 shv-enr-5 shv-enr-6 shv-enr-9"),
    "/demographics": ("shv-student-1 shv-student-2 shv-student-3", "shv-student-3 shv-student-4"),
    "/students/shv-student-3/classes": ("shv-class-art-n", "shv-class-bio-s"),
    "/teachers/shv-teacher-1/classes": ("shv-class-bio-n", "shv-class-bio-s"),
    "/courses/shv-course-bio/classes": ("shv-class-bio-n", "shv-class-bio-s"),
    "/terms/shv-2027-t1/classes": ("shv-class-bio-n", "shv-class-bio-s"),
    "/schools/shv-north/terms": ("shv-2027-t1 shv-2027-t2", ""),
    "/schools/shv-south/terms": ("", "shv-2027-t1"),
    "/schools/shv-north/courses": ("shv-course-art shv-course-bio", ""),
    "/schools/shv-south/courses": ("", "shv-course-bio"),
    "/schools/shv-south/students": ("", "shv-student-3 shv-student-4"),
    "/schools/shv-campus/classes": ("", ""),
}
# A session of a type of 1.2's own is shown as a term in 1.1.
MORE_IN_1_1 = {
    "/terms": {"north": ["shv-2027-camp"], "south": ["shv-2027-camp"]},
    "/schools/shv-north/terms": {"north": ["shv-2027-camp"]},
}


@in_one_test
@each_version
@pytest.mark.parametrize("path", SEEN)
def test_each_sees_its_own_school(client: RosterClient, version: str, path: str) -> None:
    more = MORE_IN_1_1.get(path, {}) if version == "v1p1" else {}
    for vendor, listed in zip(("north", "south"), SEEN[path], strict=True):
        ids = " ".join(sorted([*listed.split(), *more.get(vendor, ())]))
        answer = client.call(version, path, vendor=vendor)
        assert answer.ids == ids.split()
        assert answer.total == len(ids.split())


def one(client: RosterClient, version: str, path: str, vendor: str) -> dict[str, Any]:
    """One record as a vendor sees it."""
    (record,) = client.call(version, path, vendor=vendor).records
    return record


@each_version
def test_a_parent_that_is_not_seen_is_left_out(client: RosterClient, version: str) -> None:
    assert one(client, version, "/orgs/shv-north", "north")["parent"]["sourcedId"] == "shv-district"
    assert "parent" not in one(client, version, "/orgs/shv-south", "south")
    assert "children" not in one(client, version, "/orgs/shv-district", "south")
    for name in ("parent.sourcedId", "children.sourcedId"):
        for answer in (
            client.call(version, "/orgs", {"filter": f"{name}='shv-campus'"}, vendor="south"),
            client.call(version, "/orgs", {"filter": f"{name}~'campus'"}, vendor="south"),
        ):
            assert answer.total == 0


@each_version
def test_a_teacher_of_both_schools_is_shown_at_each_for_what_they_are_there(client: RosterClient, version: str) -> None:
    field = {"v1p1": "orgs", "v1p2": "roles"}[version]
    for vendor in ("north", "south"):
        record = one(client, version, "/users/shv-teacher-1", vendor)
        orgs = {(item if version == "v1p1" else item["org"])["sourcedId"] for item in record[field]}
        assert orgs == {f"shv-{vendor}"}
    # The child whose agent the teacher is goes to the other school.
    assert "agents" not in one(client, version, "/users/shv-teacher-1", "south")
    assert "agents" in one(client, version, "/users/shv-teacher-1", "north")


def test_the_one_role_of_1_1_is_one_that_is_seen(client: RosterClient) -> None:
    """The coach of the campus is seen at the south school for a class: with the role there, and without the campus."""
    record = one(client, "v1p1", "/users/shv-coach-1", "south")
    assert (record["role"], [org["sourcedId"] for org in record["orgs"]]) == ("proctor", ["shv-south"])
    [role] = one(client, "v1p2", "/users/shv-coach-1", "south")["roles"]
    assert (role["roleType"], role["role"], role["org"]["sourcedId"]) == ("primary", "proctor", "shv-south")
    assert client.call("v1p1", "/users", {"filter": "role='proctor'"}, vendor="south").ids == ["shv-coach-1"]
    assert client.call("v1p1", "/users", {"filter": "role='aide'"}, vendor="south").total == 0
    assert client.call("v1p2", "/users", {"filter": "roles.role='ext:coach'"}, vendor="south").total == 0
    assert client.call("v1p2", "/users", {"filter": "roles.role='siteAdministrator'"}, vendor="north").total == 0


def test_a_primary_org_that_is_not_seen_is_left_out(client: RosterClient) -> None:
    for sourced_id in ("shv-student-3", "shv-teacher-1"):
        path = f"/users/{sourced_id}"
        assert one(client, "v1p2", path, "south")["primaryOrg"]["sourcedId"] == "shv-south"
        assert "primaryOrg" not in one(client, "v1p2", path, "north")
    filtered = client.call("v1p2", "/users", {"filter": "primaryOrg.sourcedId='shv-south'"}, vendor="north")
    assert filtered.total == 0
    negated = client.call("v1p2", "/users", {"filter": "primaryOrg.sourcedId!='shv-south'"}, vendor="north")
    assert negated.total == 7


@pytest.fixture(scope="module")
def bent(make_served: Callable[..., Served]) -> Served:
    """The biology course is now offered by the north school, and taught at both; whoever helps in the art class has
    no role of their own but a guardian's."""
    served = make_served()
    with served.engine.begin() as connection:
        connection.execute(sa.text("UPDATE courses SET org_id = 'shv-north' WHERE sourced_id = 'shv-course-bio'"))
        connection.execute(sa.text("DELETE FROM user_roles WHERE user_id = 'shv-guardian-1' AND role <> 'guardian'"))
        # As a run of the sync leaves them.
        for table in LABELLED:
            connection.execute(sa.update(table).values(label_id=None))
        label_unlabelled(connection)
        refresh_visible_orgs(connection, *connection.scalars(sa.select(vendors.c.id)))
    return served


@each_version
def test_a_course_taught_here_and_offered_elsewhere_is_seen_without_its_org(bent: Served, version: str) -> None:
    assert one(bent.client, version, "/courses/shv-course-bio", "north")["org"]["sourcedId"] == "shv-north"
    assert "org" not in one(bent.client, version, "/courses/shv-course-bio", "south")
    assert bent.client.call(version, "/schools/shv-south/courses", vendor="south").ids == ["shv-course-bio"]
    for text_ in ("org.sourcedId='shv-north'", "org.sourcedId~'north'", "org.sourcedId>'a'"):
        assert bent.client.call(version, "/courses", {"filter": text_}, vendor="south").total == 0


@each_version
def test_the_courses_of_a_school_that_is_not_seen_reveal_of_no_org(bent: Served, version: str) -> None:
    """The course is seen, and that the north school offers it is not."""
    path = "/schools/shv-north/courses"
    assert "shv-course-bio" in bent.client.call(version, path, vendor="north").ids
    hidden = bent.client.call(version, path, vendor="south")
    assert (hidden.ids, hidden.total) == ([], 0)


@each_version
def test_an_enrollment_is_seen_only_with_its_user(bent: Served, version: str) -> None:
    """Otherwise its reference would name somebody whom the caller must not know."""
    for scopes, ids in ((SCOPES, ["shv-enr-7", "shv-enr-8"]), ((FULL,), ["shv-enr-7"])):
        path = "/schools/shv-north/classes/shv-class-art-n/enrollments"
        assert bent.client.call(version, path, scopes=scopes).ids == ids
        assert ("shv-enr-8" in bent.client.call(version, "/enrollments", scopes=scopes).ids) is (len(ids) == 2)
        status = bent.client.call(version, "/enrollments/shv-enr-8", scopes=scopes).status
        assert status == (200 if len(ids) == 2 else 404)
        classes = bent.client.call(version, "/users/shv-guardian-1/classes", scopes=scopes).ids
        assert classes == (["shv-class-art-n"] if len(ids) == 2 else [])


@pytest.fixture(scope="module")
def without_the_class(make_served: Callable[..., Served]) -> Served:
    """As before, but the south school's class of that course has ended."""
    served = make_served()
    with served.engine.begin() as connection:
        connection.execute(sa.text("UPDATE classes SET status = 'tobedeleted' WHERE sourced_id = 'shv-class-bio-s'"))
    return served


@each_version
def test_a_class_that_ended_makes_no_course_and_no_term_of_a_school(without_the_class: Served, version: str) -> None:
    client = without_the_class.client
    assert client.call(version, "/schools/shv-south/courses").ids == []
    assert client.call(version, "/schools/shv-south/terms").ids == []
    assert client.call(version, "/schools/shv-north/courses").ids == ["shv-course-art", "shv-course-bio"]
    assert client.call(version, "/schools/shv-south/classes").ids == ["shv-class-bio-s"]
