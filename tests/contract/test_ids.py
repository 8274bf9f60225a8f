"""Ids in addresses: a sourcedId may hold a slash and an at sign, and a caller may send anything at all."""

from __future__ import annotations

import pytest

from tests.offenders import in_one_test

from .client import ROOTS, VERSIONS, RosterClient
from .paths import NESTED, Endpoint

each_version = pytest.mark.parametrize("version", VERSIONS)

KNOWN = [
    pytest.param("/classes/spr-class%2Fstats@1", "spr-class/stats@1", id="slash-encoded"),
    pytest.param("/classes/spr-class%2fstats%401", "spr-class/stats@1", id="lower-case-and-at-sign-encoded"),
    pytest.param("/classes/spr%2Dclass%2F%73tats@1", "spr-class/stats@1", id="letters-encoded-for-no-reason"),
    pytest.param("/users/spr-proctor@1", "spr-proctor@1", id="at-sign"),
    pytest.param("/users/spr-proctor%401", "spr-proctor@1", id="at-sign-encoded"),
]


@each_version
@pytest.mark.parametrize(("path", "sourced_id"), KNOWN)
def test_an_id_is_found_however_it_is_encoded(client: RosterClient, version: str, path: str, sourced_id: str) -> None:
    assert client.call(version, path).ids == [sourced_id]


@each_version
@pytest.mark.parametrize(
    ("path", "ids"),
    [
        pytest.param("/classes/spr-class%2Fstats@1/students", "spr-student-3 spr-student-5", id="students"),
        pytest.param("/classes/spr-class%2Fstats%401/teachers", "spr-teacher-1 spr-teacher-2", id="teachers"),
        pytest.param(
            "/schools/spr-high/classes/spr-class%2Fstats@1/enrollments",
            "spr-enr-09 spr-enr-10 spr-enr-11 spr-enr-12",
            id="within-a-school",
        ),
        pytest.param("/users/spr-proctor%401/classes", "spr-class-chem-1", id="classes-of-a-user"),
    ],
)
def test_an_id_with_a_slash_stands_in_the_middle_too(client: RosterClient, version: str, path: str, ids: str) -> None:
    assert client.call(version, path).ids == ids.split()


@each_version
def test_a_bare_slash_parts_two_segments(client: RosterClient, version: str) -> None:
    assert client.call(version, "/classes/spr-class/stats@1").status == 404
    assert client.call(version, "/classes/spr-class/students").ids == []


@each_version
def test_an_href_encodes_the_id_as_one_segment(client: RosterClient, version: str) -> None:
    (record,) = client.call(version, "/enrollments/spr-enr-15").records
    assert record["user"]["href"] == f"http://localhost{ROOTS[version]}/users/spr-proctor%401"
    (record,) = client.call(version, "/enrollments/spr-enr-09").records
    assert record["class"]["href"] == f"http://localhost{ROOTS[version]}/classes/spr-class%2Fstats%401"
    assert record["class"]["sourcedId"] == "spr-class/stats@1"


STRANGE = [
    pytest.param("%2F", id="only-a-slash"),
    pytest.param("%2e%2e", id="dots"),
    pytest.param("..%2F..%2Fetc%2Fpasswd", id="path-traversal"),
    pytest.param("%25", id="percent-sign"),
    pytest.param("spr-class%252Fstats@1", id="encoded-twice"),
    pytest.param("spr%", id="percent-sign-without-digits"),
    pytest.param("%ZZ", id="no-digits-behind-it"),
    pytest.param("%00", id="nul"),
    pytest.param("spr-student-1%00", id="nul-at-the-end"),
    pytest.param("%FF", id="no-utf-8"),
    pytest.param("%ED%A0%80", id="surrogate"),
    pytest.param("%0A%0D", id="line-break"),
    pytest.param("%20", id="space"),
    pytest.param("spr-student-1%20", id="space-behind"),
    pytest.param("SPR-STUDENT-1", id="other-case"),
    pytest.param("%F0%9F%98%80", id="beyond-the-basic-plane"),
    pytest.param("'%20OR%20'1'='1", id="injection"),
    pytest.param("*", id="star"),
    pytest.param("%25%25", id="wildcards"),
    pytest.param("null", id="null"),
    pytest.param("a;b=c", id="parameters-of-a-segment"),
    pytest.param("a%3Fb%23c", id="question-mark"),
    pytest.param("x" * 10_000, id="very-long"),
]


@in_one_test
@each_version
@pytest.mark.parametrize("segment", STRANGE)
def test_a_strange_id_is_an_unknown_record(client: RosterClient, version: str, segment: str) -> None:
    for path in ("/users", "/classes", "/orgs", "/demographics"):
        answer = client.call(version, f"{path}/{segment}")
        assert (answer.status, answer.minor) == (404, "unknownobject")
        assert len(answer.body) < 2000


@in_one_test
@each_version
@pytest.mark.parametrize("segment", STRANGE)
def test_a_strange_parent_has_an_empty_collection(client: RosterClient, version: str, segment: str) -> None:
    """Also where only one of two ids is strange; and its links are addresses still."""
    for path in (
        f"/schools/{segment}/students",
        f"/users/{segment}/classes",
        f"/schools/spr-high/classes/{segment}/students",
        f"/schools/{segment}/classes/spr-class-chem-1/enrollments",
    ):
        answer = client.call(version, path)
        assert (answer.status, answer.records, answer.total) == (200, [], 0)
        assert all(link.isascii() and " " not in link for link in answer.links.values())


@in_one_test
@each_version
@pytest.mark.parametrize("endpoint", [pytest.param(item, id=item.template) for item in NESTED])
def test_a_blank_id_is_no_path(client: RosterClient, version: str, endpoint: Endpoint) -> None:
    """Two slashes in a row are never joined into one, which would mean another path."""
    blank = "/".join("" if piece == "no-such-record" else piece for piece in endpoint.unknown.split("/"))
    assert client.call(version, blank).status == 404
