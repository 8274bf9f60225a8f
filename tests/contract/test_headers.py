"""The headers of answers: entity tags, where the roster stands, and what caches and browsers are told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.errors import ErrorProfile
from tests.offenders import in_one_test

from .client import CORE, FULL, SCOPES, VERSIONS, RosterClient
from .conftest import Served

each_version = pytest.mark.parametrize("version", VERSIONS)
PATHS = ("/orgs", "/users?limit=3", "/users/spr-student-1", "/schools/spr-high/students")


def parts(path: str) -> tuple[str, str]:
    """A path and its query."""
    before, _, after = path.partition("?")
    return before, after


@each_version
@pytest.mark.parametrize("path", PATHS)
def test_the_same_request_has_the_same_tag(client: RosterClient, version: str, path: str) -> None:
    first, second = (client.call(version, *parts(path)) for _ in range(2))
    assert first.headers["ETag"] == second.headers["ETag"]
    assert first.headers["ETag"].startswith('"')


@each_version
def test_whatever_can_change_an_answer_changes_its_tag(client: RosterClient, version: str) -> None:
    calls = [
        client.call(version, "/users"),
        client.call(version, "/users", "limit=3"),
        client.call(version, "/users", "limit=3&offset=3"),
        client.call(version, "/users", "fields=sourcedId"),
        client.call(version, "/students"),
        client.call(version, "/users", scopes=(CORE,)),
        client.call(version, "/users", scopes=(CORE, FULL)),
        client.call(version, "/users", vendor="springfield"),
        client.call(version, "/users", vendor="elementary"),
        client.call("v1p2" if version == "v1p1" else "v1p1", "/users"),
        client.call(version, "/users", headers={"Host": "roster.example"}),
    ]
    assert len({answer.headers["ETag"] for answer in calls}) == len(calls)


@pytest.mark.parametrize("changed", [{"max_limit": 5}, {"v1p2_errors": ErrorProfile.OFFICIAL}])
def test_a_setting_that_changes_an_answer_changes_its_tag(
    make_served: Callable[..., Served], served: Served, changed: dict[str, Any]
) -> None:
    """A client would keep a page of another size, and go on behind it."""
    usual, own = (it.client.call("v1p2", "/users") for it in (served, make_served(served.url, **changed)))
    assert (usual.status, own.status) == (200, 200)
    assert usual.headers["ETag"] != own.headers["ETag"]


@in_one_test
@each_version
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "template",
    [
        pytest.param('"{tag}"', id="alone"),
        pytest.param('"other", "{tag}", "third"', id="in-a-list"),
        pytest.param('W/"{tag}"', id="made-weak-by-a-proxy"),
        pytest.param("*", id="any"),
    ],
)
def test_an_answer_that_is_known_is_304(client: RosterClient, version: str, path: str, template: str) -> None:
    """RFC 9110, section 13.1.2: compared weakly, because proxies that compress weaken the tags they pass on."""
    known = client.call(version, *parts(path))
    header = template.format(tag=known.headers["ETag"].strip('"'))
    answer = client.call(version, *parts(path), headers={"If-None-Match": header})
    assert answer.status == 304
    state = ("X-Roster-Revision", "X-Roster-As-Of", "X-Roster-Deletions-Since")
    for name in ("ETag", "Cache-Control", "X-Total-Count", *state):
        assert answer.headers[name] == known.headers[name]
    assert answer.headers.get("Link") == known.headers.get("Link")


@each_version
@pytest.mark.parametrize("header", ['"other"', "other", "", '"', "W/", '""'])
def test_an_answer_that_is_not_known_is_sent(client: RosterClient, version: str, header: str) -> None:
    assert client.call(version, "/orgs", headers={"If-None-Match": header}).total == 8


@each_version
def test_a_tag_is_no_token(client: RosterClient, version: str) -> None:
    """Whoever knows the tag of an answer must still be allowed to have it, and must ask for it rightly."""
    tag = {"If-None-Match": client.call(version, "/users").headers["ETag"]}
    assert client.call(version, "/users", bearer=None, headers=tag).status == 401
    assert client.call(version, "/users", vendor="springfield", headers=tag).status == 200
    assert client.call(version, "/users", "shoeSize=42", headers=tag).status == 400
    assert client.call(version, "/users", headers=tag, method="POST").status == 400


@each_version
@pytest.mark.parametrize("path", ["/users/no-such-record", "/users/shv-student-1"])
def test_a_record_that_is_not_there_is_404_whatever_is_known(client: RosterClient, version: str, path: str) -> None:
    answer = client.call(version, path, headers={"If-None-Match": "*"}, vendor="springfield")
    assert answer.status == 404


@each_version
def test_refusals_have_no_tag(client: RosterClient, version: str) -> None:
    for answer in (
        client.call(version, "/users/no-such-record"),
        client.call(version, "/users", "shoeSize=42"),
        client.call(version, "/demographics", scopes=(CORE,)),
    ):
        assert "ETag" not in answer.headers


def test_a_change_of_the_roster_changes_revision_and_tag(make_served: Callable[..., Served]) -> None:
    own = make_served()
    old = own.client.call("v1p1", "/orgs")
    with own.engine.begin() as connection:
        connection.execute(sa.text("UPDATE orgs SET name = 'New Name' WHERE sourced_id = 'spr-high'"))
        connection.execute(
            sa.text("UPDATE visible_feeds SET revision = revision + 1, as_of = '2999-12-01T01:02:03.004+02:00'")
        )
    new = own.client.call("v1p1", "/orgs", headers={"If-None-Match": old.headers["ETag"]})
    assert new.status == 200
    assert int(new.headers["X-Roster-Revision"]) == int(old.headers["X-Roster-Revision"]) + 1
    assert new.headers["X-Roster-As-Of"] == "2999-11-30T23:02:03.004Z"
    assert "New Name" in new.body.decode()


@each_version
def test_the_roster_s_stamp_finds_nothing_newer(client: RosterClient, version: str) -> None:
    """X-Roster-As-Of is what to put behind `dateLastModified>` the next time."""
    stamp = client.call(version, "/users").headers["X-Roster-As-Of"]
    for path in ("/orgs", "/users", "/enrollments", "/demographics"):
        assert client.call(version, path, {"filter": f"dateLastModified>'{stamp}'"}).total == 0


@each_version
def test_addresses_are_those_that_the_client_used(client: RosterClient, version: str) -> None:
    answer = client.call(version, "/orgs", "limit=1&filter=type='school'", headers={"Host": "roster.example:8443"})
    (record,) = answer.records
    assert record["parent"]["href"].startswith("http://roster.example:8443/ims/oneroster/")
    assert all(link.startswith("http://roster.example:8443/ims/oneroster/") for link in answer.links.values())


@pytest.mark.parametrize("public", ["https://roster.example", "https://example.org/rosters"])
def test_with_a_public_address_every_address_is_that_one(
    make_served: Callable[..., Served], served: Served, public: str
) -> None:
    own = make_served(served.url, public_url=public)
    for version, root in (("v1p1", "/ims/oneroster/v1p1"), ("v1p2", "/ims/oneroster/rostering/v1p2")):
        answer = own.client.call(version, "/schools", "limit=1", headers={"Host": "inside:8000"})
        (record,) = answer.records
        assert record["parent"]["href"].startswith(f"{public}{root}/orgs/")
        assert answer.links["next"].startswith(f"{public}{root}/schools?")
        assert b"inside" not in answer.body


@pytest.mark.parametrize("host", ['evil"', "a/../b", "x y", "a,b", "<x>", "[::1]:80", "host:99999999", "é"])
def test_a_strange_host_makes_no_broken_answer(client: RosterClient, host: str) -> None:
    """Whatever the header holds, the answer is JSON that fits the document, or a refusal."""
    response = client.fetch(
        "/ims/oneroster/v1p1/schools?limit=1",
        headers={"Host": host, "Authorization": f"Bearer {client.token('v1p1')}"},
    )
    assert response.status in (200, 400)
    if response.status == 200:
        assert list(response.json) == ["orgs"]
        assert len(response.links) == 3


@each_version
def test_scopes_of_a_token_and_not_their_order_make_the_tag(client: RosterClient, version: str) -> None:
    there = client.call(version, "/users", scopes=SCOPES)
    back = client.call(version, "/users", scopes=SCOPES[::-1])
    assert there.headers["ETag"] == back.headers["ETag"]
