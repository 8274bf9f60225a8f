"""The `sort` and `orderBy` parameters."""

from __future__ import annotations

import re

import pytest

from tests.extent import pair
from tests.offenders import in_one_test

from .client import ORGS_METADATA, SCOPES, STUDENTS_METADATA, VERSIONS, RosterClient
from .evaluation import sort
from .model import RESOURCES, is_shared, sortable
from .paths import COLLECTIONS, Endpoint, each_path

each_version = pytest.mark.parametrize("version", VERSIONS)


@each_version
@pytest.mark.parametrize("path", RESOURCES)
def test_every_field_sorts_as_plain_python_does(client: RosterClient, version: str, path: str) -> None:
    """By code point of what is shown; absent values last when ascending, first when descending; ties by sourcedId.

    Of what is the same in both versions, one direction will do for 1.1.
    """
    records = client.call(version, path).records
    for name in sortable(version, path):
        for order in ("desc",) if version == "v1p1" and is_shared(path, name) else ("asc", "desc"):
            answer = client.call(version, path, {"sort": name, "orderBy": order, "fields": "sourcedId"})
            assert answer.ids == sort(records, name, order == "desc"), (name, order)
            assert answer.info is None


@in_one_test
@each_path(COLLECTIONS)
def test_every_collection_sorts(client: RosterClient, version: str, endpoint: Endpoint) -> None:
    descending = client.call(version, endpoint.address, "sort=status&orderBy=desc").ids
    assert descending == sorted(client.call(version, endpoint.address).ids, reverse=True)


@in_one_test
@each_version
@pytest.mark.parametrize(
    ("path", "query", "ids"),
    [
        pytest.param(
            "/schools", "sort=name", "shv-north shv-south spr-elementary spr-high", id="ascending-is-the-default"
        ),
        pytest.param(
            "/schools", "sort=name&orderBy=asc", "shv-north shv-south spr-elementary spr-high", id="ascending"
        ),
        pytest.param(
            "/schools", "sort=name&orderBy=desc", "spr-high spr-elementary shv-south shv-north", id="descending"
        ),
        pytest.param(
            "/schools",
            "orderBy=desc",
            "spr-high spr-elementary shv-south shv-north",
            id="order-alone-goes-by-sourcedId",
        ),
        pytest.param(
            "/courses",
            "sort=schoolYear.sourcedId",
            "shv-course-bio spr-course-math3 spr-course-stats shv-course-art spr-course-chem spr-course-homeroom",
            id="absent-last",
        ),
        pytest.param(
            "/courses",
            "sort=schoolYear.sourcedId&orderBy=desc",
            "spr-course-homeroom spr-course-chem shv-course-art spr-course-stats spr-course-math3 shv-course-bio",
            id="absent-first-when-descending",
        ),
        pytest.param(
            "/classes/spr-class-math3-a/students",
            "sort=givenName&orderBy=desc",
            "spr-student-1 spr-student-6 spr-student-2",
            id="below-a-parent",
        ),
        pytest.param(
            "/gradingPeriods",
            "sort=startDate&orderBy=desc",
            "spr-2027-q3 spr-2027-q2 shv-2027-t1-gp spr-2027-q1",
            id="days",
        ),
        pytest.param(
            "/users?filter=familyName='O''Brien'",
            "sort=givenName",
            "shv-student-3 spr-student-2 spr-parent-1 spr-guardian-1 spr-student-1 shv-student-2",
            id="code-points-not-letters",
        ),
    ],
)
def test_these_records_come_in_this_order(client: RosterClient, version: str, path: str, query: str, ids: str) -> None:
    path, _, text = path.partition("?")
    assert client.call(version, path, f"{text}&{query}" if text else query).ids == ids.split()


# Name of the case -> the path, and what is to be sorted by.
NO_FIELDS = {
    "unknown": ("/users", "shoeSize"),
    "other-case": ("/users", "familyname"),
    "space-before": ("/users", " familyName"),
    "two-fields": ("/users", "familyName,givenName"),
    "direction-inside": ("/users", "familyName desc"),
    "minus": ("/users", "-familyName"),
    "password": ("/users", "password"),
    "list-of-texts": ("/users", "grades"),
    "list-of-references": ("/users", "agents"),
    "through-a-list-of-references": ("/users", "agents.sourcedId"),
    "through-a-list-of-objects": ("/users", "userIds.type"),
    "all-metadata": ("/users", "metadata"),
    "metadata-that-is-not-shown": ("/classes", "metadata.color"),
    "reference-without-its-id": ("/classes", "school"),
    "beyond-a-reference": ("/classes", "school.name"),
    "injection": ("/users", "sourcedId; DROP TABLE users"),
    "very-long": ("/users", "é" * 512),
}


