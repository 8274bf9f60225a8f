"""What a vendor's grants do not reach does not exist: not in lists, counts, records, references, filters or sorts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sqlalchemy as sa

from roster_service.db.tables import vendor_grants, vendors
from tests.offenders import in_one_test

from .client import SCOPES, VERSIONS, RosterClient
from .conftest import Served
from .expected import LISTED, NESTED, Row
from .paths import ENDPOINTS, NESTED_KEYS, Endpoint, each_path

each_version = pytest.mark.parametrize("version", VERSIONS)
each_row = pytest.mark.parametrize("row", [pytest.param(row, id=row.path) for row in LISTED])


@in_one_test
@each_version
@each_row
def test_nothing_of_another_district_is_named_anywhere(client: RosterClient, version: str, row: Row) -> None:
    for vendor, hidden in (("springfield", b"shv-"), ("elementary", b"shv-")):
        answer = client.call(version, row.path, vendor=vendor)
        records = answer.body.replace(b"sourcedId", b"").partition(b"statusInfoSet")[0]
        assert hidden not in records


@pytest.mark.shows("Visibility", "A hidden record or district is answered like one that does not exist.")
@in_one_test
@each_version
@each_row
def test_a_record_outside_answers_like_one_that_does_not_exist(client: RosterClient, version: str, row: Row) -> None:
    for vendor in ("springfield", "elementary"):
        outside = sorted(set(row.ids("both", version)) - set(row.ids(vendor, version)))[:2]
        for sourced_id in outside:
            segment = sourced_id.replace("/", "%2F")
            hidden = client.call(version, f"{row.path}/{segment}", vendor=vendor)
            unknown = client.call(version, f"{row.path}/no-such-record", vendor=vendor)
            assert hidden.status == unknown.status == 404
            described = hidden.description.replace(segment, "no-such-record").replace(sourced_id, "no-such-record")
            assert described == unknown.description
            assert sorted(hidden.headers.keys()) == sorted(unknown.headers.keys())


@pytest.mark.shows("Visibility", "A hidden record or district is answered like one that does not exist.")
@in_one_test
@each_version
@pytest.mark.parametrize("row", [pytest.param(row, id=row.path) for row in NESTED if row.shelbyville])
def test_a_parent_outside_answers_like_one_that_does_not_exist(client: RosterClient, version: str, row: Row) -> None:
    (key,) = (NESTED_KEYS[path] for path in NESTED_KEYS if path == client.documents[version].find(row.path))
    for vendor in ("springfield", "elementary"):
        answer = client.call(version, row.path, vendor=vendor)
        assert answer.json == {key: []}
        assert answer.total == 0


@in_one_test
@each_path(ENDPOINTS)
def test_a_vendor_without_grants_is_refused(client: RosterClient, version: str, endpoint: Endpoint) -> None:
    """An empty roster would let a consumer delete everything. What is wrong with the request itself comes first."""
    for headers in ({}, {"If-None-Match": '"x"'}):
        answer = client.call(version, endpoint.address, vendor="nobody", headers=headers)
        assert (answer.status, answer.minor) == (403, "forbidden")
        assert "no district or school is granted to you" in answer.description
        assert "WWW-Authenticate" not in answer.headers
    assert client.call(version, endpoint.address, "shoeSize=42", vendor="nobody").status == 400


@each_version
def test_a_grant_that_opens_nothing_is_answered_with_nothing(make_served: Callable[..., Served], version: str) -> None:
    """A district that left the roster is empty, and its records were tombstones before."""
    own = make_served()
    with own.engine.begin() as connection:
        vendor = sa.select(vendors.c.id).where(vendors.c.email == "nobody@vendors.example").scalar_subquery()
        connection.execute(sa.insert(vendor_grants).values(vendor_id=vendor, district_id="gone"))
    answer = own.client.call(version, "/users", vendor="nobody")
    assert (answer.json, answer.total) == ({"users": []}, 0)


@pytest.mark.shows(
    "Visibility",
    "No filter, sort, field or reference reads a hidden value; hidden metadata and guardians count as absent.",
)
@in_one_test
@each_version
@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param("/orgs", "sourcedId='shv-north' OR name~'shelbyville'", id="orgs"),
        pytest.param("/orgs", "parent.sourcedId='shv-district' OR children.sourcedId~'shv'", id="orgs-by-family"),
        pytest.param("/academicSessions", "sourcedId>='shv' AND sourcedId<'shw'", id="sessions"),
        pytest.param("/courses", "org.sourcedId='shv-district' OR courseCode='BIO'", id="courses"),
        pytest.param("/classes", "school.sourcedId='shv-south' OR terms.sourcedId='shv-2027-t1'", id="classes"),
        pytest.param("/users", "familyName='Çelik' OR sourcedId='shv-student-1'", id="users"),
        pytest.param("/users", "email='zoe@example.org' OR identifier='N-1'", id="users-by-what-one-may-know"),
        pytest.param("/users", "metadata.locker='114' OR userIds.type='SIS'", id="users-by-metadata"),
        pytest.param("/enrollments", "class.sourcedId='shv-class-bio-n' OR user.sourcedId~'shv'", id="enrollments"),
        pytest.param("/demographics", "birthDate='2012-02-29' OR cityOfBirth='Shelbyville'", id="demographics"),
    ],
)
def test_no_filter_reaches_another_district(client: RosterClient, version: str, path: str, text: str) -> None:
    """The filters find something for who may see it, nothing for the others, and their negation finds no more."""
    assert client.call(version, path, {"filter": text}).total > 0
    for vendor in ("springfield", "elementary"):
        answer = client.call(version, path, {"filter": text}, vendor=vendor)
        assert (answer.ids, answer.total) == ([], 0)


# --- the vendor of one school ------------------------------------------------------------------------------------


@each_version
def test_the_district_above_a_granted_school_shows_that_school_alone(client: RosterClient, version: str) -> None:
    (district,) = client.call(version, "/orgs/spr-district", vendor="elementary").records
    assert [child["sourcedId"] for child in district["children"]] == ["spr-elementary"]
    (school,) = client.call(version, "/orgs/spr-elementary", vendor="elementary").records
    assert school["parent"]["sourcedId"] == "spr-district"
    assert client.call(version, "/schools/spr-district", vendor="elementary").status == 404


@each_version
def test_roles_at_other_schools_are_left_out(client: RosterClient, version: str) -> None:
    """Also from what a filter compares: nobody is found by an org that is hidden."""
    field = {"v1p1": "orgs", "v1p2": "roles"}[version]
    for sourced_id in ("spr-teacher-1", "spr-student-6"):
        (record,) = client.call(version, f"/users/{sourced_id}", vendor="elementary").records
        orgs = [(item if version == "v1p1" else item["org"])["sourcedId"] for item in record[field]]
        assert orgs == ["spr-elementary"]
    name = {"v1p1": "orgs.sourcedId", "v1p2": "roles.org.sourcedId"}[version]
    text = f"{name}='spr-high' OR {name}='spr-district'"
    assert client.call(version, "/users", {"filter": text}, vendor="springfield").total > 0
    assert client.call(version, "/users", {"filter": text}, vendor="elementary").total == 0


@each_version
def test_courses_show_an_org_only_where_it_is_seen(client: RosterClient, version: str) -> None:
    records = client.call(version, "/courses", vendor="elementary").records
    assert {record["org"]["sourcedId"] for record in records} == {"spr-district"}
    filtered = client.call(version, "/courses", {"filter": "org.sourcedId!='spr-district'"}, vendor="elementary")
    assert filtered.total == 0


@each_version
def test_agents_are_those_that_are_seen(client: RosterClient, version: str) -> None:
    """spr-relative-1 belongs to the other school, and so does the student whose agent that is."""
    body = client.call(version, "/users", vendor="elementary").body
    assert b"spr-relative-1" not in body
    (guardian,) = client.call(version, "/users/spr-guardian-1", vendor="elementary").records
    assert [agent["sourcedId"] for agent in guardian["agents"]] == ["spr-student-1", "spr-student-2"]


@each_version
def test_the_staff_of_the_district_is_not_the_school_s(client: RosterClient, version: str) -> None:
    for sourced_id in ("spr-admin-district", "spr-admin-school", "spr-proctor@1"):
        assert client.call(version, f"/users/{sourced_id}", vendor="elementary").status == 404


@each_version
def test_counts_of_one_vendor_never_reveal_of_another(client: RosterClient, version: str) -> None:
    for row in LISTED:
        for query in ("limit=0&filter=status='active'", "offset=1000"):
            totals = {
                vendor: client.call(version, row.path, query, vendor=vendor).total
                for vendor in ("both", "springfield", "elementary")
            }
            assert totals == {vendor: len(row.ids(vendor, version)) for vendor in totals}, (row.path, query)


@each_version
def test_scopes_do_not_widen_grants(client: RosterClient, version: str) -> None:
    few = client.call(version, "/users", vendor="elementary", scopes=SCOPES[:2]).ids
    every = client.call(version, "/users", vendor="elementary").ids
    assert set(every) - set(few) == {"spr-guardian-1", "spr-parent-1"}
