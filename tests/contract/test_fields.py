"""The `fields` parameter: those fields and no others, on collections and on single records."""

from __future__ import annotations

import pytest

from tests.offenders import in_one_test

from .client import ORGS_METADATA, SCOPES, VERSIONS, RosterClient
from .model import RESOURCES, top_level
from .paths import ENDPOINTS, Endpoint, each_path

each_version = pytest.mark.parametrize("version", VERSIONS)


@each_version
@pytest.mark.parametrize("path", RESOURCES)
def test_each_field_can_be_had_alone(client: RosterClient, version: str, path: str) -> None:
    """Required fields drop out too; a record without a value is an empty object."""
    whole = client.call(version, path).records
    for name in top_level(version, path):
        answer = client.call(version, path, {"fields": name})
        assert answer.records == [{name: record[name]} if name in record else {} for record in whole]
        assert answer.info is None


@in_one_test
@each_path(ENDPOINTS)
def test_every_path_takes_fields(client: RosterClient, version: str, endpoint: Endpoint) -> None:
    whole = client.call(version, endpoint.address).records
    answer = client.call(version, endpoint.address, "fields=sourcedId,status")
    wanted = [{"sourcedId": record["sourcedId"], "status": record["status"]} for record in whole]
    assert answer.records == wanted


TAKEN = [
    pytest.param("fields=givenName,familyName", {"givenName", "familyName"}, id="two"),
    pytest.param("fields=familyName,givenName", {"givenName", "familyName"}, id="in-any-order"),
    pytest.param("fields=givenName&fields=familyName", {"givenName", "familyName"}, id="repeated"),
    pytest.param("fields=givenName,email&fields=familyName", {"givenName", "email", "familyName"}, id="both-ways"),
    pytest.param("fields=givenName,givenName", {"givenName"}, id="twice-the-same"),
    pytest.param("fields[]=givenName&fields%5B%5D=familyName", {"givenName", "familyName"}, id="brackets"),
    pytest.param("fields=givenName%2CfamilyName", {"givenName", "familyName"}, id="encoded-comma"),
    pytest.param("fields=%20givenName%20,+familyName", {"givenName", "familyName"}, id="spaces-around"),
    pytest.param("fields=agents,userIds,grades", {"agents", "userIds", "grades"}, id="lists"),
    pytest.param("fields=metadata", {"metadata"}, id="metadata"),
]


@in_one_test
@each_version
@pytest.mark.parametrize(("query", "names"), TAKEN)
def test_these_fields_come_back(client: RosterClient, version: str, query: str, names: set[str]) -> None:
    for path in ("/users/spr-student-1", "/students"):
        answer = client.call(version, path, query)
        (record,) = (item for item in client.call(version, path).records if item["sourcedId"] == "spr-student-1")
        assert {name: record[name] for name in names} in answer.records
        assert answer.info is None


UNKNOWN = [
    pytest.param("shoeSize", id="unknown"),
    pytest.param("GivenName", id="other-case"),
    pytest.param("agents.sourcedId", id="inside-a-reference"),
    pytest.param("metadata.busRoute", id="inside-metadata"),
    pytest.param("userIds.type", id="inside-a-list"),
    pytest.param("password", id="password"),
    pytest.param("*", id="star"),
    pytest.param("given_name", id="our-own-column"),
    pytest.param("feed_id", id="our-own-secret-column"),
    pytest.param('x"), (SELECT 1', id="injection"),
    pytest.param("é" * 1000, id="very-long"),
]


@in_one_test
@each_version
@pytest.mark.parametrize("path", ["/users", "/users/spr-student-1"])
@pytest.mark.parametrize("name", UNKNOWN)
def test_an_unknown_name_among_known_ones_is_ignored_with_a_warning(
    client: RosterClient, version: str, path: str, name: str
) -> None:
    answer = client.call(version, path, [("fields", "sourcedId"), ("fields", name), ("fields", "status")])
    assert answer.minor == "invalid_selection_field"
    # A comma parts names wherever it stands.
    assert name.split(",")[0][:80] in answer.description
    assert all(set(record) == {"sourcedId", "status"} for record in answer.records)


@in_one_test
@each_version
@pytest.mark.parametrize("path", ["/users", "/users/spr-student-1"])
@pytest.mark.parametrize("name", UNKNOWN)
def test_with_no_known_name_all_fields_come_back_with_a_warning(
    client: RosterClient, version: str, path: str, name: str
) -> None:
    answer = client.call(version, path, {"fields": name})
    assert answer.minor == "invalid_selection_field"
    assert answer.records == client.call(version, path).records