@in_one_test
@pytest.mark.parametrize(
    ("version", "path", "name"),
    [pytest.param(version, *NO_FIELDS[case], id=f"{case}-{version}") for version, case in pair([*NO_FIELDS], VERSIONS)],
)
def test_a_name_that_is_no_field_to_sort_by_is_ignored_with_a_warning(
    client: RosterClient, version: str, path: str, name: str
) -> None:
    answer = client.call(version, path, {"sort": name, "orderBy": "desc"})
    plain = client.call(version, path, {"orderBy": "desc"})
    assert answer.records == plain.records
    assert answer.minor == "invalid_sort_field"
    assert name[:80] in answer.description
    assert list(answer.json) == [answer.key, "statusInfoSet"]


@each_version
def test_a_near_name_is_suggested(client: RosterClient, version: str) -> None:
    assert "'familyName'" in client.call(version, "/users", "sort=familyname").description


@each_version
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("grades", id="a-list"),
        pytest.param("grade", id="near-a-list"),
        pytest.param("metadata", id="all-metadata"),
        pytest.param("agents.sourcedId", id="through-a-list"),
    ],
)
def test_no_name_is_suggested_that_would_be_ignored(client: RosterClient, version: str, name: str) -> None:
    description = client.call(version, "/users", {"sort": name}).description
    for suggestion in re.findall(r"did you mean '([^']+)'", description):
        assert client.call(version, "/users", {"sort": suggestion}).info is None


@each_version
@pytest.mark.parametrize("order", ["ASC", "Desc", "", " asc", "ascending", "1", "asc,desc"])
def test_any_other_direction_is_400(client: RosterClient, version: str, order: str) -> None:
    for query in ({"orderBy": order}, {"sort": "status", "orderBy": order}):
        answer = client.call(version, "/users", query)
        assert (answer.status, answer.minor) == (400, "invaliddata")
        assert "`orderBy`" in answer.description


@each_version
def test_a_nul_in_the_name_is_400(client: RosterClient, version: str) -> None:
    answer = client.call(version, "/users", "sort=family%00Name")
    assert (answer.status, answer.minor) == (400, "invaliddata")


@each_version
def test_a_repeated_sort_is_400(client: RosterClient, version: str) -> None:
    answer = client.call(version, "/users", "sort=status&sort=familyName")
    assert (answer.status, answer.minor) == (400, "invaliddata")
    assert "`sort`" in answer.description


@each_version
def test_metadata_sorts_with_its_scope_alone(client: RosterClient, version: str) -> None:
    """Without the scope the name is unknown, so an order can never tell what is hidden."""
    for path, name, scope in (
        ("/orgs", "metadata.city", ORGS_METADATA),
        ("/users", "metadata.busRoute", STUDENTS_METADATA),
    ):
        with_it = client.call(version, path, {"sort": name})
        assert with_it.info is None
        assert with_it.ids == sort(with_it.records, name, False) != sorted(with_it.ids)
        others = [other for other in SCOPES if "metadata" not in other or (path == "/orgs" and other != scope)]
        without = client.call(version, path, {"sort": name}, scopes=others)
        assert without.minor == "invalid_sort_field"
        assert without.ids == sorted(without.ids)


@pytest.mark.parametrize(("version", "vendor"), [*pair(["north", "south"], VERSIONS)])
def test_what_is_hidden_sorts_as_absent(client: RosterClient, version: str, vendor: str) -> None:
    """Whoever sees one school sorts by what is shown of its records, and never by where else they belong."""
    for path in ("/orgs", "/courses", "/users"):
        records = client.call(version, path, vendor=vendor).records
        for name in sortable(version, path):
            answer = client.call(version, path, {"sort": name, "fields": "sourcedId"}, vendor=vendor)
            assert answer.ids == sort(records, name, False), name
