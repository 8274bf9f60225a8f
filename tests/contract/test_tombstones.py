"""Records that left the source: still there to be read, as `tobedeleted`, and no member of anything any more."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sqlalchemy as sa

from .client import VERSIONS
from .conftest import Served

each_version = pytest.mark.parametrize("version", VERSIONS)
FLAGGED = {
    "enrollments": ["spr-enr-01", "spr-enr-09", "spr-enr-04"],
    "classes": ["spr-class-chem-summer"],
    "users": ["spr-student-2"],
    "orgs": ["spr-high-science"],
}
DAY = "2026-11-15T02:00:00.000Z"


@pytest.fixture(scope="module")
def after(make_served: Callable[..., Served]) -> Served:
    """The roster after a night in which some records were flagged."""
    served = make_served()
    with served.engine.begin() as connection:
        for table, ids in FLAGGED.items():
            change = (
                f"UPDATE {table} SET status = 'tobedeleted', date_last_modified = :day WHERE sourced_id = ANY(:ids)"
            )
            connection.execute(sa.text(change), {"day": DAY, "ids": ids})
    return served


@each_version
def test_a_flagged_record_stays_readable(after: Served, version: str) -> None:
    for path, ids in FLAGGED.items():
        listed = after.client.call(version, f"/{path}", {"filter": "status='tobedeleted'"})
        assert listed.ids == sorted(ids)
        for sourced_id in ids:
            (record,) = after.client.call(version, f"/{path}/{sourced_id}").records
            assert (record["status"], record["dateLastModified"]) == ("tobedeleted", DAY)


@each_version
def test_a_delta_has_what_was_flagged_since(after: Served, version: str) -> None:
    since = {"filter": "dateLastModified>='2026-11-15' AND status='tobedeleted'"}
    assert after.client.call(version, "/enrollments", since).ids == sorted(FLAGGED["enrollments"])
    later = {"filter": f"dateLastModified>'{DAY}' AND status='tobedeleted'"}
    assert after.client.call(version, "/enrollments", later).ids == []


@each_version
@pytest.mark.parametrize(
    ("path", "ids"),
    [
        pytest.param("/classes/spr-class-math3-a/students", "spr-student-2 spr-student-6", id="no-student-any-more"),
        pytest.param("/classes/spr-class-math3-a/teachers", "", id="no-teacher-any-more"),
        pytest.param("/students/spr-student-1/classes", "spr-class-homeroom-3", id="classes-of-a-student"),
        pytest.param(
            "/teachers/spr-teacher-1/classes", "spr-class-homeroom-3 spr-class/stats@1", id="classes-of-a-teacher"
        ),
        pytest.param("/users/spr-student-3/classes", "", id="classes-of-a-user"),
        pytest.param(
            "/schools/spr-elementary/classes/spr-class-math3-a/students",
            "spr-student-2 spr-student-6",
            id="within-a-school",
        ),
        pytest.param(
            "/schools/spr-elementary/classes/spr-class-math3-a/enrollments",
            "spr-enr-01 spr-enr-02 spr-enr-03 spr-enr-04",
            id="the-enrollments-themselves-are-listed",
        ),
    ],
)
def test_membership_ends_with_the_enrollment(after: Served, version: str, path: str, ids: str) -> None:
    assert after.client.call(version, path).ids == ids.split()


@each_version
def test_a_flagged_class_or_user_is_still_listed_below_its_parent(after: Served, version: str) -> None:
    """A consumer of a school's classes learns there that one is to be removed."""
    assert "spr-class-chem-summer" in after.client.call(version, "/schools/spr-high/classes").ids
    assert "spr-student-2" in after.client.call(version, "/schools/spr-elementary/students").ids


@each_version
def test_references_to_a_flagged_record_still_resolve(after: Served, version: str) -> None:
    (enrollment,) = after.client.call(version, "/enrollments/spr-enr-17").records
    assert enrollment["class"]["sourcedId"] == "spr-class-chem-summer"
    assert after.client.follow(version, enrollment["class"]["href"]).records[0]["status"] == "tobedeleted"


@each_version
def test_a_flagged_org_is_no_child(after: Served, version: str) -> None:
    """Its purge would change the record of its parent, without a stamp."""
    (school,) = after.client.call(version, "/orgs/spr-high").records
    assert "children" not in school