@each_version
@pytest.mark.parametrize(
    "query",
    [
        pytest.param("fields=", id="nothing"),
        pytest.param("fields", id="no-value"),
        pytest.param("fields=,", id="only-a-comma"),
        pytest.param("fields=%20", id="a-space"),
        pytest.param("fields=&fields=", id="nothing-twice"),
    ],
)
def test_no_name_is_400(client: RosterClient, version: str, query: str) -> None:
    for path in ("/users", "/users/spr-student-1"):
        answer = client.call(version, path, query)
        assert (answer.status, answer.minor) == (400, "invalid_blank_selection_field")
        assert "`fields`" in answer.description


@in_one_test
@each_version
@pytest.mark.parametrize("path", ["/users", "/users/spr-student-1"])
@pytest.mark.parametrize(
    "query",
    [
        pytest.param("fields=sourcedId,,status", id="between"),
        pytest.param("fields=,sourcedId,status", id="before"),
        pytest.param("fields=sourcedId,status,", id="after"),
        pytest.param("fields=sourcedId,status,%20", id="a-space"),
        pytest.param("fields=sourcedId,status&fields=", id="in-a-repetition"),
    ],
)
def test_a_blank_name_among_known_ones_is_ignored_with_a_warning(
    client: RosterClient, version: str, path: str, query: str
) -> None:
    answer = client.call(version, path, query)
    assert answer.minor == "invalid_blank_selection_field"
    assert "`fields`" in answer.description
    assert all(set(record) == {"sourcedId", "status"} for record in answer.records)


@each_version
def test_a_blank_name_beside_an_unknown_one_selects_nothing(client: RosterClient, version: str) -> None:
    answer = client.call(version, "/users", "fields=shoeSize,")
    assert answer.minor == "invalid_selection_field"
    assert "blank" in answer.description
    assert answer.records == client.call(version, "/users").records


@each_version
def test_a_nul_in_a_name_is_400(client: RosterClient, version: str) -> None:
    answer = client.call(version, "/users", "fields=given%00Name")
    assert (answer.status, answer.minor) == (400, "invaliddata")


@each_version
def test_five_hundred_names_are_answered(client: RosterClient, version: str) -> None:
    """However many unknown names there are, the warning stays short."""
    answer = client.call(
        version, "/users", {"fields": ",".join(f"name{number}" for number in range(500)), "limit": "1"}
    )
    assert answer.minor == "invalid_selection_field"
    assert len(answer.description) < 2000


@each_version
def test_several_warnings_stand_in_one_envelope(client: RosterClient, version: str) -> None:
    answer = client.call(version, "/users", "sort=height&fields=sourcedId,shoeSize&limit=2")
    assert answer.minor == "invalid_sort_field"
    assert "height" in answer.description
    assert "shoeSize" in answer.description
    assert answer.ids == client.call(version, "/users", "limit=2").ids


@pytest.mark.parametrize("filter_", ["status='Active'", "sourcedId='s+1'"])
@each_version
def test_of_several_warnings_the_first_gives_the_code(client: RosterClient, version: str, filter_: str) -> None:
    """In the order of the guide, whatever that of the query."""
    parts = {
        "invalid_filter_field": f"filter={filter_}",
        "invalid_sort_field": "sort=height",
        "invalid_selection_field": "fields=shoeSize,,status",
    }
    while parts:
        answer = client.call(version, "/users", "&".join(reversed(parts.values())))
        assert answer.minor == next(iter(parts))
        del parts[answer.minor]


@each_version
def test_a_warning_names_the_request_and_a_near_name(client: RosterClient, version: str) -> None:
    answer = client.call(version, "/users", "fields=givenname")
    assert "'givenName'" in answer.description
    assert "/users?fields=givenname" in answer.description


@pytest.mark.shows("Visibility", "Without its scope, `metadata` is an unknown name.")
@each_version
def test_metadata_is_an_unknown_name_without_its_scope(client: RosterClient, version: str) -> None:
    others = [scope for scope in SCOPES if scope != ORGS_METADATA]
    for path in ("/orgs", "/orgs/spr-district"):
        shown = client.call(version, path, "fields=sourcedId,metadata")
        assert any("metadata" in record for record in shown.records)
        hidden = client.call(version, path, "fields=sourcedId,metadata", scopes=others)
        assert hidden.minor == "invalid_selection_field"
        assert all(set(record) == {"sourcedId"} for record in hidden.records)


@each_version
def test_fields_do_not_change_which_records_come_back_nor_their_order(client: RosterClient, version: str) -> None:
    """What is filtered and sorted by need not be shown."""
    query = {"filter": "familyName~'o'", "sort": "givenName", "orderBy": "desc", "limit": "5"}
    assert (
        client.call(version, "/users", {**query, "fields": "sourcedId"}).ids
        == client.call(version, "/users", query).ids
    )
