"""Every reference that is shown leads to a record that the same caller gets."""

from __future__ import annotations

from typing import Any

import pytest

from .client import CORE, DEMOGRAPHICS, FULL, SCOPES, VERSIONS, RosterClient
from .document import walk
from .model import RESOURCES

each_version = pytest.mark.parametrize("version", VERSIONS)


def references(records: Any) -> list[dict[str, str]]:
    """Every reference inside some records."""
    return [value for _, value in walk(records) if isinstance(value, dict) and "href" in value]


@each_version
@pytest.mark.parametrize(
    ("vendor", "scopes"),
    [
        pytest.param("both", SCOPES, id="all"),
        pytest.param("springfield", SCOPES, id="one-district"),
        pytest.param("elementary", SCOPES, id="one-school"),
        pytest.param("north", SCOPES, id="north"),
        pytest.param("south", SCOPES, id="south"),
        pytest.param("springfield", (FULL, DEMOGRAPHICS), id="no-guardians"),
        pytest.param("elementary", (CORE, DEMOGRAPHICS), id="one-school-no-guardians"),
    ],
)
def test_every_href_resolves_for_the_same_caller(
    client: RosterClient, version: str, vendor: str, scopes: tuple[str, ...]
) -> None:
    """Starting from all collections, through everything that is shown on the way; also where only core is allowed."""
    found: dict[str, dict[str, str]] = {}
    shown: dict[tuple[str, str], Any] = {}
    for path in RESOURCES:
        for record in client.call(version, path, vendor=vendor, scopes=scopes).records:
            shown[path, record["sourcedId"]] = record
            found |= {item["href"]: item for item in references(record)}
    assert len(found) > 10
    for href, item in found.items():
        answer = client.follow(version, href, vendor=vendor, scopes=scopes)
        assert answer.ids == [item["sourcedId"]], href
        assert answer.key == item["type"]
        path = "/" + href.rpartition("/")[0].rpartition("/")[2]
        assert answer.records == [shown[path, item["sourcedId"]]]


@each_version
def test_references_of_a_record_are_those_that_its_collection_shows(client: RosterClient, version: str) -> None:
    """No path shows more of a record than another: nested ones show the same record as the plain one."""
    plain = {record["sourcedId"]: record for record in client.call(version, "/users", vendor="elementary").records}
    for path in (
        "/students",
        "/teachers",
        "/schools/spr-elementary/students",
        "/classes/spr-class-math3-a/students",
        "/schools/spr-elementary/classes/spr-class-math3-a/teachers",
    ):
        for record in client.call(version, path, vendor="elementary").records:
            assert record == plain[record["sourcedId"]]


def test_profile_addresses_lead_to_the_user_who_has_the_profile(client: RosterClient) -> None:
    addresses = [
        value for name, value in walk(client.call("v1p2", "/users").json) if name in ("profileId", "userProfile")
    ]
    assert len(addresses) == 5
    for address in addresses:
        (record,) = client.follow("v1p2", address.partition("#")[0]).records
        assert address in [profile["profileId"] for profile in record["userProfiles"]]
